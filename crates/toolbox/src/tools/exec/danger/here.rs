//! The directory that a command is in: `$PWD/build`.

use super::temporary::TEMPORARY;
use super::variables::Set;
use super::{Judge, Setters};
use crate::tools::exec::shell::{Splitting, Word};

/// The variable that every shell sets to where it is.
pub(super) const HERE: &str = "PWD";
impl Judge<'_> {
    /// A path behind `$PWD` as one from where the command is, as long as nothing else sets that.
    pub(super) fn as_from_here(&self, word: &Word) -> Option<Word> {
        let rest = ["$PWD", "${PWD}"]
            .into_iter()
            .find_map(|it| word.text.strip_prefix(it))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        if !word.has_variable
            || self.setters == Setters::Unknown
            || self.variables.contains_key(HERE)
        {
            return None;
        }
        // Outside of quotes a directory with a blank in its name is two, or with a star many.
        if word.splitting != Splitting::Never && !self.is_plainly_placed() {
            return None;
        }
        Some(Word {
            text: format!(".{rest}"),
            has_variable: rest.contains('$'),
            ..word.clone()
        })
    }

    /// Whether the names of all directories the command may be in are one word wherever they stand.
    fn is_plainly_placed(&self) -> bool {
        let is_plain = |sign: char| sign.is_alphanumeric() || "/._-".contains(sign);
        !self.variables.contains_key(super::variables::SEPARATORS)
            && self.places.iter().all(|place| {
                let text = place.as_ref().map(|it| it.to_string_lossy());
                text.is_some_and(|it| it.chars().all(is_plain))
            })
    }

    /// Something other than the shell may have set where the command is.
    pub(super) fn forget_here(&mut self) {
        self.note(HERE, Set::Computed);
    }

    /// Notes what `unset` takes away.
    pub(super) fn note_unset(&mut self, args: &[Word]) {
        if args.iter().any(|word| self.is_vague(word)) {
            self.note_any();
        }
        self.note_here(args);
    }

    /// Notes that one of these may not be what the shell has set.
    pub(super) fn note_here(&mut self, args: &[Word]) {
        for name in [HERE, TEMPORARY] {
            if args.iter().any(|word| word.text == name) {
                self.note(name, Set::Computed);
            }
        }
    }
}
