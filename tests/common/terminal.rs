//! The program at a terminal: a pseudo-terminal is its standard input, standard error and controlling terminal, as a
//! person has it. Standard output is a pipe, so that answers can be told apart.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    },
    process::{Child, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Command, Finished};

/// No question of a test takes nearly as long to come.
const LONGEST: Duration = Duration::from_secs(90);

/// A run at a terminal. Killed when it is dropped.
pub(crate) struct AtTerminal {
    child: Child,
    keyboard: File,
    /// What the terminal shows so far, and whether it is closed.
    screen: Arc<(Mutex<(String, bool)>, Condvar)>,
    /// How much of it was waited for.
    seen: usize,
}

impl AtTerminal {
    pub(crate) fn start(command: Command) -> Self {
        Self::start_with(command, "", |_| Stdio::piped())
    }

    /// Starts it at a terminal where somebody has typed already.
    pub(crate) fn start_after_typing(command: Command, typed: &str) -> Self {
        Self::start_with(command, typed, |_| Stdio::piped())
    }

    /// Starts it with its standard output at the terminal too.
    pub(crate) fn start_whole(command: Command) -> Self {
        Self::start_with(command, "", |terminal| terminal.try_clone().unwrap().into())
    }

    fn start_with(command: Command, typed: &str, stdout: impl Fn(&File) -> Stdio) -> Self {
        let controller: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal =
            File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name.to_str().unwrap()).unwrap();
        let mut command = command.into_std();
        command.stdin(terminal.try_clone().unwrap()).stdout(stdout(&terminal)).stderr(terminal);
        // SAFETY: between fork and exec only system calls are made, and standard input is open then.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?;
                Ok(())
            });
        }
        let mut keyboard = File::from(controller);
        keyboard.write_all(typed.as_bytes()).unwrap();
        let child = command.spawn().unwrap();
        // The command holds the terminal open, which must close when the program ends.
        drop(command);
        let screen: Arc<(Mutex<(String, bool)>, Condvar)> = Arc::default();
        let (mut reader, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // Once nobody has the terminal open any more, reading fails.
                let read = reader.read(&mut buffer).unwrap_or(0);
                let mut state = shown.0.lock().unwrap();
                state.0.push_str(&String::from_utf8_lossy(&buffer[..read]));
                state.1 = read == 0;
                shown.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, seen: 0 }
    }

    /// Waits until the terminal shows a text, after what was waited for before; gives what came up to it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + LONGEST;
        let mut state = self.screen.0.lock().unwrap();
        loop {
            if let Some(at) = state.0[self.seen..].find(text) {
                let end = self.seen + at + text.len();
                let came = state.0[self.seen..end].to_owned();
                self.seen = end;
                return came;
            }
            let left = deadline.checked_duration_since(Instant::now());
            assert!(!state.1 && left.is_some(), "waited in vain for {text:?}: {}", state.0);
            state = self.screen.1.wait_timeout(state, left.unwrap()).unwrap().0;
        }
    }

    /// Waits for a question and answers it with a line.
    #[track_caller]
    pub(crate) fn answer(mut self, question: &str, answer: &str) -> Self {
        self.wait_for(question);
        self.press(&format!("{answer}\n"));
        self
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for its end. What the terminal showed is its standard error.
    pub(crate) fn wait(mut self) -> Finished {
        let mut stdout = String::new();
        if let Some(mut piped) = self.child.stdout.take() {
            piped.read_to_string(&mut stdout).unwrap();
        }
        let status = self.child.wait().unwrap();
        let state = self.screen.0.lock().unwrap();
        let (state, _) = self.screen.1.wait_timeout_while(state, LONGEST, |state| !state.1).unwrap();
        Finished::new("atoll at a terminal".to_owned(), status, stdout, state.0.clone())
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
