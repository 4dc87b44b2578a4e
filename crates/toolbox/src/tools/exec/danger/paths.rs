//! Where a path leads, as far as its name tells.

use std::path::{Component, Path, PathBuf};

use super::{Judge, PLACES_MAX};
use crate::tools::exec::shell::Word;

impl Judge<'_> {
    pub(super) fn change_dir(&mut self, args: &[Word]) {
        self.widen();
        let target = args
            .iter()
            .find(|word| !word.text.starts_with('-') || word.text == "-");
        let known = target.filter(|word| {
            !word.has_variable && !word.has_substitution && !word.is_home && word.text != "-"
        });
        let is_sought = self.variables.contains_key("CDPATH");
        let Some(target) = known.filter(|_| self.places.len() < PLACES_MAX && !is_sought) else {
            if !self.places.contains(&None) {
                self.places.push(None);
            }
            return;
        };
        let next: Vec<Option<PathBuf>> = self
            .places
            .iter()
            .map(|place| {
                let path = Path::new(&target.text);
                if path.is_absolute() {
                    Some(normal(path))
                } else {
                    place.as_ref().map(|place| normal(&place.join(path)))
                }
            })
            .collect();
        for place in next {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        }
    }

    /// Whether a path leads, or may lead, out of the workspace. Temporary files do not count.
    pub(super) fn leaves(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        if word.is_home
            || text.starts_with("$HOME")
            || text.starts_with("${HOME")
            || (word.has_variable && text.starts_with("$/"))
        {
            return true;
        }
        // Whatever it holds comes first.
        if text.starts_with('$') {
            return word.has_variable && text.contains("/..");
        }
        if word.has_pattern() && may_go_up(text) {
            return true;
        }
        let path = Path::new(text);
        if path.is_absolute() {
            return !is_within(&normal(path), self.workspace);
        }
        self.places.iter().any(|place| match place {
            Some(place) => !is_within(&normal(&place.join(path)), self.workspace),
            None => true,
        })
    }
}

/// Whether a pattern within a path may match `..`: `.?/x`.
fn may_go_up(text: &str) -> bool {
    let within = text.rsplit_once('/').map_or("", |(within, _)| within);
    within.split('/').any(|name| {
        name.strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(['?', '*', '[']))
    })
}

/// A device, but none of those that every command writes to.
pub(super) fn is_device(path: &str) -> bool {
    let harmless = ["null", "zero", "full", "stdout", "stderr", "stdin", "tty"];
    path.strip_prefix("/dev/").is_some_and(|name| {
        !harmless.contains(&name) && !name.starts_with("fd/") && !name.starts_with("pts/")
    })
}

fn is_within(path: &Path, workspace: &Path) -> bool {
    let temporary = [Path::new("/tmp"), Path::new("/var/tmp")];
    let is_temporary = |dir: &&Path| path.starts_with(dir) && *path != **dir;
    let is_sink = path.starts_with("/dev") && !is_device(&path.to_string_lossy());
    path.starts_with(normal(workspace))
        || is_sink
        // A workspace in there is no reason to leave it.
        || (temporary.iter().any(is_temporary)
            && !temporary.iter().any(|dir| workspace.starts_with(dir)))
}

/// The path with its `.` and `..` worked out by name.
pub(in crate::tools::exec) fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
