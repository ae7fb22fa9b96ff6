//! A process group, signalled only while its id is certainly its own.
//!
//! The id of a group can be given to another one once its leader has been collected. So the leader stays
//! uncollected, as a zombie if it has exited, until nobody will signal the group any more.

use std::{
    io,
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use tokio::signal::unix::{SignalKind, signal};

use super::watchdog;
use crate::state::lock;

/// How far a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It may be signalled.
    Held,
    /// It was killed for good; its leader has not been collected yet.
    Released,
    /// Its id may belong to others now.
    Collected,
}

/// The group of a process that was started as its leader.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    stage: Mutex<Stage>,
}

/// The right to a group: it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct HeldGroup(Arc<Group>);

impl HeldGroup {
    /// Takes charge of a process that has just been started as the leader of a group and that nobody else collects.
    pub(super) fn new(leader: Pid) -> Self {
        watchdog::watch(leader);
        Self(Arc::new(Group { leader, stage: Mutex::new(Stage::Held) }))
    }

    /// The group, to wait for its leader's exit.
    pub(super) fn group(&self) -> Arc<Group> {
        Arc::clone(&self.0)
    }

    /// Sends a signal to all of the group. One whose members are all gone is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.0.leader, signal);
    }
}

impl Drop for HeldGroup {
    fn drop(&mut self) {
        let group = &self.0;
        let mut stage = lock(&group.stage);
        // The group may live on after its leader has gone.
        let _ = kill_process_group(group.leader, Signal::KILL);
        watchdog::forget(group.leader);
        // A leader that needs longer to go is collected by whoever waits for it.
        *stage = match waitid(WaitId::Pid(group.leader), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(None) => Stage::Released,
            Ok(Some(_)) | Err(_) => Stage::Collected,
        };
    }
}

impl Group {
    /// Kills all of the group, if it is certain that it is still this one.
    pub(super) fn kill(&self) {
        if *lock(&self.stage) == Stage::Held {
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
    }

    /// Waits until the leader has exited. It is collected here only if the group was released before.
    pub(super) async fn exited(&self) -> io::Result<WaitIdStatus> {
        let mut children = signal(SignalKind::child())?;
        loop {
            if let Some(status) = self.look()? {
                return Ok(status);
            }
            if children.recv().await.is_none() {
                return Err(io::Error::other("signals do not arrive any more"));
            }
        }
    }

    fn look(&self) -> io::Result<Option<WaitIdStatus>> {
        let mut stage = lock(&self.stage);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        match *stage {
            Stage::Held => Ok(waitid(WaitId::Pid(self.leader), options | WaitIdOptions::NOWAIT)?),
            Stage::Released => {
                let status = waitid(WaitId::Pid(self.leader), options)?;
                if status.is_some() {
                    *stage = Stage::Collected;
                }
                Ok(status)
            }
            Stage::Collected => Err(io::Error::other("it was given up")),
        }
    }
}
