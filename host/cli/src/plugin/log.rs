//! `atoll plugin log`: what was used, and what was denied.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use atoll_caps::AuditRecord;
use atoll_engine::AuditLog;

use crate::{
    directories::Directories,
    exit::{ExitStatus, FAILED},
    signals::Stop,
    terminal,
};

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Which entries are shown.
pub(crate) struct Filter {
    pub(crate) plugin: Option<String>,
    pub(crate) denied: bool,
    pub(crate) since: Option<Duration>,
}

impl Filter {
    fn wants(&self, record: &AuditRecord, now: SystemTime) -> bool {
        let recent = self.since.is_none_or(|since| {
            let earliest = now.checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH);
            let earliest = earliest.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
            record.millis().is_some_and(|at| i128::from(at) >= i128::try_from(earliest).unwrap_or(i128::MAX))
        });
        recent && self.plugin.as_ref().is_none_or(|plugin| *plugin == record.plugin) && !(self.denied && record.allowed)
    }
}

/// Reads a length of time as `--since` takes it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a length of time; write a number and s, m, h or d, such as 15m");
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

pub(crate) async fn run(filter: Filter, follow: bool, as_json: bool) -> anyhow::Result<ExitCode> {
    let stop = Stop::watch()?;
    let path = Directories::find()?.audit_log();
    let now = SystemTime::now();
    if !as_json {
        terminal::line(AuditRecord::heading())?;
    }
    let show = |text: &str| -> anyhow::Result<()> {
        for line in text.lines() {
            // A line that is torn, or of another version, is passed over.
            let Some(record) = AuditRecord::from_line(line).filter(|record| filter.wants(record, now)) else {
                continue;
            };
            if as_json { terminal::line(line)? } else { terminal::line(record.row())? }
        }
        Ok(())
    };
    let mut current = Current::default();
    for file in AuditLog::files(&path) {
        if file == path {
            break;
        }
        show(&Current::default().more(&file)?)?;
    }
    show(&current.more(&path)?)?;
    if !follow {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        tokio::select! {
            () = stop.token.cancelled() => return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into()),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        show(&current.more(&path)?)?;
    }
}

/// A file that is read as it grows.
#[derive(Default)]
struct Current {
    file: Option<File>,
    /// What follows the last line break.
    rest: Vec<u8>,
}

impl Current {
    /// The whole lines that have come since. Goes over to the new file where the old one was set aside.
    fn more(&mut self, path: &Path) -> anyhow::Result<String> {
        let mut bytes = std::mem::take(&mut self.rest);
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut bytes)?;
        }
        match File::open(path) {
            Ok(mut now) => {
                let facts = now.metadata()?;
                anyhow::ensure!(facts.is_file(), "{} is not a file", path.display());
                let known = self.file.as_ref().map(File::metadata).transpose()?;
                if known.is_none_or(|known| (known.dev(), known.ino()) != (facts.dev(), facts.ino())) {
                    now.seek(SeekFrom::Start(0))?;
                    now.read_to_end(&mut bytes)?;
                    self.file = Some(now);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("{} can not be read", path.display())),
        }
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(end);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, seconds) in [("30s", 30), ("15m", 900), ("2h", 7_200), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "5", "m", "-1m", "1.5h", "5ü", "99999999999999999999d", "9999999999999999999d"] {
            assert!(duration(text).unwrap_err().contains("15m"), "{text}");
        }
    }
}
