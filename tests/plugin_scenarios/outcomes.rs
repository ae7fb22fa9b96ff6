//! What is said of a scenario that did not go as it says: the line, the difference, and for programs the same as JSON.

use super::{played_in, project, test, with_settings};

#[test]
fn what_is_not_as_expected_is_named_with_its_line() {
    let (sandbox, file) = project();
    for (step, said) in [
        ("event = \"tool-call\"\nfields.tool = \"x\"\nexpect.block = \"no\"", "expected block, the answer is pass"),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.block = \"No.\"",
            "`block` differs\n    -No.\n    +Not this one.",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.terminate = false",
            "`terminate` differs",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.pass = true",
            "expected pass, the answer is block and end the run: Not this one.",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"b\", arguments = { c = \"swap\" } }\nexpect.rewrite = { command = \"rm\" }",
            "command: expected \"rm\", there is \"ls\"",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"b\", arguments = { c = \"broken\" } }",
            "it failed\n    failed: no look",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.text = \"key\"",
            "`patch.text`",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.structured = 1",
            "`patch.structured`",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.is-error = false",
            "`patch.is-error`",
        ),
        ("event = \"input\"\nfields.text = \"loud\"\nexpect.transform = \"LOUD\"", "`transform` differs"),
        ("event = \"input\"\nfields.text = \"loud\"\nexpect.handled = true", "expected handled"),
        ("event = \"context\"\nexpect.reply = { messages = [] }", "messages: expected 0 items, there are 1"),
        ("event = \"agent-end\"", "did not subscribe to `agent-end`"),
        ("event = \"message-start\"\nexpect.subscribed = false", "`subscribed` differs"),
        ("bus = \"gossip\"", "did not subscribe to the topic `gossip`"),
        ("command = \"say\"\nexpect.notify = []", "`notify` differs"),
        ("command = \"say\"\nexpect.status = \"idle\"", "`status` differs"),
        ("command = \"say\"\nexpect.entries = [{ type = \"note\", data = { a = 2 } }]", "`entries` differs"),
        ("command = \"say\"\nexpect.bus = [\"in *\"]", "`bus` differs"),
        ("command = \"say\"\nexpect.messages = [\"follow-up*\"]", "`messages` differs"),
        ("command = \"say\"\nexpect.session = []", "`session` differs"),
        ("command = \"say\"\nexpect.log = [\"second\", \"first\"]", "expected the line \"first\""),
        ("command = \"say\"\nexpect.http = [\"GET*\"]", "`http` differs"),
        ("command = \"say\"\nexpect.files = { \"x.txt\" = true }", "the file x.txt is missing"),
        ("command = \"say\"\nexpect.files = { \"a.txt\" = false }", "there is a file a.txt"),
        ("command = \"say\"\nexpect.files = { \"a.txt\" = \"beta\" }", "`files.a.txt` differs"),
        ("command = \"say\"\nexpect.tools = [\"puppet\"]", "`tools` differs"),
        ("command = \"sya\"", "the plugin has no command `sya`"),
        ("command = \"fail\"\nexpect.error = \"denied\"", "`error` differs"),
        ("command = \"say\"\nexpect.error = \"failed\"", "it did not fail"),
        ("command = \"ask\"", "the plugin asks confirm \"Really?\", and [[ui]] has no answer for it"),
        ("command = \"model\"", "[[model]] has no answer for it"),
        ("command = \"call\"", "no [[tool]] fetcher fits the arguments {\"url\":\"x\"}"),
        ("complete = \"say\"\nexpect.completions = [\"gamma\"]", "`completions` differs"),
        ("call = \"puppet\"\narguments = { steps = [{ fail = \"no\" }] }", "the call failed\n    failed: no"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.text = \"x\"", "`text` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.structured = 1", "`structured` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.is-error = true", "`is-error` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.error = \"failed\"", "`error` differs"),
        ("prompt = \"hi\"", "the plugin exports no provider"),
    ] {
        let person = if step.contains("\"ask\"") { "person = true\n" } else { "" };
        let tool = if step.contains("\"call\"") { "[[tool]]\nname = \"fetcher\"\narguments.url = \"y\"\n" } else { "" };
        let scenario = with_settings(&format!("{person}\n{tool}[files]\n\"a.txt\" = \"alpha\"\n\n[[step]]\n{step}\n"));
        let line = scenario.lines().position(|line| line == "[[step]]").unwrap() + 1;
        let stdout = played_in(&sandbox, &file, &scenario).stdout;
        assert!(stdout.contains(said) && stdout.contains("1 of 1 scenarios failed"), "{step}\n{stdout}");
        assert!(stdout.contains(&format!("s.toml:{line}: ")), "{step}\n{stdout}");
    }
}

#[test]
fn what_is_expected_of_the_whole_and_what_was_provided_for_nothing_is_named() {
    let (sandbox, file) = project();
    for (own, said) in [
        (
            "[[step]]\ncommand = \"say\"\n[expect]\nused = [\"http\"]",
            "`used`: http was not used; used was\n    ui notify hi there",
        ),
        (
            "[[step]]\ncommand = \"say\"\n[expect]\nnot-used = [\"session append *\"]",
            "was used\n    session append note",
        ),
        (
            "[[step]]\ncommand = \"say\"\n[expect]\ndenied = [\"files\"]",
            "`denied`: files was not denied; denied was\n    nothing",
        ),
        (
            "[[ui]]\nconfirm = true\n[expect]\nlog = []",
            "1 answers of the person were given in [[ui]], and 0 were asked for",
        ),
        ("[[ui]]\ninput = \"x\"\n[[step]]\ncommand = \"ask\"", "the answer 1 of [[ui]] is none to confirm"),
        (
            "[[ui]]\ntitle = \"What?\"\nconfirm = true\n[[step]]\ncommand = \"ask\"",
            "is for \"What?\", and the plugin asks",
        ),
        ("[[model]]\ntext = \"x\"\n[expect]\nlog = []", "1 answers of the model were given"),
        (
            "[[http]]\nurl = \"https://a.example/\"\n[expect]\nlog = []",
            "nobody made the request GET https://a.example/",
        ),
        ("[flags]\nquiet = true\n[expect]\nlog = []", "the plugin has no option `quiet`"),
        ("[expect]\nerror = \"denied\"", "expected denied, the plugin started"),
    ] {
        let finished = played_in(&sandbox, &file, &with_settings(&format!("\n{own}\n"))).code(1);
        assert!(finished.stdout.contains(said), "{own}\n{}", finished.stdout);
    }
}

#[test]
fn golden_files_are_written_when_the_user_says_so_and_compared_otherwise() {
    let (sandbox, file) = project();
    let step = "[[step]]\ncall = \"puppet\"\narguments = { steps = [{ notify = \"one\" }, { describeHost = true }] }\nexpect.golden = \"golden/call.txt\"\n";
    let scenario = sandbox.file("s.toml", format!("{step}\n[expect]\ngolden = \"golden/all.txt\"\n"));
    let missing = test(&sandbox, &file).arg(&scenario).run().code(1);
    assert!(missing.stdout.contains("ATOLL_UPDATE=1 writes it"), "{}", missing.stdout);
    let written = test(&sandbox, &file).arg(&scenario).env("ATOLL_UPDATE", "1").run().ok();
    assert!(written.stdout.contains("written: ") && written.stdout.contains("golden/all.txt"), "{}", written.stdout);
    let golden = sandbox.read("golden/call.txt");
    assert!(golden.starts_with("call puppet\n  notify: info: one\n  = [null,{\"version\":"), "{golden}");
    assert!(golden.contains("\"cwd\":\"$WORKSPACE\""), "{golden}");
    test(&sandbox, &file).arg(&scenario).run().ok();
    sandbox.file("golden/call.txt", golden.replace("one", "two"));
    let differs = test(&sandbox, &file).arg(&scenario).run().code(1).stdout;
    assert!(differs.contains("-  notify: info: two\n    +  notify: info: one"), "{differs}");
}

#[test]
fn the_outcome_is_there_as_json() {
    let (sandbox, file) = project();
    let good = sandbox.file("good.toml", "about = \"fine\"\n[[step]]\ncall = \"puppet\"\narguments.steps = []\n");
    let bad = sandbox.file("bad.toml", "\n[[step]]\ncall = \"puppet\"\narguments.steps = []\nexpect.text = \"x\"\n");
    let said = test(&sandbox, &file).args([&good, &bad]).arg("--json").run().code(1).json();
    assert_eq!(said["passed"], false);
    let scenarios = said["scenarios"].as_array().unwrap();
    assert_eq!((&scenarios[0]["passed"], &scenarios[0]["about"]), (&true.into(), &"fine".into()));
    let problem = &scenarios[1]["problems"][0];
    assert_eq!((&problem["line"], &problem["step"]), (&2.into(), &"call puppet".into()));
    assert_eq!(problem["message"], "`text` differs\n-x\n+[]");
    assert_eq!(scenarios[1]["transcript"], "call puppet\n  = []\n");
}

#[test]
fn a_plugin_that_can_not_be_used_fails_its_scenario_unless_that_is_expected() {
    let (sandbox, file) = project();
    let start = "[settings]\nstart = [{ fail = \"no way\" }]\n";
    for (scenario, passes, said) in [
        (format!("{start}[expect]\nlog = []\n"), false, "the plugin can not be used\n    failed: no way"),
        (format!("{start}[expect]\nerror = \"no way\"\n"), true, "1 scenario passed"),
        (format!("{start}[[step]]\nstart = \"startup\"\nexpect.error = \"failed\"\n"), true, "1 scenario passed"),
        ("granted = [\"table\"]\n[expect]\nlog = []\n".to_owned(), false, "denied: not allowed: "),
        ("granted = [\"table\"]\n[expect]\nerror = \"denied\"\n".to_owned(), true, "1 scenario passed"),
        ("[settings]\nstart = [{ trap = \"down\" }]\n[[step]]\nstart = \"startup\"\n".to_owned(), false, "down"),
        // What else is expected counts also where the plugin can not be loaded.
        (
            "granted = [\"table\"]\n[expect]\nerror = \"denied\"\nfiles = { \"a.txt\" = true }\n".to_owned(),
            false,
            "the file a.txt is missing",
        ),
    ] {
        let path = sandbox.file("s.toml", &scenario);
        let finished = test(&sandbox, &file).arg(path).run().code(i32::from(!passes));
        assert!(finished.stdout.contains(said), "{scenario}\n{}", finished.stdout);
    }
}
