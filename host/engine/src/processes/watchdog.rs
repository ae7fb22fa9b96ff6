//! Ends what the host started if the host itself ends without a chance to do so, as by SIGKILL.
//!
//! A parent-death signal would reach only the first process of each group, and comes too early if the thread that
//! forked ends. So one small shell waits at the end of a pipe that only the host holds. It is told which groups
//! there are, and when the pipe closes, for whatever reason, it kills those that are left.
//!
//! Out of its reach: processes that left their group (`setsid`) or run as somebody else (`sudo`), a group started
//! in the instant before the host was killed, and everything if the watchdog itself is killed too. Without
//! `/bin/sh` there is no watchdog.

use std::{
    collections::BTreeSet,
    io::{self, PipeWriter, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::Mutex,
};

use rustix::process::Pid;

use crate::state::lock;

/// What the shell runs: signals meant for the host are not for it.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r what id; do
  case $what in
    +) groups="$groups$id " ;;
    -) case $groups in *" $id "*) groups="${groups%% $id *} ${groups#* $id }" ;; esac ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
"#;

static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog { groups: BTreeSet::new(), shell: None });

/// The one of this host.
struct Watchdog {
    groups: BTreeSet<i32>,
    shell: Option<(Child, PipeWriter)>,
}

/// Sees to it that the watchdog runs, so that little time passes between a start and [`watch`].
pub(super) fn prepare() {
    let mut watchdog = lock(&WATCHDOG);
    if watchdog.shell.is_none() {
        watchdog.restart();
    }
}

/// Has a group killed if the host ends.
pub(super) fn watch(group: Pid) {
    let mut watchdog = lock(&WATCHDOG);
    watchdog.groups.insert(group.as_raw_nonzero().get());
    watchdog.tell('+', group);
}

/// Leaves a group alone again. To be called before its id may belong to others.
pub(super) fn forget(group: Pid) {
    let mut watchdog = lock(&WATCHDOG);
    watchdog.groups.remove(&group.as_raw_nonzero().get());
    watchdog.tell('-', group);
}

impl Watchdog {
    fn tell(&mut self, what: char, group: Pid) {
        let line = format!("{what} {}\n", group.as_raw_nonzero());
        let told = self.shell.as_mut().is_some_and(|(_, pipe)| pipe.write_all(line.as_bytes()).is_ok());
        if !told {
            self.restart();
        }
    }

    /// Starts the shell, in place of one that has gone or does not read, and tells it of all groups.
    fn restart(&mut self) {
        if let Some(shell) = self.shell.take() {
            stop(shell);
        }
        match start() {
            Ok((child, mut pipe)) => {
                let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
                match pipe.write_all(all.as_bytes()) {
                    Ok(()) => self.shell = Some((child, pipe)),
                    Err(error) => {
                        stop((child, pipe));
                        warn(&error);
                    }
                }
            }
            Err(error) => warn(&error),
        }
    }
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "there is no watchdog; processes would outlive this one if it were killed");
}

fn start() -> io::Result<(Child, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    // A watchdog that was stopped must not stop the host.
    rustix::io::ioctl_fionbio(&writer, true)?;
    let child = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((child, writer))
}

/// Ends a shell before its pipe closes, which would make it act.
fn stop((mut child, pipe): (Child, PipeWriter)) {
    let _ = child.kill();
    let _ = child.wait();
    drop(pipe);
}
