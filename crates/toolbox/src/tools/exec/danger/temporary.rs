//! Temporary files: `"$TMPDIR"/x`.

use std::path::{Component, Path};

use super::{Judge, Judged, Setters, normal};
use crate::tools::exec::shell::{Splitting, Word};

pub(super) const TEMPORARY: &str = "TMPDIR";

/// What `$TMPDIR` is to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools::exec) enum Temporary {
    /// A directory for the commands of this workspace alone, as long as nothing lets the command out:
    /// the kernel keeps it from all others, also where there is none.
    Own,
    /// Whatever it is set to, or nothing.
    Anywhere,
}

impl Judged<'_> {
    /// Whether it makes a difference what `$TMPDIR` is.
    pub(super) fn relies_on_temporary(&self) -> bool {
        let names = |text: &str| text.contains(TEMPORARY);
        self.temporary == Temporary::Own && (names(self.command) || self.stdin.is_some_and(names))
    }
}

impl Judge<'_> {
    /// Whether a path is certainly beneath a directory for temporary files that is the command's own.
    /// Scripts within others may run where it is not set.
    pub(super) fn is_own_temporary(&self, word: &Word) -> bool {
        let rest = ["$TMPDIR/", "${TMPDIR}/"]
            .into_iter()
            .find_map(|it| word.text.strip_prefix(it));
        let is_plain = |rest: &&str| !rest.contains('$') && !rest.split('/').any(|it| it == "..");
        let Some(rest) = rest.filter(is_plain) else {
            return false;
        };
        self.judged.temporary == Temporary::Own
            && self.depth == 0
            && self.setters == Setters::Known
            && !self.variables.contains_key(TEMPORARY)
            && word.has_variable
            && !word.has_substitution
            && word.splitting == Splitting::Never
            && self.is_apart(rest)
    }

    /// Whether a path of the file system's is neither in the workspace nor around it: that is what is left
    /// where nothing is before it.
    fn is_apart(&self, rest: &str) -> bool {
        let top = |path: &Path| {
            let path = normal(path);
            let mut names = path.components().filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            });
            names.next()
        };
        let named = top(Path::new(rest));
        let is_literal = named
            .as_ref()
            .is_some_and(|it| !it.contains(['*', '?', '[', '{']));
        is_literal && named != top(self.workspace)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reasons;
    use super::super::tests::judged;
    use super::*;

    const ASKED: &[&str] = &[
        "rm -rf \"$TMPDIR\"",
        "rm -rf \"$TMPDIR/\"",
        "rm -rf \"$TMPDIR\"/*",
        "rm -rf \"$TMPDIR\"/./*",
        "rm -rf \"$TMPDIR/..\"",
        "rm -rf \"$TMPDIR/x/../..\"",
        "rm -rf \"$TMPDIR/$x\"",
        "rm -rf \"${TMPDIR%x}/x\"",
        "rm -rf \"${TMPDIR:-/}/x\"",
        "rm -rf $TMPDIR/x",
        "rm -rf \"$TMPDIR\"/$(cat f)",
        "rm -rf \"$TMPDIR/home\"",
        "rm -rf \"$TMPDIR//home/u\"",
        "unset TMPDIR; rm -rf \"$TMPDIR/x\"",
        "TMPDIR=..; rm -rf \"$TMPDIR/x\"",
        "read TMPDIR; rm -rf \"$TMPDIR/x\"",
        ". ./env; rm -rf \"$TMPDIR/x\"",
        "env -i sh -c 'rm -rf \"$TMPDIR/x\"'",
        "ssh host 'rm -rf \"$TMPDIR/x\"'",
        // Whoever approves it lets it out.
        "rm -rf \"$TMPDIR/x\"; rm ../y",
        "rm -rf \"$TMPDIR/x\"; git push -f",
        "sudo ls; rm -rf \"$TMPDIR/x\"",
    ];

    const NOT_ASKED: &[&str] = &[
        "rm -rf \"$TMPDIR/x\"",
        "rm -rf \"$TMPDIR\"/x",
        "rm -rf \"${TMPDIR}/x/y\" build",
        "rm -rf \"$TMPDIR\"/x/*",
        "find \"$TMPDIR/x\" -delete",
        "chmod -R u+w \"$TMPDIR/x\"",
    ];

    fn removals(command: &str, temporary: Temporary) -> usize {
        let judged = Judged {
            temporary,
            ..judged(command, None)
        };
        let found = reasons(&judged);
        let names = found.iter().filter(|it| it.text.contains("TMPDIR"));
        names.count()
    }

    #[test]
    fn what_is_beneath_a_directory_of_its_own_is_not_asked_about() {
        for command in NOT_ASKED {
            assert_eq!(removals(command, Temporary::Own), 0, "{command}");
            assert_ne!(removals(command, Temporary::Anywhere), 0, "{command}");
        }
        for command in ASKED {
            assert_ne!(removals(command, Temporary::Own), 0, "{command}");
        }
    }
}
