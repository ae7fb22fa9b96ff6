//! TypeScript to the JavaScript it means, with every line and column where it was.
//!
//! Types are overwritten with blanks rather than cut out, so that an error of the running script, its stack and its
//! breakpoints name the place in the file that the user wrote, without a source map. What TypeScript generates code for
//! (enums, parameter properties) is generated; what has no meaning without a bundler or a newer engine is an error that
//! says what to write instead.
//!
//! This crate must never call the host, and never panic or overflow the stack, whatever the text is: it runs inside of
//! plugins, where either ends the plugin without a word. [`MAX_BYTES`] and [`MAX_NESTING`] see to the second.

mod classes;
mod edits;
mod enums;
mod erase;
mod error;
mod expressions;
mod loose;
mod modules;
mod nesting;
mod statements;
mod trivia;

pub use error::{StripError, StripErrorKind};

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

/// The longest source that is read, in bytes. A parsed source takes some twenty times its size in memory.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How deep brackets, operators that open something, and statements without braces may nest, counted together.
///
/// The parser is recursive, and a WebAssembly guest has 512 KiB of stack for it. The costliest construct was measured to
/// fill that at 223 levels.
pub const MAX_NESTING: usize = nesting::LIMIT;

/// What the source is a text of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A module: `import`, `export` and `await` at the top.
    Module,
    /// The body of an async function: `await` and `return` at the top, no `import` and `export` declarations.
    ScriptBody,
    /// The same as models write it: its value is that of the last expression where nothing says `return`, what is only a
    /// function is called with the globals that its parameters name, and `export` says nothing. There are no modules:
    /// `import(…)` becomes `__import(…)`.
    LooseBody,
}

/// What language the source is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// TypeScript without JSX. Imports whose names are never used as values are taken out, as TypeScript does.
    TypeScript,
    /// JavaScript without JSX: checked, and handed back as it is.
    JavaScript,
}

/// How to read a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What the source is a text of.
    pub kind: SourceKind,
    /// What language the source is in.
    pub language: Language,
}

impl Options {
    /// A TypeScript module.
    #[must_use]
    pub const fn module() -> Self {
        Self { kind: SourceKind::Module, language: Language::TypeScript }
    }

    /// The body of a TypeScript function that may `await` and `return`.
    #[must_use]
    pub const fn script_body() -> Self {
        Self { kind: SourceKind::ScriptBody, language: Language::TypeScript }
    }

    /// The same as models write it.
    #[must_use]
    pub const fn loose_body() -> Self {
        Self { kind: SourceKind::LooseBody, language: Language::TypeScript }
    }

    /// The same for JavaScript.
    #[must_use]
    pub const fn javascript(mut self) -> Self {
        self.language = Language::JavaScript;
        self
    }
}

/// The JavaScript of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped {
    /// The code. It has as many lines as the source.
    pub code: String,
    /// Whether code was generated, so that on some lines columns differ from those of the source. Without it the code
    /// has the length of the source, in bytes and in UTF-16 units.
    pub columns_moved: bool,
    /// Where something was put in without anything going away for it, in the order of the source.
    pub insertions: Vec<Insertion>,
    /// Where the value of a [`SourceKind::LooseBody`] comes from.
    pub gives: Gives,
    /// The comments of the source, in bytes.
    pub comments: Vec<std::ops::Range<usize>>,
    /// Its regular expressions, which are not read here, in bytes.
    pub patterns: Vec<std::ops::Range<usize>>,
}

/// A text that was put into a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
    /// The line, from 1.
    pub line: u32,
    /// How many bytes of the source's line come before it.
    pub column: u32,
    /// Its length in bytes.
    pub bytes: u32,
}

/// Where the value of a script comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// From its own `return`, or there is none.
    WhatItReturns,
    /// From its last expression.
    LastExpression,
    /// From the function that is all of it.
    Function,
}

/// Takes the types out of `source`.
///
/// # Errors
///
/// The first thing in the source that can not be read, that has no meaning without types, or that is over a limit.
pub fn strip(source: &str, options: Options) -> Result<Stripped, StripError> {
    if source.len() > MAX_BYTES {
        return Err(StripError::too_large(source.len()));
    }
    nesting::check(source)?;
    let allocator = Allocator::default();
    let source_type = match options.language {
        Language::TypeScript => SourceType::ts(),
        Language::JavaScript => SourceType::mjs(),
    };
    let parse_options =
        ParseOptions { allow_return_outside_function: options.kind != SourceKind::Module, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, source_type.with_module(true)).with_options(parse_options).parse();
    if let Some(error) = StripError::first_of(source, &parsed.diagnostics) {
        let with_jsx = Parser::new(&allocator, source, SourceType::tsx()).with_options(parse_options).parse();
        let jsx = (!with_jsx.panicked && StripError::first_of(source, &with_jsx.diagnostics).is_none())
            .then(|| loose::first_jsx(&with_jsx.program));
        return Err(match jsx.flatten() {
            Some(at) => StripError::at(
                source,
                at as usize,
                StripErrorKind::Unsupported,
                "JSX is not supported; write the markup as a text, such as `<b>${name}</b>` between backticks",
            ),
            None => error,
        });
    }
    if parsed.panicked {
        return Err(StripError::syntax(source, 0, "cannot be read"));
    }
    let mut eraser = erase::Eraser::new(source, options.kind);
    eraser.erase(&parsed.program);
    let comments =
        parsed.program.comments.iter().map(|comment| comment.span.start as usize..comment.span.end as usize).collect();
    let stripped = Stripped { comments, ..eraser.finish()? };
    Ok(match options.language {
        Language::TypeScript => stripped,
        Language::JavaScript => Stripped {
            code: source.to_owned(),
            columns_moved: false,
            insertions: Vec::new(),
            gives: Gives::WhatItReturns,
            comments: stripped.comments,
            patterns: stripped.patterns,
        },
    })
}
