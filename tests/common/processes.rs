//! Running the program under test. Every process has a bound on its time: past it, it is killed by its id and the
//! test fails with what it had said by then.

use std::{
    ffi::{OsStr, OsString},
    io::{Read, Write},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ChildStdin, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, mpsc},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// No process of a test needs nearly as long; one that does hangs.
const LONGEST: Duration = Duration::from_secs(90);

/// The program under test.
pub(crate) fn program() -> PathBuf {
    let chosen = std::env::var_os("ATOLL_BIN").map(PathBuf::from);
    let path = chosen.unwrap_or_else(|| super::plugins::workspace_root().join("target/debug/atoll"));
    assert!(
        path.is_file(),
        "{} is not there; run the tests with `cargo xtask test`, or set ATOLL_BIN to a built atoll",
        path.display()
    );
    path
}

/// Looks again and again until something holds; fails, naming it, if it does not come about.
pub(crate) fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + LONGEST;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run of the program to be started.
pub(crate) struct Command {
    inner: std::process::Command,
    input: Option<Vec<u8>>,
    longest: Duration,
}

impl Command {
    pub(crate) fn new() -> Self {
        Self::with(std::process::Command::new(program()))
    }

    /// A run of another program.
    pub(crate) fn of(program: impl AsRef<OsStr>) -> Self {
        Self::with(std::process::Command::new(program))
    }

    /// The program, started by another one, which is given its path as the last argument.
    pub(crate) fn after(first: &[&str]) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut inner = std::process::Command::new("/usr/bin/env");
        inner.arg(format!("PATH={path}")).args(first).arg(program());
        Self::with(inner)
    }

    fn with(mut inner: std::process::Command) -> Self {
        inner.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Signals sent to the tests' own group must not reach it, nor the other way round.
        std::os::unix::process::CommandExt::process_group(&mut inner, 0);
        Self { inner, input: None, longest: LONGEST }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.inner.arg(arg);
        self
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.inner.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.inner.env(name, value.into());
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.inner.env_remove(name);
        self
    }

    pub(crate) fn cwd(mut self, path: impl AsRef<std::path::Path>) -> Self {
        self.inner.current_dir(path);
        self
    }

    /// Text for standard input, which is closed after it.
    pub(crate) fn input(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Some(text.into());
        self.inner.stdin(Stdio::piped());
        self
    }

    /// Standard input is a pipe that stays open until [`Running::close_input`].
    pub(crate) fn open_input(mut self) -> Self {
        self.inner.stdin(Stdio::piped());
        self
    }

    pub(crate) fn stdout(mut self, target: Stdio) -> Self {
        self.inner.stdout(target);
        self
    }

    /// It may take this many seconds: it is a compiler.
    pub(crate) fn longest(mut self, seconds: u64) -> Self {
        self.longest = Duration::from_secs(seconds);
        self
    }

    /// As the standard library's, in a group of its parent's, with nothing connected yet.
    pub(crate) fn into_std(self) -> std::process::Command {
        let mut command = std::process::Command::new(self.inner.get_program());
        command.args(self.inner.get_args()).env_clear();
        command.envs(self.inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(cwd) = self.inner.get_current_dir() {
            command.current_dir(cwd);
        }
        command
    }

    pub(crate) fn start(mut self) -> Running {
        let shown = format!("atoll {:?}", self.inner.get_args().collect::<Vec<_>>());
        let mut child = self.inner.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let pid = Pid::from_child(&child);
        let mut stdin = child.stdin.take();
        if let Some(text) = self.input {
            let mut stdin = stdin.take().unwrap();
            // On a thread, for the program may end without reading it all.
            std::thread::spawn(move || drop(stdin.write_all(&text)));
        }
        let stdout = Collected::new(child.stdout.take());
        let stderr = Collected::new(child.stderr.take());
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || drop(sender.send(child.wait())));
        Running { shown, pid, stdin, stdout, stderr, ended, longest: self.longest, status: None, is_over: false }
    }

    pub(crate) fn run(self) -> Finished {
        self.start().wait()
    }
}

/// What a pipe has brought so far.
#[derive(Clone, Default)]
struct Collected {
    state: Arc<(Mutex<Output>, Condvar)>,
}

/// The bytes, and whether the pipe is at its end.
type Output = (Vec<u8>, bool);

impl Collected {
    fn new(pipe: Option<impl Read + Send + 'static>) -> Self {
        let collected = Self::default();
        match pipe {
            None => collected.state.0.lock().unwrap().1 = true,
            Some(mut pipe) => {
                let state = Arc::clone(&collected.state);
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 64 << 10];
                    loop {
                        let read = pipe.read(&mut buffer).unwrap_or(0);
                        let mut kept = state.0.lock().unwrap();
                        kept.0.extend_from_slice(&buffer[..read]);
                        kept.1 |= read == 0;
                        state.1.notify_all();
                        if read == 0 {
                            return;
                        }
                    }
                });
            }
        }
        collected
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.state.0.lock().unwrap().0).into_owned()
    }

    /// Waits until the text so far is as wanted, or the pipe is at its end.
    fn wait_for(&self, what: &str, mut look: impl FnMut(&str, bool) -> bool) -> Option<String> {
        let deadline = Instant::now() + LONGEST;
        let mut kept = self.state.0.lock().unwrap();
        loop {
            let text = String::from_utf8_lossy(&kept.0).into_owned();
            if look(&text, kept.1) {
                return Some(text);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            assert!(!kept.1, "the output ended before {what}: {text}");
            kept = self.state.1.wait_timeout(kept, left).unwrap().0;
        }
    }
}

/// A run under way. Killed when it is dropped.
pub(crate) struct Running {
    shown: String,
    pub(crate) pid: Pid,
    stdin: Option<ChildStdin>,
    stdout: Collected,
    stderr: Collected,
    ended: mpsc::Receiver<std::io::Result<ExitStatus>>,
    longest: Duration,
    status: Option<std::io::Result<ExitStatus>>,
    is_over: bool,
}

impl Running {
    pub(crate) fn write(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until standard output holds a text.
    pub(crate) fn wait_for_output(&self, text: &str) -> String {
        let found = self.stdout.wait_for(text, |so_far, _| so_far.contains(text));
        found.unwrap_or_else(|| self.hangs(&format!("did not print {text:?}")))
    }

    /// Waits until standard error holds a text so many times.
    pub(crate) fn wait_for_notes(&self, text: &str, times: usize) -> String {
        let found = self.stderr.wait_for(text, |so_far, _| so_far.matches(text).count() >= times);
        found.unwrap_or_else(|| self.hangs(&format!("did not say {text:?} {times} times")))
    }

    fn hangs(&self, how: &str) -> ! {
        let _ = kill_process(self.pid, Signal::KILL);
        panic!("{} {how} and was killed; stdout: {}\nstderr: {}", self.shown, self.stdout.text(), self.stderr.text());
    }

    /// Whether it has ended. To be followed by [`Running::wait`].
    pub(crate) fn has_ended(&mut self) -> bool {
        self.status = self.status.take().or_else(|| self.ended.try_recv().ok());
        self.is_over = self.status.is_some();
        self.is_over
    }

    pub(crate) fn wait(mut self) -> Finished {
        let Some(status) = self.status.take().or_else(|| self.ended.recv_timeout(self.longest).ok()) else {
            self.hangs(&format!("did not end within {} s", self.longest.as_secs()))
        };
        self.is_over = true;
        let all = |collected: &Collected| collected.wait_for("its end", |_, ended| ended);
        let (Some(stdout), Some(stderr)) = (all(&self.stdout), all(&self.stderr)) else {
            self.hangs("left something behind that holds its output")
        };
        Finished { shown: self.shown.clone(), status: status.unwrap(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    shown: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn new(shown: String, status: ExitStatus, stdout: String, stderr: String) -> Self {
        Self { shown, status, stdout, stderr }
    }

    /// Fails unless it ended with this code, and without a panic.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert!(!self.stderr.contains("panicked at"), "{self:#?}");
        assert_eq!(self.status.code(), Some(code), "signal {:?}: {self:#?}", self.status.signal());
        self
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.code(0)
    }

    /// Fails unless standard error is one line that starts as all of Atoll's do; gives the line.
    #[track_caller]
    pub(crate) fn one_line(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').unwrap_or(&self.stderr);
        assert!(!line.is_empty() && !line.contains('\n'), "not one line: {self:#?}");
        assert!(line.starts_with("atoll: "), "{self:#?}");
        line
    }

    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "{}", self.shown);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
