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
use crate::report::{Ending, Full};

/// How long the output may be silent after the shell has exited while something else holds it, in milliseconds.
const LINGER_MS: u64 = 150;

/// Time between two updates of what is shown, in milliseconds.
const UPDATE_MS: u64 = 100;

/// Bytes asked for at a time.
const PIECE: usize = 64 * 1024;

/// The number of the signal that `kill` sends.
const SIGKILL: i32 = 9;

struct Bash;

#[derive(serde::Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

/// A command under way, shared by the task that reads its output and the one that watches it.
struct Running {
    child: process::Child,
    capture: RefCell<Capture>,
    /// Output has come since the last update.
    fresh: Cell<bool>,
    /// It was killed because its time was over.
    killed: Cell<bool>,
}

impl Tool for Bash {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    async fn run(arguments: Arguments, call: Call) -> Result<ToolOutput, Error> {
        let timeout_ms = timeout_ms(arguments.timeout)?;
        call.update(&[], None);
        let started = clock::monotonic();
        let running = Rc::new(Running {
            child: start(arguments.command, &call).await?,
            capture: RefCell::new(Capture::new()),
            fresh: Cell::new(false),
            killed: Cell::new(false),
        });
        spawn_local(watch(Rc::downgrade(&running), call, started, timeout_ms));

        let mut output = running.child.stdout();
        while let Some(piece) = next_chunk(&mut output, PIECE).await {
            running.capture.borrow_mut().push(&piece);
            running.fresh.set(true);
        }
        let exit = running.child.wait().await?;
        // The time may have ended while only processes in the background were left: then the shell's own end counts.
        let timed_out = running.killed.get() && exit.signal == Some(SIGKILL);
        let ending = Ending {
            code: exit.code,
            timed_out: arguments.timeout.filter(|_| timed_out),
            held: exit.output_held,
            seconds: seconds(clock::monotonic().saturating_sub(started)),
        };
        running.capture.borrow_mut().finish();
        let full = if report::leaves_out(&running.capture.borrow()) {
            match running.child.keep_spill().await {
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

/// Shows what has come so far, and ends the command when its time is over. Ends itself when the call does; it
/// never sleeps long, so that an instance that waits for its tasks does not wait for a timeout.
async fn watch(running: Weak<Running>, call: Call, started: u64, mut timeout_ms: Option<u64>) {
    loop {
        let elapsed_ms = clock::monotonic().saturating_sub(started) / 1_000_000;
        let left = timeout_ms.map_or(UPDATE_MS, |timeout| timeout.saturating_sub(elapsed_ms).clamp(1, UPDATE_MS));
        clock::sleep(left).await;
        let Some(running) = running.upgrade() else { return };
        let elapsed_ms = clock::monotonic().saturating_sub(started) / 1_000_000;
        if timeout_ms.is_some_and(|timeout| elapsed_ms >= timeout) {
            timeout_ms = None;
            running.killed.set(true);
            running.child.kill(process::Signal::Kill);
        }
        if running.fresh.replace(false) {
            let text = running.capture.borrow().tail().text.to_owned();
            call.update(&[Content::Text(text)], None);
        }
    }
}

/// A timeout in whole milliseconds, at least one. Fails with `invalid-arguments` if it is out of range.
fn timeout_ms(seconds: Option<f64>) -> Result<Option<u64>, Error> {
    let Some(seconds) = seconds else { return Ok(None) };
    if !(seconds > 0.0 && seconds <= info::MAX_TIMEOUT) {
        let most = info::MAX_TIMEOUT;
        return Err(Error::invalid_arguments(format!(
            "timeout must be a number of seconds above 0, up to {most}; it is {seconds}."
        )));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok(Some((seconds * 1000.0).ceil() as u64))
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
        assert_eq!(timeout_ms(None).ok(), Some(None));
        assert_eq!(timeout_ms(Some(1.5)).ok(), Some(Some(1500)));
        assert_eq!(timeout_ms(Some(0.000_1)).ok(), Some(Some(1)));
        assert_eq!(timeout_ms(Some(2_147_483.647)).ok(), Some(Some(2_147_483_647)));
        for bad in [0.0, -1.0, 2_147_483.648, f64::NAN, f64::INFINITY] {
            assert_eq!(timeout_ms(Some(bad)).err().map(|error| error.code()), Some("invalid-arguments"));
        }
    }
}
