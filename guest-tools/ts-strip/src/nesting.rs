//! How deep a source nests, seen from its tokens, before it is parsed.
//!
//! The parser goes down once for each bracket, for each operator that waits for its right side, and for each statement
//! that is the body of another one, and has no limit of its own. So the limit is enforced here. The count may be too
//! high, never too low: where the tokens alone do not tell whether something is still open, it counts as open.

use crate::{StripError, StripErrorKind, trivia};

/// See [`crate::MAX_NESTING`].
pub(crate) const LIMIT: usize = 128;

/// What a token means for the one after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A value may begin, and nothing that goes on with one.
    Operator,
    /// A value has ended.
    Value,
    /// A block or a value has ended.
    CloseBrace,
    /// The head of `if`, `for`, `while` or `with` has ended: a statement begins.
    Head,
    /// One or the other.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Top,
    Paren { head: bool },
    Square,
    Brace,
    Template,
    Angle,
}

/// A bracket that is open.
struct Open {
    kind: Kind,
    /// What waits for its right side in it.
    pending: usize,
}

struct Scan<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    open: Vec<Open>,
    /// All that is open and all that waits.
    depth: usize,
    before: Before,
    /// The last token was `.` or `?.`, so that a word after it is a name.
    after_dot: bool,
    /// The last word was one after which `(` opens the head of a statement.
    head_next: bool,
    /// A statement has ended, unless an `else` follows.
    ended: bool,
    /// The last word was `for`, so that an `await` still belongs to the head.
    after_for: bool,
    /// Within the dotted name of a namespace.
    namespace: bool,
}

/// Refuses a source that nests deeper than [`LIMIT`].
pub(crate) fn check(source: &str) -> Result<(), StripError> {
    let mut scan = Scan {
        source,
        bytes: source.as_bytes(),
        at: 0,
        open: vec![Open { kind: Kind::Top, pending: 0 }],
        depth: 0,
        before: Before::Operator,
        after_dot: false,
        head_next: false,
        ended: false,
        after_for: false,
        namespace: false,
    };
    if source.starts_with("#!") {
        scan.at = trivia::comment_len(format!("//{}", source.get(2..).unwrap_or_default()).as_bytes());
    }
    while scan.at < scan.bytes.len() {
        scan.token()?;
        if scan.depth > LIMIT {
            let message = format!(
                "nests deeper than {LIMIT}; take the inner parts out into functions, variables or types of their own"
            );
            return Err(StripError::at(source, scan.at, StripErrorKind::Limit, message));
        }
    }
    Ok(())
}

impl Scan<'_> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn token(&mut self) -> Result<(), StripError> {
        let start = self.at;
        self.at = trivia::skip(self.bytes, start);
        let newline = trivia::has_newline(self.bytes.get(start..self.at).unwrap_or_default());
        let Some(first) = self.rest().first().copied() else { return Ok(()) };
        let after_dot = std::mem::take(&mut self.after_dot);
        let head_next = std::mem::take(&mut self.head_next);
        let after_for = std::mem::take(&mut self.after_for);
        if self.ended && !first.is_ascii_lowercase() {
            // Only a word can go on with a statement that has ended.
            self.reset();
        }
        match first {
            b'0'..=b'9' => {
                self.begin_value(newline);
                while matches!(self.rest(), [b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.', ..]) {
                    self.at += 1;
                }
                self.before = Before::Value;
            }
            b'"' | b'\'' => {
                self.begin_value(newline);
                self.string(first);
                self.before = Before::Value;
            }
            b'`' => {
                self.at += 1;
                self.template_text();
            }
            b'(' => self.push(Kind::Paren { head: head_next }),
            b'[' => self.push(Kind::Square),
            b'{' => {
                self.namespace = false;
                self.push(Kind::Brace);
            }
            b')' | b']' | b'}' => self.close(first),
            b'/' => self.slash()?,
            b';' => {
                self.at += 1;
                self.leave_angles();
                self.ended = true;
                self.before = Before::Operator;
            }
            b',' => {
                self.at += 1;
                self.reset_top();
                self.before = Before::Operator;
            }
            b'\\' | b'$' | b'_' | b'#' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => self.word(after_dot, after_for, newline),
            _ => self.operator(newline),
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind) {
        self.at += 1;
        self.open.push(Open { kind, pending: 0 });
        self.depth += 1;
        self.before = Before::Operator;
    }

    fn pop(&mut self) {
        if self.open.len() > 1
            && let Some(open) = self.open.pop()
        {
            self.depth = self.depth.saturating_sub(1 + open.pending);
        }
    }

    fn wait(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.pending += 1;
            self.depth += 1;
        }
    }

    /// Nothing waits any more between here and the innermost open bracket.
    fn reset_top(&mut self) {
        if let Some(open) = self.open.last_mut() {
            self.depth = self.depth.saturating_sub(open.pending);
            open.pending = 0;
        }
    }

    fn leave_angles(&mut self) {
        while self.open.last().is_some_and(|open| open.kind == Kind::Angle) {
            self.pop();
        }
    }

    /// A statement or a member has ended, and with it all that waited in it.
    fn reset(&mut self) {
        self.ended = false;
        self.leave_angles();
        self.reset_top();
    }

    /// A token that begins a value: after one that ended a value on an earlier line, it begins a statement.
    fn begin_value(&mut self, newline: bool) {
        if self.before == Before::CloseBrace || self.ended || (newline && self.before == Before::Value) {
            self.reset();
        }
    }

    fn close(&mut self, bracket: u8) {
        self.at += 1;
        self.ended = false;
        let matches = |kind: Kind| match bracket {
            b')' => matches!(kind, Kind::Paren { .. }),
            b']' => kind == Kind::Square,
            _ => matches!(kind, Kind::Brace | Kind::Template),
        };
        // An angle that is open here was a comparison. Anything else that does not match stops the parser.
        let open = self.open.iter().rposition(|open| open.kind != Kind::Angle);
        let Some(kind) = open.and_then(|at| self.open.get(at)).map(|open| open.kind) else { return };
        if matches(kind) {
            self.leave_angles();
            self.pop();
        }
        match kind {
            Kind::Template => self.template_text(),
            Kind::Paren { head: true } => self.before = Before::Head,
            _ if bracket == b'}' => self.before = Before::CloseBrace,
            _ => self.before = Before::Value,
        }
    }

    /// The text of a template up to its end or to the next `${`.
    fn template_text(&mut self) {
        loop {
            match self.rest() {
                [] => return,
                [b'\\', ..] => self.at += 2,
                [b'$', b'{', ..] => {
                    self.at += 1;
                    return self.push(Kind::Template);
                }
                [b'`', ..] => {
                    self.at += 1;
                    self.before = Before::Value;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        loop {
            match self.rest() {
                [] | [b'\n' | b'\r', ..] => return,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                [b'\\', ..] => self.at += 2,
                [byte, ..] if *byte == quote => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn slash(&mut self) -> Result<(), StripError> {
        // Looked for only where there may be one: it reads on to the end of the line.
        let regex = if self.before == Before::Value { None } else { self.regex_len() };
        match (self.before, regex) {
            (Before::Value, _) | (Before::CloseBrace | Before::Unknown, None) => {
                self.at += 1;
                self.before = Before::Operator;
            }
            (Before::Operator | Before::Head, length) => {
                self.at += length.unwrap_or(1);
                self.before = Before::Value;
            }
            (Before::CloseBrace | Before::Unknown, Some(length)) => {
                // A division or a regular expression. Harmless if both readings go on alike after it.
                let inside = self.rest().get(1..length.saturating_sub(1)).unwrap_or_default();
                let after = self.rest().get(length).copied();
                let unclear = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'/' | b'\\');
                if inside.iter().any(unclear) || matches!(after, Some(b'/' | b'*')) {
                    let message = "it is not clear whether this `/` divides or begins a regular expression; put `;` \
                                   before it, or parentheses around it";
                    return Err(StripError::at(self.source, self.at, StripErrorKind::Unsupported, message));
                }
                let opened = inside.iter().filter(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<')).count();
                for _ in 0..opened {
                    self.wait();
                }
                self.at += length;
                self.before = Before::Unknown;
            }
        }
        Ok(())
    }

    /// The length of the regular expression that begins here, without its flags; `None` if the line ends before it.
    fn regex_len(&self) -> Option<usize> {
        let rest = self.rest();
        let (mut at, mut class) = (1, false);
        loop {
            let tail = rest.get(at..)?;
            match tail.first()? {
                _ if trivia::newline_len(tail) > 0 => return None,
                b'\\' => at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => return Some(at + 1),
                _ => {}
            }
            at += 1;
        }
    }

    fn word(&mut self, after_dot: bool, after_for: bool, newline: bool) {
        let start = self.at;
        if let [b'#', ..] = self.rest() {
            self.at += 1;
        }
        let mut escaped = false;
        loop {
            self.at = trivia::word_end(self.bytes, self.at);
            match self.rest() {
                [b'\\', b'u', b'{', rest @ ..] => {
                    self.at += 3 + rest.iter().position(|byte| *byte == b'}').map_or(rest.len(), |end| end + 1);
                    escaped = true;
                }
                [b'\\', ..] => {
                    self.at += 2;
                    escaped = true;
                }
                _ => break,
            }
        }
        // A lone `#`, which the parser will complain about.
        self.at = self.at.max(start + 1);
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        if escaped && !after_dot {
            // It may spell a keyword, of any kind. So it counts, and goes on counting to the end.
            self.depth += 1;
            self.before = Before::Unknown;
            return;
        }
        let role = if after_dot { Role::Name } else { role(word) };
        match role {
            Role::Infix => {
                self.ended = false;
                self.before = if word == b"in" || word == b"instanceof" { Before::Operator } else { Before::Unknown };
                if matches!(word, b"extends" | b"is") {
                    self.wait();
                }
                return;
            }
            // These end a body and go on with the statement around it.
            Role::Tail => self.ended = false,
            Role::Clause => self.reset(),
            _ => self.begin_value(newline),
        }
        let (waits, before) = match role {
            Role::Name | Role::Jump => (false, Before::Value),
            Role::Word | Role::Clause | Role::Infix => (false, Before::Operator),
            Role::Tail => (word == b"while", Before::Operator),
            Role::Statement | Role::Prefix => (true, Before::Operator),
            Role::Contextual => (true, Before::Unknown),
            Role::Modifier | Role::Namespace => (false, Before::Unknown),
        };
        if waits {
            self.wait();
        }
        self.before = before;
        self.namespace |= role == Role::Namespace;
        self.after_for = word == b"for";
        self.head_next = matches!(word, b"if" | b"for" | b"while" | b"with") || (after_for && word == b"await");
    }

    #[expect(clippy::match_same_arms, reason = "the arms are in the order in which tokens are told apart")]
    fn operator(&mut self, newline: bool) {
        let value = matches!(self.before, Before::Value | Before::CloseBrace | Before::Unknown);
        let postfix = self.before == Before::Value && !newline;
        let (length, waits, before) = match self.rest() {
            [b'.', b'.', b'.', ..] => (3, false, Before::Operator),
            [b'.', b'0'..=b'9', ..] => (1, false, Before::Value),
            [b'?', b'.', ..] => {
                self.after_dot = true;
                (2, false, Before::Operator)
            }
            [b'.', ..] => {
                self.after_dot = true;
                (1, self.namespace, Before::Operator)
            }
            [b'=', b'=', b'=', ..] | [b'!', b'=', b'=', ..] => (3, false, Before::Operator),
            [b'=' | b'!', b'=', ..] | [b'<' | b'>', b'=', ..] => (2, false, Before::Operator),
            [b'=', b'>', ..] => (2, true, Before::Operator),
            [b'=', ..] => (1, true, Before::Operator),
            [b'*', b'*', ..] => (2, true, Before::Operator),
            [b'?', b'?', b'=', ..] => (3, true, Before::Operator),
            [b'?', b'?', ..] => (2, false, Before::Operator),
            [b'?' | b':' | b'~', ..] => (1, true, Before::Operator),
            [b'+', b'+', ..] | [b'-', b'-', ..] if postfix => (2, false, Before::Value),
            [b'+', b'+', ..] | [b'-', b'-', ..] => (2, true, Before::Operator),
            [b'+' | b'-', ..] => (1, self.before != Before::Value, Before::Operator),
            [b'!', ..] if postfix => (1, false, Before::Value),
            [b'!', ..] if value => (1, true, Before::Unknown),
            [b'!', ..] => (1, true, Before::Operator),
            [b'<', ..] => {
                if self.before != Before::Value {
                    // `<T>x` waits for `x` when the bracket is closed.
                    self.wait();
                }
                self.push(Kind::Angle);
                return;
            }
            [b'>', ..] => {
                let angle = self.open.last().is_some_and(|open| open.kind == Kind::Angle);
                if angle {
                    self.pop();
                }
                (1, false, if angle { Before::Unknown } else { Before::Operator })
            }
            _ => (1, false, Before::Operator),
        };
        self.ended = false;
        if waits {
            self.wait();
        }
        self.at += length;
        self.before = before;
    }
}

/// What a word can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A name or a value.
    Name,
    /// A keyword after which a value or a name follows; nothing waits for it.
    Word,
    /// A keyword that ends a statement, or that is followed by a label.
    Jump,
    /// `case` and `default`: never within a statement, except in its braces.
    Clause,
    /// A keyword that begins a statement and waits for what follows.
    Statement,
    /// A keyword that waits for what follows.
    Prefix,
    /// The same, but also a name in other places.
    Contextual,
    /// A keyword of declarations that is also a name in other places.
    Modifier,
    /// A keyword between two values or types.
    Infix,
    /// A keyword that goes on with a statement after the statement in it.
    Tail,
    /// `namespace` and `module`, whose dotted name nests.
    Namespace,
}

fn role(word: &[u8]) -> Role {
    match word {
        b"in" | b"instanceof" | b"as" | b"satisfies" | b"of" | b"extends" | b"implements" | b"is" | b"from" => {
            Role::Infix
        }
        b"else" | b"while" | b"catch" | b"finally" => Role::Tail,
        b"case" | b"default" => Role::Clause,
        b"break" | b"continue" => Role::Jump,
        b"if" | b"for" | b"do" | b"with" | b"return" | b"throw" => Role::Statement,
        b"const" | b"let" | b"var" | b"class" | b"function" | b"import" | b"export" | b"enum" | b"try" | b"switch" => {
            Role::Word
        }
        b"typeof" | b"void" | b"delete" | b"await" | b"yield" | b"new" => Role::Prefix,
        b"keyof" | b"unique" | b"readonly" | b"infer" | b"asserts" => Role::Contextual,
        b"abstract" | b"declare" | b"async" | b"out" | b"accessor" | b"static" | b"public" | b"private"
        | b"protected" | b"override" | b"type" => Role::Modifier,
        b"namespace" | b"module" => Role::Namespace,
        _ => Role::Name,
    }
}
