//! The program at a terminal: standard input, output and error are one, and the test is the person in front of it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
    sync::mpsc,
    time::Duration,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Command, Finished, Running};

/// Waiting longer than this for a question means that it is not asked.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct AtTerminal {
    running: Running,
    person: File,
    pieces: mpsc::Receiver<Vec<u8>>,
    seen: String,
    answered: usize,
}

impl AtTerminal {
    pub(crate) fn start(command: Command) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let side = || Stdio::from(terminal.try_clone().unwrap());
        let running = command.stdin(side()).stdout(side()).stderr(side()).start();
        drop(terminal);
        let person = File::from(person);
        let mut reader = person.try_clone().unwrap();
        let (sender, pieces) = mpsc::channel();
        // Ends with the terminal's other side.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { running, person, pieces, seen: String::new(), answered: 0 }
    }

    /// Waits for a question and answers it with a line.
    #[track_caller]
    pub(crate) fn answer(mut self, question: &str, answer: &str) -> Self {
        while !self.seen[self.answered..].contains(question) {
            let piece = self.pieces.recv_timeout(PATIENCE);
            let piece = piece.unwrap_or_else(|_| panic!("{question:?} was not asked: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        self.answered = self.seen.len();
        self.person.write_all(format!("{answer}\n").as_bytes()).unwrap();
        self
    }

    /// Waits for its end; gives all that was on the terminal as standard output.
    pub(crate) fn wait(mut self) -> Finished {
        let mut finished = self.running.wait();
        while let Ok(piece) = self.pieces.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        finished.stdout = self.seen.replace("\r\n", "\n");
        finished
    }
}
