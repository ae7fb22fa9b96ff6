//! Scenarios that can not be played: each mistake is named with its place, and no name in one leads out of its folder.

use super::{project, test};

#[test]
fn a_scenario_that_is_not_understood_is_said_with_its_line_and_nothing_is_played() {
    let (sandbox, file) = project();
    let good = sandbox.file("good.toml", "[[step]]\ncall = \"puppet\"\narguments.steps = []\n");
    for (text, said) in [
        ("\n[[stop]]\n", "bad.toml:2:3: unknown key `stop`; did you mean step?"),
        ("[[step]]\nevnt = \"input\"\n", "bad.toml:2:1: unknown key `evnt`; did you mean event?"),
        ("[[step]]\nevent = \"inptu\"\n", "bad.toml:1:1: there is no event `inptu`; did you mean input?"),
        ("[[step]]\nevent = \"input\"\nfields.txt = \"\"\n", "unknown key `txt`; did you mean text?"),
        (
            "[[step]]\ncall = \"x\"\n[step.expect]\nblok = \"\"\n",
            "bad.toml:4:1: unknown key `blok`; did you mean block?",
        ),
        (
            "[[step]]\ncall = \"x\"\nexpect.block = \"\"\n",
            "`block` is expected of a step that is `event`, not of `call`",
        ),
        ("[[step]]\ncall = \"x\"\nexpect.used = [\"\"]\n", "`used` is expected of the whole"),
        ("[expect]\nblock = \"\"\n", "`block` is expected of a step that is `event`"),
        ("[[step]]\ncall = \"x\"\ncommand = \"y\"\n", "this one has call and command"),
        ("[[step]]\n", "this one has none"),
        ("[[step]]\ncall = \"x\"\ndata = 1\n", "`data` goes with bus, not with `call`"),
        ("[[step]]\ncall = \"x\"\narguments = \"y\"\n", "the `arguments` of a call are a table"),
        ("[[step]]\ncommand = \"x\"\narguments = { a = 1 }\n", "the `arguments` of a command are a text"),
        ("[[step]]\nstart = \"reload\"\n[[step]]\nstart = \"startup\"\n", "bad.toml:3:1: only the first step"),
        ("[[step]]\nstart = \"restart\"\n", "unknown value `restart`"),
        ("\ngranted = [\"file\"]\n", "bad.toml:2:1: `granted`: there is no capability `file`; did you mean files?"),
        (
            "about = \"x\"\n\n[expect]\nlog = []\nblock = \"\"\n",
            "bad.toml:5:1: [expect]: `block` is expected of a step",
        ),
        ("", "bad.toml:1:1: there is nothing that could fail"),
        ("about = \"x\"\n[settings]\na = 1\n", "bad.toml:1:1: there is nothing that could fail"),
        (
            "[expect]\nnot-used = [\"proces\"]\n",
            "bad.toml:2:1: [expect]: `not-used`: there is no capability `proces`; did",
        ),
        ("[expect]\nused = [\"htpp GET\"]\n", "`used`: there is no capability `htpp`; did you mean http?"),
        ("[expect]\ndenied = [\"\"]\n", "`denied`: there is no capability ``; there are files, http, "),
        (
            "[[step]]\nevent = \"tool-call\"\nfields.tool = \"x\"\nexpect = { block = \"*\", rewrite = {} }\n",
            "bad.toml:1:1: `block` and `rewrite` can not both come of one step",
        ),
        (
            "[[step]]\nevent = \"input\"\nfields.text = \"\"\nexpect = { pass = true, terminate = false }\n",
            "`pass = true` and `block` can not both",
        ),
        (
            "[[step]]\nevent = \"input\"\nfields.text = \"\"\nexpect = { subscribed = false, transform = \"x\" }\n",
            "`subscribed = false` and `transform` can not both",
        ),
        (
            "[[step]]\nevent = \"input\"\nfields.text = \"\"\nexpect = { subscribed = false, pass = false }\n",
            "`subscribed = false` and `pass` can not both",
        ),
        (
            "[[step]]\nevent = \"input\"\nfields.text = \"\"\nexpect = { error = \"no\", handled = true }\n",
            "`error` and `handled = true` can not both",
        ),
        ("[[step]]\nprompt = \"x\"\nexpect = { error = \"no\", text = \"y\" }\n", "`error` and `text` can not both"),
        (
            "[[step]]\ncommand = \"x\"\n[expect]\nerror = \"no\"\n",
            "bad.toml:4:1: [expect]: `error` says that the plugin can not be used, so no [[step]] would happen",
        ),
        ("[[ui]]\nconfirm = true\ninput = \"\"\n", "exactly one of `select`"),
        ("[[http]]\nurl = \"x\"\nbody = \"\"\njson = 1\n", "one of `body`, `json`"),
        ("[[http]]\nstatus = 200\n", "missing field `url`"),
        ("[limits]\nmemory = 3\n", "`memory` is no limit"),
        ("trusted = 3\n", "bad.toml:1:11: "),
        ("a = \n", "bad.toml:1:"),
    ] {
        let bad = sandbox.file("bad.toml", text);
        let finished = test(&sandbox, &file).args([&good, &bad]).run().code(2);
        let line = finished.one_line();
        assert!(line.contains(said) && line.contains("bad.toml:"), "{text}\n{line}");
        assert_eq!(finished.stdout, "", "{text}");
    }
}

#[test]
fn a_scenario_reaches_no_file_outside_of_its_folders() {
    let (sandbox, file) = project();
    let kept = sandbox.file("outside/kept.txt", "kept");
    let absolute = kept.display().to_string();
    let places = [absolute.as_str(), "../outside/kept.txt", "../../../new.txt", "a/../../new.txt", "./x", "", ".."];
    for place in places {
        for (line, text) in [
            (2, format!("[files]\n{place:?} = \"gone\"\n[[step]]\nstart = \"startup\"\n")),
            (2, format!("[files]\n\"~/{place}\" = \"gone\"\n[[step]]\nstart = \"startup\"\n")),
            (2, format!("[expect]\nfiles = {{ {place:?} = \"x\" }}\n")),
            (2, format!("[expect]\ngolden = {place:?}\n")),
            (1, format!("[[step]]\nstart = \"startup\"\nexpect.files = {{ {place:?} = \"x\" }}\n")),
            (1, format!("[[step]]\nstart = \"startup\"\nexpect.golden = {place:?}\n")),
            (1, format!("[[http]]\nurl = \"https://a.example/\"\nbody-file = {place:?}\n[expect]\nlog = []\n")),
        ] {
            let scenario = sandbox.file("tests/s.toml", &text);
            let finished = test(&sandbox, &file).arg(&scenario).env("ATOLL_UPDATE", "1").run().code(2);
            let said = finished.one_line();
            assert!(said.contains("is outside of the scenario's own folder"), "{text}\n{said}");
            assert!(said.contains(&format!("s.toml:{line}:")), "{text}\n{said}");
        }
    }
    assert_eq!(sandbox.read("outside/kept.txt"), "kept");
    assert_eq!(std::fs::read_dir(sandbox.work().join("outside")).unwrap().count(), 1);
    assert!(!sandbox.root().join("new.txt").exists());
}

#[cfg(unix)]
#[test]
fn links_beside_a_scenario_are_neither_written_through_nor_read() {
    let (sandbox, file) = project();
    let kept = sandbox.file("outside/kept.txt", "a secret");
    let golden = |name: &str| {
        sandbox.file("tests/s.toml", format!("[[step]]\nstart = \"startup\"\nexpect.golden = \"{name}\"\n"))
    };
    golden("none");
    std::os::unix::fs::symlink(&kept, sandbox.work().join("tests/link.txt")).unwrap();
    std::os::unix::fs::symlink("../outside", sandbox.work().join("tests/folder")).unwrap();
    for name in ["link.txt", "folder/kept.txt", "folder/new.txt"] {
        for update in ["0", "1"] {
            let run = test(&sandbox, &file).arg(golden(name)).env("ATOLL_UPDATE", update).run().code(1);
            assert!(run.stdout.contains("the golden file "), "{name}: {run:#?}");
            assert!(!run.stdout.contains("a secret"), "{name}: {run:#?}");
        }
    }
    assert_eq!(sandbox.read("outside/kept.txt"), "a secret");
    assert_eq!(std::fs::read_dir(sandbox.work().join("outside")).unwrap().count(), 1);
}

#[test]
fn a_program_is_told_why_no_scenario_was_played() {
    let (sandbox, file) = project();
    let bad = sandbox.file("bad.toml", "[[stop]]\n");
    for arguments in [vec![bad], Vec::new()] {
        let run = test(&sandbox, &file).args(arguments).arg("--json").run().code(2);
        let said: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(said["passed"], false);
        let reason = said["errors"][0].as_str().unwrap();
        assert!(run.stderr.contains(reason), "{run:#?}");
    }
}
