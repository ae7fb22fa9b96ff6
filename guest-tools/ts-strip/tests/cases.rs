//! Cases side by side: TypeScript, and the JavaScript it becomes. Trailing blanks are cut for the eye; the other tests
//! look at them.

use atoll_ts_strip::{Gives, Options, strip};

fn table(options: Options, cases: &[&str]) -> String {
    let mut text = String::new();
    for case in cases {
        let code = match strip(case, options) {
            Ok(stripped) => stripped.code,
            Err(error) => format!("{:?} {error}", error.kind),
        };
        let lines: Vec<&str> = code.lines().map(str::trim_end).collect();
        text.push_str(&format!("{case}\n=>\n{}\n----\n", lines.join("\n")));
    }
    text
}

macro_rules! cases {
    ($name:ident, $($case:literal),+ $(,)?) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(table(Options::module(), &[$($case),+]));
        }
    };
}

cases!(
    annotations_go_away_where_they_are,
    "let a: number = 1, b!: string, c: Array<{ x: 1 }> = [];",
    "function f<T extends U = V>(this: Window, a?: T, { b }: { b: T } = {}, ...rest: T[]): asserts a is T {}",
    "function g(this: Window,) {} function h(this: Window, a /* first */ ?: T,) {}",
    "try {} catch (error: unknown) {}",
    "for (const x of <T[]>y as Z) {}",
    "const f = async <T,>(x: T): Promise<T> => x;",
    "const o = { m<T>(this: T, a?: T): void {}, get a(): T { return 1 }, async *g(x: T) {} };",
);

cases!(
    expressions_lose_their_types,
    "a as const; a as T as U; a satisfies T; <T>a; <T><U>a; a!; a!.b![c]!(); a?.b!.c;",
    "f<T>(x); new Map<K, V>(); new Foo<T>; tag<T>`x${y as T}`; const g = f<T>; a?.<T>(b); a?.b<T>();",
    "(a as T) = 1; a! += 1; [b as T, c!] = d; ({ a: b as T } = c); for (a as T of b) ; (a as T)++; delete a!.b;",
    "a /* kept */ as /* gone */ T;",
    "(a // kept\n).b as T;",
    "a < b && c > d; a < (b >> c); f(a < b, c > (d));",
    "if (a as T) b = c as T; else d = e!; while (x as any) y(); throw e as Error;",
    "label: for (const x of y as T[]) continue label;",
);

cases!(
    declarations_of_types_go_away,
    "interface A<T> extends B<T>, C {\n  a: string;\n  (x: T): void\n}\nlet a;",
    "type A = { a: 1 } |\n  `x${string}`;\nlet a;",
    "declare const a: 1, b: 2; declare function f(): void; declare class C { m(): void } declare enum E { A }",
    "declare module \"m\" {\n  const a: 1;\n}\ndeclare global { var x: 1 }\ndeclare namespace N { const a: 1 }",
    "namespace N { export type A = 1; interface B {} namespace M {} export type { A } }",
    "function f(a: string): void;\nfunction f(a: number): void;\nfunction f(a: any) {}",
    "export default interface A {}",
    "export interface A {} export type B = 1; export declare const c: 1; export declare function d(): void;",
    "export default function f(): void;\nexport default function f() {}",
    "interface A {}\nexport default A;",
    "if (a) interface B {}",
);

cases!(
    classes_lose_what_is_type,
    "abstract class A<T> extends B<T> implements C<T>, D { }",
    "export abstract class A implements B {} export default abstract class C {}",
    "const A = class<T> implements B {}, C = class extends (D as E)<T> implements F {};",
    "class A { private a = 1; protected static b?: T; public readonly c!: T; override d: T; readonly #e: T; }",
    "class A { declare a: T; abstract b: T; [key: string]: T; static [k: symbol]: T; abstract m(): void; accessor x = 1; }",
    "class A { m(a: string): void; m(a: number): void; m(a: any) {} constructor(); constructor(a?: T) {} }",
    "class A { readonly() {} public public() {} private = 1; declare; static abstract; get readonly(): T { return 1 } }",
    "class A { private async *[\"x\"]?<T>(a: T): any {} private static get [x as T](): T { return 1 } set y(a: T) {} }",
    "class A { static { let x: T = 1; } }",
);

cases!(
    lines_stay_apart_without_semicolons,
    "a\ntype T = 1\n(b)",
    "a\ninterface T {}\n[b]",
    "a\ntype T = 1\ntype U = 2\n`b`",
    "a\ntype T = 1\n/b/.test(c)",
    "a\ntype T = 1\n+b",
    "a\ntype T = 1\nb",
    "a = b as T\n(c)",
    "a = b satisfies T // why\n/* because */ [c]",
    "let a: T\n(b)",
    "const f = () => a as T\n(b)",
    "if (a) b as T\n(c)",
    "import { T } from \"m\"\n(a)",
    "a\nimport type { T } from \"m\"\n(b)",
    "class A {\n  a = 1\n  private [b] = 2\n  c = 3\n  public *d() {}\n  e = 4\n  readonly f = 5\n}",
    "class A {\n  a = 1;\n  [k: string]: T\n  [b] = 2\n  c = 1\n  declare d: T\n  [e] = 2\n}",
    "class A {\n  get: T\n  a() {}\n  static?: U\n  b = 1\n  set: T\n  declare x: T\n  c() {}\n}",
    "class A {\n  a = b as T\n  *c() {}\n  d = e as T\n  private in = 3\n}",
    "a\nexport default interface T {}\n(b)",
    "é\ntype T = 1\n(b)",
);

cases!(
    what_must_stay_on_its_line_does,
    "const f = (a: T): {\n  b: T\n} => a;",
    "const f = (a) // why\n  : T => a;",
    "const f = async <\n  T,\n>(a: T) => a;",
    "function f() {\n  return <\n    T,\n  >(a: T): T => a;\n}",
    "function* f() {\n  return <\n    T\n  >a + 1;\n  yield <\n    T\n  >a;\n  throw <\n    T\n  >a;\n}",
    "const f = (a): `\n` => a;",
    "const f = (a):\n  É => a;",
);

cases!(
    what_begins_with_an_assertion_is_still_an_expression,
    "const f = () => <T>{ a: 1 };",
    "const f = () => <T><U>{ a: 1 }.a;",
    "<any>{}.a;",
    "<any>function () {}();",
    "<any>class {};",
    "export default <T>function () {};",
    "<any>\"use strict\";",
    "<any>a; <any>functional; const g = () => <T>a;",
);

cases!(
    imports_and_exports_of_types_go_away,
    "import a, { type T, b, U } from \"m\"; import \"side\"; a; b; let x: U;",
    "import type A from \"m\"; import type { B } from \"m\"; import type * as C from \"m\"; import { type D } from \"m\";",
    "import { A, B } from \"m\"; let a: A; type T = typeof B;",
    "import A, { B } from \"m\"; B;",
    "import A, { B, type C, } from \"m\"; A;",
    "import A, * as B from \"m\"; A;",
    "import A, * as B from \"m\"; B;",
    "import {} from \"m\";",
    "import data, { T } from \"./x.json\" with { type: \"json\" }; data;",
    "import { a, b, c, d, e } from \"m\"; ({ a }); b = 1; export { c as z }; class X extends d { [e] = 1 }",
    "import { A } from \"m\"; export { A }; export default A;",
    "interface T {} type U = 1; const v = 1; export { T, v, type U as W }; export { T as X };",
    "import type { T } from \"m\"; export { T };",
    "interface A {} const A = 1; export { A };",
    "export type { T }; export type { U } from \"m\"; export type * from \"m\"; export * from \"m\"; export { type V } from \"m\"; export { type W, x } from \"m\";",
    "import type A = require(\"m\");",
);

cases!(
    enums_become_objects,
    "enum A { X, Y = 5, Z }\nenum B {\n  P = \"p\", // first\n  Q = `q`,\n  \"a-b\" = 1,\n  [\"c\"] = 2,\n}",
    "export enum A { X }\nexport enum A { Y = X + 1, Z }",
    "const enum A { X = 1 << 3, Y, Z = X | Y, W = ~Z, V = -W, U = (V as any) ** 2, T }",
    "enum A { X = \"a\".length, Y = \"a\" + X, Z = A.Y, W = A[\"X\"], V = f(X) }",
    "enum A { X = 0.1, Y, Z = 1 / 0, W }",
    "function f() { enum A { X } } { enum B { Y } }",
    "enum A { X = B.Y, B }",
    "a\nenum A\n{\n\n  X\n  =\n  1\n  ,\n  Y\n}\n(b)",
    "enum A { X, Y = f({ X, Z: X, W }) }",
    "enum A { X = f() } enum A { Y = X }",
    "enum A {}",
    "enum A { X = f(), Y }",
    "enum A { X = \"a\", Y }",
);

cases!(
    parameter_properties_become_fields,
    "class A { b = 1; constructor(private x: T, readonly y = 2, w: V, override z?: U) { f(); } }",
    "class A extends B { constructor(public x: T) { f(); super(x as any); g(); } }",
    "class A extends B { constructor(public x: T) {\n  super()\n  g()\n} }",
    "class A { constructor(\n  // the name\n  protected name: string,\n) { \"use strict\" } }",
    "class A extends B { constructor(public x: T) { if (x) super(); } }",
    "class A { constructor(private { x }: T) {} }",
);

cases!(
    what_has_no_meaning_is_refused_with_a_way_out,
    "let a = 1;\n  namespace N { export const a = 1 }",
    "import fs = require(\"fs\");",
    "import a = N.b;",
    "const a = 1; export = a;",
    "@d class A {}",
    "class A { @d m() {} }",
    "let a = b < c as T + d;",
    "let a = -b as T ** c;",
    "let x = {\n  é: 😀,\n};",
    "let a = ;\nlet b = ;",
    "const é = \"😀\", b = @;",
    "return 1",
    "let a = <T",
    "",
);

#[test]
fn a_script_body_may_await_and_return_but_not_import() {
    let cases = [
        "const a: T = await f<T>(); return a!;",
        "import type { T } from \"m\"; return 1 as T;",
        "import a from \"m\";",
        "export const a = 1;",
        "const m = await import(\"m\") as T; return m;",
    ];
    insta::assert_snapshot!(table(Options::script_body(), &cases));
}

#[test]
fn javascript_is_checked_and_left_alone() {
    let cases = ["import { a } from \"m\"; f(a<b>(c));", "let a: T;", "@d class A {}", "let a = ;"];
    insta::assert_snapshot!(table(Options::module().javascript(), &cases));
}

#[test]
fn a_script_as_models_write_it_gives_what_it_means() {
    let cases = [
        "1 + 1",
        "const a: number = 1;\na as number;",
        "'a text'",
        "async () => {\n  return 1;\n}",
        "(async (): Promise<number> => 1);",
        "async function main(): Promise<void> {\n  await 0;\n}",
        "async function main() { await 0; }\nmain();",
        "export default async function () { return 1 }",
        "export default async () => 1",
        "export const a = 1;\nexport { a };\na",
        "if (a) return 1;\nb()",
        "const f = () => { return 1 };\nf()",
        "interface A { b: 1 }\n() => 1",
        "import type { T } from \"t\";\nimport { U } from \"u\";\nconst a: U = 1; return a;",
        "import fs from \"fs\";\nfs.read()",
        "export * from \"all\"",
        "function* all() { yield 1 }",
        "let a = 1",
        "a(), b()",
        "label: for (;;) { break label }",
    ];
    insta::assert_snapshot!(table(Options::loose_body(), &cases));
    let stripped = strip("ab;\n  é(1) as T", Options::loose_body()).unwrap();
    assert_eq!(stripped.code, "ab;\n  return (é(1)     )");
    let at: Vec<(u32, u32, u32)> = stripped.insertions.iter().map(|it| (it.line, it.column, it.bytes)).collect();
    assert_eq!((at, stripped.gives), (vec![(2, 2, 8), (2, 12, 1)], Gives::LastExpression));
}
