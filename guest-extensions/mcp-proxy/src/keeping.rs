//! What is kept of servers, in the plugin's store: a head for each, which says what holds, and parts with what it has.

use std::collections::HashSet;

use atoll_plugin::{Error, clock, store};

use crate::{
    kept::{self, Head, Kept, Packed, Stale},
    settings::Proxied,
};

/// What was kept of a server, if it holds.
///
/// # Errors
/// Why there is nothing.
pub(crate) async fn read(server: &Proxied) -> Result<Kept, Stale> {
    let bytes = store::get(kept::key(&server.name)).await.ok().flatten();
    let head = Head::read(bytes.as_deref(), &kept::digest(server), clock::now())?;
    let mut parts = Vec::new();
    for key in head.parts(&server.name) {
        // Another process may be writing what it has heard since.
        parts.push(store::get(key).await.ok().flatten().ok_or(Stale::Old)?);
    }
    head.with(&parts)
}

/// Keeps what a server has. `all`: the servers that there are; what is kept of others makes room where there is none.
///
/// # Errors
/// Why it is not kept. Then nothing is: what was kept before is not what the server has.
pub(crate) async fn write(server: &Proxied, kept: &Kept, all: &[Proxied]) -> Result<(), String> {
    let name = &server.name;
    let Some(packed) = kept.pack(name, &kept::digest(server), clock::now()) else {
        forget(name).await;
        return Err("it has too much to keep it for the next session".to_owned());
    };
    let mut written = put(name, &packed).await;
    if written.is_err() && make_room(all).await.unwrap_or_default() {
        written = put(name, &packed).await;
    }
    if let Err(error) = written {
        forget(name).await;
        return Err(format!("what it has is not kept for the next session: {}", error.message()));
    }
    Ok(())
}

async fn put(server: &str, packed: &Packed) -> Result<(), Error> {
    let key = kept::key(server);
    // Whoever else writes of this server would take away parts that are about to be named.
    let _alone = store::lock(key.clone()).await?;
    let there: HashSet<String> = store::keys(kept::parts(server)).await?.into_iter().collect();
    for (part, bytes) in packed.parts.iter().filter(|(part, _)| !there.contains(part)) {
        store::set(part.clone(), bytes.clone()).await?;
    }
    store::set(key, packed.head.clone()).await?;
    let named: HashSet<&String> = packed.parts.iter().map(|(part, _)| part).collect();
    for old in there.iter().filter(|old| !named.contains(old)) {
        store::remove(old.clone()).await?;
    }
    Ok(())
}

/// What can not be forgotten now is older than what holds some day.
async fn forget(server: &str) {
    let mut gone = vec![kept::key(server)];
    gone.extend(store::keys(kept::parts(server)).await.unwrap_or_default());
    for key in gone {
        let _: Result<(), Error> = store::remove(key).await;
    }
}

/// Forgets servers that are not there any more. Whether there were any.
async fn make_room(all: &[Proxied]) -> Result<bool, Error> {
    let mut is_room = false;
    for key in store::keys(kept::KEYS.to_owned()).await? {
        let name = kept::server_of(&key);
        if !all.iter().any(|server| Some(server.name.as_str()) == name) {
            store::remove(key).await?;
            is_room = true;
        }
    }
    Ok(is_room)
}
