//! What the user wants: messages, files named with `@`, and text on standard input.

use std::{
    io::{IsTerminal as _, Read as _},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use crate::terminal::note;
use anyhow::Context as _;
use atoll_table::Content;
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// How long standard input may be silent at first, when there is a prompt without it.
const FIRST_BYTE: Duration = Duration::from_secs(1);
/// After how long a silence in the middle of it the user is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest file or input taken in.
const MAX_BYTES: u64 = 20 << 20;

/// The prompts to carry out, in order. None if there is nothing to do.
pub(crate) fn prompts(messages: &[String], cwd: &Path) -> anyhow::Result<Vec<Vec<Content>>> {
    let (files, mut texts): (Vec<&String>, Vec<&String>) = messages.iter().partition(|text| is_file(text));
    let waits = texts.iter().any(|text| *text == "-");
    texts.retain(|text| *text != "-");
    let piped = standard_input(!texts.is_empty() && !waits)?;
    let mut first = String::new();
    let mut images = Vec::new();
    for file in files {
        let (text, image) = file_block(cwd, file.strip_prefix('@').unwrap_or(file))?;
        first.push_str(&text);
        images.extend(image);
    }
    let mut texts = texts.into_iter();
    if let Some(text) = texts.next() {
        first.push_str(text);
    }
    if !piped.is_empty() {
        first = if first.is_empty() { piped } else { format!("{piped}\n\n{first}") };
    }
    let mut prompts = Vec::new();
    if !first.is_empty() || !images.is_empty() {
        let mut content = vec![Content::text(first)];
        content.extend(images);
        prompts.push(content);
    }
    prompts.extend(texts.map(|text| vec![Content::text(text.clone())]));
    Ok(prompts)
}

fn is_file(text: &str) -> bool {
    text.len() > 1 && text.starts_with('@')
}

/// Text on standard input, without white space at its ends. A terminal is never read. When there is a prompt
/// already, an input that stays silent is left alone: whoever started the program may never close it.
fn standard_input(has_prompt: bool) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    // A file or /dev/null has an end; only what another program writes to may be silent for ever.
    let may_be_silent = has_prompt && is_fed(&stdin);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdin = stdin.lock();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    if sender.send(Ok(buffer[..length].to_vec())).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A closed standard input is an empty one.
                Err(error) if error.raw_os_error() == Some(9) => return,
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
    });
    let mut bytes: Vec<u8> = Vec::new();
    let mut told = false;
    loop {
        // Once something has come, the rest belongs to it: half an input would get an answer to half a question.
        let received = if may_be_silent && bytes.is_empty() {
            receiver.recv_timeout(FIRST_BYTE)
        } else {
            receiver.recv_timeout(PATIENCE)
        };
        match received {
            Ok(Ok(piece)) => bytes.extend(piece),
            Ok(Err(error)) => return Err(error).context("standard input can not be read"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if may_be_silent && bytes.is_empty() => {
                note("standard input is open but silent; going on without it (add `-` to wait for it)");
                break;
            }
            Err(mpsc::RecvTimeoutError::Timeout) if !told => {
                note("waiting for the end of standard input");
                told = true;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if bytes.len() as u64 > MAX_BYTES {
            anyhow::bail!(
                "standard input has more than {MAX_BYTES} bytes; put it into a file and name the file in the prompt"
            );
        }
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Whether standard input is a pipe or a socket.
fn is_fed(stdin: &std::io::Stdin) -> bool {
    use std::os::{fd::AsFd as _, unix::fs::FileTypeExt as _};
    let Ok(copy) = stdin.as_fd().try_clone_to_owned() else { return false };
    let facts = std::fs::File::from(copy).metadata();
    facts.is_ok_and(|facts| facts.file_type().is_fifo() || facts.file_type().is_socket())
}

/// A file as the model sees it, and its picture if it is one. Empty files are passed over.
fn file_block(cwd: &Path, name: &str) -> anyhow::Result<(String, Option<Content>)> {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let path = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(name),
    };
    let shown = path.display();
    let facts = std::fs::metadata(&path).with_context(|| format!("@{name}: {shown} can not be read"))?;
    anyhow::ensure!(facts.is_file(), "@{name}: {shown} is not a file");
    anyhow::ensure!(facts.len() <= MAX_BYTES, "@{name}: {shown} has more than {MAX_BYTES} bytes");
    let bytes = std::fs::read(&path).with_context(|| format!("@{name}: {shown} can not be read"))?;
    if bytes.is_empty() {
        return Ok((String::new(), None));
    }
    if let Some(mime_type) = image_type(&bytes) {
        let image = Content::Image { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() };
        return Ok((format!("<file name=\"{shown}\"></file>\n"), Some(image)));
    }
    anyhow::ensure!(!bytes.contains(&0), "@{name}: {shown} is neither text nor a picture");
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    Ok((format!("<file name=\"{shown}\">\n{text}\n</file>\n"), None))
}

/// The media type of a picture that models accept, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
