//! Files, as scripts know them from Node: what the contract has no single function for is put together here, once for what
//! answers at once and for what is waited for.
//!
//! Nothing here may follow a link in order to remove what it leads to, or write over a file that was not read as it is.

use std::cell::Cell;

use atoll_plugin::{Error, files, host};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, unknown};
use crate::events::read;

/// The most names of one directory.
const MOST_NAMES: u32 = 100_000;
/// How often something is appended to a file that others change meanwhile.
const MOST_TRIES: usize = 20;

thread_local! {
    /// How many hold a file of this script for themselves.
    static HOLDING: Cell<usize> = const { Cell::new(0) };
}

/// Stands for one that holds a file.
struct Holding;

impl Holding {
    fn new() -> Self {
        HOLDING.with(|holding| holding.set(holding.get() + 1));
        Self
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HOLDING.with(|holding| holding.set(holding.get().saturating_sub(1)));
    }
}

/// Whether something may be done while everything else of the script stands still.
///
/// # Errors
/// `unavailable` if it would wait for what stands still: the file may be held by an operation of this script.
pub(super) fn may_wait(name: &str) -> Result<(), Error> {
    if name == "files.append" && HOLDING.with(Cell::get) > 0 {
        return Err(Error::unavailable(
            "An `appendFile` of this script has not ended; wait for it before appending with what answers at once.",
        ));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Path {
    path: String,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    #[serde(default)]
    exclusive: bool,
}

#[derive(Deserialize)]
struct Pair {
    from: String,
    to: String,
}

pub(super) async fn perform(name: &str, value: Value, bytes: Vec<u8>) -> Result<Done, Error> {
    match name {
        "files.write" => {
            let Write { path, exclusive } = read(name, value)?;
            return written(path, bytes, None, exclusive).await.map(|facts| Done::data(metadata(&facts)));
        }
        "files.rename" => {
            let Pair { from, to } = read(name, value)?;
            return rename(from, to).await.map(|()| Done::default());
        }
        _ => {}
    }
    let Path { path } = read(name, value)?;
    match name {
        "files.read" => Ok(Done { data: Value::Null, bytes: Some(files::read(path, None).await?) }),
        "files.append" => append(path, bytes).await.map(|()| Done::default()),
        "files.stat" => Ok(Done::data(metadata(&files::stat(path).await?))),
        "files.lstat" => Ok(Done::data(match own_facts(path).await? {
            Own::Link => json!({"kind": kind(files::Kind::Symlink), "size": 0}),
            Own::Plain(facts) => metadata(&facts),
        })),
        "files.list" => {
            let listing = files::list_dir(path, MOST_NAMES).await?;
            let entry = |entry: files::Entry| {
                let kind = kind(if entry.is_link { files::Kind::Symlink } else { entry.kind });
                json!({"name": entry.name, "kind": kind, "size": entry.size})
            };
            Ok(Done::data(listing.entries.into_iter().map(entry).collect()))
        }
        "files.remove" => files::remove(path).await.map(|()| Done::default()),
        "files.remove-file" => {
            // What can not be looked at may be a link that leads nowhere.
            let leads_to_one = files::stat(path.clone()).await.is_ok_and(|facts| facts.kind == files::Kind::Directory);
            if leads_to_one && is_directory(&path).await? {
                let said = format!("{path} is a directory; it stays unless `recursive` is set.");
                return Err(Error::invalid_arguments(said));
            }
            files::remove(path).await.map(|()| Done::default())
        }
        "files.remove-directory" => {
            if !is_directory(&path).await? {
                return Err(Error::invalid_arguments(format!("{path} is no directory.")));
            }
            files::remove(path).await.map(|()| Done::default())
        }
        "files.remove-tree" => remove_tree(path).await.map(|()| Done::default()),
        _ => Err(unknown(name)),
    }
}

/// What a name itself stands for.
enum Own {
    Link,
    Plain(files::Metadata),
}

/// Facts about a path, the last link not followed.
///
/// # Errors
/// Those of listing the directory that it is in, which is the only one that tells.
async fn own_facts(path: String) -> Result<Own, Error> {
    let plain = path.trim_end_matches('/');
    let (folder, name) = match plain.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None => (".", plain),
    };
    // A directory by its nature: no link is named so.
    if ["", ".", "..", "~"].contains(&name) || plain == host::describe().cwd {
        return files::stat(path).await.map(Own::Plain);
    }
    let listing = files::list_dir(folder.to_owned(), MOST_NAMES).await?;
    match listing.entries.iter().find(|entry| entry.name == name) {
        Some(entry) if entry.is_link => Ok(Own::Link),
        None if listing.truncated => {
            Err(Error::failed(format!("{folder} has too many names to tell whether {name} is a link.")))
        }
        // Also where there is none: that is said in the host's words.
        _ => files::stat(path).await.map(Own::Plain),
    }
}

async fn is_directory(path: &str) -> Result<bool, Error> {
    let own = own_facts(path.to_owned()).await?;
    Ok(matches!(own, Own::Plain(facts) if facts.kind == files::Kind::Directory))
}

async fn written(
    path: String,
    bytes: Vec<u8>,
    expected: Option<String>,
    exclusive: bool,
) -> Result<files::Metadata, Error> {
    files::write(path, bytes, files::WriteOptions { create_parents: true, expected, exclusive }).await
}

/// Adds to the end of a file, which stays as it was if that fails.
async fn append(path: String, bytes: Vec<u8>) -> Result<(), Error> {
    let _holding = Holding::new();
    let _exclusive = files::lock(path.clone()).await?;
    let mut tries = 0;
    loop {
        let wrote = match files::stat(path.clone()).await {
            Ok(facts) => {
                let mut all = files::read(path.clone(), None).await?;
                all.extend(&bytes);
                written(path.clone(), all, Some(facts.version), false).await
            }
            // Exclusive, so that one that comes meanwhile is not lost.
            Err(Error::NotFound(_)) => written(path.clone(), bytes.clone(), None, true).await,
            Err(error) => return Err(error),
        };
        tries += 1;
        match wrote {
            Err(Error::Stale(_)) if tries < MOST_TRIES => {}
            wrote => return wrote.map(drop),
        }
    }
}

/// Removes a directory and what is in it. Links in it are removed, and what they lead to stays.
async fn remove_tree(path: String) -> Result<(), Error> {
    let mut waiting = vec![(path.clone(), is_directory(&path).await?)];
    while let Some((path, is_full)) = waiting.pop() {
        if !is_full {
            files::remove(path).await?;
            continue;
        }
        let listing = files::list_dir(path.clone(), MOST_NAMES).await?;
        // Once more when what was told of it is gone.
        waiting.push((path.clone(), listing.truncated));
        for entry in listing.entries {
            let is_full = entry.kind == files::Kind::Directory && !entry.is_link;
            waiting.push((format!("{}/{}", path.trim_end_matches('/'), entry.name), is_full));
        }
    }
    Ok(())
}

/// Gives a file another name, by way of a copy.
async fn rename(from: String, to: String) -> Result<(), Error> {
    let Own::Plain(facts) = own_facts(from.clone()).await? else {
        return Err(Error::failed(format!("{from} is a link, and links can not be renamed here.")));
    };
    if facts.kind != files::Kind::File {
        return Err(Error::failed(format!("{from} is no file, and nothing else can be renamed here.")));
    }
    match own_facts(to.clone()).await {
        // Written through, it would change what the link leads to.
        Ok(Own::Link) => files::remove(to.clone()).await?,
        // The same file by another name.
        Ok(Own::Plain(other)) if other.version == facts.version => return Ok(()),
        Ok(Own::Plain(other)) if other.kind != files::Kind::File => {
            return Err(Error::failed(format!("{to} is there, and is no file.")));
        }
        Ok(Own::Plain(_)) | Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    let bytes = files::read(from.clone(), None).await?;
    written(to, bytes, None, false).await?;
    files::remove(from).await
}

fn kind(kind: files::Kind) -> &'static str {
    match kind {
        files::Kind::File => "file",
        files::Kind::Directory => "directory",
        files::Kind::Symlink => "symlink",
        files::Kind::Other => "other",
    }
}

fn metadata(facts: &files::Metadata) -> Value {
    json!({"kind": kind(facts.kind), "size": facts.size, "modified": facts.modified, "version": facts.version})
}
