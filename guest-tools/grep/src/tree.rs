//! Searching what the caller named: a directory with all below it, on all cores, or a file.

use atoll_plugin::{Error, files, workers};
use atoll_tool_text::{in_order, name_path};
use futures::StreamExt as _;
use serde::{Serialize, de::DeserializeOwned};

use crate::query::{Found, Query, Share};
use crate::read::{self, Pieces};
use crate::search::Search;
use crate::shares::divide;
use crate::take::Taken;

/// Files that are not worth sharing out.
const FEW: usize = 96;
/// Workers that are used at most. What each has found is kept until its turn comes, so this bounds memory.
const MOST_WORKERS: usize = 16;

/// Searches the files below a directory.
pub(crate) async fn search(query: &Query, root: String, glob: Option<String>, taken: &mut Taken) -> Result<(), Error> {
    let files = list(&root, glob).await.map_err(|error| name_path(&root, error))?;
    let share = |files| Share { query: query.clone(), root: root.clone(), files, enough: taken.enough() };
    let workers = usize::try_from(workers::count()).unwrap_or(1).min(MOST_WORKERS);
    if workers < 2 || files.len() <= FEW {
        let found = read::search(&share(files)).await?;
        taken.add(found);
        return Ok(());
    }
    let shares: Vec<Share> = divide(files, workers).into_iter().map(share).collect();
    // One more than there are workers: whoever is done first finds the next one waiting.
    let mut results = futures::stream::iter(shares).map(hand_out).buffered(workers + 1);
    while let Some(found) = results.next().await {
        taken.add(found?);
        if taken.is_done() {
            break;
        }
    }
    Ok(())
}

/// Searches one file, whatever is in it and whoever ignores it.
pub(crate) async fn search_file(query: &Query, path: &str, taken: &mut Taken) -> Result<(), Error> {
    let reader = files::open(path.to_owned()).await.map_err(|error| name_path(path, error))?;
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let mut search = Search::new(query.matcher()?, query, taken.enough());
    let lines = search.named(name.to_owned(), Pieces::new(&reader));
    let lines = lines.map_err(|error| Error::failed(format!("{path} can not be searched: {error}")))?;
    taken.add(Found { files: lines.into_iter().collect(), failed: 0, full: search.is_full() });
    Ok(())
}

/// The files below a directory, in order.
async fn list(root: &str, glob: Option<String>) -> Result<Vec<String>, Error> {
    let walker = files::walk(files::WalkOptions {
        root: root.to_owned(),
        respect_ignore: true,
        hidden: true,
        follow_links: false,
        globs: glob.into_iter().filter(|glob| !glob.is_empty()).collect(),
        max_depth: None,
        directories: false,
        sizes: false,
    })
    .await?;
    let mut files = Vec::new();
    loop {
        let step = walker.next(4_096).await?;
        if step.is_empty() {
            break;
        }
        let regular = step.into_iter().filter(|found| found.kind == files::Kind::File);
        files.extend(regular.map(|found| found.path));
    }
    Ok(in_order(files))
}

async fn hand_out(share: Share) -> Result<Found, Error> {
    decode(&workers::run(encode(&share)?).await?)
}

/// A message between a call and its workers.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(message).map_err(|error| Error::failed(format!("a share can not be written: {error}")))
}

/// Reads such a message.
pub(crate) fn decode<T: DeserializeOwned>(message: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(message).map_err(|error| Error::failed(format!("a share can not be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let query = Query { pattern: "\u{e9}\"".to_owned(), ignore_case: true, literal: false, context: 2 };
        let files = vec!["a/b c".to_owned()];
        let share = Share { query: query.clone(), root: "/".to_owned(), files: files.clone(), enough: 5 };
        let back: Share = decode(&encode(&share).expect("written")).expect("read");
        assert_eq!((back.query, back.files, back.enough), (query, files, 5));
        assert_eq!(decode::<Share>(b"{").expect_err("broken").code(), "failed");
    }
}
