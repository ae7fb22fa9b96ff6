//! The tool `bash`: a command line in the user's shell.

mod capture;
mod clean;
mod info;
mod report;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use atoll_plugin::{
    Call, Content, Error, Tool, ToolInfo, ToolOutput, clock, export_tools, next_chunk, process, spawn_local,
};

use crate::capture::Capture;
use crate::report::{Ending, Full, Stop};

/// How long the output may be silent after the shell has exited while something else holds it, in milliseconds.
const LINGER_MS: u64 = 150;

/// Time between two updates of what is shown, in milliseconds.
const UPDATE_MS: u64 = 100;

/// Bytes asked for at a time.
const PIECE: usize = 64 * 1024;

/// The number of the signal that `kill` sends.
const SIGKILL: i32 = 9;

/// How many bytes of the output the host keeps in a spill file; the first ones, if there are more.
const SPILLED: u64 = 256 << 20;

struct Bash;

#[derive(serde::Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

/// A command under way, shared by the task that reads its output and the one that watches it.
struct Running {
    child: process::Child,
    call: Call,
    /// When it was started, as `clock::monotonic` counts.
    started: u64,
    timeout: Option<Timeout>,
    capture: RefCell<Capture>,
    /// Bytes of output so far.
    received: Cell<u64>,
    /// Output has come since the last update.
    fresh: Cell<bool>,
    /// Milliseconds from the start to the last update.
    updated_ms: Cell<u64>,
    /// It was killed, for this reason.
    stopped: Cell<Option<Stop>>,
}

/// The bound on a command's time, as the model gave it and in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timeout {
    seconds: f64,
    ms: u64,
}

impl Running {
    fn elapsed_ms(&self) -> u64 {
        clock::monotonic().saturating_sub(self.started) / 1_000_000
    }

    fn take(&self, piece: &[u8]) {
        self.capture.borrow_mut().push(piece);
        self.received.set(self.received.get() + piece.len() as u64);
        self.fresh.set(true);
    }

    /// Ends the command if it has reached a bound, and shows what has come so far if that is due. Both tasks do
    /// this: output that never pauses leaves the one that watches no turn, and without output the other one waits.
    fn look(&self) {
        let elapsed_ms = self.elapsed_ms();
        if self.stopped.get().is_none() {
            let late = self.timeout.filter(|timeout| elapsed_ms >= timeout.ms);
            if let Some(timeout) = late {
                self.stopped.set(Some(Stop::Time(timeout.seconds)));
                self.child.kill(process::Signal::Kill);
            }
        }
        if self.fresh.get() && elapsed_ms >= self.updated_ms.get() + UPDATE_MS {
            self.fresh.set(false);
            self.updated_ms.set(elapsed_ms);
            let text = self.capture.borrow().tail().text.to_owned();
            self.call.update(&[Content::Text(text)], None);
        }
    }
}

impl Tool for Bash {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    async fn run(arguments: Arguments, call: Call) -> Result<ToolOutput, Error> {
        let timeout = arguments.timeout.map(timeout).transpose()?;
        call.update(&[], None);
        let started = clock::monotonic();
        let running = Rc::new(Running {
            child: start(arguments.command, &call).await?,
            call,
            started,
            timeout,
            capture: RefCell::new(Capture::new()),
            received: Cell::new(0),
            fresh: Cell::new(false),
            updated_ms: Cell::new(0),
            stopped: Cell::new(None),
        });
        spawn_local(watch(Rc::downgrade(&running)));

        let mut output = running.child.stdout();
        while let Some(piece) = next_chunk(&mut output, PIECE).await {
            running.take(&piece);
            running.look();
        }
        let exit = match running.child.wait().await {
            // The host counts what it prints, and has killed it.
            Err(Error::Limit(limit)) if limit.name == "command-output-bytes" => {
                running.stopped.set(Some(Stop::Output(limit.value)));
                process::Exit { code: 128 + SIGKILL, signal: Some(SIGKILL), output_held: false }
            }
            exit => exit?,
        };
        let ending = Ending {
            code: exit.code,
            // The time may have ended while only processes in the background were left: then the shell's own end
            // counts.
            stopped: running.stopped.get().filter(|stop| !stop.is_time() || exit.signal == Some(SIGKILL)),
            held: exit.output_held,
            seconds: seconds(clock::monotonic().saturating_sub(started)),
        };
        running.capture.borrow_mut().finish();
        let full = if report::leaves_out(&running.capture.borrow()) {
            match running.child.keep_spill().await {
                Ok(path) if running.received.get() > SPILLED => Full::Start { path, bytes: SPILLED },
                Ok(path) => Full::File(path),
                Err(error) => Full::Lost(error.message()),
            }
        } else {
            Full::Shown
        };
        let output = report::report(&running.capture.borrow(), &ending, &full);
        Ok(output)
    }
}

/// Starts the shell with a command line.
async fn start(command: String, call: &Call) -> Result<process::Child, Error> {
    let (program, mut arguments) = process::shell();
    arguments.push(command);
    process::spawn(process::Command {
        program,
        arguments,
        cwd: Some(call.cwd.clone()),
        env: Vec::new(),
        clear_env: false,
        stdin: process::Input::Null,
        output: process::Output::Merged,
        linger_ms: LINGER_MS,
        spill: Some("atoll-bash".to_owned()),
    })
    .await
}

/// Looks after a command until its call has ended; it never sleeps long, so that an instance that waits for its
/// tasks does not wait for a timeout.
async fn watch(running: Weak<Running>) {
    loop {
        let Some(left) = running.upgrade().map(|running| match running.timeout {
            Some(timeout) => timeout.ms.saturating_sub(running.elapsed_ms()).clamp(1, UPDATE_MS),
            None => UPDATE_MS,
        }) else {
            return;
        };
        clock::sleep(left).await;
        let Some(running) = running.upgrade() else { return };
        running.look();
    }
}

/// A timeout of so many seconds; at least a millisecond. Fails with `invalid-arguments` if it is out of range.
fn timeout(seconds: f64) -> Result<Timeout, Error> {
    if !(seconds > 0.0 && seconds <= info::MAX_TIMEOUT) {
        let most = info::MAX_TIMEOUT;
        return Err(Error::invalid_arguments(format!(
            "timeout must be a number of seconds above 0, up to {most}; it is {seconds}."
        )));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let ms = (seconds * 1000.0).ceil() as u64;
    Ok(Timeout { seconds, ms })
}

/// Nanoseconds as seconds.
fn seconds(nanoseconds: u64) -> f64 {
    std::time::Duration::from_nanos(nanoseconds).as_secs_f64()
}

export_tools!(Bash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_positive_and_bounded() {
        for (seconds, ms) in [(1.5, 1500), (0.000_1, 1), (2_147_483.647, 2_147_483_647)] {
            assert_eq!(timeout(seconds).ok(), Some(Timeout { seconds, ms }));
        }
        for bad in [0.0, -1.0, 2_147_483.648, f64::NAN, f64::INFINITY] {
            assert_eq!(timeout(bad).err().map(|error| error.code()), Some("invalid-arguments"));
        }
    }
}
