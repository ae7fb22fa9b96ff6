//! The contract is frozen: a change of a WIT file must be meant, so it shows up as a change of `wit/FROZEN` too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

/// The list, relative to the `wit` directory. Lines of `<sha256>  <file>`, the format of `sha256sum -c`.
pub(crate) const LIST: &str = "FROZEN";

/// What to do about any difference.
const WAY_OUT: &str = "undo the change, or follow wit/VERSIONING.md and run `cargo xtask wit-freeze`";

/// Compares the WIT files of a directory with its list; one line for each difference.
///
/// # Errors
/// The directory or the list cannot be read, or a line of the list is not understood.
pub(crate) fn check(wit: &Path) -> Result<Vec<String>> {
    let list = wit.join(LIST);
    if !list.is_file() {
        return Ok(vec![format!("wit/{LIST} is missing: run `cargo xtask wit-freeze`")]);
    }
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let frozen = parse(&text)?;
    let present = digests(wit)?;
    let mut differences = Vec::new();
    for (file, digest) in &frozen {
        match present.get(file) {
            None => differences.push(format!("wit/{file} is frozen but missing: {WAY_OUT}")),
            Some(now) if now != digest => {
                differences.push(format!("wit/{file} differs from its frozen content: {WAY_OUT}"));
            }
            Some(_) => {}
        }
    }
    for file in present.keys().filter(|file| !frozen.contains_key(*file)) {
        differences.push(format!("wit/{file} is not frozen: {WAY_OUT}"));
    }
    Ok(differences)
}

/// Writes the list anew and returns the number of files in it.
///
/// # Errors
/// The directory cannot be read or written.
pub(crate) fn rewrite(wit: &Path) -> Result<usize> {
    let present = digests(wit)?;
    let mut text = String::new();
    for (file, digest) in &present {
        writeln!(text, "{digest}  {file}")?;
    }
    fs::write(wit.join(LIST), text)?;
    Ok(present.len())
}

fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let mut frozen = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once("  ") {
            Some((digest, file)) if digest.len() == 64 => {
                frozen.insert(file.trim().to_owned(), digest.to_ascii_lowercase());
            }
            _ => bail!("wit/{LIST} line {}: not `<sha256>  <file>`: run `cargo xtask wit-freeze`", index + 1),
        }
    }
    Ok(frozen)
}

/// The digests of all `.wit` files below a directory, by path with `/`.
fn digests(wit: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut open = vec![wit.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "wit") {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let name = path.strip_prefix(wit)?.to_string_lossy().replace('\\', "/");
                found.insert(name, hex(&Sha256::digest(&bytes)));
            }
        }
    }
    Ok(found)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("tools.wit"), "package a:b;\n").unwrap();
        fs::create_dir(directory.path().join("deps")).unwrap();
        fs::write(directory.path().join("deps/io.wit"), "package wasi:io;\n").unwrap();
        fs::write(directory.path().join("VERSIONING.md"), "not part of it").unwrap();
        directory
    }

    #[test]
    fn frozen_contract_passes_and_rewriting_changes_nothing() {
        let wit = contract();
        assert_eq!(rewrite(wit.path()).unwrap(), 2);
        let first = fs::read_to_string(wit.path().join(LIST)).unwrap();
        assert!(check(wit.path()).unwrap().is_empty());
        rewrite(wit.path()).unwrap();
        assert_eq!(first, fs::read_to_string(wit.path().join(LIST)).unwrap());
        assert!(first.contains("  deps/io.wit\n"));
    }

    #[test]
    fn digest_is_that_of_sha256sum() {
        assert_eq!(hex(&Sha256::digest(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let wit = contract();
        rewrite(wit.path()).unwrap();
        fs::write(wit.path().join("tools.wit"), "package a:c;\n").unwrap();
        fs::remove_file(wit.path().join("deps/io.wit")).unwrap();
        fs::write(wit.path().join("new.wit"), "package a:d;\n").unwrap();
        let differences = check(wit.path()).unwrap();
        assert_eq!(differences.len(), 3, "{differences:?}");
        assert!(differences[0].starts_with("wit/deps/io.wit is frozen but missing"));
        assert!(differences[1].starts_with("wit/tools.wit differs"));
        assert!(differences[2].starts_with("wit/new.wit is not frozen"));
        assert!(differences.iter().all(|line| line.contains("cargo xtask wit-freeze")));
    }

    #[test]
    fn missing_or_broken_list_is_told() {
        let wit = contract();
        assert!(check(wit.path()).unwrap()[0].contains("wit/FROZEN is missing"));
        fs::write(wit.path().join(LIST), "# comment\nnonsense\n").unwrap();
        assert!(check(wit.path()).unwrap_err().to_string().contains("line 2"));
    }
}
