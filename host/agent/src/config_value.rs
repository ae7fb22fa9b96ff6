//! Values in configuration files that name where the real value is: `!command`, or text with `$NAME`, `${NAME}`,
//! `$$` for a dollar sign and `$!` for an exclamation mark. `${env:NAME}` is `${NAME}`, and `${NAME:-TEXT}` is the text
//! where the variable is not set.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// How long a `!command` may take.
const COMMAND_TIME: Duration = Duration::from_secs(10);

/// The value, or why there is none.
///
/// # Errors
/// One line that names the variable that is not set or the command that failed.
pub fn resolve(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    match text.strip_prefix('!') {
        Some(command) => run(command),
        None => expand(text, variable),
    }
}

/// A text that [`resolve`] makes into this value, whatever that is.
pub(crate) fn literal(value: &str) -> String {
    let value = value.replace('$', "$$");
    match value.strip_prefix('!') {
        Some(rest) => format!("$!{rest}"),
        None => value,
    }
}

/// The variables that a value names, set or not. Those that a `!command` reads are not known.
pub(crate) fn variables(text: &str) -> Vec<String> {
    let named = std::cell::RefCell::new(Vec::new());
    if !text.starts_with('!') {
        // Something, so that the next one is looked at too.
        let _ = expand(text, &|name| {
            named.borrow_mut().push(name.to_owned());
            Some("x".to_owned())
        });
    }
    named.into_inner()
}

fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        value.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            value.push('$');
            rest = after;
        } else if let Some(after) = after.strip_prefix('!') {
            value.push('!');
            rest = after;
        } else {
            let (name, after) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some(found) => found,
                None => after.split_at(after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            let (name, default) = match name.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (name, None),
            };
            if name.is_empty() {
                value.push('$');
            } else {
                match variable(name).filter(|value| !value.is_empty()).as_deref().or(default) {
                    Some(found) => value.push_str(found),
                    None => return Err(format!("the environment variable {name} is not set")),
                }
            }
            rest = after;
        }
    }
    value.push_str(rest);
    Ok(value)
}

/// The most a command may print: a key is short.
const MAX_OUTPUT: u64 = 64 << 10;

/// Runs a command line with the shell; its output without surrounding white space. What it leaves running is killed.
fn run(command: &str) -> Result<String, String> {
    let failed = |reason: String| format!("the command `{command}` {reason}");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        shell.process_group(0);
    }
    let mut child = shell.spawn().map_err(|error| failed(format!("could not be started: {error}")))?;
    let Some(output) = child.stdout.take() else { return Err(failed("has no output".to_owned())) };
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.take(MAX_OUTPUT).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if began.elapsed() < COMMAND_TIME => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => break Err(format!("took more than {} s", COMMAND_TIME.as_secs())),
            Err(error) => break Err(format!("was lost: {error}")),
        }
    };
    // A process left in the background may hold the output open for ever; what is there by now is all there will be.
    let text = receiver.recv_timeout(Duration::from_millis(200));
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let text = match text {
        Ok(text) => text,
        Err(_) => receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_else(|_| Ok(String::new())),
    };
    let _ = child.wait();
    let status = status.map_err(failed)?;
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    match text {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(failed("printed nothing".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    fn value(text: &str) -> Result<String, String> {
        resolve(text, &|name| match name {
            "KEY" => Some("secret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_and_escapes_are_replaced() {
        for (text, expected) in [
            ("plain", "plain"),
            ("$KEY", "secret"),
            ("a${KEY}b", "asecretb"),
            ("$KEY-x", "secret-x"),
            ("$$KEY", "$KEY"),
            ("$!x", "!x"),
            ("100$", "100$"),
            ("$-", "$-"),
            ("${env:KEY}", "secret"),
            ("a${NOPE:-b:-c}${EMPTY:-}${KEY:-d}", "ab:-csecret"),
            ("${env:NOPE:-b}", "b"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_unset_or_empty_variable_makes_the_whole_value_missing() {
        assert_eq!(value("a$NOPE").unwrap_err(), "the environment variable NOPE is not set");
        assert_eq!(value("${EMPTY}").unwrap_err(), "the environment variable EMPTY is not set");
    }

    #[test]
    fn a_command_gives_its_trimmed_output_or_a_reason() {
        assert_eq!(value("!printf ' abc\\n'").as_deref(), Ok("abc"));
        assert_eq!(value("!sleep 60 & printf key").as_deref(), Ok("key"));
        assert!(value("!exit 3").unwrap_err().contains("failed"));
        assert!(value("!true").unwrap_err().contains("printed nothing"));
    }
}
