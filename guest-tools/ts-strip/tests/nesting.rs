//! Deep nesting is refused with an error, and never ends the stack.

#![expect(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use atoll_ts_strip::{Options, StripError, StripErrorKind, Stripped, strip};

/// What nests: how it opens, what is in the middle, how it closes, and what comes before all of it.
const NESTS: &[(&str, &str, &str, &str)] = &[
    ("(", "x", ")", ""),
    ("[", "x", "]", ""),
    ("{", "", "}", ""),
    ("{a:", "x", "}", "x="),
    ("f(", "x", ")", ""),
    ("f<A>(", "x", ")", ""),
    ("new A(", "x", ")", ""),
    ("a[", "x", "]", ""),
    ("a?.(", "x", ")", ""),
    ("`${", "x", "}`", ""),
    ("!", "x", "", ""),
    ("- ", "x", "", ""),
    ("typeof\u{a0}", "x", "", ""),
    ("typeof\u{200b}", "x", "", ""),
    ("typ\\u0065of ", "x", "", ""),
    ("await/**/", "x", "", ""),
    ("new\n", "x", "", ""),
    ("a**", "x", "", ""),
    ("a=", "x", "", ""),
    ("a??=", "x", "", ""),
    ("a\n=", "x", "", ""),
    ("a?", "x", ":y", ""),
    ("a?b:", "x", "", ""),
    ("a\n?b\n:", "x", "", ""),
    ("a<b>\nc?", "x", ":y", ""),
    ("x=>", "1", "", ""),
    ("(x)=>{", "", "}", ""),
    ("async()=>{", "", "}", ""),
    ("(x:A=", "1", ")=>1", "y="),
    ("<T>", "x", "", ""),
    ("<T,>(x)=>", "x", "", ""),
    ("(a as ", "b", ")", "y=b as "),
    ("function f(){", "", "}", ""),
    ("class{x=", "1", "}", "x="),
    ("class{x=1\ny=", "1", "}", "x="),
    ("class{[k:string]:A;y=", "1", "}", "x="),
    ("if(a)", ";", "", ""),
    ("if(a)\n", ";", "", ""),
    ("if(a);else ", ";", "", ""),
    ("if(a){}else\n", ";", "", ""),
    ("for(;;)", ";", "", ""),
    ("for await(x of y)\n", ";", "", ""),
    ("while(a)\n", ";", "", ""),
    ("do ", ";", " while(a)", ""),
    ("a:", ";", "", ""),
    ("a:\n", ";", "", ""),
    ("switch(a){case 1:", ";", "}", ""),
    ("switch(a){default:if(b)", ";", "}", ""),
    ("try{", "", "}finally{}", ""),
    ("A<", "B", ">", "type T="),
    ("A<a,", "B", ">", "type T="),
    ("A<keyof a,", "B", ">", "type T="),
    ("(", "B", ")", "type T="),
    ("{a:", "B", "}", "type T="),
    ("{a:A;b:", "B", "}", "type T="),
    ("[", "B", "]", "type T="),
    ("[A,", "B", "]", "type T="),
    ("()=>", "B", "", "type T="),
    ("new()=>", "B", "", "type T="),
    ("keyof ", "B", "", "type T="),
    ("readonly\n", "B[]", "", "type T="),
    ("A extends B ? ", "B", ": C", "type T="),
    ("A extends B ? C : ", "B", "", "type T="),
    ("`${", "A", "}`", "type T="),
    ("[", "x", "]", "let "),
    ("{a:", "x", "}", "let "),
    ("{a=", "x", "}", "let "),
    ("namespace A{", "", "}", "declare "),
    ("a.", "a{}", "", "declare namespace "),
    ("if(a)/\"/;[", "1", "]", ""),
    ("\"\\\"\",[", "1", "]", "["),
    ("/[/\"]/,[", "1", "]", "["),
    ("a!/b/[", "1", "]", ""),
    ("a++/[", "1", "]", ""),
];

fn nest(nest: &(&str, &str, &str, &str), depth: usize) -> String {
    let (open, inner, close, before) = nest;
    format!("{before}{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Strips on a thread with as little stack as a guest has, in units of this build: unoptimised code takes more.
fn strip_in_a_small_stack(source: String) -> Result<Stripped, StripError> {
    let strip = move || strip(&source, Options::module());
    std::thread::Builder::new().stack_size(1 << 20).spawn(strip).unwrap().join().unwrap()
}

#[test]
fn what_nests_a_hundred_thousand_times_is_an_error() {
    for nests in NESTS {
        let result = strip_in_a_small_stack(nest(nests, 100_000));
        let kind = result.as_ref().map(|_| ()).map_err(|error| error.kind);
        assert_eq!(kind, Err(StripErrorKind::Limit), "{nests:?}: {result:?}");
    }
}

#[test]
fn whatever_passes_the_limit_fits_the_stack() {
    for nests in NESTS {
        for depth in (1..=atoll_ts_strip::MAX_NESTING + 2).rev().step_by(5) {
            let _ = strip_in_a_small_stack(nest(nests, depth));
        }
    }
}

/// Read as a division, the string hides brackets; read as a regular expression, it is the other way round.
#[test]
fn a_slash_that_could_be_two_things_is_refused_if_they_nest_differently() {
    let unclear = "x = {}\n/\"/; [\n/\"/";
    let error = strip(unclear, Options::module()).unwrap_err();
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (
            StripErrorKind::Unsupported,
            "line 2, column 1: it is not clear whether this `/` divides or begins a regular expression; put `;` before \
             it, or parentheses around it"
        )
    );
    for clear in ["if (a) {}\n;/\"/.test(b)", "x = ({})\n/\"/.test(b)/\"\"", "if (a) {}\n/[a-z]+/.test(b)"] {
        if let Err(error) = strip(clear, Options::module()) {
            assert_eq!(error.kind, StripErrorKind::Syntax, "{clear}: {error}");
        }
    }
}

#[test]
fn what_is_long_but_not_deep_is_read() {
    let long = [
        format!("x = a{}", " + a".repeat(50_000)),
        format!("x = a{}", " && a!".repeat(50_000)),
        format!("x = a{}", ".b!".repeat(50_000)),
        format!("x = a{}", "?.b(c as T)".repeat(50_000)),
        format!("x = a{}", "[0]()`b`".repeat(20_000)),
        format!("x = a{}", " as T".repeat(50_000)),
        format!("a{} = 1", ".b!".repeat(50_000)),
        format!("type T = A{}", "[]".repeat(50_000)),
        format!("type T = A{}", " | A".repeat(50_000)),
        format!("type T = A{}", ".B".repeat(50_000)),
        format!("let x: typeof a{};", ".B".repeat(50_000)),
        format!("enum A {{ X = 1{} }}", " + 1".repeat(50_000)),
        format!("x = [{}]", "-a, !b, c => d, e ? f : g, ".repeat(20_000)),
        "if (a) b = c => -d\n".repeat(20_000),
        "if (a < b) { x = y => z } else { w = !v }\n".repeat(20_000),
        "interface A<T> { a: Map<string, T>; b?: T }\n".repeat(20_000),
        format!("switch (a) {{ {} }}", "case 1:\n  b = c ? d : e\n  break\n".repeat(20_000)),
        format!("switch (a) {{ {} }}", "case 'a':\n".repeat(20_000)),
        format!("x = {{ {} }}", "a: b => c ? d : e,\n".repeat(20_000)),
        format!("class A {{ {} }}", "private readonly a: T = b ? c : d\n".repeat(20_000)),
        format!("a{}", "\n  .then(b => { if (c) d = !e })".repeat(20_000)),
        "for (let i = 0; i < a; i++) b[i] = -c\n".repeat(20_000),
        "x = `${a => b}`\n".repeat(20_000),
        "a = /[(]/.exec(b) / c\n".repeat(20_000),
    ];
    for source in long {
        let start: String = source.chars().take(60).collect();
        if let Err(error) = strip_in_a_small_stack(source) {
            panic!("{start}: {error}");
        }
    }
}
