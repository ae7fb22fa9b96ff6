#!/bin/sh
# Prints the sum and the mean of its arguments, which are whole numbers.
set -eu

sum=0
count=0
for number in "$@"; do
    sum=$((sum + number))
    count=$((count + 1))
done

# The mean, rounded down.
mean=$((sum / (count - 1)))

echo "sum $sum"
echo "mean $mean"
