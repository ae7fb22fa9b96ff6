//! What a process gets from the host besides what it was started with: variables and open files.

use atoll_table::Error;

/// Checks that what a plugin sets can be set at all. Whether it may is for its grants to say.
pub(super) fn check_variables(env: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::InvalidArguments(format!("{name:?} can not be set as a variable")));
        }
    }
    Ok(())
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
    use super::*;

    #[test]
    fn a_name_is_a_name() {
        let check = |name: &str, value: &str| check_variables(&[(name.to_owned(), value.to_owned())]);
        for (name, value) in [("", "x"), ("PATH=/x", "x"), ("X=", "x"), ("a\0b", "x"), ("X", "a\0b")] {
            assert!(matches!(check(name, value), Err(Error::InvalidArguments(_))), "{name:?} {value:?}");
        }
        assert!(check("HOME", "/=").is_ok());
    }
}
