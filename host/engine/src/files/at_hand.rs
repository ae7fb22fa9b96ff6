//! Opening what the system has in memory, without a trip to a thread that may block. Such a trip takes longer than all
//! the rest of reading a small file.
//!
//! Nothing here may wait: neither for a disk nor for another machine or process. (What watches all files of a machine, such
//! as a virus scanner, holds up whoever opens one, here too.) And nothing here may refuse: what is out of the ordinary in any
//! way is left to [`Roots::open_file`].

use std::io::IoSliceMut;

use atoll_caps::Access;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _};
use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat2},
    io::{ReadWriteFlags, preadv2},
};

use super::{OpenFile, Roots, access::READ_AHEAD, open_files::Slot, roots::Located};

/// File systems that answer from memory if they can, by the numbers that the kernel gives them: ext4, XFS, Btrfs, F2FS,
/// ZFS and tmpfs. Behind others may be a network or a program.
const LOCAL: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x0102_1994];

/// Beneath the directory, on the same file system, and only through names that are in memory.
const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_XDEV).union(ResolveFlags::CACHED);

/// Whether opening what is in memory of this directory's file system waits for nothing.
pub(super) fn is_local(dir: &Dir) -> bool {
    fstatfs(dir).is_ok_and(|facts| u64::try_from(facts.f_type).is_ok_and(|kind| LOCAL.contains(&kind)))
}

impl Roots {
    /// Opens a regular file for a plugin that holds it in `slot`, and reads its first bytes, as far as that can be done
    /// without waiting. None if it can not.
    pub(crate) fn open_at_hand(&self, path: &str, slot: impl FnOnce() -> Option<Slot>) -> Option<OpenFile> {
        // Such a name may stand for one that is not UTF-8, which has to be looked for.
        if path.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        let absolute = self.absolute(path).ok()?;
        let place = self.locate_by_name(&absolute, Access::Read)?;
        if place.guarded || place.is_file || !place.is_local {
            return None;
        }
        let (file, metadata) = open(&place)?;
        self.check_file(&absolute, &metadata, place.access).ok()?;
        let slot = slot()?;
        let mut opened = OpenFile::new(file.into_std(), absolute, metadata);
        if slot.reads_ahead {
            read_ahead(&mut opened);
        }
        Some(opened.in_slot(slot))
    }
}

/// Opens a regular file that has one name only: with a second one, it has to be looked for among the host's own.
fn open(place: &Located<'_>) -> Option<(File, Metadata)> {
    let open =
        |flags: OFlags| openat2(place.dir, &place.relative, flags | OFlags::CLOEXEC, Mode::empty(), RESOLVE).ok();
    // Opening a pipe would be noticed at its other side, and opening a device may do something.
    let seen = fstat(open(OFlags::PATH)?).ok()?;
    if !FileType::from_raw_mode(seen.st_mode).is_file() || seen.st_nlink != 1 {
        return None;
    }
    let file = open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let file = File::from_std(file.into());
    let metadata = file.metadata().ok()?;
    // Something else may have come by that name meanwhile, or another name for it.
    let is_same = (metadata.dev(), metadata.ino(), metadata.nlink()) == (seen.st_dev, seen.st_ino, 1);
    is_same.then_some((file, metadata))
}

/// Reads what is in memory of the file's start.
fn read_ahead(opened: &mut OpenFile) {
    // One more than it has, to see that it ends.
    let room = usize::try_from(opened.size().saturating_add(1).min(READ_AHEAD)).unwrap_or(0);
    let mut bytes = vec![0; room];
    // No position: the file's own moves on.
    let read = preadv2(opened.file(), &mut [IoSliceMut::new(&mut bytes)], u64::MAX, ReadWriteFlags::NOWAIT);
    // What is not in memory is read when it is asked for.
    let Ok(length) = read else { return };
    bytes.truncate(length);
    let ended = length < room && length as u64 == opened.size();
    opened.set_ahead(bytes, ended);
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
    };

    use atoll_caps::{Effective, Manifest};

    use super::*;
    use crate::{files::OpenFiles, state::Places};

    /// The roots of a plugin that may read `workspace`, which holds something of the host's own if `atoll_home` is in it.
    fn roots(workspace: &Path, atoll_home: PathBuf) -> Roots {
        let manifest = "name = \"x\"\nversion = \"1.0.0\"\ncontract = \"0.1\"\n\
                        [[files]]\nroot = \"$workspace\"\nreason = \"x\"\n";
        let manifest = Manifest::parse(manifest, "plugin.toml").unwrap();
        let places = Places { atoll_home, ..Places::of_workspace(workspace) };
        Roots::open("x", &Effective::intersect(&manifest, Some(&manifest.wants)), &places)
    }

    fn open(roots: &Roots, path: &str) -> Option<OpenFile> {
        let open_files = OpenFiles::of_all();
        roots.open_at_hand(path, || open_files.take().ok())
    }

    #[test]
    fn what_is_in_memory_is_opened_and_read_ahead() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in/a.txt"), "alpha").unwrap();
        fs::write(folder.path().join("long.txt"), vec![b'x'; 100_000]).unwrap();
        let roots = roots(folder.path(), PathBuf::new());
        let local = is_local(&Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap());
        let opened = open(&roots, "in/a.txt");
        assert_eq!(opened.is_some(), local);
        let Some(mut opened) = opened else { return };
        assert_eq!(opened.read(100).unwrap(), b"alpha");
        assert_eq!(opened.read(100).unwrap(), b"");
        let Some(mut long) = open(&roots, "long.txt") else { return };
        let mut length = 0;
        loop {
            let piece = long.read(1 << 20).unwrap();
            if piece.is_empty() {
                break;
            }
            length += piece.len();
        }
        assert_eq!(length, 100_000);
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_to_the_slow_way() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(inside.join("twice"), "t").unwrap();
        fs::hard_link(inside.join("twice"), inside.join("again")).unwrap();
        symlink(outside.join("secret"), inside.join("link")).unwrap();
        symlink("../out", inside.join("way")).unwrap();
        symlink(inside.join("plain"), inside.join("absolute")).unwrap();
        fs::write(inside.join("plain"), "p").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, inside.join("pipe"), Mode::RWXU).unwrap();
        let roots = roots(&inside, PathBuf::new());
        let out = outside.join("secret");
        let names = ["link", "way/secret", "absolute", "twice", "again", "pipe", ".", "missing", "../out/secret", ""];
        for name in names.into_iter().chain([out.to_str().unwrap(), "/proc/self/environ", "/dev/null", "a\u{fffd}b"]) {
            assert!(open(&roots, name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_workspace_that_holds_the_hosts_own_is_left_to_the_slow_way() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        fs::write(own.join("b"), "b").unwrap();
        let roots = roots(folder.path(), own);
        for name in ["a", "own/b"] {
            assert!(open(&roots, name).is_none(), "{name}");
        }
    }
}
