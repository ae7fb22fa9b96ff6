//! The manifest and the grant never widen each other; tried on random ones.

use super::*;
use proptest::prelude::*;

fn any_http() -> impl Strategy<Value = Wants> {
    let one = (
        prop_oneof![Just("http"), Just("https"), Just("*")],
        prop_oneof![
            r"(\*\.)?[ab](\.[ab]){0,2}",
            Just("*".to_owned()),
            Just("[::1]".to_owned()),
            Just("1.2.3.4".to_owned())
        ],
        prop_oneof![Just(""), Just(":*"), Just(":81"), Just(":443")],
        prop_oneof![Just(""), Just(":POST"), Just(":ANY"), Just(":GET,POST")],
    )
        .prop_map(|(scheme, host, port, method)| format!("{scheme}://{host}{port}{method}"));
    let one = prop_oneof![4 => one, 1 => Just("$models:ANY".to_owned())];
    proptest::collection::vec(one, 0..4).prop_map(|list| http(&list.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn any_path() -> impl Strategy<Value = String> {
    "(/[abw]){1,4}"
}

fn any_files() -> impl Strategy<Value = Wants> {
    let root = prop_oneof![any_path(), Just("$workspace".to_owned()), "~(/[ab]){0,2}", Just("/".to_owned())];
    let one =
        (root, prop_oneof![Just("read"), Just("read-write")]).prop_map(|(root, access)| format!("{root}:{access}"));
    proptest::collection::vec(one, 0..4).prop_map(|list| files(&list.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn any_process() -> impl Strategy<Value = Wants> {
    let arguments = proptest::option::of((proptest::collection::vec("[ab]{0,2}\\*?", 0..3), any::<bool>()));
    let env = proptest::collection::vec("[AB]{0,2}\\*?", 0..3);
    let one = (prop_oneof![Just("a"), Just("b"), Just("/a"), Just("*")], arguments, env);
    let one = one.prop_map(|(program, arguments, env)| {
        let arguments = arguments.map(|(mut list, open)| {
            if open {
                list.push("**".to_owned());
            }
            list
        });
        let list: Option<Vec<&str>> = arguments.as_ref().map(|list| list.iter().map(String::as_str).collect());
        let mut one = process(program, list.as_deref());
        one.process[0].env = env.iter().filter_map(|text| EnvPattern::parse(text).ok()).collect();
        one
    });
    proptest::collection::vec(one, 0..4).prop_map(|list| {
        let mut all = Wants::default();
        list.iter().for_each(|wants| all.add(wants));
        all
    })
}

fn any_secrets() -> impl Strategy<Value = Wants> {
    let one =
        ("[ab]{0,2}\\*?", prop_oneof![Just(""), Just(":reveal")]).prop_map(|(name, reveal)| format!("{name}{reveal}"));
    proptest::collection::vec(one, 0..4).prop_map(|list| {
        let secrets = list.iter().filter_map(|text| SecretWant::from_argument(text).ok()).collect();
        Wants { secrets, ..Wants::default() }
    })
}

/// Both sides on their own, together, and together but the other way round.
fn sides(a: &Wants, b: &Wants) -> [Effective; 4] {
    let everything = Wants::everything();
    [
        Effective::builtin(&manifest(a.clone())),
        Effective::intersect(&manifest(everything), Some(b)),
        Effective::intersect(&manifest(a.clone()), Some(b)),
        Effective::intersect(&manifest(b.clone()), Some(a)),
    ]
}

proptest! {
    #[test]
    fn http_never_widens(
        a in any_http(), b in any_http(), host in "[ab](\\.[ab]){0,3}|::1|1\\.2\\.3\\.4", https in any::<bool>(),
        port in prop_oneof![Just(80u16), Just(443), Just(81)], method in prop_oneof![Just("GET"), Just("POST"), Just("PUT")],
    ) {
        let scheme = if https { "https" } else { "http" };
        let models = [Origin { scheme: "https".into(), host: "a".into(), port: 443 }];
        let [x, y, both, swapped] = sides(&a, &b).map(|side| side.check_http(scheme, &host, port, method, &models).is_ok());
        prop_assert_eq!(both, x && y);
        prop_assert_eq!(both, swapped);
        let effective = Effective::intersect(&manifest(a.clone()), Some(&b));
        prop_assert!(!both || effective.allows_interface(Capability::Http));
        // The command in the hint really gives it.
        if x && !both {
            let denied = effective.check_http(scheme, &host, port, method, &models).unwrap_err();
            let argument = denied.hint.rsplit(' ').next().unwrap().trim_matches('\'').to_owned();
            let mut more = b;
            more.add(&http(&[&argument]));
            let effective = Effective::intersect(&manifest(a), Some(&more));
            prop_assert_eq!(effective.check_http(scheme, &host, port, method, &models), Ok(()));
        }
    }

    #[test]
    fn files_never_widen(a in any_files(), b in any_files(), path in any_path(), write in any::<bool>()) {
        let vars = RootVars { workspace: "/w".into(), skills: vec![], spill: "/b".into(), home: "/a".into() };
        let access = if write { Access::ReadWrite } else { Access::Read };
        let path = Path::new(&path);
        let [x, y, both, swapped] = sides(&a, &b).map(|side| side.check_path(&vars, path, access).is_ok());
        prop_assert_eq!(both, x && y);
        prop_assert_eq!(both, swapped);
        let effective = Effective::intersect(&manifest(a.clone()), Some(&b));
        // The roots say the same as the check.
        let by_roots = effective.roots(&vars).iter().any(|(root, granted)| path.starts_with(root) && *granted >= access);
        prop_assert_eq!(by_roots, both);
        prop_assert!(!both || effective.allows_interface(Capability::Files));
        for root in effective.scoped_roots(&vars) {
            prop_assert!(root.path.starts_with(&root.within));
        }
        if x && !both {
            let denied = effective.check_path(&vars, path, access).unwrap_err();
            let argument = denied.hint.rsplit(' ').next().unwrap().trim_matches('\'').to_owned();
            let mut more = b;
            more.add(&files(&[&argument]));
            let effective = Effective::intersect(&manifest(a), Some(&more));
            prop_assert_eq!(effective.check_path(&vars, path, access), Ok(()));
        }
    }

    #[test]
    fn commands_never_widen(
        a in any_process(), b in any_process(), program in prop_oneof![Just("a"), Just("b"), Just("/a"), Just("./a")],
        arguments in proptest::collection::vec("[ab]{0,2}", 0..4),
    ) {
        let [x, y, both, swapped] = sides(&a, &b).map(|side| side.check_process(program, &arguments).is_ok());
        prop_assert_eq!(both, x && y);
        prop_assert_eq!(both, swapped);
        prop_assert!(!both || Effective::intersect(&manifest(a), Some(&b)).allows_interface(Capability::Process));
    }

    #[test]
    fn variables_never_widen(
        a in any_process(), b in any_process(), program in prop_oneof![Just("a"), Just("b"), Just("/a")],
        arguments in proptest::collection::vec("[ab]{0,2}", 0..4), name in "[ABC]{1,3}|PATH|ENV|LD_A",
    ) {
        let [x, y, both, swapped] = sides(&a, &b).map(|side| side.check_env(program, &arguments, &name).is_ok());
        prop_assert_eq!(both, x && y);
        prop_assert_eq!(both, swapped);
        prop_assert!(!(both && ["PATH", "ENV", "LD_A"].contains(&name.as_str())));
        let effective = Effective::intersect(&manifest(a.clone()), Some(&b));
        // Never for a program that may not be started.
        prop_assert!(!both || effective.check_process(program, &arguments).is_ok());
        // The command in the hint really gives it, for a program that may be started; and it starts no other command.
        if x && !both && effective.check_process(program, &arguments).is_ok() {
            let denied = effective.check_env(program, &arguments, &name).unwrap_err();
            let argument = denied.hint.rsplit(' ').next().unwrap().trim_matches('\'').to_owned();
            let mut more = b;
            more.add(&programs(&[&argument]));
            let with_it = Effective::intersect(&manifest(a), Some(&more));
            prop_assert_eq!(with_it.check_env(program, &arguments, &name), Ok(()));
            for other in [&["a"][..], &["b", "a"], &[]] {
                let (before, after) = (effective.check_process(program, other), with_it.check_process(program, other));
                prop_assert_eq!(before.is_ok(), after.is_ok());
            }
        }
    }

    #[test]
    fn secrets_never_widen(a in any_secrets(), b in any_secrets(), name in "[ab]{1,3}", reveal in any::<bool>()) {
        let [x, y, both, swapped] = sides(&a, &b).map(|side| side.check_secret(&name, reveal).is_ok());
        prop_assert_eq!(both, x && y);
        prop_assert_eq!(both, swapped);
    }

    #[test]
    fn denials_are_one_line(text in any::<String>(), host in any::<String>()) {
        let effective = Effective::intersect(&manifest(Wants::everything()), None);
        let mut shown = vec![
            effective.check_http(&text, &host, 1, &text, &[]).unwrap_err().to_string(),
            effective.check_process(&text, &[&host]).unwrap_err().to_string(),
            effective.check_env(&host, &[&text], &text).unwrap_err().to_string(),
            effective.check_secret(&text, true).unwrap_err().to_string(),
        ];
        shown.push(effective.check_path(&vars(), Path::new(&format!("/{text}")), Access::Read).unwrap_err().to_string());
        shown.push(Effective::intersect(&manifest(Wants::default()), None).check_path(&vars(), Path::new(&format!("/{text}")), Access::Read).unwrap_err().to_string());
        for line in shown {
            prop_assert!(!line.chars().any(char::is_control), "{}", line);
        }
    }
}
