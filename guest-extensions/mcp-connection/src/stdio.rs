//! A server that is a program: started, spoken to over its standard input and output, and ended in order.

use std::{cell::RefCell, collections::VecDeque, future::Future, pin::pin};

use atoll_mcp_client::{
    config::Stdio,
    wire::{Lines, ProgramEnd},
};
use atoll_plugin::{Error, clock, next_chunk, process, servers};
use futures::{
    FutureExt as _,
    future::{Either, join, select},
};

use crate::{
    environment::inherited,
    server::Surroundings,
    values::{about, value},
};

/// How much is read at once.
const READ: usize = 64 * 1024;
/// How much of what it says on standard error is kept, in characters.
const TAIL: usize = 2_000;
/// How long it may take to end by itself once its input is closed, and then once it is told to.
const GRACE_MS: u64 = 500;
const LAST_GRACE_MS: u64 = 2_000;
/// How long its last words are waited for.
const LAST_WORDS_MS: u64 = 200;

/// A program under way.
pub struct Program {
    child: process::Child,
    /// The end of what it said on standard error.
    said: RefCell<VecDeque<char>>,
    /// How it ended, once it has.
    exit: RefCell<Option<process::Exit>>,
}

/// A path with the user's home in place of a `~` at its start.
fn expanded(text: &str, home: Option<&str>) -> String {
    match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => text.to_owned(),
    }
}

impl Program {
    /// Starts it. `others`: the name of a server that another extension added, which has to be allowed this itself.
    ///
    /// # Errors
    /// Why it can not be started.
    pub async fn start(stdio: &Stdio, around: &Surroundings, others: Option<&str>) -> Result<Self, Error> {
        let home = around.home.as_deref();
        let program = expanded(&stdio.program, home);
        let arguments: Vec<String> = stdio.arguments.iter().map(|argument| expanded(argument, home)).collect();
        if let Some(server) = others {
            let variables = stdio.env.iter().map(|(name, _)| name.clone()).collect();
            let wanted = servers::Program { program: program.clone(), arguments: arguments.clone(), variables };
            servers::permit(server.to_owned(), servers::Permission::Spawn(wanted)).await?;
        }
        let mut env = Vec::new();
        for (name, template) in &stdio.env {
            let value = value(template, &around.file).await;
            env.push((name.clone(), value.map_err(|error| about(error, &format!("env.{name}")))?));
        }
        if !stdio.inherits {
            let passed = inherited().await?;
            let others = passed.iter().filter(|(name, _)| !stdio.env.iter().any(|(own, _)| own == name));
            env.extend(others.cloned());
        }
        let child = process::spawn(process::Command {
            program,
            arguments,
            cwd: stdio.cwd.as_deref().map(|cwd| expanded(cwd, home)),
            env,
            clear_env: !stdio.inherits,
            stdin: process::Input::Piped,
            output: process::Output::Separate,
            // What it leaves behind with its output open is not waited for.
            linger_ms: 100,
            spill: None,
        })
        .await?;
        Ok(Self { child, said: RefCell::default(), exit: RefCell::default() })
    }

    /// How it ended, and what it said last on standard error: to be put after a sentence.
    pub fn last_words(&self) -> String {
        let how = match *self.exit.borrow() {
            Some(process::Exit { signal: Some(signal), .. }) => format!(" (signal {signal} ended it)"),
            Some(process::Exit { code, .. }) => format!(" (it exited with {code})"),
            None => String::new(),
        };
        let said: String = self.said.borrow().iter().collect();
        match said.trim() {
            "" => how,
            said => format!("{how}; its last words: {said}"),
        }
    }

    /// Passes on what is said from one side to the other, until the program prints no more or `done` ends. Then it is ended.
    pub async fn serve(&self, end: ProgramEnd, done: impl Future<Output = ()>) {
        let ProgramEnd { mut to_program, from_program } = end;
        let mut stdout = self.child.stdout();
        let reading = async move {
            let mut lines = Lines::default();
            while let Some(bytes) = next_chunk(&mut stdout, READ).await {
                for line in lines.push(&bytes) {
                    // When nobody listens any more it is read all the same, so that it does not stand still at its end.
                    let _ = from_program.send(line).await;
                }
            }
        };
        let writing = async {
            while let Some(line) = to_program.recv().await {
                if self.child.write_input(line).await.is_err() {
                    break;
                }
            }
            // Nobody has anything to say any more: that is how it hears of its end.
            self.child.close_input().await;
        };
        let mut stderr = self.child.stderr();
        let listening = async {
            while let Some(bytes) = next_chunk(&mut stderr, READ).await {
                self.hear(&bytes);
            }
        };
        let listening = listening.boxed_local().shared();
        let talking = async {
            let beside = async {
                join(writing, listening.clone()).await;
                std::future::pending::<()>().await;
            };
            select(pin!(reading), pin!(beside)).await;
            select(listening.clone(), pin!(clock::sleep(LAST_WORDS_MS))).await;
        };
        match select(pin!(talking), pin!(done)).await {
            Either::Left(_) => self.end().await,
            // While it is ended it is listened to: it may have to say something first.
            Either::Right(((), talking)) => match select(talking, pin!(self.end())).await {
                Either::Left(((), ending)) => ending.await,
                Either::Right(((), talking)) => {
                    select(talking, pin!(clock::sleep(LAST_WORDS_MS))).await;
                }
            },
        }
    }

    fn hear(&self, bytes: &[u8]) {
        let mut said = self.said.borrow_mut();
        let text = String::from_utf8_lossy(bytes);
        said.extend(text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }));
        let over = said.len().saturating_sub(TAIL);
        said.drain(..over);
    }

    /// Ends it: by closing its input, then by asking it, then by force. What it started goes with it.
    async fn end(&self) {
        let gone = async {
            // It may not take what is still being written, and then its input can not be closed.
            self.child.close_input().await;
            self.child.wait().await
        };
        if !self.is_gone(gone, GRACE_MS).await {
            self.child.kill(process::Signal::Terminate);
            self.is_gone(self.child.wait(), LAST_GRACE_MS).await;
        }
        self.child.kill(process::Signal::Kill);
    }

    async fn is_gone(&self, gone: impl Future<Output = Result<process::Exit, Error>>, within_ms: u64) -> bool {
        match select(pin!(gone), pin!(clock::sleep(within_ms))).await {
            Either::Left((exit, _)) => {
                *self.exit.borrow_mut() = exit.ok();
                true
            }
            Either::Right(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn only_a_tilde_that_stands_for_the_home_is_one() {
        for (text, expected) in [("~", "/h"), ("~/a", "/h/a"), ("~me/a", "~me/a"), ("a/~", "a/~"), ("", "")] {
            assert_eq!(expanded(text, Some("/h")), expected, "{text}");
        }
        assert_eq!(expanded("~/a", None), "~/a");
    }
}
