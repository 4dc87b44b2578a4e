//! Files that the operator has lines written to.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::config::expand;
use crate::fail::{Failure, Outcome};

/// Opens a log to add to it, and makes it where it is missing.
pub(crate) fn open(path: &str) -> Outcome<File> {
    let path = expand(path);
    let opened = options(&path).create(true).mode(0o600).open(&path);
    opened.map_err(|error| wrong(&path, &error))
}

/// Whether it could be opened; nothing is made.
pub(crate) fn check(path: &str) -> Outcome<()> {
    let path = expand(path);
    let opened = match options(&path).open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            folder.map_or(Ok(()), |it| std::fs::metadata(it).map(|_| ()))
        }
        opened => opened.map(|_| ()),
    };
    opened.map_err(|error| wrong(&path, &error))
}

/// Not through a link: where the log lies among the files that tools work on, a tool could have put
/// one there, and would choose what is written to somebody else's file. The system's own names for
/// standard output and the like are links.
fn options(path: &Path) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true);
    if !path.starts_with("/dev") && !path.starts_with("/proc") {
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    }
    options
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::usage(format!(
        "the log {} can not be opened: {error}",
        path.display()
    ));
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|seen| seen.is_symlink());
    if is_link {
        failure.hint("It is a symbolic link; name the file itself.")
    } else {
        failure
    }
}
