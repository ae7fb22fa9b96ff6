use super::*;

/// A level with these files, whose contents are what is behind `=`, and this list. What is found, as names and entries.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let (name, content) = file.split_once('=').unwrap_or((file, ""));
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self { folder }
    }

    fn base(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn look(&self, list: &[&str]) -> Files {
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        let base = self.base();
        look(Level { base: &base, home: &base.join("home"), list: &list, within: None })
    }

    fn entries(&self, list: &[&str]) -> Vec<String> {
        let base = self.base();
        let shown = |found: &Found| found.entry.strip_prefix(&base).unwrap().display().to_string();
        self.look(list).found.iter().map(shown).collect()
    }
}

#[test]
fn a_folder_is_looked_at_one_level_deep() {
    let world = World::new(&[
        "extensions/b.ts",
        "extensions/a.wasm",
        "extensions/c.mjs",
        "extensions/types.d.ts",
        "extensions/notes.md",
        "extensions/.hidden.ts",
        "extensions/indexed/index.js",
        "extensions/both/index.ts",
        "extensions/both/index.js",
        "extensions/library/part.ts",
        "extensions/deep/er/index.ts",
        "extensions/node_modules/index.ts",
        "extensions/packed/package.json={\"pi\": {\"extensions\": [\"./src/main.ts\"]}}",
        "extensions/packed/src/main.ts",
        "extensions/packed/index.ts",
        "extensions/many/package.json={\"atoll\": {\"extensions\": [\"one.ts\", \"two.js\"]}, \"pi\": {\"extensions\": [\"three.ts\"]}}",
        "extensions/many/one.ts",
        "extensions/many/two.js",
        "extensions/many/three.ts",
        "extensions/plain/package.json={\"name\": \"x\"}",
        "extensions/plain/index.ts",
        "extensions/made/plugin.toml",
        "extensions/made/made.wasm",
        "extensions/loose/loose.wasm",
        "extensions/scripted/plugin.toml",
        "extensions/scripted/index.ts",
    ]);
    let files = world.look(&[]);
    let found: Vec<(&str, String, Kind)> = files
        .found
        .iter()
        .map(|found| {
            (found.name.as_str(), found.entry.strip_prefix(world.base()).unwrap().display().to_string(), found.kind)
        })
        .collect();
    let expected = [
        ("a", "extensions/a.wasm", Kind::Component),
        ("b", "extensions/b.ts", Kind::Script),
        ("both", "extensions/both/index.ts", Kind::Script),
        ("c", "extensions/c.mjs", Kind::Script),
        ("indexed", "extensions/indexed/index.js", Kind::Script),
        ("made", "extensions/made/made.wasm", Kind::Component),
        ("many-one", "extensions/many/one.ts", Kind::Script),
        ("many-two", "extensions/many/two.js", Kind::Script),
        ("packed", "extensions/packed/src/main.ts", Kind::Script),
        ("plain", "extensions/plain/index.ts", Kind::Script),
        ("scripted", "extensions/scripted/index.ts", Kind::Script),
    ]
    .map(|(name, entry, kind)| (name, entry.to_owned(), kind));
    assert_eq!(found, expected);
    assert_eq!(files.left_out, []);
    let manifest = |name: &str| files.found.iter().find(|found| found.name == name).unwrap().manifest.clone();
    assert_eq!(manifest("a"), world.base().join("extensions/a.toml"));
    assert_eq!(manifest("made"), world.base().join("extensions/made/plugin.toml"));
    assert_eq!(manifest("many-two"), world.base().join("extensions/many/two.toml"));
}

#[test]
fn a_list_adds_takes_away_and_brings_back() {
    let world = World::new(&[
        "extensions/a.ts",
        "extensions/b.ts",
        "extensions/pack/index.ts",
        "elsewhere/c.wasm",
        "home/d.js",
    ]);
    for (list, expected) in [
        (&[][..], &["extensions/a.ts", "extensions/b.ts", "extensions/pack/index.ts"][..]),
        (
            &["elsewhere/c.wasm", "~/d.js"],
            &["elsewhere/c.wasm", "home/d.js", "extensions/a.ts", "extensions/b.ts", "extensions/pack/index.ts"],
        ),
        // One file is one, whatever names it has.
        (&["./extensions/b.ts"], &["extensions/b.ts", "extensions/a.ts", "extensions/pack/index.ts"]),
        (&["!*.ts"], &["extensions/pack/index.ts"]),
        (&["!extensions/**"], &[]),
        (&["!extensions/**", "+extensions/b.ts"], &["extensions/b.ts"]),
        (&["-extensions/b.ts", "-extensions/pack"], &["extensions/a.ts"]),
        // What is taken away by its path stays away.
        (&["+extensions/a.ts", "-extensions/a.ts", "!*.ts"], &["extensions/pack/index.ts"]),
    ] {
        let base = world.base();
        assert_eq!(world.entries(list), expected, "{list:?} in {}", base.display());
    }
    let files = world.look(&["-builtin:mcp", "+builtin:codemode", "builtin:mcp", "!builtin:x"]);
    let builtins = [("mcp", false), ("codemode", true), ("mcp", true), ("x", false)];
    assert_eq!(files.builtins, builtins.map(|(name, on)| (name.to_owned(), on)));
}

#[test]
fn what_can_not_be_used_is_left_out_with_the_reason() {
    let world = World::new(&[
        "extensions/broken/package.json={",
        "extensions/broken/index.ts",
        "extensions/out/package.json={\"pi\": {\"extensions\": [\"../a.ts\"]}}",
        "extensions/gone/package.json={\"pi\": {\"extensions\": [\"gone.ts\"]}}",
        "extensions/two/plugin.toml",
        "extensions/two/a.wasm",
        "extensions/two/b.wasm",
        "notes.md",
        "empty/x.txt",
    ]);
    let files = world.look(&["nowhere.ts", "notes.md", "empty", "![", "-extensions/none.ts"]);
    assert_eq!(files.found, []);
    let base = world.base();
    let shown: Vec<String> = files
        .left_out
        .iter()
        .map(|(path, reason)| format!("{}: {reason}", path.strip_prefix(&base).unwrap_or(path).display()))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[cfg(unix)]
#[test]
fn nothing_of_a_project_leads_out_of_it() {
    let world = World::new(&["project/.atoll/extensions/own.ts", "elsewhere/theirs.ts"]);
    let (project, base) = (world.base().join("project"), world.base().join("project/.atoll"));
    let theirs = world.base().join("elsewhere/theirs.ts");
    std::os::unix::fs::symlink(&theirs, base.join("extensions/link.ts")).unwrap();
    let list = [theirs.display().to_string(), "../../elsewhere/theirs.ts".to_owned()];
    let within = |within| {
        let found = look(Level { base: &base, home: &base, list: &list, within });
        (found.found.len(), found.left_out.len())
    };
    assert_eq!(within(Some(project.as_path())), (1, 1));
    assert_eq!(within(None), (2, 0));
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_none() {
    let world = World::new(&["extensions/a.ts"]);
    let pipe = world.base().join("extensions/pipe.ts");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    std::os::unix::fs::symlink("nowhere.ts", world.base().join("extensions/nowhere-else.ts")).unwrap();
    assert_eq!(world.entries(&[]), ["extensions/a.ts"]);
    assert_eq!(world.look(&["extensions/pipe.ts"]).left_out.len(), 1);
}
