//! Ways to change an input so that whoever reads it may stumble.

use proptest::{prelude::*, sample::Index};

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Mutation {
    /// One bit is another one.
    Flip(Index, u8),
    /// One byte is another one.
    Set(Index, u8),
    /// It ends early.
    Cut(Index),
    /// It ends at the end of a section, or a few bytes before or after it.
    CutAtSection(Index, i8),
    /// A section comes twice.
    Repeat(Index),
    /// A section is missing.
    Drop(Index),
    /// Two sections change places.
    Swap(Index, Index),
    /// A section says it is as long as can be.
    Stretch(Index),
    /// A section gets what another input has there.
    Graft(Index, Index, Index),
    /// The version and layer that it claims to be of.
    Head(u8, u8),
    /// Some bytes come many times.
    Pile(Index, u8, u16),
    /// A text is put somewhere in it.
    Insert(Index, &'static str),
    /// A number is put somewhere in it: the largest ones there are.
    Number(Index, bool),
}

/// What texts stumble over.
const WORDS: [&str; 22] = [
    "\0",
    "\u{feff}",
    "\u{202e}",
    "é",
    "\u{10ffff}",
    "..",
    "/../",
    "*",
    "**",
    "$workspace",
    "://",
    "@",
    "[",
    "]",
    "{",
    "\"",
    "\\u0000",
    "'''",
    "\n[",
    "= ",
    "-1e999",
    "{\"$ref\":\"#\"}",
];

pub(super) fn any_mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let at = any::<Index>;
    let one = prop_oneof![
        6 => (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        1 => at().prop_map(Mutation::Cut),
        2 => (at(), -3..4_i8).prop_map(|(at, by)| Mutation::CutAtSection(at, by)),
        1 => at().prop_map(Mutation::Repeat),
        1 => at().prop_map(Mutation::Drop),
        1 => (at(), at()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        1 => at().prop_map(Mutation::Stretch),
        1 => (at(), at(), at()).prop_map(|(a, b, c)| Mutation::Graft(a, b, c)),
        1 => (0..16_u8, 0..3_u8).prop_map(|(version, layer)| Mutation::Head(version, layer)),
        1 => (at(), 1..32_u8, 1..4_000_u16).prop_map(|(at, length, times)| Mutation::Pile(at, length, times)),
        3 => (at(), proptest::sample::select(&WORDS[..])).prop_map(|(at, word)| Mutation::Insert(at, word)),
        1 => (at(), any::<bool>()).prop_map(|(at, wide)| Mutation::Number(at, wide)),
    ];
    proptest::collection::vec(one, 1..5)
}

/// Inputs are kept below this, so that trying one takes no time.
const LONGEST: usize = 1 << 20;

impl Mutation {
    /// The changed input. `others` are what may be grafted.
    pub(super) fn apply(&self, mut input: Vec<u8>, others: &[&[u8]]) -> Vec<u8> {
        if input.is_empty() {
            return input;
        }
        let length = input.len();
        match self {
            Self::Flip(at, bit) => input[at.index(length)] ^= 1 << bit,
            Self::Set(at, byte) => input[at.index(length)] = *byte,
            Self::Cut(at) => input.truncate(at.index(length)),
            Self::CutAtSection(at, by) => {
                let sections = sections(&input);
                if let Some(section) = pick(&sections, at) {
                    input.truncate(section.end.saturating_add_signed(isize::from(*by)));
                }
            }
            Self::Repeat(at) => {
                if let Some(section) = pick(&sections(&input), at) {
                    let again = input[section.start..section.end].to_vec();
                    input.splice(section.end..section.end, again);
                }
            }
            Self::Drop(at) => {
                if let Some(section) = pick(&sections(&input), at) {
                    input.drain(section.start..section.end);
                }
            }
            Self::Swap(a, b) => {
                let all = sections(&input);
                if let (Some(a), Some(b)) = (pick(&all, a), pick(&all, b)) {
                    let (a, b) = if a.start <= b.start { (a, b) } else { (b, a) };
                    if a.end <= b.start {
                        let first = input[a.start..a.end].to_vec();
                        let second = input.splice(b.start..b.end, first).collect::<Vec<u8>>();
                        input.splice(a.start..a.end, second);
                    }
                }
            }
            Self::Stretch(at) => {
                if let Some(section) = pick(&sections(&input), at) {
                    input.splice(section.start + 1..section.body, [0xff, 0xff, 0xff, 0xff, 0x0f]);
                }
            }
            Self::Graft(other, from, to) => {
                let other = others[other.index(others.len())];
                if let (Some(from), Some(to)) = (pick(&sections(other), from), pick(&sections(&input), to)) {
                    input.splice(to.start..to.end, other[from.start..from.end].iter().copied());
                }
            }
            Self::Head(version, layer) => {
                for (at, byte) in [(4, *version), (6, *layer)] {
                    if let Some(place) = input.get_mut(at) {
                        *place = byte;
                    }
                }
            }
            Self::Pile(at, size, times) => {
                let at = at.index(length);
                let piece = input[at..length.min(at + usize::from(*size))].repeat(usize::from(*times));
                input.splice(at..at, piece);
            }
            Self::Insert(at, word) => {
                let at = at.index(length + 1);
                input.splice(at..at, word.bytes());
            }
            Self::Number(at, wide) => {
                let at = at.index(length);
                let number: &[u8] = if *wide { &[0xff; 9] } else { &[0xff, 0xff, 0xff, 0xff, 0x0f] };
                input.splice(at..at + 1, number.iter().copied());
            }
        }
        input.truncate(LONGEST);
        input
    }
}

/// A section of a component or of a module in it.
#[derive(Clone, Copy)]
struct Section {
    start: usize,
    /// Where its content begins, after its kind and its length.
    body: usize,
    end: usize,
}

fn pick(sections: &[Section], at: &Index) -> Option<Section> {
    if sections.is_empty() { None } else { Some(sections[at.index(sections.len())]) }
}

/// The sections of a WebAssembly file, those of what is nested in it too; none of anything else.
fn sections(bytes: &[u8]) -> Vec<Section> {
    let mut found = Vec::new();
    if bytes.starts_with(b"\0asm") {
        collect(bytes, 8, bytes.len(), &mut found);
    }
    found
}

fn collect(bytes: &[u8], mut at: usize, end: usize, found: &mut Vec<Section>) {
    while at < end && found.len() < 10_000 {
        let Some((length, body)) = number(bytes, at + 1) else { return };
        let section = Section { start: at, body, end: body.saturating_add(length) };
        if section.end > end {
            return;
        }
        found.push(section);
        // Modules and components have sections themselves.
        if bytes[body..section.end].starts_with(b"\0asm") {
            collect(bytes, body + 8, section.end, found);
        }
        at = section.end;
    }
}

/// A number in LEB128, and where it ends.
fn number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        value |= usize::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
}
