//! The tools for files on much to do: a large tree of sources, a megabyte to read, ten to edit, ten thousand names.
//! Beside them the native programs, with the same flags, started in the same way.
//!
//! A promise is about the call itself, warm and inside this process; what a user sees of `atoll tool call …`, start
//! included, is shown beside it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{
    Figure,
    in_process::Tools,
    median,
    processes::{Home, command, timed},
};

/// Files below which a tree is no large one.
const LARGE_TREE: usize = 15_000;

/// What is searched for: rare enough that finding counts, not showing.
const PATTERN: &str = "unsafe impl.*Sync";
/// What names are searched for.
const NAMES: &str = "*.toml";
/// More than there are results.
const ALL: u32 = 100_000;

/// What processes took, in milliseconds.
pub(crate) struct Processes {
    figures: Vec<Figure>,
    folder: tempfile::TempDir,
    tree: Option<PathBuf>,
    rg: Option<f64>,
    fd: Option<f64>,
    cat: f64,
    runs: usize,
}

/// Measures whole processes, the native ones and our own.
pub(crate) fn processes(atoll: &Path, quick: bool) -> anyhow::Result<Processes> {
    let runs = if quick { 3 } else { 11 };
    let folder = tempfile::tempdir()?;
    let home = Home::empty()?;
    files(folder.path())?;
    let mut all = Processes { figures: Vec::new(), folder, tree: tree(), rg: None, fd: None, cat: 0.0, runs };
    if let Some(tree) = all.tree.clone() {
        let ours = |tool: &str, arguments: Value| call(atoll, &home, &tree, tool, &arguments);
        let search = json!({"pattern": PATTERN, "limit": ALL});
        let names = json!({"pattern": NAMES, "limit": ALL});
        if let Some(mut rg) = native(&["rg"], &tree) {
            rg.args(["--no-config", "--json", "--line-number", "--color=never", "--hidden", "--no-require-git"]);
            rg.args(["--", PATTERN, "."]);
            let native = all.pair("grep, a large tree", "rg", &mut rg, &mut ours("grep", search.clone())?)?;
            all.rg = Some(native);
            if let (Some(mut rg), Some(mut grep)) = (on_one_core(&rg), on_one_core(&ours("grep", search)?)) {
                all.pair("grep, a large tree, one core", "rg", &mut rg, &mut grep)?;
            }
        }
        if let Some(mut fd) = native(&["fd", "fdfind"], &tree) {
            fd.args(["--glob", "--hidden", "--color=never", "--", NAMES]);
            let native = all.pair("find, a large tree", "fd", &mut fd, &mut ours("find", names.clone())?)?;
            all.fd = Some(native);
            if let (Some(mut fd), Some(mut find)) = (on_one_core(&fd), on_one_core(&ours("find", names)?)) {
                all.pair("find, a large tree, one core", "fd", &mut fd, &mut find)?;
            }
        }
    }
    let work = all.folder.path().to_owned();
    let mut cat = command(&["cat".to_owned()], &["megabyte.txt"])?;
    cat.current_dir(&work);
    let mut read = call(atoll, &home, &work, "read", &json!({"path": "megabyte.txt"}))?;
    all.cat = all.pair("read, 1 MB", "cat", &mut cat, &mut read)?;
    let mut ls = call(atoll, &home, &work, "ls", &json!({"path": "names"}))?;
    let took = all.wall(&mut ls)?;
    all.push("ls, 10,000 entries: process", took);
    Ok(all)
}

impl Processes {
    /// Measures a native process and ours by turns, so that both meet the same moments of the machine; gives what the
    /// native one takes.
    fn pair(&mut self, what: &str, name: &str, native: &mut Command, ours: &mut Command) -> anyhow::Result<f64> {
        let (mut theirs, mut own) = (Vec::new(), Vec::new());
        for run in 0..=self.runs {
            let (a, b) = (timed(native)?.0, timed(ours)?.0);
            // The first only fills the page cache.
            if run > 0 {
                theirs.push(a);
                own.push(b);
            }
        }
        let (theirs, own) = (median(&mut theirs), median(&mut own));
        self.push(&format!("{what}: {name}, process"), theirs);
        self.push(&format!("{what}: process"), own);
        Ok(theirs)
    }

    fn wall(&self, command: &mut Command) -> anyhow::Result<f64> {
        timed(command)?;
        let mut times = (0..self.runs).map(|_| Ok(timed(command)?.0)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(median(&mut times))
    }

    fn push(&mut self, name: &str, ms: f64) {
        self.figures.push(Figure::new(name, ms, "ms", self.runs));
    }

    /// Measures the calls themselves, after everything that has to be measured while this process is small.
    pub(crate) async fn calls(mut self) -> anyhow::Result<Vec<Figure>> {
        let work = self.folder.path().canonicalize()?;
        if let Some(tree) = self.tree.clone() {
            let tools = Tools::load(&tree, &["grep", "find"]).await?;
            if let Some(rg) = self.rg {
                let ms = self.call(&tools, "grep", &json!({"pattern": PATTERN, "limit": ALL})).await?;
                self.beside("grep, a large tree", "rg", ms, rg, 2.0);
            }
            if let Some(fd) = self.fd {
                let ms = self.call(&tools, "find", &json!({"pattern": NAMES, "limit": ALL})).await?;
                self.beside("find, a large tree", "fd", ms, fd, 2.0);
            }
        }
        let tools = Tools::load(&work, &["read", "edit", "ls"]).await?;
        let ms = self.call(&tools, "read", &json!({"path": "megabyte.txt"})).await?;
        let cat = self.cat;
        self.beside("read, 1 MB", "cat", ms, cat, 3.0);
        let mut times = Vec::new();
        for run in 0..=self.runs {
            // Back and forth, so that each run has the same to do.
            let (old, new) =
                if run % 2 == 0 { ("line 150000 ", "LINE 150000 ") } else { ("LINE 150000 ", "line 150000 ") };
            let arguments = json!({"path": "ten.txt", "edits": [{"oldText": old, "newText": new}]});
            times.push(once(&tools, "edit", &arguments).await?);
        }
        let edit = Figure::new("edit, 10 MB: call", median(&mut times[1..]), "ms", self.runs).below(300.0);
        self.figures.push(edit);
        let ms = self.call(&tools, "ls", &json!({"path": "names"})).await?;
        self.figures.push(Figure::new("ls, 10,000 entries: call", ms, "ms", self.runs).below(50.0));
        Ok(self.figures)
    }

    async fn call(&self, tools: &Tools, name: &str, arguments: &Value) -> anyhow::Result<f64> {
        once(tools, name, arguments).await?;
        let mut times = Vec::new();
        for _ in 0..self.runs {
            times.push(once(tools, name, arguments).await?);
        }
        Ok(median(&mut times))
    }

    fn beside(&mut self, what: &str, name: &str, ms: f64, native: f64, most: f64) {
        self.push(&format!("{what}: call"), ms);
        self.figures.push(Figure::new(format!("{what}: call, times {name}"), ms / native, "x", self.runs).below(most));
    }
}

async fn once(tools: &Tools, name: &str, arguments: &Value) -> anyhow::Result<f64> {
    let began = Instant::now();
    tools.call(name, arguments.clone()).await?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// The sources of the libraries that this was built with, if they are many.
fn tree() -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))?;
    let tree = cargo.join("registry/src").canonicalize().ok()?;
    let mut folders = vec![tree.clone()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files += 1,
            }
        }
    }
    if files < LARGE_TREE {
        eprintln!("atoll-bench: {} has {files} files only; searches are not measured", tree.display());
        return None;
    }
    eprintln!("atoll-bench: searching {files} files in {}", tree.display());
    Some(tree)
}

/// What there is to read, edit and list.
fn files(folder: &Path) -> anyhow::Result<()> {
    let lines = |count: usize| (0..count).map(|n| format!("line {n} of a text that goes on\n")).collect::<String>();
    let mut megabyte = lines(40_000);
    megabyte.truncate(1 << 20);
    std::fs::write(folder.join("megabyte.txt"), megabyte)?;
    let mut ten = lines(320_000);
    ten.truncate(10 << 20);
    std::fs::write(folder.join("ten.txt"), ten)?;
    std::fs::create_dir(folder.join("names"))?;
    for n in 0..10_000 {
        std::fs::write(folder.join(format!("names/Entry number {n}.txt")), "")?;
    }
    Ok(())
}

/// One of these programs, if it is installed.
fn native(names: &[&str], folder: &Path) -> Option<Command> {
    let name = names.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(name) = name else {
        eprintln!("atoll-bench: {} is not installed; its figures are left out", names.join(" or "));
        return None;
    };
    let mut command = command(&[(*name).to_owned()], &[]).ok()?;
    command.current_dir(folder);
    Some(command)
}

fn call(atoll: &Path, home: &Home, folder: &Path, tool: &str, arguments: &Value) -> anyhow::Result<Command> {
    let program = atoll.to_str().context("the path of atoll is not UTF-8")?.to_owned();
    let mut command = command(&[program], &["tool", "call", tool, &arguments.to_string()])?;
    command.current_dir(folder);
    home.apply(&mut command);
    Ok(command)
}

/// The same command, kept to one core.
fn on_one_core(command: &Command) -> Option<Command> {
    Command::new("taskset").arg("--version").output().ok()?;
    let mut words = vec!["taskset".to_owned(), "-c".to_owned(), "0".to_owned()];
    words.push(command.get_program().to_str()?.to_owned());
    words.extend(command.get_args().filter_map(|word| word.to_str().map(str::to_owned)));
    let mut bound = self::command(&words, &[]).ok()?;
    bound.current_dir(command.get_current_dir()?);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(name, value),
            None => bound.env_remove(name),
        };
    }
    Some(bound)
}
