//! The cache of compiled plugins: used where it is good, rebuilt where it is not, and never in the way.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::PathBuf,
};

use crate::common::{Sandbox, components::tool};

fn list(sandbox: &Sandbox) -> crate::common::Finished {
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.stdout.contains("misbehave"), "{run:#?}");
    run
}

/// Has a plugin's component loaded, which a list does not.
fn call(sandbox: &Sandbox) -> crate::common::Finished {
    let arguments = "{\"how\":\"result\",\"count\":3}";
    let run = sandbox.atoll().args(["tool", "call", "misbehave", arguments]).run().ok();
    assert_eq!(run.stdout.trim_end(), "xxx");
    run
}

/// The compiled plugins.
fn entries(sandbox: &Sandbox) -> Vec<PathBuf> {
    sandbox.cache_entries("image")
}

fn only_entry(sandbox: &Sandbox) -> PathBuf {
    let entries = entries(sandbox);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

/// Which file it is and when it was written: changes with every rebuild.
fn identity(path: &PathBuf) -> (u64, i64, i64) {
    let facts = fs::metadata(path).unwrap();
    (facts.ino(), facts.mtime(), facts.mtime_nsec())
}

#[test]
fn a_second_start_does_not_compile_again() {
    let sandbox = Sandbox::with_misbehave();
    list(&sandbox);
    let entry = only_entry(&sandbox);
    let first = identity(&entry);
    let run = sandbox.atoll().env("ATOLL_LOG", "debug").args(["tool", "list"]).run().ok();
    assert!(run.stdout.contains("misbehave"));
    assert_eq!(identity(&only_entry(&sandbox)), first);
    assert!(!run.stderr.contains("compiling again"), "{run:#?}");
    // Nobody else may put code there.
    assert_eq!(fs::metadata(sandbox.aot_cache()).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn entries_that_are_damaged_cut_off_or_of_something_else_are_rebuilt_containerd_shim_421() {
    let sandbox = Sandbox::with_misbehave();
    list(&sandbox);
    let entry = only_entry(&sandbox);
    let whole = fs::read(&entry).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let elf = fs::read("/proc/self/exe").unwrap();
    for (what, bytes) in [
        ("damaged", flipped),
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("cut off in its head", whole[..20].to_vec()),
        ("empty", Vec::new()),
        ("text", b"not an image".to_vec()),
        ("a program", elf[..100_000].to_vec()),
    ] {
        fs::write(&entry, bytes).unwrap();
        call(&sandbox).silent();
        assert_eq!(fs::read(&entry).unwrap().len(), whole.len(), "{what}");
    }
}

#[test]
fn the_image_of_another_component_under_this_ones_name_is_rebuilt() {
    let sandbox = Sandbox::with_misbehave();
    list(&sandbox);
    let entry = only_entry(&sandbox);
    let foreign = {
        let other = Sandbox::new();
        other.plugin("other", &tool("other", "unreachable"), None);
        other.atoll().args(["tool", "list"]).run().ok();
        fs::read(only_entry(&other)).unwrap()
    };
    // A whole image of another component under this one's name: it is good code, but not this plugin's.
    fs::write(&entry, &foreign).unwrap();
    call(&sandbox).silent();
    assert_ne!(fs::read(&entry).unwrap(), foreign);
}

#[test]
fn an_entry_that_is_a_directory_or_a_link_to_nowhere_is_no_obstacle() {
    let sandbox = Sandbox::with_misbehave();
    list(&sandbox);
    let entry = only_entry(&sandbox);
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    call(&sandbox).silent();
    fs::remove_dir_all(&entry).unwrap();
    std::os::unix::fs::symlink("nowhere", &entry).unwrap();
    call(&sandbox).silent();
}

#[test]
fn a_changed_component_is_compiled_anew() {
    let sandbox = Sandbox::new();
    sandbox.plugin("a", &tool("first-name", "unreachable"), None);
    assert!(sandbox.atoll().args(["tool", "list"]).run().ok().stdout.contains("first-name"));
    sandbox.plugin("a", &tool("second-name", "unreachable"), None);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.stdout.contains("second-name") && !run.stdout.contains("first-name"), "{run:#?}");
}

#[test]
fn processes_that_start_at_once_do_not_disturb_each_other() {
    let sandbox = Sandbox::with_misbehave();
    let running: Vec<_> = (0..4).map(|_| sandbox.atoll().args(["tool", "list"]).start()).collect();
    for run in running {
        let run = run.wait().ok().silent();
        assert!(run.stdout.contains("misbehave"), "{run:#?}");
    }
    only_entry(&sandbox);
    list(&sandbox).silent();
}

#[test]
fn a_cache_that_can_not_be_written_is_no_obstacle() {
    // A file where the folder should be stops even the superuser.
    let sandbox = Sandbox::with_misbehave();
    fs::create_dir_all(sandbox.root().join("cache")).unwrap();
    fs::write(sandbox.root().join("cache/atoll"), "in the way").unwrap();
    list(&sandbox).silent();
    let sandbox = Sandbox::with_misbehave();
    let run = sandbox.atoll().env("XDG_CACHE_HOME", "/proc/nowhere").args(["tool", "list"]).run().ok().silent();
    assert!(run.stdout.contains("misbehave"));
}

#[test]
fn a_cache_that_others_can_write_to_is_not_trusted() {
    let sandbox = Sandbox::with_misbehave();
    list(&sandbox);
    let entry = only_entry(&sandbox);
    fs::set_permissions(sandbox.aot_cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let before = identity(&entry);
    call(&sandbox);
    assert_eq!(identity(&only_entry(&sandbox)), before, "nothing is put there either");
}

#[test]
fn many_plugins_are_all_loaded_wassette_68() {
    let sandbox = Sandbox::new();
    for number in 0..20 {
        let name = format!("tool-{number}");
        sandbox.plugin(&name, &tool(&name, "(i32.const 64)"), None);
    }
    for _ in 0..2 {
        let run = sandbox.atoll().args(["tool", "list"]).run().ok().silent();
        for number in 0..20 {
            assert!(run.stdout.contains(&format!("tool-{number} ")), "{run:#?}");
        }
    }
    assert_eq!(entries(&sandbox).len(), 20);
    assert_eq!(sandbox.atoll().args(["tool", "call", "tool-7"]).run().ok().stdout, "");
}
