//! What a process gets from the host besides what it was started with: variables and open files.

use atoll_caps::Effective;
use atoll_table::Error;

/// Variables by which whoever starts a program decides what code runs in it, whatever program that is.
const STEERING: [&str; 3] = ["PATH", "ENV", "BASH_ENV"];
/// Beginnings of such variables: those of the dynamic linkers.
const STEERING_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];
/// What only the grant of every program allows: no other pattern can spell it.
const NO_PROGRAM: &str = "/.";

/// Checks the variables a plugin sets. One that may start certain programs only could turn those into any other by
/// some of them. Programs with such variables of their own have to be granted with that in mind.
pub(super) fn check_env(effective: &Effective, env: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::InvalidArguments(format!("{name:?} can not be set as a variable")));
        }
    }
    let Some((name, _)) = env.iter().find(|(name, _)| steers(name)) else { return Ok(()) };
    match effective.check_process::<&str>(NO_PROGRAM, &[]) {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::Denied {
            capability: "process".to_owned(),
            target: format!("the variable {name}"),
            hint: "leave it out; only a plugin that may start every program may set it".to_owned(),
        }),
    }
}

fn steers(name: &str) -> bool {
    STEERING.contains(&name) || STEERING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Marks all files of this process but the standard three as not to be inherited. All that Rust opens is so
/// anyway; this is for what the host itself inherited and for what libraries open.
pub(super) fn keep_files_to_ourselves() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes three numbers and, with this flag, closes nothing.
        let done = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if done == 0 {
            return;
        }
    }
    for entry in std::fs::read_dir("/dev/fd").into_iter().flatten().flatten() {
        let Some(file) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if file > 2 {
            // SAFETY: the call takes numbers only; a file that was closed meanwhile is an error without effect.
            unsafe {
                libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_caps::Manifest;

    use super::*;

    fn check(program: &str, name: &str) -> Result<(), Error> {
        let manifest = format!(
            "name = \"x\"\nversion = \"1.0.0\"\ndescription = \"x\"\ncontract = \"0.1\"\n\
             [[process]]\nprogram = \"{program}\"\nreason = \"x\"\n"
        );
        let manifest = Manifest::parse(&manifest, "plugin.toml").unwrap();
        let effective = Effective::intersect(&manifest, Some(&manifest.wants));
        check_env(&effective, &[("HOME".to_owned(), "/".to_owned()), (name.to_owned(), "x".to_owned())])
    }

    #[test]
    fn a_plugin_with_one_program_can_not_make_it_another_by_its_variables() {
        for name in ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV"] {
            assert!(matches!(check("git", name), Err(Error::Denied { .. })), "{name}");
            assert!(check("*", name).is_ok(), "{name}");
        }
        for name in ["PATHS", "LANG", "OLD_", "GOPATH"] {
            assert!(check("git", name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_name_is_a_name() {
        for name in ["", "PATH=/x", "X=", "a\0b"] {
            assert!(matches!(check("*", name), Err(Error::InvalidArguments(_))), "{name:?}");
        }
    }
}
