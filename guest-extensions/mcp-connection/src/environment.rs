//! The environment that servers which are programs inherit. The host gives all of it to a program or nothing, so it is asked for
//! once, and what is passed on is handed to each.

use std::rc::Rc;

use atoll_mcp_client::environment::passed;
use atoll_plugin::{Error, next_chunk, process};
use futures::future::join;
use tokio::sync::Mutex;

use crate::values::about;

/// What prints it.
const PROGRAM: &str = "env";
/// How much is read at once.
const READ: usize = 64 * 1024;

/// Variables by their names.
type Variables = Rc<Vec<(String, String)>>;

thread_local! {
    static KNOWN: Rc<Mutex<Option<Variables>>> = Rc::default();
}

/// What is passed on to every program.
///
/// # Errors
/// Why it is not known, with the way out.
pub(crate) async fn inherited() -> Result<Variables, Error> {
    let known = KNOWN.with(Rc::clone);
    // Held while it is asked for: servers are started beside each other, and one of them asks.
    let mut known = known.lock().await;
    if let Some(known) = &*known {
        return Ok(Rc::clone(known));
    }
    let read = read().await.map_err(|error| {
        about(
            error,
            "what the server may inherit of your environment is not known; \"inheritEnv\": true passes on all of it",
        )
    })?;
    Ok(Rc::clone(known.insert(Rc::new(read))))
}

async fn read() -> Result<Vec<(String, String)>, Error> {
    let child = process::spawn(process::Command {
        program: PROGRAM.to_owned(),
        arguments: vec!["-0".to_owned()],
        cwd: None,
        env: Vec::new(),
        clear_env: false,
        stdin: process::Input::Null,
        output: process::Output::Separate,
        linger_ms: 100,
        spill: None,
    })
    .await?;
    let (mut stdout, mut stderr) = (child.stdout(), child.stderr());
    let mut printed = Vec::new();
    let reading = async {
        while let Some(bytes) = next_chunk(&mut stdout, READ).await {
            printed.extend_from_slice(&bytes);
        }
    };
    let complaining = async { while next_chunk(&mut stderr, READ).await.is_some() {} };
    join(reading, complaining).await;
    match child.wait().await? {
        process::Exit { code: 0, .. } => Ok(passed(&printed)),
        process::Exit { code, .. } => Err(Error::failed(format!("`{PROGRAM} -0` exited with {code}"))),
    }
}
