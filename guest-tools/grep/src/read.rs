//! Doing a share: reading its files and searching them.

use std::io::{self, Read};

use atoll_plugin::{Error, block_on, files};
use atoll_tool_text::is_not_found;

use crate::query::{FileLines, Found, Share};
use crate::search::{Search, is_binary};

/// Files that are read at once. More would not stay in the processor's cache until they are searched.
const AT_ONCE: usize = 16;
/// A file larger than this is read piece by piece.
const LARGE: u64 = 256 << 10;
/// Bytes of the first piece: as many as the host reads ahead, and as the searcher looks at to tell a binary file.
const FIRST_PIECE: u32 = 64 << 10;
/// Bytes of each piece after it.
const PIECE: u32 = 256 << 10;

/// Searches a share's files until there is enough.
pub(crate) async fn search(share: &Share) -> Result<Found, Error> {
    let mut search = Search::new(share.query.matcher()?, &share.query, share.enough);
    let mut found = Found::default();
    for run in share.files.chunks(AT_ONCE) {
        let paths = run.iter().map(|path| join(&share.root, path)).collect();
        let contents = files::read_many(paths, LARGE + 1).await;
        for (path, content) in run.iter().zip(contents) {
            if search.is_done() {
                break;
            }
            match content {
                Ok(bytes) if bytes.len() as u64 > LARGE => {
                    if !is_binary(&bytes[..FIRST_PIECE as usize]) {
                        large(share, path, &mut search, &mut found).await;
                    }
                }
                Ok(bytes) => note(search.bytes(path.clone(), &bytes), &mut found),
                Err(error) => found.failed += usize::from(!is_not_found(&error)),
            }
        }
        if search.is_done() {
            break;
        }
    }
    found.full = search.is_full();
    Ok(found)
}

/// A file that is read piece by piece.
async fn large(share: &Share, path: &str, search: &mut Search, found: &mut Found) {
    match files::open(join(&share.root, path)).await {
        Ok(reader) => note(search.reader(path.to_owned(), Pieces::new(&reader)), found),
        Err(error) => found.failed += usize::from(!is_not_found(&error)),
    }
}

fn note(result: io::Result<Option<FileLines>>, found: &mut Found) {
    match result {
        Ok(lines) => found.files.extend(lines),
        Err(_) => found.failed += 1,
    }
}

fn join(root: &str, path: &str) -> String {
    format!("{}/{path}", root.trim_end_matches('/'))
}

/// An open file of the host as what the searcher reads from.
pub(crate) struct Pieces<'a> {
    reader: &'a files::Reader,
    piece: Vec<u8>,
    at: usize,
    size: u32,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(reader: &'a files::Reader) -> Self {
        Self { reader, piece: Vec::new(), at: 0, size: FIRST_PIECE }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let piece = block_on(self.reader.read(self.size));
            self.piece = piece.map_err(|error| io::Error::other(error.message()))?;
            self.at = 0;
            self.size = PIECE;
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
