//! Programs under `bwrap`: no network, nothing but the workspace to write in and not what decides about the project there,
//! the host's own directories not there, and other processes out of sight. If that can not be had, a program is not started: never run one unconfined instead.
//!
//! What it does not do: the rest of the file system can be read, and a socket in it that some service listens on can be
//! connected to, unless it is below `/run` or `/tmp`.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use atoll_table::Error;

use super::Launch;
use crate::state::{PROJECT_FOLDER, Places};

/// Where `bwrap` is looked for before PATH, which may lead into the workspace.
const USUAL: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// What makes a program's surroundings, whatever it is given to see.
const APART: [&str; 9] = [
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
];

/// How the names of variables end that hold keys.
const KEY_ENDINGS: [&str; 3] = ["_API_KEY", "_TOKEN", "_SECRET"];

/// How programs are confined in this process.
pub(crate) struct Confinement {
    /// Directories that must not be seen.
    hidden: Vec<PathBuf>,
    /// Variables of this process that hold keys.
    keys: Vec<String>,
    /// `bwrap`, once it was found to work, or why it does not.
    bwrap: OnceLock<Result<PathBuf, String>>,
}

/// Finds `bwrap`, and tries it.
///
/// # Errors
/// Why programs can not be confined, and what to do about it, in one line.
pub fn find_bubblewrap(workspace: &Path) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(USUAL.map(PathBuf::from), &path, workspace)
}

/// Finds it among the `usual` places and the folders of `path`.
fn find_in(usual: impl IntoIterator<Item = PathBuf>, path: &OsStr, workspace: &Path) -> Result<PathBuf, String> {
    let missing = "bubblewrap is not installed; install it (`apt-get install bubblewrap`, or your system's package)";
    let on_path = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !folder.starts_with(workspace))
        .map(|folder| folder.join("bwrap"));
    let found = usual.into_iter().chain(on_path).find(|file| file.is_file()).ok_or(missing)?;
    let tried = Command::new(&found)
        .args(APART)
        .args([
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
            "--",
            "/bin/sh",
            "-c",
            ":",
        ])
        .env_clear()
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(tried) if tried.status.success() => Ok(found),
        Ok(tried) => {
            let said = String::from_utf8_lossy(&tried.stderr);
            let said = said.lines().next().unwrap_or("it says nothing").trim();
            Err(format!(
                "{} can not make a sandbox here: {said}; allow unprivileged user namespaces (sysctl \
                 kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0)",
                found.display()
            ))
        }
        Err(error) => Err(format!("{} can not be run: {error}; install bubblewrap again", found.display())),
    }
}

impl Confinement {
    /// Nothing of `hidden` is seen by programs, nor any variable of this process that `keys` names.
    pub(crate) fn new(hidden: Vec<PathBuf>, keys: Vec<String>) -> Self {
        Self { hidden, keys, bwrap: OnceLock::new() }
    }

    /// Whether a variable of this process is kept from programs.
    fn is_key(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy().to_ascii_uppercase();
        KEY_ENDINGS.iter().any(|end| name.ends_with(end)) || self.keys.iter().any(|key| key.eq_ignore_ascii_case(&name))
    }

    /// The command that starts a program confined; its environment is that of the host, and the arguments say the rest.
    ///
    /// # Errors
    /// `unavailable` if it can not be confined, `not-found` if there is no such program.
    pub(super) fn command(
        &self,
        places: &Places,
        launch: &Launch,
        cwd: &Path,
        variables: &[(String, String)],
    ) -> Result<Command, Error> {
        let unavailable = |reason: &str| {
            Error::Unavailable(format!(
                "the program is not started, for it can not be confined: {reason}; or give up the sandbox: \
                 bash.sandbox in settings.json, --sandbox-bash"
            ))
        };
        let workspace = places.cwd.canonicalize().unwrap_or_else(|_| places.cwd.clone());
        let bwrap = self.bwrap.get_or_init(|| find_bubblewrap(&workspace)).as_ref();
        let bwrap = bwrap.map_err(|reason| unavailable(reason))?;
        if !is_there(&launch.program) {
            return Err(Error::NotFound(format!("there is no program {}", launch.program)));
        }
        let mounts = mounts(&workspace, &self.hidden, places).map_err(|reason| unavailable(&reason))?;
        let mut command = Command::new(bwrap);
        command.args(APART).args(mounts);
        // Not for `bwrap` either: what it has can be read from inside.
        for (name, _) in std::env::vars_os().filter(|(name, _)| self.is_key(name)) {
            command.env_remove(name);
        }
        if launch.clear_env {
            command.arg("--clearenv");
        }
        // Not into the environment of `bwrap` itself: some variables decide what code runs in whoever has them.
        let own = [("TMPDIR".to_owned(), "/tmp".to_owned())];
        for (name, value) in own.iter().chain(variables).chain(&launch.env) {
            command.args(["--setenv", name, value]);
        }
        command.arg("--chdir").arg(cwd).arg("--").arg(&launch.program).args(&launch.arguments);
        Ok(command)
    }
}

fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What a program sees: everything, to be read; the workspace, to be written; temporary files of its own. What is hidden is
/// empty.
fn mounts(workspace: &Path, hidden: &[PathBuf], places: &Places) -> Result<Vec<OsString>, String> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    let word = OsStr::new;
    if workspace.parent().is_none() {
        return Err("the workspace is the whole file system; work in a directory".to_owned());
    }
    add(&[word("--ro-bind"), word("/"), word("/")]);
    for (what, at) in [("--dev", "/dev"), ("--proc", "/proc"), ("--tmpfs", "/tmp"), ("--tmpfs", "/run")] {
        if Path::new(at).is_dir() {
            add(&[word(what), word(at)]);
        }
    }
    // Where NixOS has its programs.
    add(&[word("--ro-bind-try"), word("/run/current-system"), word("/run/current-system")]);
    let (inside, outside): (Vec<_>, Vec<_>) = hidden
        .iter()
        .map(|path| (path, path.canonicalize().unwrap_or_else(|_| path.clone())))
        .partition(|(path, real)| path.starts_with(workspace) || real.starts_with(workspace));
    for (_, real) in outside {
        // What is not there can not be made there either.
        if real.is_dir() {
            add(&[word("--tmpfs"), real.as_os_str()]);
        }
    }
    add(&[word("--bind"), workspace.as_os_str(), workspace.as_os_str()]);
    let project = workspace.join(PROJECT_FOLDER);
    if !inside.iter().any(|(_, real)| *real == project) {
        if project.is_symlink() {
            return Err(format!("{} is a link; put the folder itself there", project.display()));
        }
        // One that is not there could be made by the program, to be found by the host later.
        std::fs::create_dir_all(&project).map_err(|error| format!("{} can not be made: {error}", project.display()))?;
        add(&[word("--ro-bind"), project.as_os_str(), project.as_os_str()]);
    }
    for (path, real) in inside {
        if *path != real && path.starts_with(workspace) && real.exists() {
            return Err(format!("{} is a link, or lies behind one, in the workspace", path.display()));
        }
        if real == workspace {
            return Err(format!("the workspace {} is one of atoll's own directories", real.display()));
        }
        // One that is not there could be made by the program, to be found by the host later.
        std::fs::create_dir_all(&real).map_err(|error| format!("{} can not be made: {error}", real.display()))?;
        // A directory above it could be renamed, and another put in its place. One that is mounted can not.
        let mut above: Vec<&Path> = real.ancestors().skip(1).take_while(|path| *path != workspace).collect();
        above.reverse();
        for path in above {
            let how = if path.starts_with(&project) { "--ro-bind" } else { "--bind" };
            add(&[word(how), path.as_os_str(), path.as_os_str()]);
        }
        add(&[word("--tmpfs"), real.as_os_str()]);
    }
    for path in places.skills.iter().chain([&places.spill]) {
        if path.is_dir() && !path.starts_with(workspace) {
            add(&[word("--ro-bind"), path.as_os_str(), path.as_os_str()]);
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(workspace: &Path, hidden: &[PathBuf]) -> Result<String, String> {
        let places = Places::of_workspace(workspace);
        let words = mounts(workspace, hidden, &places)?;
        Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_is_missing_or_broken_confines_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (work, bin) = (folder.path().join("work"), folder.path().join("bin"));
        let make = |folder: &Path, script: &str| {
            std::fs::create_dir_all(folder).unwrap();
            let file = folder.join("bwrap");
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let find = |usual: &[PathBuf]| {
            let path = std::env::join_paths([&work.join("bin"), Path::new("bin"), &bin]).unwrap();
            find_in(usual.iter().cloned(), &path, &work)
        };
        // Neither one in the workspace nor one of a folder that is not spelt out is any.
        make(&work.join("bin"), "exit 0");
        assert!(find(&[bin.join("none")]).unwrap_err().starts_with("bubblewrap is not installed; install it"));
        let broken = make(&bin, "echo no namespaces >&2; exit 1");
        let reason = find(&[]).unwrap_err();
        assert!(
            reason.starts_with(&format!("{} can not make a sandbox here: no namespaces;", broken.display())),
            "{reason}"
        );
        std::fs::write(&broken, "no program").unwrap();
        std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find(&[]).unwrap_err().contains("can not be run"));
        let good = make(&folder.path().join("usual"), "exit 0");
        assert_eq!(find(std::slice::from_ref(&good)), Ok(good));
        assert!(find(&[broken]).is_err(), "the first one counts");
    }

    #[test]
    fn variables_with_keys_are_known_by_their_names() {
        let confinement = Confinement::new(Vec::new(), vec!["MY_PASS".to_owned()]);
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "gh_token", "CLIENT_SECRET", "MY_PASS"] {
            assert!(confinement.is_key(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "TOKENIZERS", "MY_PASSAGE", "SECRETS"] {
            assert!(!confinement.is_key(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn what_is_hidden_in_the_workspace_is_made_and_what_is_above_it_held_fast() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        let cache = work.join(".cache/atoll");
        let text = shown(&work, &[cache.clone(), work.join(".atoll")]).unwrap();
        let at = |path: &Path| path.display().to_string();
        let (w, c, a, deep) = (at(&work), at(&work.join(".cache")), at(&work.join(".atoll")), at(&cache));
        assert!(text.ends_with(&format!("--bind {w} {w} --bind {c} {c} --tmpfs {deep} --tmpfs {a}")), "{text}");
        assert!(cache.is_dir() && work.join(".atoll").is_dir());
    }

    #[test]
    fn what_decides_about_the_project_can_be_read_and_not_written_and_what_is_hidden_in_it_stays_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        let at = |path: &Path| path.display().to_string();
        let (w, p, deep) = (at(&work), at(&work.join(".atoll")), at(&work.join(".atoll/sessions")));
        let text = shown(&work, &[work.join(".atoll/sessions")]).unwrap();
        assert!(
            text.ends_with(&format!("--bind {w} {w} --ro-bind {p} {p} --ro-bind {p} {p} --tmpfs {deep}")),
            "{text}"
        );
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&work, elsewhere.path().join(".atoll")).unwrap();
        assert!(shown(&elsewhere.path().canonicalize().unwrap(), &[]).unwrap_err().contains("is a link"));
    }

    #[test]
    fn what_can_not_be_confined_is_refused() {
        assert!(shown(Path::new("/"), &[]).is_err());
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        assert!(shown(&work, std::slice::from_ref(&work)).unwrap_err().contains("own directories"));
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/usr", work.join(".atoll")).unwrap();
        assert!(shown(&work, &[work.join(".atoll")]).unwrap_err().contains("is a link"));
    }
}
