//! What holds for any source.

use atoll_ts_strip::{Options, StripErrorKind, strip};
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{TSType, TSTypeParameterDeclaration};
use oxc_ast_visit::Visit;
use oxc_parser::Parser;
use oxc_span::SourceType;
use proptest::prelude::*;

fn newlines(text: &str) -> Vec<char> {
    text.chars().filter(|character| matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')).collect()
}

/// How often each kind of node that runs occurs, by name.
fn shape(source: &str, source_type: SourceType) -> Vec<(String, usize)> {
    #[derive(Default)]
    struct Shape(std::collections::BTreeMap<String, usize>);
    impl<'a> Visit<'a> for Shape {
        fn enter_node(&mut self, kind: AstKind<'a>) {
            let counts = matches!(
                kind,
                AstKind::ExpressionStatement(_)
                    | AstKind::VariableDeclaration(_)
                    | AstKind::ReturnStatement(_)
                    | AstKind::CallExpression(_)
                    | AstKind::NewExpression(_)
                    | AstKind::BinaryExpression(_)
                    | AstKind::ObjectExpression(_)
                    | AstKind::ArrayExpression(_)
                    | AstKind::ComputedMemberExpression(_)
                    | AstKind::TaggedTemplateExpression(_)
                    | AstKind::ArrowFunctionExpression(_)
                    | AstKind::BlockStatement(_)
                    | AstKind::PropertyDefinition(_)
                    | AstKind::MethodDefinition(_)
                    | AstKind::Class(_)
                    | AstKind::Function(_)
            );
            if counts {
                *self.0.entry(format!("{:?}", kind.ty())).or_default() += 1;
            }
        }
        fn visit_ts_type(&mut self, _: &TSType<'a>) {}
        fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, source_type.with_module(true)).parse();
    let mut shape = Shape::default();
    shape.visit_program(&parsed.program);
    shape.0.into_iter().collect()
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "foo", "é", "名", "get", "type", "of"]).prop_map(str::to_owned)
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", " ", " ", "\n", "/* é😀 */", " // 名\n", "\r\n", "\u{2028}"])
}

fn a_type() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "number",
        "string[]",
        "'é😀'",
        "typeof a",
        "A.B",
        "`x${string}`",
        "unknown",
        "readonly string[]",
        "unique symbol",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), blank()).prop_map(|(a, s)| format!("{{{s}x?: {a};{s}[k: string]: any }}")),
            (inner.clone(), inner.clone(), blank()).prop_map(|(a, b, s)| format!("({a}){s}|{s}({b})")),
            (inner.clone(), blank()).prop_map(|(a, s)| format!("Map<string,{s}{a}>")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("((x: {a}) => {b})")),
            inner.clone().prop_map(|a| format!("[名: {a}]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("(T extends infer U ? {a} : {b})")),
        ]
    })
}

/// Expressions with types.
fn typed() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        name(),
        prop::sample::select(vec!["1", "'é😀'", "this", "/[/]x/g", "`a${b as T}c`", "[]"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), a_type()).prop_map(|(e, t)| format!("({e} as {t})")),
            (inner.clone(), a_type()).prop_map(|(e, t)| format!("({e}) satisfies {t}")),
            inner.clone().prop_map(|e| format!("({e})!")),
            (name(), a_type(), inner.clone()).prop_map(|(f, t, e)| format!("{f}<{t}>({e})")),
            (name(), a_type()).prop_map(|(f, t)| format!("new {f}<{t}>")),
            (a_type(), a_type(), inner.clone(), blank())
                .prop_map(|(t, u, e, s)| format!("((x: {t},{s}y?: {t}): {u} => ({e}))")),
            (a_type(), inner.clone(), blank()).prop_map(|(t, e, s)| format!("(async <T,{s}>(x: {t}) => {e})")),
            (inner.clone(), inner.clone(), blank()).prop_map(|(a, b, s)| format!("{a}{s}+ {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) ? {b} : ({a})")),
            inner
                .clone()
                .prop_map(|e| format!("{{ p: {e}, m<T>(this: T): void {{}} }}.p"))
                .prop_map(|e| format!("({e})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a})[{b}]!.c")),
        ]
    })
}

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        (name(), a_type()).prop_map(|(n, t)| format!("private {n}?: {t}")),
        (name(), a_type(), typed()).prop_map(|(n, t, e)| format!("static readonly {n}: {t} = ({e})")),
        (a_type(), typed()).prop_map(|(t, e)| format!("public [{e}]: {t}")),
        a_type().prop_map(|t| format!("[k: string]: {t}")),
        (name(), a_type()).prop_map(|(n, t)| format!("declare {n}: {t}")),
        (name(), a_type()).prop_map(|(n, t)| format!("protected async *{n}(x?: {t}): any {{}}")),
        (name(), a_type()).prop_map(|(n, t)| format!("{n}(x: {t}): void\n{n}(x: any) {{}}")),
        Just("abstract m(): void".to_owned()),
    ]
}

fn statement() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => typed(),
        2 => (typed(), a_type()).prop_map(|(e, t)| format!("({e}) as {t}")),
        1 => (name(), a_type()).prop_map(|(n, t)| format!("var {n}: {t}")),
        1 => (name(), a_type(), typed()).prop_map(|(n, t, e)| format!("var {{ x: {n} }}: {t} = {e}")),
        2 => (a_type(), blank()).prop_map(|(t, s)| format!("type{}X ={s}{t}", " ")),
        1 => a_type().prop_map(|t| format!("interface Y<T> extends Z<T> {{ a: {t} }}")),
        1 => (a_type(), typed(), blank())
            .prop_map(|(t, e, s)| format!("function f<T>(this: {t},{s}x?: {t}): {t} {{ return ({e}) }}")),
        1 => (prop::collection::vec(member(), 0..4), a_type())
            .prop_map(|(m, t)| format!("abstract class C<T> extends D<{t}> implements E<T> {{\n{}\n}}", m.join("\n"))),
        1 => typed().prop_map(|e| format!("if ({e}) {{ {e} }} else ({e}) as any")),
    ]
}

fn program() -> impl Strategy<Value = String> {
    let separator = prop::sample::select(vec!["\n", ";\n", "; ", "\r\n", "\n/* é */\n"]);
    prop::collection::vec((statement(), separator), 0..6)
        .prop_map(|statements| statements.into_iter().flat_map(|(one, after)| [one, after.to_owned()]).collect())
}

/// What makes code, with what it is among.
fn generating() -> impl Strategy<Value = String> {
    let enums = prop::sample::select(vec![
        "enum E1 { A, B = 5,\n C }",
        "export enum E2 {\n  'a b' = 'é', // 名\r\n  X = 1 << 2, Y\n}",
        "class P { x = 1; constructor(private é: number,\n public b?: T) { f() } }",
        "class Q extends P { constructor(readonly a: T) {\n super(1)\n} }",
        "const g = () => <T>{ a: 1 }",
    ]);
    (program(), enums, program()).prop_map(|(before, middle, after)| format!("{before}\n{middle}\n{after}"))
}

/// What every result has to be.
fn check(source: &str) -> Result<(), TestCaseError> {
    let stripped = match strip(source, Options::module()) {
        Ok(stripped) => stripped,
        Err(error) => {
            let lines = u32::try_from(newlines(source).len()).unwrap_or(u32::MAX) + 1;
            prop_assert!(error.line <= lines, "{error} of {lines} lines");
            prop_assert!(!error.message.contains('\n'), "{error}");
            return Ok(());
        }
    };
    let code = &stripped.code;
    prop_assert_eq!(newlines(source), newlines(code));
    if !stripped.columns_moved {
        prop_assert_eq!(source.len(), code.len());
        prop_assert_eq!(source.encode_utf16().count(), code.encode_utf16().count());
        for (was, is) in source.encode_utf16().zip(code.encode_utf16()) {
            let put = char::from_u32(is.into()).is_some_and(|is| is.is_whitespace() || matches!(is, ';' | '(' | ')'));
            prop_assert!(was == is || put, "{was:#x} became {is:#x}");
        }
    }
    let again = strip(code, Options::module());
    prop_assert_eq!(again.as_ref().map(|again| &again.code), Ok(code));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn typescript_becomes_javascript_in_its_place(source in program()) {
        check(&source)?;
        if let Ok(stripped) = strip(&source, Options::module()) {
            prop_assert!(!stripped.columns_moved);
            let javascript = strip(&stripped.code, Options::module().javascript());
            prop_assert!(javascript.is_ok(), "{:?}\n{}", javascript, stripped.code);
        }
    }

    #[test]
    fn code_runs_in_the_same_pieces_without_its_types(
        source in prop::collection::vec(prop_oneof![
            typed(),
            (typed(), a_type()).prop_map(|(e, t)| format!("({e}) as {t}")),
            (name(), a_type()).prop_map(|(n, t)| format!("var {n}: {t}")),
            a_type().prop_map(|t| format!("type X = {t}")),
            Just("class A { a: T\nprivate ['b'] = 1\nreadonly *c() {} }".to_owned()),
            Just("class A { a = b\npublic ['b'] = 1\n;[k: string]: T\nd = e as T\n*f() {} }".to_owned()),
        ], 1..6).prop_map(|statements| statements.join("\n"))
    ) {
        if let Ok(stripped) = strip(&source, Options::module()) {
            prop_assert_eq!(
                shape(&source, SourceType::ts()), shape(&stripped.code, SourceType::mjs()),
                "{}\n{}", source, stripped.code
            );
        }
    }

    #[test]
    fn generated_code_keeps_the_lines(source in generating()) {
        check(&source)?;
        if let Ok(stripped) = strip(&source, Options::module()) {
            prop_assert!(stripped.columns_moved);
            let javascript = strip(&stripped.code, Options::module().javascript());
            prop_assert!(javascript.is_ok(), "{:?}\n{}", javascript, stripped.code);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(source in "\\PC{0,200}") {
        check(&source)?;
    }

    #[test]
    fn any_tokens_are_read_or_refused(tokens in prop::collection::vec(prop::sample::select(vec![
        "a", "b", "é", " ", "\n", "(", ")", "[", "]", "{", "}", "<", ">", "=>", "=", ":", "?", "!", ",", ";", ".", "?.",
        "/", "*", "+", "`", "${", "'", "\"", "//", "/*", "*/", "@", "#x", "1", "as", "satisfies", "type", "interface",
        "enum", "class", "extends", "implements", "abstract", "declare", "namespace", "import", "export", "from",
        "default", "function", "async", "await", "yield", "return", "const", "if", "else", "for", "of", "in", "new",
        "private", "readonly", "constructor", "super", "static", "get", "this", "typeof", "keyof", "\\u{61}", "case",
    ]), 0..40)) {
        check(&tokens.concat())?;
        check(&tokens.join(" "))?;
    }

    #[test]
    fn damaged_typescript_is_read_or_refused(
        source in generating(), at in any::<prop::sample::Index>(), length in 0..8_usize, with in "[(){}<>`'/:;,=é\\n ]{0,3}"
    ) {
        let characters: Vec<char> = source.chars().collect();
        let start = at.index(characters.len());
        let end = (start + length).min(characters.len());
        let damaged: String =
            characters[..start].iter().copied().chain(with.chars()).chain(characters[end..].iter().copied()).collect();
        check(&damaged)?;
    }

    #[test]
    fn javascript_without_types_stays_as_it_is(
        statements in prop::collection::vec(prop::sample::select(vec![
            "import a, { b as c } from 'm'; a; c;", "import 'm';", "import * as ns from 'm'; ns();", "export { a };",
            "export * from 'm'", "export default class {}", "const f = async (x, ...y) => ({ x })", "a < b, c > d",
            "class A extends B { #x = 1; static { this.y = 2 } get z() { return this.#x } async *g() {} static }",
            "for await (const x of y) { continue }", "label: while (1) break label", "x = y ? z : /[/]/.exec(`a${b}c`)",
            "let { q, ...r } = s, [t = 1] = u", "if (a) b; else c", "try {} catch {} finally {}", "a ??= b?.[c]?.(d)",
            "switch (a) { case 1: default: }", "new.target", "/* é */ 'use strict' // 😀", "var readonly = 1, type = 2",
        ]), 0..8)
    ) {
        let source = statements.join("\n");
        for options in [Options::module(), Options::module().javascript()] {
            if let Ok(stripped) = strip(&source, options) {
                prop_assert_eq!(&stripped.code, &source);
                prop_assert!(!stripped.columns_moved);
            }
        }
    }
}

#[test]
fn the_properties_are_not_about_refusals_only() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut share = |strategy: &BoxedStrategy<String>| {
        (0..200)
            .filter(|_| {
                let source = strategy.new_tree(&mut runner).unwrap().current();
                strip(&source, Options::module()).is_ok()
            })
            .count()
    };
    let (programs, generating) = (share(&program().boxed()), share(&generating().boxed()));
    assert!(programs > 100 && generating > 100, "{programs} and {generating} of 200 were read");
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let source = " ".repeat(atoll_ts_strip::MAX_BYTES + 1);
    let error = strip(&source, Options::module()).unwrap_err();
    assert_eq!((error.kind, error.code()), (StripErrorKind::Limit, "limit"));
}
