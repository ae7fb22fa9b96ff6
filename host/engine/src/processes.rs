//! The one place that starts programs. Each runs in a session and process group of its own, which is killed when its handle
//! goes away or the host ends; its output is pumped into bounded queues, and copied to a bounded spill file where
//! one is asked for.

mod confine;
mod group;
mod inheritance;
mod pump;
pub(crate) mod spill;
mod watchdog;

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use atoll_caps::{Effective, shell_word};
use atoll_table::Error;
use bytes::Bytes;
use rustix::process::{Pid, Signal, WaitIdStatus};
use tokio::{
    net::unix::pipe,
    process::ChildStdin,
    sync::{mpsc, watch},
};

use crate::{
    call::{Caller, Use},
    state::{PluginContext, lock},
};
pub(crate) use confine::Confinement;
pub use confine::find_bubblewrap;
use group::HeldGroup;
use spill::Spill;
pub use spill::spill_folder;

/// What to start.
pub(crate) struct Launch {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) clear_env: bool,
    pub(crate) piped_input: bool,
    pub(crate) output: OutputPlan,
    pub(crate) linger: Duration,
    pub(crate) spill: Option<String>,
}

/// Where output goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputPlan {
    Null,
    Merged,
    Separate,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) output_held: bool,
}

/// What is known of a process from outside the task that waits for it.
#[derive(Clone, Debug, Default)]
struct Status {
    ended: Option<Ended>,
    failed: Option<String>,
    /// It was killed for printing more than this.
    over: Option<u64>,
}

impl Status {
    fn is_known(&self) -> bool {
        self.ended.is_some() || self.failed.is_some() || self.over.is_some()
    }
}

/// A process under way. Dropping the last reference kills its group.
pub(crate) struct Running {
    pub(crate) pid: u32,
    group: HeldGroup,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    stdout: Mutex<Option<mpsc::Receiver<Bytes>>>,
    stderr: Mutex<Option<mpsc::Receiver<Bytes>>>,
    status: watch::Receiver<Status>,
    spill: Mutex<Option<Spill>>,
}

/// Held while a process is started, up to where the watchdog knows of it. True once nothing may be started any more.
static CLOSED: RwLock<bool> = RwLock::new(false);

/// Starts no more processes, and waits until the watchdog knows of all that were started. For the end of the program:
/// a process that is started while it ends would be nobody's.
pub fn stop_starting() {
    *CLOSED.write().unwrap_or_else(PoisonError::into_inner) = true;
}

/// Starts a program, after checking that the plugin may, with the variables that it sets.
pub(crate) async fn spawn(plugin: &Caller, launch: Launch) -> Result<Arc<Running>, Error> {
    inheritance::check_variables(&launch.env)?;
    let words = [&launch.program].into_iter().chain(&launch.arguments);
    let line = words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let the_use = Use { capability: "process", operation: "spawn", target: &line };
    let verdict =
        plugin.permit(the_use, |effective| effective.check_process(&launch.program, &launch.arguments)).await?;
    for (name, _) in &launch.env {
        let target = format!("{name} for {}", launch.program);
        let the_use = Use { capability: "process", operation: "set", target: &target };
        let check = |effective: &Effective| effective.check_env(&launch.program, &launch.arguments, name);
        let verdict = plugin.permit(the_use, check).await?;
        plugin.call.uses.used("process", "set", &target, verdict);
    }
    plugin.call.uses.used("process", "spawn", &line, verdict);
    // Starting a process forks; it stays on this thread, for handing it over would cost more than it takes.
    start(plugin, launch)
}

fn start(plugin: &PluginContext, launch: Launch) -> Result<Arc<Running>, Error> {
    let places = &plugin.shared.places;
    let cwd = launch.cwd.as_ref().map_or_else(|| places.cwd.clone(), |cwd| places.cwd.join(cwd));
    if !cwd.is_dir() {
        return Err(Error::InvalidArguments(format!("the working directory {} does not exist", cwd.display())));
    }
    let variables = plugin.shared.process_env.read().unwrap_or_else(PoisonError::into_inner).clone();
    let mut command = match plugin.shared.confinement.get() {
        Some(confinement) => confinement.command(places, &launch, &cwd, &variables)?,
        None => {
            let mut command = Command::new(&launch.program);
            if launch.clear_env {
                command.env_clear();
            }
            command.args(&launch.arguments).current_dir(&cwd).envs(variables).envs(launch.env);
            leave_terminal(&mut command);
            command
        }
    };
    if plugin.shared.confinement.get().is_some() {
        // What it runs has no terminal either: `bwrap` sees to that.
        command.process_group(0);
    }
    command.stdin(if launch.piped_input { Stdio::piped() } else { Stdio::null() });
    let failed = |error: io::Error| Error::Failed(format!("could not start {}: {error}", launch.program));
    let (out, err) = connect(&mut command, launch.output).map_err(failed)?;
    let spill = launch.spill.as_ref().map(|prefix| Spill::open(&places.spill, prefix)).transpose()?;

    watchdog::prepare();
    let closed = CLOSED.read().unwrap_or_else(PoisonError::into_inner);
    if *closed {
        return Err(Error::Cancelled("the host is shutting down, so nothing is started any more".to_owned()));
    }
    inheritance::keep_files_to_ourselves();
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound(format!("there is no program {}", launch.program)),
        _ => failed(error),
    })?;
    let group = HeldGroup::new(Pid::from_child(&child));
    drop(closed);
    // The command holds the writing ends of the pipes, which must close when the process ends.
    drop(command);
    let stdin = child.stdin.take().map(ChildStdin::from_std).transpose().map_err(failed)?;

    let most = plugin.limits.command_output_bytes;
    let bound = Arc::new(pump::OutputBound::new(most, group.group()));
    let (exited, exit_seen) = watch::channel(false);
    let mut pumps = Vec::new();
    let [stdout, stderr] = [out, err].map(|pipe| {
        let (sender, receiver) = mpsc::channel(pump::QUEUE);
        let log = spill.as_ref().map(Spill::log);
        pumps.push(tokio::spawn(pump::pump(pipe?, sender, exit_seen.clone(), launch.linger, log, Arc::clone(&bound))));
        Some(receiver)
    });
    let (status_sender, status) = watch::channel(Status::default());
    let leader = group.group();
    tokio::spawn(async move {
        let waited = leader.exited().await;
        let _ = exited.send(true);
        let mut held = false;
        for pump in pumps {
            held |= pump.await.unwrap_or(false);
        }
        let status = match waited {
            _ if bound.is_reached() => Status { over: Some(most), ..Status::default() },
            Ok(exit) => Status { ended: Some(ended(&exit, held)), ..Status::default() },
            Err(error) => Status { failed: Some(error.to_string()), ..Status::default() },
        };
        let _ = status_sender.send(status);
    });
    Ok(Arc::new(Running {
        pid: child.id(),
        group,
        stdin: tokio::sync::Mutex::new(stdin),
        stdout: Mutex::new(stdout),
        stderr: Mutex::new(stderr),
        status,
        spill: Mutex::new(spill),
    }))
}

/// Has a program lead a session, and so a group, of its own: a question to the person at the terminal can then neither be
/// written over nor be answered by it.
fn leave_terminal(command: &mut Command) {
    let leave = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(leave);
    }
}

/// The reading ends of standard output and standard error.
type Outputs = (Option<pipe::Receiver>, Option<pipe::Receiver>);

/// Connects a command's output as planned.
fn connect(command: &mut Command, plan: OutputPlan) -> io::Result<Outputs> {
    let pipe = || -> io::Result<_> {
        let (reader, writer) = io::pipe()?;
        Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer))
    };
    Ok(match plan {
        OutputPlan::Null => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
            (None, None)
        }
        OutputPlan::Merged => {
            let (reader, writer) = pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            (Some(reader), None)
        }
        OutputPlan::Separate => {
            let ((out, out_writer), (err, err_writer)) = (pipe()?, pipe()?);
            command.stdout(out_writer).stderr(err_writer);
            (Some(out), Some(err))
        }
    })
}

fn ended(exit: &WaitIdStatus, output_held: bool) -> Ended {
    let signal = exit.terminating_signal();
    let code = exit.exit_status().unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Ended { code, signal, output_held }
}

impl Running {
    /// Sends a signal to its whole group.
    pub(crate) fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    /// Standard output, once.
    pub(crate) fn take_stdout(&self) -> Option<mpsc::Receiver<Bytes>> {
        lock(&self.stdout).take()
    }

    /// Standard error, once.
    pub(crate) fn take_stderr(&self) -> Option<mpsc::Receiver<Bytes>> {
        lock(&self.stderr).take()
    }

    /// Writes to its standard input.
    pub(crate) async fn write_input(&self, data: &[u8]) -> Result<(), Error> {
        use tokio::io::AsyncWriteExt as _;
        let mut stdin = self.stdin.lock().await;
        let Some(stdin) = stdin.as_mut() else {
            return Err(Error::Stale("the process's standard input is closed".to_owned()));
        };
        stdin
            .write_all(data)
            .await
            .map_err(|error| Error::Unavailable(format!("the process does not read its input: {error}")))
    }

    /// Closes its standard input.
    pub(crate) async fn close_input(&self) {
        self.stdin.lock().await.take();
    }

    /// Waits for it to exit and for its output to end.
    pub(crate) async fn wait(&self) -> Result<Ended, Error> {
        let mut status = self.status.clone();
        let known = status.wait_for(Status::is_known).await;
        match known.as_deref() {
            Ok(Status { ended: Some(ended), .. }) => Ok(*ended),
            Ok(Status { over: Some(most), .. }) => {
                Err(crate::trap::limit_error(atoll_caps::LimitName::CommandOutputBytes, *most))
            }
            Ok(Status { failed: Some(reason), .. }) => Err(Error::Failed(format!("the process was lost: {reason}"))),
            _ => Err(Error::Failed("the process was lost".to_owned())),
        }
    }

    /// Keeps the spill file and gives its path.
    pub(crate) fn keep_spill(&self) -> Result<PathBuf, Error> {
        match lock(&self.spill).as_mut() {
            None => Err(Error::InvalidArguments("the process was started without a spill file".to_owned())),
            Some(spill) => spill.keep(),
        }
    }
}

/// The shell that runs command lines: a program and the arguments that go before the command line.
pub(crate) fn shell(chosen: Option<&Path>) -> (String, Vec<String>) {
    let program = match chosen {
        Some(path) => path.to_string_lossy().into_owned(),
        None if Path::new("/bin/bash").exists() => "/bin/bash".to_owned(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path).map(|folder| folder.join("bash")).find(|file| file.is_file());
            found.map_or_else(|| "sh".to_owned(), |file| file.to_string_lossy().into_owned())
        }
    };
    (program, vec!["-c".to_owned()])
}
