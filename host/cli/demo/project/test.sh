#!/bin/sh
# Checks stats.sh; fails if any answer is wrong.
failures=0

check() {
    expected=$1
    shift
    got=$(sh stats.sh "$@" 2>&1 | tail -n 1)
    if [ "$got" = "$expected" ]; then
        echo "ok: mean of $*"
    else
        echo "FAILED: mean of $*: expected \"$expected\", got \"$got\""
        failures=$((failures + 1))
    fi
}

check "mean 4" 2 4 6
check "mean 10" 10 10
check "mean 7" 7

if [ "$failures" -gt 0 ]; then
    echo "$failures of 3 checks failed"
    exit 1
fi
echo "all 3 checks passed"
