//! Values in configuration files that name where the real value is: `!command`, or text with `$NAME`, `${NAME}`,
//! `$$` for a dollar sign and `$!` for an exclamation mark.

use std::{
    process::{Command, Stdio},
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
            if name.is_empty() {
                value.push('$');
            } else {
                match variable(name).filter(|value| !value.is_empty()) {
                    Some(found) => value.push_str(&found),
                    None => return Err(format!("the environment variable {name} is not set")),
                }
            }
            rest = after;
        }
    }
    value.push_str(rest);
    Ok(value)
}

/// Runs a command line with the shell; its output without surrounding white space.
fn run(command: &str) -> Result<String, String> {
    let failed = |reason: String| format!("the command `{command}` {reason}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("could not be started: {error}")))?;
    let Some(mut output) = child.stdout.take() else { return Err(failed("has no output".to_owned())) };
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut output, &mut text).map(|_| text)
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < COMMAND_TIME => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("took more than {} s", COMMAND_TIME.as_secs())));
            }
            Err(error) => return Err(failed(format!("was lost: {error}"))),
        }
    };
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    match reader.join() {
        Ok(Ok(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
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
        assert!(value("!exit 3").unwrap_err().contains("failed"));
        assert!(value("!true").unwrap_err().contains("printed nothing"));
    }
}
