//! Which packages have to be fetched for those that are wanted.

use std::collections::{BTreeMap, BTreeSet};

/// What each package needs: one entry for each dependency, and in it the packages that satisfy it, preferred first.
pub(super) type Dependencies = BTreeMap<String, Vec<Vec<String>>>;

/// Reads the output of `apt-cache depends --recurse`.
pub(super) fn parse_depends(listing: &str) -> Dependencies {
    let mut all = Dependencies::new();
    let mut current = String::new();
    // Whether the line before was one of several alternatives (`|Depends`), so that this one belongs to it.
    let mut open_alternative = false;
    for line in listing.lines() {
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '|']) {
            line.trim().clone_into(&mut current);
            all.entry(current.clone()).or_default();
            open_alternative = false;
            continue;
        }
        let groups = all.entry(current.clone()).or_default();
        let text = line.trim_start();
        if let Some((kind, name)) = text.split_once(": ") {
            let alternative = kind.starts_with('|');
            let hard = matches!(kind.trim_start_matches('|'), "Depends" | "PreDepends");
            if hard && open_alternative {
                if let Some(group) = groups.last_mut() {
                    group.push(name.trim().to_owned());
                }
            } else if hard {
                groups.push(vec![name.trim().to_owned()]);
            }
            open_alternative = alternative;
        } else if let Some(group) = groups.last_mut() {
            // An indented bare name: provides the virtual package of the line above.
            group.push(text.trim().to_owned());
        }
    }
    all
}

/// The packages to fetch: the roots and what they need, without what the machine provides.
pub(super) fn closure(all: &Dependencies, roots: &[&str], provided: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
    while let Some(package) = open.pop() {
        if !found.insert(package.clone()) {
            continue;
        }
        for group in all.get(&package).into_iter().flatten() {
            let is_provided = group.iter().any(|name| is_provided_by(provided, bare(name)));
            // A name in angle brackets is virtual; the real ones follow it.
            if let Some(choice) = group.iter().find(|name| !name.starts_with('<'))
                && !is_provided
            {
                open.push(choice.clone());
            }
        }
    }
    found
}

/// Whether the machine provides a package: one of these names, or of those that begin as one which ends in `-`.
fn is_provided_by(provided: &[&str], name: &str) -> bool {
    provided.iter().any(|known| if known.ends_with('-') { name.starts_with(known) } else { name == *known })
}

fn bare(name: &str) -> &str {
    name.trim_start_matches('<').trim_end_matches('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
rustc
  Depends: libc6
  Depends: libstd-rust-dev
  Depends: gcc
  Depends: <libc-dev>
    libc6-dev
  Depends: binutils
libstd-rust-dev-wasm32
libc6
  PreDepends: libgcc-s1
  Depends: <awk>
    mawk
    gawk
libstd-rust-dev
  Depends: libstd-rust-1.99
gcc
  Depends: gcc-99
libstd-rust-1.99
 |Depends: libllvm99
  Depends: libllvm98
  Recommends: llvm-docs
libllvm99
  Depends: libicu99
libllvm98
libgcc-s1
  Depends: libc6
libicu99
";

    #[test]
    fn depends_listing_gives_alternatives_and_providers() {
        let all = parse_depends(LISTING);
        assert_eq!(all["libstd-rust-1.99"], [vec!["libllvm99", "libllvm98"]]);
        assert_eq!(all["rustc"][3], ["<libc-dev>", "libc6-dev"]);
        assert_eq!(all["libc6"][1], ["<awk>", "mawk", "gawk"]);
        assert!(all["libstd-rust-dev-wasm32"].is_empty());
    }

    #[test]
    fn closure_follows_versions_and_stops_at_what_the_machine_has() {
        let found = closure(
            &parse_depends(LISTING),
            &["rustc", "libstd-rust-dev-wasm32"],
            &["gcc", "cc", "binutils", "libc6-dev", "libc-dev"],
        );
        let expected = [
            "libc6",
            "libgcc-s1",
            "libicu99",
            "libllvm99",
            "libstd-rust-1.99",
            "libstd-rust-dev",
            "libstd-rust-dev-wasm32",
            "mawk",
            "rustc",
        ];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        let without = closure(&parse_depends(LISTING), &["libstd-rust-dev"], &["libstd-rust-"]);
        assert_eq!(without.iter().map(String::as_str).collect::<Vec<_>>(), ["libstd-rust-dev"]);
    }
}
