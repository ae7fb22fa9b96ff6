//! Scripts that try to break what runs them. Each group runs in one process, and a script that does nothing special after it.

use serde_json::json;

use super::{hold, hold_in, with_tools};

/// Everything goes on as before.
const FINE: &str = "const fine = await tools.echo({ ok: 1 }); return `ok ${fine.ok}`";

#[test]
fn built_in_objects_are_those_that_the_bridge_uses() {
    let changes = [
        "Object.prototype.then = (f) => f('stolen')",
        "Object.defineProperty(Object.prototype, 'then', { get() { return (f) => f('stolen') } })",
        "Array.prototype[Symbol.iterator] = function* () { yield 'stolen' }",
        "Array.prototype.map = () => 'stolen'",
        "Promise.prototype.then = () => 'stolen'",
        "Promise.resolve = () => 'stolen'",
        "JSON.stringify = () => '{\"stolen\":1}'",
        "JSON.parse = () => ({ stolen: 1 })",
        "String.prototype.toWellFormed = () => 'stolen'",
        "String.prototype.split = () => ['stolen']",
        "Map.prototype.get = () => 'stolen'",
        "Map.prototype.set = () => 'stolen'",
        "Function.prototype.call = () => 'stolen'",
        "Object.keys = () => ['stolen']",
        "Object.defineProperty = () => 'stolen'",
        "Object.getOwnPropertyDescriptor = () => 'stolen'",
        "Number.prototype.toLocaleString = () => 'stolen'",
        "Error.prototype.toString = () => 'stolen'",
        "RegExp.prototype.exec = () => ['stolen']",
        "Symbol.prototype.description = 'stolen'",
        "Object.getPrototypeOf(async () => {}).constructor = 1; Object.getPrototypeOf(async () => {}).then = 1",
        "globalThis.JSON = {}",
        "globalThis.Promise = class {}",
        "globalThis.text = () => {}",
        "globalThis.ALL_TOOLS = []",
        "console.log = () => {}",
        "Intl.NumberFormat = 1",
        "ToolError.prototype.name = 'stolen'",
        "tools.echo.x = 1",
        "Reflect.setPrototypeOf(Array.prototype, { stolen: 1 }) || fail()",
        "Error.prepareStackTrace = () => 'stolen'; null.x",
    ];
    let scripts: Vec<String> = changes
        .iter()
        .map(|change| {
            format!("try {{ {change} }} catch {{}}; const r = await tools.echo({{ list: [1, 'a'] }}); text(JSON.stringify(r)); return (1234).toLocaleString()")
        })
        .collect();
    let cases: Vec<(&str, bool, &[&str])> =
        scripts.iter().map(|script| (script.as_str(), false, ["{\"list\":[1,\"a\"]}", "1,234"].as_slice())).collect();
    hold(&cases);
}

/// Takes functions off the stack wherever one of the bridge's is on it.
const HANDED_OUT: &str = "const found = [];
    try { Error.prepareStackTrace = (_, sites) => { for (const site of sites) found.push(site.getFunction?.(), site.getThis?.()) } } catch {}
    await tools.echo({ get a() { void new Error('x').stack; return 1 } });
    for (const ask of [() => tools.nothing, () => tools.echo(5), () => describeTool('x'), () => store(5), () => image(5)]) {
      try { await ask() } catch (error) { void error.stack }
    }
    return found.length";

/// Looks at every object that there is without one of the script's own.
const LOOSE: &str = "const seen = new Set([globalThis, tools]);
    const loose = [];
    const look = (value, path) => {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
      seen.add(value);
      if (!Object.isFrozen(value)) loose.push(path);
      for (const key of Reflect.ownKeys(value)) {
        const property = Object.getOwnPropertyDescriptor(value, key);
        for (const part of ['value', 'get', 'set']) look(property[part], `${path}.${String(key)}`);
      }
      look(Object.getPrototypeOf(value), `${path}.[[Prototype]]`);
    };
    for (const key of Reflect.ownKeys(globalThis)) {
      const property = Object.getOwnPropertyDescriptor(globalThis, key);
      for (const part of ['value', 'get', 'set']) look(property[part], String(key));
    }
    let missing;
    try { tools.nothing } catch (error) { missing = error }
    const hidden = { missing, helper: [].values().map(() => 0), wrapped: Iterator.from({ next() {} }), matches: ''.matchAll(/a/g),
      generator: (function* () {})(), later: (async function* () {})(), entries: new URLSearchParams().entries(),
      map: new Map().keys(), set: new Set().keys(), text: ''[Symbol.iterator](), signal: new AbortController().signal };
    for (const [key, value] of Object.entries(hidden)) {
      const own = Object.getPrototypeOf(value);
      // A generator's own prototype belongs to the function that is in here.
      look(key === 'generator' || key === 'later' ? Object.getPrototypeOf(own) : own, key);
    }
    look(tools.echo, 'tools.echo');
    look(ALL_TOOLS, 'ALL_TOOLS');
    return loose.length === 0 ? 'all are frozen' : loose.slice(0, 20).join()";

#[test]
fn nothing_of_the_engine_is_in_reach() {
    hold(&[
        (
            "const g = Function('return this')(); return [g === globalThis, typeof g.__atoll, typeof g.native].join()",
            false,
            &["true,undefined,undefined"],
        ),
        ("return [typeof (0, eval)('tools'), typeof tools.echo.constructor('return 1')].join()", false, &["object,"]),
        ("const f = text.constructor('return typeof native'); return f()", false, &["undefined"]),
        (
            "return Object.getOwnPropertyNames(globalThis).filter((n) => /atoll|native|shared/.test(n)).length",
            false,
            &["\n0"],
        ),
        (HANDED_OUT, false, &["\n0"]),
        (LOOSE, false, &["\nall are frozen"]),
        ("const tools = { echo: async () => 'mine' }; return await tools.echo({})", false, &["mine"]),
        (
            "return typeof globalThis.require + typeof globalThis.process + typeof globalThis.std + typeof globalThis.os",
            false,
            &["undefinedundefinedundefinedundefined"],
        ),
        ("Error.stackTraceLimit = 0; throw new Error('x')", true, &["Error: x"]),
        (
            "// @options: {\"timeout_ms\": 300}\nError.prepareStackTrace = () => { for (;;); }; throw new Error('x')",
            true,
            &["TypeError: object is not extensible", "at line 2:"],
        ),
    ]);
}

#[test]
fn arguments_of_every_kind_end_in_a_call_or_an_error() {
    let ways = [
        "{ get a() { throw new Error('x') } }",
        "{ get a() { tools.echo({}); return 1 } }",
        "{ get a() { delete this.b; this.c = 1; return 1 }, b: 2 }",
        "new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })",
        "new Proxy({ a: 1 }, { ownKeys: () => ['a', 'a'] })",
        "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })()",
        "{ toJSON() { return this } }",
        "{ toJSON() { return Promise.resolve({}) } }",
        "{ toJSON: 5 }",
        "{ a: Symbol('s'), [Symbol('k')]: 1, n: NaN, i: Infinity, u: undefined, f() {} }",
        "{ '\\ud800': '\\udfff', nul: '\\0' }",
        "{ a: 1n }",
        "Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['k' + i, i]))",
        "(() => { let o = {}; for (let i = 0; i < 1e5; i += 1) o = { o }; return o })()",
        "(() => { let o = {}; for (let i = 0; i < 300; i += 1) o = { o }; return o })()",
        "Object.create(null)",
        "new Date()",
        "new Map([[1, 2]])",
        "/x/",
        "Object.assign(() => {}, { a: 1 })",
        "{ __proto__: { a: 1 } }",
        "JSON.parse('{\"__proto__\": {\"a\": 1}}')",
        "{ then(f) { f({ stolen: 1 }) } }",
        "tools",
        "globalThis",
        "Symbol('s')",
        "5n",
    ];
    let scripts: Vec<String> = ways
        .iter()
        .map(|way| {
            format!(
                "let r; try {{ r = await tools.say({way}); text('called') }} catch (e) {{ text('refused') }}; {FINE}"
            )
        })
        .collect();
    let cases: Vec<(&str, bool, &[&str])> =
        scripts.iter().map(|script| (script.as_str(), false, ["ok 1"].as_slice())).collect();
    hold(&cases);
    hold(&[
        ("return await tools.say({ '\\ud800': 'a\\udfff\\\\ud800' })", false, &["\u{fffd}"]),
        ("try { await tools.say({ a: 'x'.repeat(70 << 20) }) } catch (e) { return e.code }", false, &["\nlimit"]),
    ]);
}

#[test]
fn results_of_every_kind_are_values_and_nothing_else() {
    hold(&[
        (
            "const r = await tools.raw({ json: '{\"__proto__\":{\"x\":1},\"constructor\":2,\"then\":3}' }); return [Object.hasOwn(r, '__proto__'), r.x, r.constructor, r.then, ({}).x].join()",
            false,
            &["true,,2,3,"],
        ),
        ("const r = await tools.raw({ json: '{\"a\":1,\"a\":2}' }); return r.a", false, &["\n2"]),
        ("const r = await tools.echo({ then: 1 }); return r.then", false, &["\n1"]),
        (
            "try { const r = await tools.raw({ json: '['.repeat(1e5) + ']'.repeat(1e5) }); return `got ${typeof r}` } catch (e) { return `got ${e.name}` }",
            false,
            &["\ngot "],
        ),
        (
            "try { const r = await tools.raw({ json: '\"\\\\ud800\"' }); return `got ${typeof r}` } catch (e) { return `got ${e.name}` }",
            false,
            &["got "],
        ),
        (
            "try { const r = await tools.raw({ json: '1e400' }); return `got ${r}` } catch (e) { return `got ${e.name}` }",
            false,
            &["got "],
        ),
        (
            "try { const r = await tools.raw({ json: 'nonsense' }); return `got ${typeof r}` } catch (e) { return `got ${e.name}` }",
            false,
            &["got "],
        ),
        ("const r = await tools.big({ records: 10000 }); return r.length", false, &["10000"]),
    ]);
}

#[test]
fn promises_of_every_kind_come_to_an_end() {
    hold(&[
        ("return { then(f) { f('from a thenable') } }", false, &["from a thenable"]),
        ("return await { then(f, r) { f(1); r(2); f(3); throw 4 } }", false, &["\n1"]),
        ("return (await Promise.all([{ then(f) { f(1) } }, tools.echo({ a: 2 })])).length", false, &["\n2"]),
        ("await { then() {} }", true, &["nothing is left to settle"]),
        ("let n = 0; for (let i = 0; i < 1e5; i += 1) await null, n += 1; return n", false, &["100000"]),
        (
            "for (let i = 0; i < 2000; i += 1) Promise.reject(new Error('e' + i)); return 'on'",
            false,
            &["on", "A promise failed"],
        ),
        ("await Promise.reject(undefined)", true, &["undefined"]),
        ("const o = { get a() { return tools.echo({}) } }; await o.a; return 'got'", false, &["got"]),
        (
            "class P extends Promise { static get [Symbol.species]() { throw new Error('species') } }; await new P((f) => f(1)); return 'got'",
            true,
            &["Error: species"],
        ),
        ("new Promise(() => exit()); return 'not seen'", false, &["(no output"]),
    ]);
}

#[test]
fn what_looks_like_something_else_is_taken_for_what_it_is() {
    hold(&[
        (
            "store('__proto__', { a: 1 }); store('constructor', 2); return [load('__proto__').a, load('constructor'), load('toString'), ({}).a].join()",
            false,
            &["1,2,,"],
        ),
        ("return [typeof load('constructor'), load('__proto__').a].join()", false, &["number,1"]),
        ("return (await tools[{ toString: () => 'echo' }]({ a: 1 })).a", false, &["\n1"]),
        (
            "return [tools[Symbol.toPrimitive], tools[Symbol.iterator], tools[Symbol.asyncIterator]].join()",
            false,
            &["\n,,"],
        ),
        ("await tools['\\ud800']({})", true, &["there is no tool"]),
        ("await tools[{ toString() { throw new RangeError('mine') } }]({})", true, &["RangeError: mine"]),
        (
            "text({ [Symbol.toPrimitive]: () => 'no', toString: () => 'no', valueOf: () => 5, a: 1 })",
            false,
            &["\"a\": 1"],
        ),
        (
            "let n = 0; try { image({ type: 'image', data: 'AQID', get mimeType() { n += 1; return n > 1 ? 'text/html' : 'image/png' } }) } catch {}; return `read ${n}`",
            false,
            &["read 1"],
        ),
        (
            "console.log(new Proxy({}, { ownKeys() { throw 1 }, get() { throw 2 } }), new Proxy([], { get() { throw 3 } })); return 'on'",
            false,
            &["on", "can not be shown"],
        ),
        (
            "for (const v of [Symbol('s'), 5n, () => 1, class A {}, new Proxy(() => 1, {}), Object.create(null), new (class M extends Map {})()]) text(v); return 'on'",
            false,
            &["Symbol(s)", "5n", "on"],
        ),
        (
            "let p = Promise.resolve(0); for (let i = 0; i < 1e5; i += 1) p = p.then((v) => v + 1); return p",
            false,
            &["100000"],
        ),
        ("Promise.reject(undefined); Promise.reject(null); return 'on'", false, &["on", "nothing waited for it"]),
        ("const o = { get then() { exit() } }; await o; text('after')", false, &["(no output"]),
        (
            "const e = new Error('x'); e.cause = e; e.errors = [e, e]; console.log(e); throw e",
            true,
            &["Error: x", "caused by Error: x"],
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'errors', { get() { throw 1 } }); Object.defineProperty(e, 'cause', { get() { throw 2 } }); throw e",
            true,
            &["Error: x"],
        ),
        (
            "const e = new Error('x'); e.errors = new Proxy([], { get(t, k) { if (k === 'length') return 2 ** 31; throw 1 } }); throw e",
            true,
            &["Error: x"],
        ),
        (
            "// @options: {\"timeout_ms\": 300}\nconst e = new Error('x'); Object.defineProperty(e, 'constructor', { get() { for (;;); } }); throw e",
            true,
            &["Failed after"],
        ),
    ]);
}

#[test]
fn no_end_can_be_caught_and_nothing_is_said_after_it() {
    let sandbox = with_tools();
    let silent: &[&str] = &["(no output"];
    hold_in(
        &sandbox,
        &[
            ("try { exit() } catch { text('caught') } finally { text('finally') } text('after')", false, silent),
            ("[1, 2].map(() => exit()); text('after')", false, silent),
            ("const o = { get a() { exit() } }; o.a; text('after')", false, silent),
            ("const o = { get a() { exit() } }; await tools.say(o); text('after')", false, silent),
            (
                "setTimeout(() => { exit(); text('after') }, 5); await new Promise(() => setTimeout(() => {}, 60000))",
                false,
                silent,
            ),
            ("exit(); exit(); text('after')", false, silent),
            (
                "async function f() { try { await 0; exit() } finally { text('finally') } } await f(); text('after')",
                false,
                silent,
            ),
            (
                "try { await Promise.all([tools.sleep({ ms: 60000 }), exit()]) } finally { text('after') }",
                false,
                &["Not begun when the script ended: sleep"],
            ),
            ("throw { toString() { throw new Error('again') } }", true, &["a value that can not be shown as text"]),
            (
                "throw new Proxy(new Error('x'), { get() { throw new Error('again') } })",
                true,
                &["a value that can not be shown as text"],
            ),
            ("throw new Proxy({}, {})", true, &["[object Object]"]),
            (
                "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { exit() } }); throw e",
                false,
                silent,
            ),
            ("throw Symbol('s')", true, &["a value that can not be shown as text"]),
            (
                "const e = new Error('x'); e.name = 5; e.message = {}; throw e",
                true,
                &["something that is no error: \n", "at line 1:15"],
            ),
        ],
    );
}

#[test]
fn floods_end_in_order() {
    hold(&[
        (
            "for (let i = 0; i < 1e5; i += 1) tools.say({ i }).catch(() => {}); exit()",
            false,
            &["Not begun when the script ended: say"],
        ),
        (
            "const all = await Promise.allSettled(Array.from({ length: 1e5 }, (_, i) => tools.say({ i }))); const ran = all.filter((one) => one.status === 'fulfilled'); const codes = new Set(all.map((one) => one.reason?.code)); return `${ran.length} ran, ${[...codes].join()}`",
            false,
            &["10000 ran, ,limit"],
        ),
        (
            "let n = 0; for (let i = 0; i < 9e3; i += 1) setTimeout(() => { n += 1 }, 1); await new Promise((d) => setTimeout(d, 50)); return n",
            false,
            &["\n9000"],
        ),
        ("for (let i = 0; i < 1e6; i += 1) store(`k${i}`, 'x')", true, &["RangeError"]),
        ("store('a', 'x'.repeat(300000))", true, &["RangeError", "262144"]),
        ("image('data:image/png;base64,' + 'A'.repeat(30 << 20))", true, &["20 MiB"]),
        ("text(Array.from({ length: 1e6 }, (_, i) => i))", false, &["999999"]),
    ]);
}

/// What C code does in one step is not asked whether it has to stop; the host ends it.
#[test]
fn built_in_functions_that_take_long_end_too() {
    let sandbox = with_tools();
    sandbox.settings(&json!({"limits": {"codemode": {"cpu-ms": 1500}}}));
    let ways = [
        "'x'.padEnd(2 ** 29 + 5)",
        "'x'.repeat(2 ** 30)",
        "Array(2 ** 32 - 1).fill(0)",
        "[].indexOf.call({ length: 2 ** 53 - 1 }, 1)",
        "[].reverse.call({ length: 2 ** 53 - 1 })",
        "Array.from({ length: 2 ** 32 })",
        "let n = 2n; for (;;) n *= n",
        "2n ** 99999999n",
        "/(a+)+b/.test('a'.repeat(40))",
        "/(?:(?:a*)*)*b/.test('a'.repeat(60))",
        "new RegExp('a'.repeat(1 << 20)).test('a')",
        "JSON.stringify(Array(2 ** 25))",
        "new ArrayBuffer(8, { maxByteLength: 2 ** 31 }).resize(2 ** 30)",
        "'a'.repeat(1 << 24).split('').sort(() => Math.random() - 0.5)",
    ];
    let scripts: Vec<String> = ways
        .iter()
        .map(|way| format!("text('before'); try {{ {way} }} catch (e) {{ text('caught ' + e?.name) }}; text('over')"))
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).chain(["return 'fine'"]).collect();
    let results = super::run_in(&sandbox, &scripts);
    for (script, result) in scripts.iter().zip(&results).take(ways.len()) {
        let text = super::text_of(&result["content"]);
        let has_line = |wanted: &str| text.lines().any(|line| line == wanted);
        assert!(has_line("before"), "{script}\n{text:.2000}");
        let is_ended = result["isError"] == true && (text.contains("cpu-ms") || text.contains("memory"));
        assert!(is_ended || has_line("over"), "{script}\n{text:.2000}");
    }
    assert_eq!(super::said(results.last().unwrap()), "fine");
}
