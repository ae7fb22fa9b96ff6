//! Which of the two greetings a server gets: most begin a session, the newest revision has none.

use std::cell::{Cell, RefCell};

use atoll_mcp_client::{
    config::{Entry, Greeting, Transport},
    http::Way,
    session::{Era, Failure},
};

/// Codes by which a program says that it knows no sessions: there is no such method, or no such revision of the protocol.
const NO_METHOD: i32 = -32_601;
const NO_REVISION: i32 = -32_022;
const WRONG_PARAMETERS: i32 = -32_602;

/// How a server is greeted.
#[derive(Debug)]
pub(crate) struct Greetings {
    era: Cell<Era>,
    /// What it said to the other greeting, while this one is tried.
    refused_first: RefCell<Option<Failure>>,
    /// It is to be greeted in the other way, at once.
    other: Cell<bool>,
}

impl Greetings {
    /// As the entry says.
    pub(crate) fn of(entry: &Entry) -> Self {
        let era = match entry.greeting {
            Greeting::Auto | Greeting::Legacy => Era::Sessions,
            Greeting::Stateless => Era::Stateless,
        };
        Self { era: Cell::new(era), refused_first: RefCell::default(), other: Cell::default() }
    }

    /// The one that it gets.
    pub(crate) fn era(&self) -> Era {
        self.era.get()
    }

    /// Whether it is to be greeted in the other way now. Told once.
    pub(crate) fn is_other(&self) -> bool {
        self.other.take()
    }

    /// It has understood.
    pub(crate) fn understood(&self) {
        self.refused_first.take();
    }

    /// A server that does not want to be greeted so may want it otherwise. If not, it is the first answer that counts.
    pub(crate) fn refused(&self, entry: &Entry, failure: Failure) -> Failure {
        if entry.greeting != Greeting::Auto {
            return failure;
        }
        match (self.era.get(), self.refused_first.take(), failure) {
            (Era::Sessions, _, refused @ Failure::Refused { .. }) if may_know_none(entry, &refused) => {
                self.era.set(Era::Stateless);
                self.other.set(true);
                *self.refused_first.borrow_mut() = Some(refused.clone());
                refused
            }
            // A server that wants to be signed in to has understood the greeting.
            (_, _, failure @ Failure::OnTheWay { way: Way::SignIn, .. }) => failure,
            (Era::Stateless, Some(first), _) => {
                self.era.set(Era::Sessions);
                first
            }
            (_, _, failure) => failure,
        }
    }
}

/// Whether what refuses to begin a session may be one that knows none. A program has to say so: to greet it anew is to start
/// it anew.
fn may_know_none(entry: &Entry, refused: &Failure) -> bool {
    let Failure::Refused { code, message } = refused else { return false };
    match entry.transport {
        Transport::Http(_) => true,
        Transport::Stdio(_) => {
            let is_of_revision = || message.to_ascii_lowercase().contains("version");
            matches!(*code, NO_METHOD | NO_REVISION) || *code == WRONG_PARAMETERS && is_of_revision()
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_mcp_client::config::{Configuration, Document, Place};

    use super::*;

    fn entry(text: &str) -> Entry {
        let text = format!("{{\"mcpServers\": {{\"x\": {text}}}}}");
        let all = Configuration::read(&[Document { place: Place::User, path: "x", text: &text }]);
        all.servers.first().expect("a server").entry.clone()
    }

    fn says(code: i32, message: &str) -> Failure {
        Failure::Refused { code, message: message.to_owned() }
    }

    #[test]
    fn a_program_that_knows_no_sessions_is_greeted_without() {
        let program = entry(r#"{"command": "x"}"#);
        for (code, message, is_tried) in [
            (NO_METHOD, "not here", true),
            (NO_REVISION, "no", true),
            (WRONG_PARAMETERS, "Unsupported protocol version", true),
            (WRONG_PARAMETERS, "a parameter is missing", false),
            (-32_000, "busy", false),
        ] {
            let greetings = Greetings::of(&program);
            assert_eq!(greetings.refused(&program, says(code, message)), says(code, message));
            assert_eq!((greetings.is_other(), greetings.is_other()), (is_tried, false), "{code} {message}");
            assert_eq!(greetings.era(), if is_tried { Era::Stateless } else { Era::Sessions });
        }
        assert!(!Greetings::of(&program).is_other());
        let address = entry(r#"{"url": "http://a"}"#);
        let greetings = Greetings::of(&address);
        greetings.refused(&address, says(-32_000, "busy"));
        assert!(greetings.is_other());
    }

    #[test]
    fn where_neither_greeting_is_understood_the_first_answer_counts_and_the_first_greeting_is_the_next() {
        let program = entry(r#"{"command": "x"}"#);
        let greetings = Greetings::of(&program);
        greetings.refused(&program, says(NO_METHOD, "first"));
        assert!(greetings.is_other());
        assert_eq!(greetings.refused(&program, Failure::Closed), says(NO_METHOD, "first"));
        assert_eq!((greetings.is_other(), greetings.era()), (false, Era::Sessions));
    }

    #[test]
    fn an_entry_that_names_one_greeting_gets_no_other() {
        for (entry, era) in [
            (entry(r#"{"command": "x", "protocolVersion": "legacy"}"#), Era::Sessions),
            (entry(r#"{"command": "x", "protocolVersion": "2026-07-28"}"#), Era::Stateless),
        ] {
            let greetings = Greetings::of(&entry);
            greetings.refused(&entry, says(NO_METHOD, "not here"));
            assert_eq!((greetings.is_other(), greetings.era()), (false, era));
        }
    }
}
