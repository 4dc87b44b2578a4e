//! What a command gets to see of our environment.

use std::ffi::{OsStr, OsString};

/// Variables that commands need to work as in a terminal. A list of what may pass, because nobody
/// can list all the names under which tokens are kept.
const PASSED: &[&str] = &[
    "PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR", "SHELL",
];
/// Locale variables have a common beginning.
const PASSED_PREFIX: &str = "LC_";
/// For a host that has no `PATH`, so that a command does not depend on the shell's own idea of it.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// The variables that may pass.
pub(super) fn scrub(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<(OsString, OsString)> = variables
        .into_iter()
        .filter(|(name, _)| passes(name))
        .collect();
    if !kept.iter().any(|(name, _)| name == "PATH") {
        kept.push(("PATH".into(), PATH_DEFAULT.into()));
    }
    kept
}

fn passes(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| PASSED.contains(&name) || name.starts_with(PASSED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_variables_pass() {
        let given = [
            "HOME",
            "LC_ALL",
            "OPENAI_API_KEY",
            "LD_PRELOAD",
            "PATHS",
            "HOLDFAST_TOKEN",
            "LC",
        ];
        let scrubbed = scrub(given.map(|name| (name.into(), "x".into())));
        let names: Vec<&OsStr> = scrubbed.iter().map(|(name, _)| name.as_os_str()).collect();
        assert_eq!(names, ["HOME", "LC_ALL", "PATH"]);
    }
}
