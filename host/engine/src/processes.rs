//! The one place that starts programs. Each runs in a process group of its own, which is killed when its handle
//! goes away; its output is pumped into bounded queues, and copied to a spill file where one is asked for.

use std::{
    fs::File,
    io::{self, PipeReader, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use atoll_table::Error;
use bytes::Bytes;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{mpsc, watch},
    time::timeout,
};

use crate::state::{PluginContext, lock};

/// How many pieces of output may wait to be taken; a process that writes faster waits.
const QUEUE: usize = 64;
/// The largest piece.
const PIECE: usize = 64 << 10;
/// How often the silence that ends a held stream may be broken before it is ended all the same.
const LINGER_ROUNDS: u32 = 20;

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
}

/// A process under way. Dropping the last reference kills its group.
pub(crate) struct Running {
    pub(crate) pid: u32,
    stdin: tokio::sync::Mutex<Option<tokio::process::ChildStdin>>,
    stdout: Mutex<Option<mpsc::Receiver<Bytes>>>,
    stderr: Mutex<Option<mpsc::Receiver<Bytes>>>,
    status: watch::Receiver<Status>,
    spill: Mutex<Option<Spill>>,
}

/// A spill file; removed when dropped unless it is kept.
struct Spill {
    path: tempfile::TempPath,
    kept: Option<PathBuf>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may live on after its first process has gone.
        kill_group(self.pid, libc::SIGKILL);
    }
}

/// Sends a signal to a whole process group. A group that is gone is no error.
pub(crate) fn kill_group(pid: u32, signal: i32) {
    let Ok(pid) = i32::try_from(pid) else { return };
    if pid > 1 {
        // SAFETY: killpg only takes numbers; the group was made for this process and has its id.
        unsafe {
            libc::killpg(pid, signal);
        }
    }
}

/// Starts a program, after checking that the plugin may.
pub(crate) fn spawn(plugin: &Arc<PluginContext>, launch: Launch) -> Result<Arc<Running>, Error> {
    plugin
        .effective
        .check_process(&launch.program, &launch.arguments)
        .map_err(|denied| crate::convert::denied(&denied))?;
    let places = &plugin.shared.places;
    let cwd = launch.cwd.as_ref().map_or_else(|| places.cwd.clone(), |cwd| places.cwd.join(cwd));
    if !cwd.is_dir() {
        return Err(Error::InvalidArguments(format!("the working directory {} does not exist", cwd.display())));
    }
    let mut command = tokio::process::Command::new(&launch.program);
    command.args(&launch.arguments).current_dir(&cwd).process_group(0).kill_on_drop(true);
    if launch.clear_env {
        command.env_clear();
    }
    for (name, value) in plugin.shared.process_env.read().unwrap_or_else(std::sync::PoisonError::into_inner).iter() {
        command.env(name, value);
    }
    command.envs(launch.env);
    command.stdin(if launch.piped_input { Stdio::piped() } else { Stdio::null() });
    let failed = |error: io::Error| Error::Failed(format!("could not start {}: {error}", launch.program));
    let (mut out, mut err) = (None, None);
    match launch.output {
        OutputPlan::Null => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        OutputPlan::Merged => {
            let (reader, writer) = io::pipe().map_err(failed)?;
            command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
            out = Some(reader);
        }
        OutputPlan::Separate => {
            let (out_reader, out_writer) = io::pipe().map_err(failed)?;
            let (err_reader, err_writer) = io::pipe().map_err(failed)?;
            command.stdout(out_writer).stderr(err_writer);
            (out, err) = (Some(out_reader), Some(err_reader));
        }
    }
    let (spill, spill_file) = match &launch.spill {
        Some(prefix) => {
            let (spill, file) = open_spill(&places.spill, prefix)?;
            (Some(spill), Some(Arc::new(Mutex::new(file))))
        }
        None => (None, None),
    };
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound(format!("there is no program {}", launch.program)),
        _ => failed(error),
    })?;
    // The command holds the writing ends of the pipes, which must close when the process ends.
    drop(command);
    let Some(pid) = child.id() else {
        return Err(Error::Failed(format!("{} ended before it began", launch.program)));
    };
    let stdin = child.stdin.take();
    let (exited, exit_seen) = watch::channel(false);
    let mut pumps = Vec::new();
    let mut receivers = Vec::new();
    for reader in [out, err] {
        receivers.push(match reader {
            Some(reader) => {
                let (sender, receiver) = mpsc::channel(QUEUE);
                let pipe = receiver_of(reader).map_err(failed)?;
                pumps.push(tokio::spawn(pump(pipe, sender, exit_seen.clone(), launch.linger, spill_file.clone())));
                Some(receiver)
            }
            None => None,
        });
    }
    let (status_sender, status) = watch::channel(Status::default());
    tokio::spawn(async move {
        let waited = child.wait().await;
        let _ = exited.send(true);
        let mut held = false;
        for pump in pumps {
            held |= pump.await.unwrap_or(false);
        }
        let status = match waited {
            Ok(exit) => Status { ended: Some(ended(exit, held)), failed: None },
            Err(error) => Status { ended: None, failed: Some(error.to_string()) },
        };
        let _ = status_sender.send(status);
    });
    let stderr = receivers.pop().flatten();
    let stdout = receivers.pop().flatten();
    Ok(Arc::new(Running {
        pid,
        stdin: tokio::sync::Mutex::new(stdin),
        stdout: Mutex::new(stdout),
        stderr: Mutex::new(stderr),
        status,
        spill: Mutex::new(spill),
    }))
}

fn receiver_of(reader: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(reader.into())
}

fn ended(exit: std::process::ExitStatus, output_held: bool) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = exit.signal();
    let code = exit.code().unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Ended { code, signal, output_held }
}

/// Moves output from the pipe to the queue until the pipe is closed, or until the process has exited and those
/// that still hold the pipe have been silent for `linger`. True if they still held it.
async fn pump(
    mut pipe: pipe::Receiver,
    queue: mpsc::Sender<Bytes>,
    mut exited: watch::Receiver<bool>,
    linger: Duration,
    spill: Option<Arc<Mutex<File>>>,
) -> bool {
    let mut rounds = 0;
    let mut buffer = vec![0; PIECE];
    loop {
        let has_exited = *exited.borrow_and_update();
        let read = if has_exited {
            rounds += 1;
            if rounds > LINGER_ROUNDS {
                return true;
            }
            match timeout(linger, pipe.read(&mut buffer)).await {
                Ok(read) => read,
                Err(_) => return true,
            }
        } else {
            tokio::select! {
                read = pipe.read(&mut buffer) => read,
                _ = exited.changed() => continue,
            }
        };
        let Ok(length @ 1..) = read else { return false };
        if let Some(spill) = &spill
            && let Err(error) = lock(spill).write_all(&buffer[..length])
        {
            tracing::warn!(%error, "output could not be spilled");
        }
        // Nobody takes it any more: go on reading, so that the process is not stopped by a full pipe.
        let _ = queue.send(Bytes::copy_from_slice(&buffer[..length])).await;
    }
}

fn open_spill(folder: &Path, prefix: &str) -> Result<(Spill, File), Error> {
    let plain =
        !prefix.is_empty() && prefix.len() <= 32 && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !plain {
        return Err(Error::InvalidArguments("a spill prefix has 1 to 32 of A-Z a-z 0-9 -".to_owned()));
    }
    let failed = |error: io::Error| Error::Failed(format!("could not write to {}: {error}", folder.display()));
    make_private(folder).map_err(failed)?;
    let file =
        tempfile::Builder::new().prefix(&format!("{prefix}-")).suffix(".log").tempfile_in(folder).map_err(failed)?;
    let (file, path) = file.into_parts();
    Ok((Spill { path, kept: None }, file))
}

/// Makes a folder only this user can look into.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl Running {
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
        let known = status.wait_for(|status| status.ended.is_some() || status.failed.is_some()).await;
        match known.as_deref() {
            Ok(Status { ended: Some(ended), .. }) => Ok(*ended),
            Ok(Status { failed: Some(reason), .. }) => Err(Error::Failed(format!("the process was lost: {reason}"))),
            _ => Err(Error::Failed("the process was lost".to_owned())),
        }
    }

    /// Keeps the spill file and gives its path.
    pub(crate) fn keep_spill(&self) -> Result<PathBuf, Error> {
        let mut spill = lock(&self.spill);
        match spill.take() {
            None => Err(Error::InvalidArguments("the process was started without a spill file".to_owned())),
            Some(Spill { path, kept: Some(kept) }) => {
                *spill = Some(Spill { path, kept: Some(kept.clone()) });
                Ok(kept)
            }
            Some(Spill { mut path, kept: None }) => {
                let kept = path.to_path_buf();
                path.disable_cleanup(true);
                *spill = Some(Spill { path, kept: Some(kept.clone()) });
                Ok(kept)
            }
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
