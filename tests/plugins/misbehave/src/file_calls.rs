//! Every function of `files`, called as it is: what a plugin can reach that does not keep to what the tools do.

use atoll_plugin::{Error, ToolOutput, files};
use serde_json::{Value, json};

const WRITE: files::WriteOptions = files::WriteOptions { create_parents: true, expected: None, exclusive: false };

/// Calls the function that `how` names; what came back as JSON. `None` if there is no such function.
pub(crate) async fn run(how: &str, target: String, count: u32) -> Result<Option<ToolOutput>, Error> {
    let answer = match how {
        "read-part" => text(&files::read(target, Some(files::Range { offset: 0, length: 100 })).await?),
        "read-many" => {
            let read = files::read_many(vec![target.clone(), target], 1_000).await;
            read.into_iter()
                .map(|one| one.map_or_else(|error| json!({"error": error.code()}), |data| text(&data)))
                .collect()
        }
        "read-so-many" => {
            let read = files::read_many(vec![target; count as usize], 10).await;
            let first =
                read.first().map(|one| one.as_ref().map_or_else(ToString::to_string, |data| data.len().to_string()));
            json!({"answers": read.len(), "first": first})
        }
        "open" => {
            let reader = files::open(target).await?;
            json!({"size": reader.metadata().size, "data": text(&reader.read(1_000).await?)})
        }
        "list" => {
            let listing = files::list_dir(target, 10_000).await?;
            let entry = |one: files::Entry| json!({"name": one.name, "kind": kind(one.kind), "size": one.size});
            listing.entries.into_iter().map(entry).collect()
        }
        "stat" => {
            let facts = files::stat(target).await?;
            json!({"kind": kind(facts.kind), "size": facts.size})
        }
        "walk" | "walk-links" => {
            let walker = files::walk(options(target, how == "walk-links")).await?;
            let mut found = Vec::new();
            loop {
                let step = walker.next(1_000).await?;
                if step.is_empty() {
                    break;
                }
                found.extend(step.into_iter().map(|one| one.path));
            }
            found.sort();
            json!(found)
        }
        "walk-read" | "walk-links-read" => {
            let walker = files::walk(options(target, how == "walk-links-read")).await?;
            let mut found = serde_json::Map::new();
            loop {
                let step = walker.next_contents(1_000, 1_000).await?;
                if step.is_empty() {
                    break;
                }
                found.extend(step.into_iter().map(|one| (one.path, text(&one.data))));
            }
            Value::Object(found)
        }
        "write-file" => json!({"size": files::write(target, b"overwritten".to_vec(), WRITE).await?.size}),
        "write-large" => {
            let data = vec![b'n'; count as usize];
            json!({"size": files::write(target, data, WRITE).await?.size})
        }
        "remove" => {
            files::remove(target).await?;
            json!("removed")
        }
        "lock" => json!({"real": files::lock(target).await?.real_path()}),
        // As often as it is told, whatever comes back: a race is lost by being tried once too often.
        "hammer" => {
            let mut seen = String::new();
            for _ in 0..count {
                if let Ok(data) = files::read(target.clone(), None).await {
                    note(&mut seen, &data);
                }
                let _ = files::write(format!("{target}.new"), b"overwritten".to_vec(), WRITE).await;
                let _ = files::write(target.clone(), b"overwritten".to_vec(), WRITE).await;
                let _ = files::remove(format!("{target}.new")).await;
                if let Ok(walker) = files::walk(options(".".to_owned(), true)).await {
                    while let Ok(step) = walker.next_contents(100, 1_000).await {
                        if step.is_empty() {
                            break;
                        }
                        step.iter().for_each(|one| note(&mut seen, &one.data));
                    }
                }
                if let Ok(listing) = files::list_dir(".".to_owned(), 100).await {
                    listing.entries.iter().for_each(|one| note(&mut seen, format!("{} ", one.size).as_bytes()));
                }
            }
            json!(seen)
        }
        _ => return Ok(None),
    };
    Ok(Some(ToolOutput::text(answer.to_string())))
}

/// Keeps what was not seen before.
fn note(seen: &mut String, data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    if !seen.contains(&*data) {
        seen.push_str(&data);
    }
}

pub(crate) fn options(root: String, follow_links: bool) -> files::WalkOptions {
    files::WalkOptions {
        root,
        respect_ignore: true,
        hidden: true,
        follow_links,
        globs: Vec::new(),
        max_depth: None,
        directories: true,
        sizes: true,
    }
}

fn text(data: &[u8]) -> Value {
    json!(String::from_utf8_lossy(data))
}

fn kind(kind: files::Kind) -> &'static str {
    match kind {
        files::Kind::File => "file",
        files::Kind::Directory => "directory",
        files::Kind::Symlink => "symlink",
        files::Kind::Other => "other",
    }
}
