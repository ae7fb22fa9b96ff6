//! What a script can reach outside of its own memory.

use std::time::Duration;

use futures::future::LocalBoxFuture;

use crate::error::ScriptError;

/// How much a line of the console matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug` and `console.trace`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`, and errors that nobody caught.
    Error,
}

/// The world of an [`crate::Engine`].
pub trait Host: 'static {
    /// A future that is ready after `duration`. It is dropped when the script clears the timer.
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()>;

    /// Takes a line of the console. It may hold line breaks.
    fn console(&self, level: Level, message: &str);

    /// Fills `bytes` with numbers that nobody can guess.
    fn random(&self, bytes: &mut [u8]);

    /// Hears of a promise that failed while nobody waits for it, once it is clear that nobody does: see
    /// [`crate::Engine::report_unhandled`].
    fn unhandled(&self, error: &ScriptError) {
        self.console(Level::Error, &format!("a promise failed and nothing waits for it: {error}"));
    }

    /// Hears of an error that a callback of the host's threw, which nobody in the script can catch. `from` is what called it,
    /// such as "a timer".
    fn uncaught(&self, from: &str, error: &ScriptError) {
        self.console(Level::Error, &format!("error in {from}: {error}"));
    }

    /// Asked every few thousand steps of a running script. `true` ends it, and the script can not catch that.
    fn interrupted(&self) -> bool {
        false
    }

    /// The full name of the module that `from` imports as `specifier`.
    ///
    /// # Errors
    /// What is wrong with the specifier, in one line for the user.
    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        Err(format!("{from} can not import `{specifier}`: there are no modules here"))
    }

    /// The JavaScript of a module that [`Host::resolve`] named.
    ///
    /// # Errors
    /// Why it can not be read, in one line for the user.
    fn load(&self, name: &str) -> Result<String, String> {
        Err(format!("there is no module `{name}`"))
    }
}
