//! QuickJS for plugins: one runtime with one global object, limits, modules, timers and the globals that scripts expect.
//!
//! All that reaches outside goes through the [`Host`] that is passed in, so this crate runs in a plugin and in a test
//! alike. It must never block and never start a thread: whoever calls it drives it, and the promises of scripts make
//! progress while one of its futures is awaited.

mod ends;
mod engine;
mod error;
mod gaps;
mod globals;
mod host;
mod place;
mod random;
mod timers;

pub use ends::{Ending, Pending};
pub use engine::{Body, Engine, Limits, MOST_UNHANDLED};
pub use error::{Insertion, ScriptError, ScriptErrorKind};
pub use host::{Host, Level};
pub use place::{Place, frame};
pub use rquickjs;
