//! The engine, driven as a plugin drives it, with a clock that moves when nothing else does.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

use atoll_js::{Engine, Host, Level, Limits, ScriptError, ScriptErrorKind};
use futures::executor::block_on;
use futures::future::{FutureExt, LocalBoxFuture, poll_fn};

#[derive(Default)]
struct World {
    /// Deadlines in milliseconds, with the number of the sleep, of what sleeps.
    sleeps: Rc<RefCell<BTreeSet<(u128, u32)>>>,
    now: Rc<Cell<u128>>,
    started: Cell<u32>,
    lines: RefCell<Vec<(Level, String)>>,
    modules: HashMap<&'static str, &'static str>,
    /// How often the script may ask before it is interrupted.
    patience: Cell<Option<u32>>,
}

/// Takes a sleep out of the list, also when it is dropped before its time.
struct Sleep(Rc<RefCell<BTreeSet<(u128, u32)>>>, (u128, u32));

impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.borrow_mut().remove(&self.1);
    }
}

impl Host for World {
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let own = (self.now.get() + duration.as_millis(), self.started.replace(self.started.get() + 1));
        self.sleeps.borrow_mut().insert(own);
        let (sleep, now) = (Sleep(Rc::clone(&self.sleeps), own), Rc::clone(&self.now));
        let mut looked = false;
        poll_fn(move |context| {
            // No time passes for free, so that what sleeps for ever does not do it in one go.
            if std::mem::replace(&mut looked, true) && sleep.0.borrow().first() == Some(&own) {
                now.set(own.0);
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .boxed_local()
    }

    fn console(&self, level: Level, message: &str) {
        self.lines.borrow_mut().push((level, message.to_owned()));
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(0xAB);
    }

    fn interrupted(&self) -> bool {
        self.patience.get().is_some_and(|left| {
            self.patience.set(Some(left.saturating_sub(1)));
            left == 0
        })
    }

    fn resolve(&self, _: &str, specifier: &str) -> Result<String, String> {
        if self.modules.contains_key(specifier) { Ok(specifier.to_owned()) } else { Err("there is none".to_owned()) }
    }

    fn load(&self, name: &str) -> Result<String, String> {
        self.modules.get(name).map(|text| (*text).to_owned()).ok_or_else(|| "there is none".to_owned())
    }
}

fn run_in(world: &Rc<World>, body: &str) -> Result<Option<String>, ScriptError> {
    block_on(async {
        let host: Rc<dyn Host> = Rc::clone(world) as _;
        Engine::new(host, Limits { memory_bytes: 16 << 20, ..Limits::default() }).await?.run_body("main.ts", body).await
    })
}

fn run(body: &str) -> String {
    match run_in(&Rc::new(World::default()), body) {
        Ok(json) => json.unwrap_or_else(|| "nothing".to_owned()),
        Err(error) => format!("{:?} {error}", error.kind),
    }
}

#[test]
fn a_body_awaits_and_returns_json() {
    assert_eq!(
        run("const a = await Promise.resolve(2); return { a, b: [a * 2], c: undefined };"),
        r#"{"a":2,"b":[4]}"#
    );
    assert_eq!(run("1 // no line break after this"), "nothing");
}

#[test]
fn an_error_names_the_place_as_its_author_counts() {
    let world = Rc::new(World::default());
    let error = run_in(&world, "function é() {\n  const 名 = 1; null.x;\n}\né();").unwrap_err();
    assert_eq!(error.to_string(), "main.ts:2:16: TypeError: cannot read property 'x' of null");
    assert_eq!(
        error.frame.as_deref(),
        Some("  1 | function é() {\n> 2 |   const 名 = 1; null.x;\n    |                ^")
    );
    let lines: Vec<u32> = error.stack.iter().map(|place| place.line).collect();
    assert_eq!((lines, error.code()), (vec![2, 4], "failed"));
    let first = run_in(&world, "throw new RangeError('no\\nmore')").unwrap_err();
    assert_eq!(first.to_string(), "main.ts:1:11: RangeError: no more");
    assert_eq!(run("throw 'text'"), "Thrown text");
}

#[test]
fn modules_come_from_the_host_and_their_errors_name_them() {
    let world = Rc::new(World {
        modules: HashMap::from([
            ("./a.ts", "import { b } from './b.ts';\nexport const a = () => b() + 1;"),
            ("./b.ts", "export const b = () => {\n  throw new Error('in b');\n};"),
        ]),
        ..World::default()
    });
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let (ran, missing) = block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        (
            engine.run_module("main.ts", "import { a } from './a.ts';\nawait 0;\na();").await,
            engine.run_module("other.ts", "import './c.ts';").await,
        )
    });
    let error = ran.unwrap_err();
    let files: Vec<&str> = error.stack.iter().map(|place| place.file.as_str()).collect();
    assert_eq!((error.to_string().as_str(), files), ("./b.ts:2:13: Error: in b", vec!["./b.ts", "./a.ts", "main.ts"]));
    assert!(missing.unwrap_err().message.contains("./c.ts"));
}

#[test]
fn a_place_of_the_author_counts_before_one_of_what_comes_with_the_engine() {
    let world = Rc::new(World {
        modules: HashMap::from([("atoll:it", "export const it = () => { throw new Error('in it'); };")]),
        ..World::default()
    });
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let ran = block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        engine.run_module("main.ts", "import { it } from 'atoll:it';\n  it();").await
    });
    let error = ran.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.stack.len()), ("main.ts:2:3: Error: in it", 1));
}

#[test]
fn a_promise_that_nobody_waits_for_is_said_and_one_that_is_caught_late_is_not() {
    let world = Rc::new(World::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let body =
        "Promise.reject(new Error('lost'));\nconst late = Promise.reject(new Error('late'));\nlate.catch(() => {});
        await new Promise(done => setTimeout(done, 5));";
    block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        engine.report_unhandled().await;
        engine.run_body("main.ts", body).await.unwrap();
    });
    let lines = world.lines.borrow();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].0 == Level::Error && lines[0].1.ends_with("main.ts:1:20: Error: lost"), "{lines:?}");
}

#[test]
fn a_promise_that_is_waited_for_later_is_not_lost_and_what_is_kept_of_lost_ones_has_an_end() {
    let body = "const late = Promise.reject(new Error('late'));
        Promise.reject(new Error('lost'));
        for (let i = 0; i < 3; i++) await null;
        await late.catch(() => {});
        for (let i = 0; i < 2000; i++) Promise.reject(i);";
    let world = Rc::new(World::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let lost = block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        engine.keep_unhandled().await;
        engine.run_body("main.ts", body).await.unwrap();
        engine.take_unhandled()
    });
    assert_eq!((lost[0].message.as_str(), lost.len()), ("lost", atoll_js::MOST_UNHANDLED));
    let lost = block_on(async {
        let engine = Engine::new(Rc::clone(&world) as _, Limits::default()).await.unwrap();
        engine.keep_unhandled().await;
        assert_eq!(engine.run_body("main.ts", "throw new Error('at once')").await.unwrap_err().message, "at once");
        engine.take_unhandled()
    });
    assert!(lost.is_empty(), "{lost:?}");
    assert!(world.lines.borrow().is_empty());
}

#[test]
fn timers_run_in_their_order_until_they_are_cleared() {
    let body = "const seen = [];
        setTimeout((a, b) => seen.push(a + b), 20, 'sec', 'ond');
        setTimeout(() => seen.push('first'), 10);
        const never = setTimeout(() => seen.push('never'), 15);
        clearTimeout(never);
        let ticks = 0;
        await new Promise((done) => {
            const id = setInterval(() => { seen.push(`tick ${ticks += 1}`); if (ticks === 2) { clearInterval(id); done(); } }, 30);
        });
        await new Promise((done) => setTimeout(done, 100));
        return seen;";
    let world = Rc::new(World::default());
    assert_eq!(run_in(&world, body).unwrap().as_deref(), Some(r#"["first","second","tick 1","tick 2"]"#));
    assert_eq!((world.now.get(), world.sleeps.borrow().len()), (160, 0));
}

#[test]
fn an_error_in_a_timer_is_on_the_console() {
    let world = Rc::new(World::default());
    run_in(
        &world,
        "setTimeout(() => { throw new Error('late') }, 1); await new Promise((done) => setTimeout(done, 5));",
    )
    .unwrap();
    let lines = world.lines.borrow();
    assert!(matches!(lines.as_slice(), [(Level::Error, line)] if line.contains("late")), "{lines:?}");
}

#[test]
fn each_limit_ends_a_script_that_can_not_catch_its_way_out() {
    let world = Rc::new(World { patience: Cell::new(Some(3)), ..World::default() });
    let endless = run_in(&world, "for (;;) { try { for (;;); } catch {} }").unwrap_err();
    assert_eq!((endless.kind, endless.code()), (ScriptErrorKind::Interrupted, "cancelled"));
    let world = Rc::new(World::default());
    let memory = run_in(&world, "const all = []; for (;;) all.push('x'.repeat(1 << 20) + all.length);").unwrap_err();
    assert_eq!((memory.kind, memory.code()), (ScriptErrorKind::Memory, "limit"));
    let stack = run_in(&world, "const f = () => f() + 1; f();").unwrap_err();
    assert_eq!((stack.kind, stack.code()), (ScriptErrorKind::Stack, "limit"));
}

#[test]
fn built_ins_are_frozen_and_still_usable() {
    let tries = "const tries = [
            () => { Array.prototype.map = 1 }, () => { Object.prototype.x = 1 }, () => { globalThis.Array = 1 },
            () => { Error.prototype.name = 'x' }, () => { console.log = 1 }, () => { URL.prototype.x = 1 },
            () => { Object.getPrototypeOf(async () => {}).x = 1 }, () => { JSON.parse = 1 }, () => { Math.random = 1 },
        ];
        return tries.map((run) => { try { run(); return 'changed' } catch (error) { return error.name } });";
    assert_eq!(run(tries), format!("[{}]", ["\"TypeError\""; 9].join(",")));
    let uses = "class Own extends Error { constructor(m) { super(m); this.name = 'Own'; } }
        const o = {}; o.toString = () => 'mine'; o.constructor = 1;
        const e = new Own('m'); e.message = 'n';
        globalThis.mine = 1;
        return [String(o), o.constructor, `${e}`, Object.keys(e), mine, [3, 1].sort(), (function () {}).name];";
    assert_eq!(run(uses), r#"["mine",1,"Own: n",["name"],1,[1,3],""]"#);
}

#[test]
fn the_console_shows_values_as_a_person_would_write_them() {
    let world = Rc::new(World::default());
    let body = "const circle = { a: 1 }; circle.self = circle;
        console.log('text', 1n, [1, 'a', [[[[1]]]]], { 'a-b': null, c: undefined }, circle);
        console.warn(new Map([['k', new Set([1])]]), new Uint8Array(2), /x/g, Symbol('s'), function f() {}, new Date(0));
        console.error(new (class Point { x = 1 })(), '\\ud800'); console.debug(); console.assert(false, 'no');";
    run_in(&world, body).unwrap();
    let expected = [
        (
            Level::Info,
            r#"text 1n [ 1, "a", [ [ [ [array] ] ] ] ] { "a-b": null, c: undefined } { a: 1, self: [circular] }"#,
        ),
        (
            Level::Warn,
            r#"Map { "k" => Set { 1 } } Uint8Array [ 0, 0 ] /x/g Symbol(s) [function f] 1970-01-01T00:00:00.000Z"#,
        ),
        (Level::Error, "Point { x: 1 } \u{fffd}"),
        (Level::Debug, ""),
        (Level::Error, "assertion failed: no"),
    ];
    assert_eq!(*world.lines.borrow(), expected.map(|(level, line)| (level, line.to_owned())));
}

#[test]
fn text_bytes_and_random_numbers() {
    let body = "const bytes = new TextEncoder().encode('é😀\\ud800');
        const pieces = new TextDecoder();
        let strict; try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (e) { strict = e.name }
        return [[...bytes], pieces.decode(bytes.slice(0, 4), { stream: true }) + pieces.decode(bytes.slice(4)), strict,
            new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff])), btoa('abc'), atob('YWJj'),
            crypto.randomUUID(), [...crypto.getRandomValues(new Uint16Array(1))], typeof performance.now(),
            await new Promise((done) => queueMicrotask(() => done('later')))];";
    assert_eq!(
        run(body),
        "[[195,169,240,159,152,128,239,191,189],\"é😀\u{fffd}\",\"TypeError\",\"a\u{fffd}\",\"YWJj\",\"abc\",\
         \"abababab-abab-4bab-abab-abababababab\",[43947],\"number\",\"later\"]"
    );
}

#[test]
fn structured_clones_share_nothing_and_keep_their_shape() {
    let body = "const shared = [1]; const from = { d: new Date(0), r: /x/g, m: new Map([[shared, new Set([shared])]]),
            b: new Uint8Array([1, 2]), e: new TypeError('t'), u: undefined, list: [shared, shared] };
        from.self = from;
        const to = structuredClone(from);
        shared.push(2); from.b[0] = 9;
        const key = [...to.m.keys()][0];
        const refused = [() => {}, Symbol('s'), Promise.resolve()].map((v) => { try { structuredClone(v) } catch (e) { return e.name } });
        return [to.self === to, to.d.getTime(), `${to.r}`, key, to.m.get(key).has(key), to.list[0] === key, [...to.b],
            to.e instanceof TypeError && to.e.message, 'u' in to, refused];";
    assert_eq!(
        run(body),
        r#"[true,0,"/x/g",[1],true,true,[1,2],"t",true,["DataCloneError","DataCloneError","DataCloneError"]]"#
    );
}

#[test]
fn urls_are_read_as_the_standard_says() {
    let cases = [
        (
            "'HTTP://User:p%40ss@EXAMPLE.com:80/a/./b/../c?q=a b#f g'",
            "http://User:p%40ss@example.com/a/c?q=a%20b#f%20g",
        ),
        ("'../d?x', 'https://h/a/b/c?y#z'", "https://h/a/d?x"),
        ("'//other/p', 'https://h/a'", "https://other/p"),
        ("'?q', 'https://h/a?b#c'", "https://h/a?q"),
        ("'#f', 'https://h/a?b#c'", "https://h/a?b#f"),
        ("'', 'https://h/a?b#c'", "https://h/a?b"),
        ("'https:\\\\\\\\h\\\\a'", "https://h/a"),
        ("'https://0x7f.1/'", "https://127.0.0.1/"),
        ("'http://[::ffff:1.2.3.4]:8080/'", "http://[::ffff:102:304]:8080/"),
        ("'http://[1:0:0:2::]/'", "http://[1:0:0:2::]/"),
        ("'file:///a/../b'", "file:///b"),
        ("'mailto:a@b.c'", "mailto:a@b.c"),
        ("'data:text/plain,a b'", "data:text/plain,a b"),
        ("'https://h/é/%zz'", "https://h/%C3%A9/%zz"),
        ("'x'", "TypeError"),
        ("'https://'", "TypeError"),
        ("'https://h:65536/'", "TypeError"),
        ("'https://256.1.1.1/'", "TypeError"),
        ("'https://a b/'", "TypeError"),
        ("'https://[::1/'", "TypeError"),
    ];
    let list: Vec<String> = cases.iter().map(|(arguments, _)| format!("() => new URL({arguments}).href")).collect();
    let body = format!(
        "return [{}].map((run) => {{ try {{ return run() }} catch (e) {{ return e.name }} }}).join('\\n');",
        list.join(",")
    );
    let found = run(&body);
    let found: Vec<&str> = found.trim_matches('"').split("\\n").collect();
    assert_eq!(found, cases.map(|(_, expected)| expected));
    let parts = "const u = new URL('https://h:8443/p?a=1&b=%20x+y&a=2');
        u.searchParams.append('é', '&'); u.searchParams.delete('b'); u.hash = 'z'; u.pathname = '/q r';
        const p = new URLSearchParams({ x: '1', y: 'a b' }); p.set('x', '2'); p.sort();
        return [u.href, u.origin, u.host, u.port, u.searchParams.getAll('a'), `${p}`, [...p].length, URL.canParse('no'), JSON.stringify({ u })];";
    assert_eq!(
        run(parts),
        r#"["https://h:8443/q%20r?a=1&a=2&%C3%A9=%26#z","https://h:8443","h:8443","8443",["1","2"],"x=2&y=a+b",2,false,"{\"u\":\"https://h:8443/q%20r?a=1&a=2&%C3%A9=%26#z\"}"]"#
    );
}

#[test]
fn an_interruption_after_an_await_ends_the_run() {
    for body in [
        "await 0; for (;;);",
        "await null; try { for (;;); } finally { for (;;); }",
        "(async () => { await 0; for (;;); })(); await new Promise(() => {});",
        "const again = () => Promise.resolve().then(again); again(); await new Promise(() => {});",
    ] {
        let world = Rc::new(World { patience: Cell::new(Some(3)), ..World::default() });
        assert_eq!(run_in(&world, body).unwrap_err().kind, ScriptErrorKind::Interrupted, "{body}");
    }
}

#[test]
fn a_run_that_nothing_can_bring_on_ends_at_once() {
    let world = Rc::new(World::default());
    let stuck = run_in(&world, "await new Promise(() => {});").unwrap_err();
    assert_eq!((stuck.kind, stuck.code()), (ScriptErrorKind::Stuck, "failed"));
    // A timer is something that can; it may also turn out to bring on nothing.
    let late = run_in(&world, "setTimeout(() => {}, 5); await new Promise(() => {});").unwrap_err();
    assert_eq!((late.kind, world.now.get()), (ScriptErrorKind::Stuck, 5));
}

#[test]
fn a_run_waits_for_whatever_holds_a_guard() {
    let world = Rc::new(World::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let returned = block_on(async {
        let engine = Engine::new(Rc::clone(&host), Limits::default()).await.unwrap();
        let guard = Cell::new(Some(engine.ending().pending()));
        let slow = move || {
            let (guard, sleep) = (guard.take(), host.sleep(Duration::from_millis(7)));
            atoll_js::rquickjs::prelude::Promised(async move {
                sleep.await;
                drop(guard);
                Ok::<_, atoll_js::rquickjs::Error>(3)
            })
        };
        let install = |ctx: atoll_js::rquickjs::Ctx<'_>| {
            let function = atoll_js::rquickjs::Function::new(ctx.clone(), slow).unwrap();
            ctx.globals().set("slow", function).unwrap();
        };
        engine.context().with(install).await;
        engine.run_body("main.ts", "return await slow();").await.unwrap()
    });
    assert_eq!(returned.as_deref(), Some("3"));
}

#[test]
fn an_end_from_inside_is_caught_by_nothing_and_nothing_runs_on() {
    let bodies = [
        "try { end() } catch { note('caught') } finally { note('finally') } note('after')",
        "await 0; end(); note('after')",
        "new Promise(() => end()); note('after')",
        "[1].map(() => end()); note('after')",
        "setTimeout(() => { end(); note('after') }, 1); await new Promise((done) => setTimeout(done, 5)); note('after')",
        "const it = { get x() { end(); return 1 } }; JSON.stringify(it); note('after')",
        "function* all() { try { yield 1 } finally { note('finally') } } for (const one of all()) end();",
        "await Promise.all([1, 2].map(async () => { await 0; end(); note('after') }))",
    ];
    for body in bodies {
        let world = Rc::new(World::default());
        let host: Rc<dyn Host> = Rc::clone(&world) as _;
        let ended = block_on(async {
            let engine = Engine::new(Rc::clone(&host), Limits::default()).await.unwrap();
            let ending = engine.ending();
            let install = |ctx: atoll_js::rquickjs::Ctx<'_>| {
                use atoll_js::rquickjs::{Ctx, Function, Result};
                let over = ending.clone();
                let end =
                    Function::new(ctx.clone(), move |ctx: Ctx<'_>| -> Result<()> { Err(ending.end(&ctx)) }).unwrap();
                let note = move |ctx: Ctx<'_>, text: String| {
                    if over.is_over() {
                        return Err(over.stop(&ctx));
                    }
                    host.console(Level::Info, &text);
                    Ok(())
                };
                ctx.globals().set("end", end).unwrap();
                ctx.globals().set("note", Function::new(ctx.clone(), note).unwrap()).unwrap();
            };
            engine.context().with(install).await;
            engine.run_body("main.ts", body).await
        });
        assert_eq!(ended.unwrap_err().kind, ScriptErrorKind::Ended, "{body}");
        assert!(world.lines.borrow().is_empty(), "{body}: {:?}", world.lines.borrow());
    }
}

#[test]
fn what_is_not_waited_for_comes_to_its_end_when_it_is_asked_for_and_timers_do_not() {
    /// A world in which no time passes.
    #[derive(Default)]
    struct Still(RefCell<Vec<String>>);
    impl Host for Still {
        fn sleep(&self, _: Duration) -> LocalBoxFuture<'static, ()> {
            std::future::pending().boxed_local()
        }
        fn console(&self, _: Level, message: &str) {
            self.0.borrow_mut().push(message.to_owned());
        }
        fn random(&self, _: &mut [u8]) {}
    }
    let world = Rc::new(Still::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        let ending = engine.ending();
        let slow = move || {
            let pending = ending.pending();
            atoll_js::rquickjs::prelude::Promised(async move {
                for _ in 0..20 {
                    futures::future::ready(()).await;
                }
                drop(pending);
                Ok::<_, atoll_js::rquickjs::Error>(3)
            })
        };
        let install = |ctx: atoll_js::rquickjs::Ctx<'_>| {
            let function = atoll_js::rquickjs::Function::new(ctx.clone(), slow).unwrap();
            ctx.globals().set("slow", function).unwrap();
        };
        engine.context().with(install).await;
        let body = "slow().then(async () => { await 0; console.log('late') });
            setTimeout(() => console.log('never'), 60000); return 1";
        engine.run_body("main.ts", body).await.unwrap();
        engine.drain().await.unwrap();
        assert_eq!(engine.ending().timers(), 1);
    });
    assert_eq!(*world.0.borrow(), ["late"]);
}

#[test]
fn what_a_callback_throws_is_said_with_its_place() {
    let world = Rc::new(World::default());
    let body = "setTimeout(() => { null.x }, 1);\n  queueMicrotask(() => { throw new RangeError('far') });
        await new Promise((done) => setTimeout(done, 5));";
    run_in(&world, body).unwrap();
    let mut lines: Vec<String> = world.lines.borrow().iter().map(|(_, line)| line.clone()).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "error in a microtask: main.ts:2:36: RangeError: far",
            "error in a timer: main.ts:1:19: TypeError: cannot read property 'x' of null",
        ]
    );
}

#[test]
fn timers_and_texts_of_errors_have_an_end() {
    let many = "let n = 0; try { for (;;) { setTimeout(() => {}, 60000); n += 1 } } catch (e) { return [n, e.name] }";
    assert_eq!(run(many), r#"[10000,"RangeError"]"#);
    let long = run_in(&Rc::new(World::default()), "throw new Error('x'.repeat(1e6))").unwrap_err();
    assert!(long.message.len() < 20_000 && long.message.ends_with('…'), "{}", long.message.len());
}

#[test]
fn nothing_hands_out_the_functions_on_the_stack() {
    let body = "let found = 'nothing';
        try { Error.prepareStackTrace = (_, sites) => { found = sites.length } } catch {}
        try { setTimeout(5) } catch (e) { void e.stack }
        return found";
    assert_eq!(run(body), r#""nothing""#);
}

#[test]
fn errors_whose_fields_run_code_are_read_all_the_same() {
    let cases = [
        "const e = new Error('m'); Object.defineProperty(e, 'message', { get() { throw new Error('again') } }); throw e",
        "throw { toString() { throw new Error('again') } }",
        "throw new Proxy(new Error('m'), { get() { throw new Error('again') } })",
        "const e = new Error('m'); Object.defineProperty(e, 'name', { get() { return import('no') && 'N' } }); throw e",
        "throw Symbol('s')",
        "throw undefined",
        "throw Object.create(null)",
    ];
    let world = Rc::new(World::default());
    for body in cases {
        assert_eq!(run_in(&world, body).unwrap_err().kind, ScriptErrorKind::Thrown, "{body}");
    }
    let lone = run_in(&world, "throw new Error('a\\ud800b')").unwrap_err();
    assert!(lone.message.starts_with('a') && lone.message.ends_with('b'), "{lone}");
}

#[test]
fn places_are_those_of_the_text_and_not_of_the_code() {
    let world = Rc::new(World::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let (text, code) = ("a();\nlet é = b();", "a();\nlet é = (b)();");
    let insertions =
        [atoll_js::Insertion { line: 2, column: 9, bytes: 1 }, atoll_js::Insertion { line: 2, column: 10, bytes: 1 }];
    let body = atoll_js::Body { name: "s.ts", code: &code.replace("a()", "0"), text, insertions: &insertions };
    let error = block_on(async {
        let engine = Engine::new(host, Limits::default()).await.unwrap();
        engine.run_body_with(&body, |_, _| Ok(())).await.unwrap_err()
    });
    assert_eq!(error.to_string(), "s.ts:2:9: ReferenceError: b is not defined");
}

#[test]
fn random_numbers_are_the_hosts_and_built_ins_can_be_added_before_they_are_frozen() {
    let world = Rc::new(World::default());
    let host: Rc<dyn Host> = Rc::clone(&world) as _;
    let returned = block_on(async {
        let engine = Engine::open(host, Limits::default()).await.unwrap();
        let shim = "(value) => { globalThis.mine = { value } }";
        engine.shim("mine", shim, |_, function| function.call::<_, ()>((4,))).await.unwrap();
        engine.freeze().await.unwrap();
        let body = "let refused; try { mine.value = 5 } catch (e) { refused = e.name }
            const drawn = Array.from({ length: 100 }, Math.random);
            return [mine.value, refused, new Set(drawn).size, drawn.every((n) => n >= 0 && n < 1)]";
        engine.run_body("main.ts", body).await.unwrap()
    });
    assert_eq!(returned.as_deref(), Some(r#"[4,"TypeError",100,true]"#));
}
