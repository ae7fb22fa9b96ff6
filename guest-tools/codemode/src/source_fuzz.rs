//! Scripts with pieces of others in them, cut off, doubled and moved: whatever comes out may be refused, and nothing else may
//! happen. A moment of it is always made, a minute with `ATOLL_LONG_TESTS=1`.

use std::path::Path;
use std::time::{Duration, Instant};

use atoll_ts_strip::{Language, Options as StripOptions, SourceKind, strip};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use super::prepare;

/// What is hard to read.
const TYPED: &str = "// @options: {\"timeout_ms\": 5}\n\
    import type { A } from './a';\nexport default abstract class B<const T extends keyof A = never> implements C<T> {\n\
    \u{20} declare readonly x?: string; static #y!: number; constructor(private z: T) { super(); }\n\
    \u{20} get a(): T | undefined { return <T>this.z!; }\n}\n\
    enum D { E = 1 << 2, F = 'f', G = E | D.E }\nconst enum H { I }\nnamespace J { export type K = 1 }\n\
    function f(this: Window, x: unknown): asserts x is string;\nfunction f<T,>(x?: T, ...rest: T[]): void {}\n\
    type L = { [M in keyof T as `${M}!`]-?: T[M] extends infer N ? N : never };\n\
    let o = { p: async <T>(q: T): Promise<T> => q } satisfies object as any, r = s! as const;\n\
    label: for await (const t of u?.v?.[w] ?? x) { if (y) continue label; else return z }\n\
    `a ${`b ${c}`} \\u{1F600}`; /[/\\]]+(?<d>e)/dgv.exec(f) || g / h / i;\n";

const PIECES: [&str; 44] = [
    "\0",
    "\u{feff}",
    "\u{2028}",
    "\r",
    "\r\n",
    "\t",
    "é",
    "😀",
    "`",
    "${",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "=>",
    "?.",
    "!",
    ":",
    ";",
    "...",
    "/",
    "//",
    "/*",
    "*/",
    "<!--",
    "\\",
    "\\u{",
    "\"",
    "#!",
    "@",
    " as ",
    " satisfies any",
    "async ",
    "await ",
    "return ",
    "export ",
    "import ",
    "enum X {",
    "```ts\n",
    "\n```\n",
];

/// One change to a script.
#[derive(Clone, Debug)]
enum Change {
    Insert(Index, &'static str),
    Delete(Index, u8),
    Double(Index, u8, u8),
    Cut(Index),
    Graft(Index, Index, Index, u8),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<Index>;
    let one = prop_oneof![
        5 => (at(), select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece)),
        4 => (at(), 1..12_u8).prop_map(|(at, length)| Change::Delete(at, length)),
        2 => (at(), 1..40_u8, 1..120_u8).prop_map(|(at, length, times)| Change::Double(at, length, times)),
        1 => at().prop_map(Change::Cut),
        2 => (at(), at(), at(), 1..60_u8).prop_map(|(to, other, from, length)| Change::Graft(to, other, from, length)),
    ];
    proptest::collection::vec(one, 0..6)
}

fn changed(mut text: Vec<char>, changes: &[Change], others: &[Vec<char>]) -> String {
    for change in changes {
        let length = text.len();
        let end = |at: usize, count: u8| length.min(at + usize::from(count));
        match change {
            Change::Insert(at, piece) => {
                let at = at.index(length + 1);
                text.splice(at..at, piece.chars());
            }
            _ if text.is_empty() => {}
            Change::Delete(at, count) => {
                let at = at.index(length);
                text.drain(at..end(at, *count));
            }
            Change::Double(at, count, times) => {
                let at = at.index(length);
                let piece = text[at..end(at, *count)].repeat(usize::from(*times));
                text.splice(at..at, piece);
            }
            Change::Cut(at) => text.truncate(at.index(length)),
            Change::Graft(to, other, from, count) => {
                let other = &others[other.index(others.len())];
                let from = from.index(other.len());
                let piece = other[from..other.len().min(from + usize::from(*count))].to_vec();
                let to = to.index(length);
                text.splice(to..to, piece);
            }
        }
    }
    text.into_iter().collect()
}

/// As many lines as the text has: places in it stay what they are.
fn same_lines(what: &str, text: &str, code: &str) -> Result<(), String> {
    let count = |text: &str| text.matches('\n').count();
    if count(text) == count(code) { Ok(()) } else { Err(format!("{what} has other lines: {code:?}")) }
}

fn holds(sent: &str) -> Result<(), String> {
    match prepare(sent) {
        Ok(prepared) => {
            same_lines("the script", &prepared.text, &prepared.code)?;
            same_lines("what is in the fence", sent.strip_prefix('\u{feff}').unwrap_or(sent), &prepared.text)?;
            for insertion in &prepared.insertions {
                let line = prepared.text.split('\n').nth(insertion.line as usize - 1).unwrap_or_default();
                if insertion.column as usize > line.len() {
                    return Err(format!("{insertion:?} is behind its line"));
                }
            }
        }
        Err(said) if said.ends_with("Nothing was run.") => {}
        Err(said) => return Err(format!("an error does not say that nothing was run: {said:?}")),
    }
    for kind in [SourceKind::Module, SourceKind::ScriptBody] {
        let options = |language| StripOptions { language, kind };
        let Ok(stripped) = strip(sent, options(Language::TypeScript)) else { continue };
        same_lines("a source", sent, &stripped.code)?;
        // What has no types any more is JavaScript.
        if let Err(error) = strip(&stripped.code, options(Language::JavaScript)) {
            return Err(format!("{} at {}:{} of {:?}", error.message, error.line, error.column, stripped.code));
        }
    }
    Ok(())
}

/// What the parser may take, in bytes. Its functions take many times as much of it here as in the component, for they are
/// not optimised, and nest as deep as `atoll_ts_strip` lets a source nest.
const STACK: usize = 64 << 20;

#[test]
fn no_script_however_damaged_harms_what_gets_it_ready() {
    let damaging = std::thread::Builder::new().stack_size(STACK).spawn(damage).unwrap();
    if let Err(panic) = damaging.join() {
        std::panic::resume_unwind(panic);
    }
}

fn damage() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/codemode");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let mut texts: Vec<String> = files.collect();
    texts.extend([TYPED.to_owned(), "Here:\r\n```ts\r\nmain()\r\n```\r\nIt does.".to_owned()]);
    texts.push(format!("{}x{}", "(".repeat(90), ")".repeat(90)));
    texts.sort();
    let texts: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let is_long = std::env::var_os("ATOLL_LONG_TESTS").is_some_and(|value| value == "1");
    let until = Instant::now() + Duration::from_secs(if is_long { 60 } else { 2 });
    let mut runner = TestRunner::new(Config::default());
    let strategy = (0..texts.len(), changes());
    while Instant::now() < until {
        let mut tree = strategy.new_tree(&mut runner).unwrap();
        let made = |(index, changes): &(usize, Vec<Change>)| changed(texts[*index].clone(), changes, &texts);
        let Err(mut reason) = holds(&made(&tree.current())) else { continue };
        let mut smallest = made(&tree.current());
        let mut goes_on = tree.simplify();
        while goes_on {
            let text = made(&tree.current());
            goes_on = match holds(&text) {
                Err(again) => {
                    (reason, smallest) = (again, text);
                    tree.simplify()
                }
                Ok(()) => tree.complicate(),
            };
        }
        panic!("{reason}: {smallest:?}");
    }
}
