//! Work that git does not keep and that is gone for good: what was never committed, or what nothing
//! points to any more.

use std::path::{Path, PathBuf};

use super::choices::is_list;
use super::disk::Lies;
use super::git::is_forced;
use super::options::{Options, firsts};
use super::tables::NO_LETTER;
use super::variables::Printed;
use super::wipes::all_in;
use super::{Judge, normal};
use crate::tools::exec::shell::{Splitting, Word};

const CLEANS: &str = "removes files that git does not keep";
const MAY_CLEAN: &str = "may remove files that git does not keep";
pub(super) const UNCOMMITTED: &str = "throws away changes that were never committed";
const STASHED: &str = "throws away what was stashed";
const UNREACHABLE: &str = "takes away the last name of commits";
const MAY_BE_UNREACHABLE: &str = "may take away the last name of commits";
const PRUNES: &str = "removes commits that nothing points to";
const REWRITES: &str = "writes the history anew";
const MAY_OVERWRITE: &str =
    "may overwrite or remove what others have, which is only known when it runs";

/// Commands of git that throw something away, with some arguments.
const LOSING: &[&str] = &[
    "clean",
    "reset",
    "checkout",
    "restore",
    "switch",
    "rm",
    "worktree",
    "stash",
    "branch",
    "reflog",
    "update-ref",
];

impl Judge<'_> {
    /// What a command of git throws away. `all` are its arguments, `args` those behind its name.
    pub(super) fn loses(&mut self, name: &str, all: &[Word], args: &[Word], whole: &str) {
        let options = Options::of(name, args);
        let has_directory = self.names_directory(name, all, args, &options);
        let everything = |judge: &Self| args.iter().any(|word| judge.is_everything(word));
        let is_first = |known: &[&str]| firsts(args).iter().any(|it| known.contains(&&*it.text));
        let force = options.has('f', "force");
        let what = match name {
            "clean" => return self.cleans(all, &options, whole),
            "reset" if options.has_name("hard") => UNCOMMITTED,
            "checkout" | "switch" if force || options.has_name("discard-changes") => UNCOMMITTED,
            "restore" if !touches_files(&options) => return,
            "checkout" | "restore" if has_directory || everything(self) => UNCOMMITTED,
            "switch" if options.has('C', "force-create") => MAY_BE_UNREACHABLE,
            // Without it the files stay.
            "rm" if force && everything(self) && !options.has_surely(NO_LETTER, "cached") => {
                UNCOMMITTED
            }
            "worktree" if is_first(&["remove"]) && force => UNCOMMITTED,
            "checkout" | "worktree" if options.has_letter('B') => MAY_BE_UNREACHABLE,
            "stash" if is_first(&["drop", "clear"]) => STASHED,
            "branch" if options.has_letter('D') => UNREACHABLE,
            "branch" if force && options.has('d', "delete") => UNREACHABLE,
            "branch" if moves_branch(&options) => MAY_BE_UNREACHABLE,
            "reflog" if is_first(&["expire", "delete", "drop"]) => UNREACHABLE,
            "update-ref" if options.has_letter('d') => UNREACHABLE,
            "filter-branch" | "filter-repo" => REWRITES,
            _ => return,
        };
        self.raise("irreversible_command", whole, what);
    }

    /// Commits that git no longer finds. A command that nobody knows is not taken for one of these, which
    /// need no option to do so: every `git "$x"` would be.
    pub(super) fn loses_commits(&mut self, name: &str, args: &[Word], whole: &str) {
        let options = Options::of(name, args);
        let is_forced = || options.has('f', "force") || args.iter().any(is_forced_name);
        let mut ages = options.values(NO_LETTER, "prune").flatten();
        let what = match name {
            "update-ref" if names_two(&options) || options.has_name("stdin") => MAY_BE_UNREACHABLE,
            "fetch" if is_forced() && args.iter().any(moves_own) => MAY_BE_UNREACHABLE,
            "gc" if ages.any(is_young) => PRUNES,
            "prune" if !options.has_surely('n', "dry-run") => PRUNES,
            _ => return,
        };
        self.raise("irreversible_command", whole, what);
    }

    /// Whether `git checkout` or `git restore` is given a directory, or what may be one: all that is
    /// below it is meant.
    fn names_directory(
        &mut self,
        name: &str,
        all: &[Word],
        args: &[Word],
        options: &Options<'_>,
    ) -> bool {
        let named = options.named.iter().chain(&options.may_be_named).copied();
        let (paths, others): (Vec<&Word>, Vec<&Word>) = match name {
            "restore" => (named.collect(), Vec::new()),
            "checkout" => {
                let at = args.iter().position(|word| word.text == "--");
                let behind = at.and_then(|at| args.get(at + 1..)).unwrap_or_default();
                // What a new branch is made of is no path.
                let is_new = options.has_surely('b', "orphan");
                (behind.iter().collect(), named.filter(|_| !is_new).collect())
            }
            _ => return false,
        };
        let within = directory(all);
        let mut paths = paths.into_iter();
        let mut others = others.into_iter();
        options.has_name("pathspec-from-file")
            || paths.any(|word| self.may_be_directory(word, within.as_deref()))
            || others.any(|word| self.is_directory(word, within.as_deref()) == Some(true))
    }

    /// Whether a path of git's is a directory, or nothing speaks against it.
    fn may_be_directory(&mut self, word: &Word, within: Option<&Path>) -> bool {
        // As many files as there are may stand in its place, which is as good as a directory.
        let may_be_several = word.splitting == Splitting::Splits || is_list(word);
        if may_be_several && self.is_vague(word) {
            return true;
        }
        // What it holds has been looked at, as far as that is known.
        let is_variable = word.has_variable || word.has_substitution;
        let is_unlike = || is_variable || has_extension(&word.text);
        self.is_directory(word, within)
            .unwrap_or_else(|| !is_unlike())
    }

    /// Whether a path of git's is a directory, as its name or the disk tells. Nothing if neither does.
    fn is_directory(&mut self, word: &Word, within: Option<&Path>) -> Option<bool> {
        let from_here = self.as_from_here(word);
        let word = from_here.as_ref().unwrap_or(word);
        let text = word.text.as_str();
        if text.ends_with('/') || matches!(last_name(text), "." | "..") || all_in(text).is_some() {
            return Some(true);
        }
        let is_pattern = text.contains(['*', '?', '[']);
        // Git's own stars, unlike a shell's, fit what is in directories as well.
        let is_gits = !word.has_pattern() && text.contains('*');
        if is_pattern && has_extension(text) {
            return Some(is_gits);
        }
        // Signs before a path say how it is meant.
        let is_told = word.has_variable || word.has_substitution || word.is_home;
        if is_told || is_pattern || text.starts_with(':') {
            return None;
        }
        let places = self.places.clone();
        let mut is_known = true;
        for place in &places {
            let lies = match (place, within) {
                (Some(place), Some(within)) => {
                    self.lies_at(&normal(&place.join(within).join(text)))
                }
                _ => Lies::Unknown,
            };
            match lies {
                Lies::Directory => return Some(true),
                Lies::Unknown => is_known = false,
                Lies::Nothing | Lies::Other => {}
            }
        }
        is_known.then_some(false)
    }

    /// `git clean`: named directories are like those of `rm`, everything is not, and what is ignored
    /// may be keys and local settings.
    fn cleans(&mut self, all: &[Word], options: &Options<'_>, whole: &str) {
        if options.has_surely('n', "dry-run") && !options.has_name("no-dry-run") {
            return;
        }
        let needs_no_force = all.iter().any(|word| {
            let text = word.text.to_ascii_lowercase();
            text.starts_with("clean.requireforce=")
        });
        let takes_ignored = options.has_letter('x') || options.has_letter('X');
        let mut paths = options.named.iter().chain(&options.may_be_named);
        let is_all = options.named.is_empty() || paths.any(|word| self.is_everything(word));
        if (needs_no_force || options.has('f', "force")) && (takes_ignored || is_all) {
            self.raise("destructive_command", whole, CLEANS);
        } else if options.own.iter().any(|word| self.may_be_option(word)) {
            self.raise("destructive_command", whole, MAY_CLEAN);
        }
    }

    /// A push of which some words are only known when it runs.
    pub(super) fn may_push_more(&mut self, args: &[Word], printed: Printed, whole: &str) {
        let is_name = |word: &Word| printed == Printed::Names && !word.has_variable;
        let mut own = Options::of("push", args).own.into_iter();
        if own.any(|word| !is_name(word) && self.may_be_option(word)) {
            self.raise("irreversible_command", whole, MAY_OVERWRITE);
        }
    }

    /// `git $x`, where nobody knows what that is: it may be each of those that lose something.
    pub(super) fn may_be_any(&mut self, name: &Word, all: &[Word], args: &[Word], whole: &str) {
        let is_unknown = self.may_be_option(name) || self.is_vague(name);
        if self.is_open(name) || (is_unknown && is_forced(args)) {
            self.raise("irreversible_command", whole, MAY_OVERWRITE);
        } else if is_unknown {
            for name in LOSING {
                self.loses(name, all, args, whole);
            }
        }
    }

    /// Whether it may be an option, and several.
    fn is_open(&mut self, word: &Word) -> bool {
        word.splitting == Splitting::Splits && self.may_be_option(word)
    }

    /// Whether a path of git's stands for all there is: `.`, `:/`, `*`.
    fn is_everything(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        // Signs before a path say how it is meant: from the top, all but this.
        let is_magic = text.starts_with(':')
            && (text.starts_with(":!") || text.starts_with(":^") || text.contains("(exclude)"));
        let is_top = matches!(
            text,
            ":" | ":/" | ":/*" | ":/." | ":(top)" | ":(top)*" | ":(top)."
        );
        let from_here = self.as_from_here(word);
        is_magic || is_top || self.is_whole_workspace(from_here.as_ref().unwrap_or(word))
    }
}

/// Where git is told to work, from where it is; nothing if that is only known when it runs.
fn directory(all: &[Word]) -> Option<PathBuf> {
    let mut within = PathBuf::new();
    let mut words = all.iter().take_while(|word| word.text != "--");
    while let Some(word) = words.next() {
        if word.text.starts_with("--work-tree") || word.text.starts_with("--git-dir") {
            return None;
        }
        if word.text == "-C" {
            let dir = words.next()?;
            if dir.has_variable || dir.has_substitution || dir.is_home || dir.has_pattern() {
                return None;
            }
            within.push(&dir.text);
        }
    }
    Some(within)
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a path is spelt as that of a file.
fn has_extension(path: &str) -> bool {
    let name = last_name(path).trim_start_matches('.');
    name.contains('.')
}

/// Whether `git branch` makes a name that may be there already stand for something else. That of the
/// branch one is on, which every guide calls `main` so, is another case: what it stands for stays.
fn moves_branch(options: &Options<'_>) -> bool {
    let copies = options.has_letter('C') || options.has('c', "copy");
    let is_forced = options.has_letter('M') || options.has_letter('C') || options.has('f', "force");
    let renames = options.has_surely('M', "move") || options.has_surely('m', "move");
    let named = options.named.len() + options.may_be_named.len();
    let may_be_more = |word: &&Word| {
        word.splitting == Splitting::Splits && (word.has_variable || word.has_substitution)
    };
    let is_one = named <= 1 && !options.named.iter().any(may_be_more);
    is_forced && named > 0 && !(renames && !copies && is_one)
}

/// Whether `git update-ref` is told what a name is to stand for.
fn names_two(options: &Options<'_>) -> bool {
    let may_be_more = |word: &&Word| word.splitting == Splitting::Splits;
    let named = || options.named.iter().chain(&options.may_be_named);
    named().count() > 1 || named().any(may_be_more)
}

/// Whether what is only some days old goes as well, and perhaps was meant to be found again.
fn is_young(age: &str) -> bool {
    let units = ["day", "week", "month", "year"];
    age != "never" && !units.iter().any(|unit| age.contains(unit))
}

/// `+a:b`, for `git fetch`.
fn is_forced_name(word: &Word) -> bool {
    word.text.starts_with('+') && word.text.contains(':')
}

/// Whether a word of `git fetch` writes to a branch of one's own: `a:b`, and neither an address nor what
/// is kept of others' branches.
fn moves_own(word: &Word) -> bool {
    let Some((_, to)) = word.text.rsplit_once(':') else {
        return false;
    };
    let is_address = to.starts_with('/') || word.text.contains('@') || word.text.starts_with('-');
    let is_others = to.starts_with("refs/remotes/") || to.starts_with("refs/tags/");
    !to.is_empty() && !is_address && !is_others
}

/// Whether `git restore` works on the files, and not only on what is to be committed.
fn touches_files(options: &Options<'_>) -> bool {
    !options.has_surely('S', "staged") || options.has('W', "worktree")
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};
    use super::super::{Judged, reasons};

    /// Branches that may be the last name of something.
    const MOVED: &[&str] = &[
        "git branch -M a b",
        "git branch -C a b",
        "git branch -C b",
        "git branch -m -f a b",
        "git branch --move --force a b",
        "git branch -M $names",
        "git branch -f main HEAD~3",
        "git branch --force main",
        "git checkout -B main",
        "git checkout -B main origin/main",
        "git checkout -qBmain HEAD~1",
        "git switch -C main HEAD~1",
        "git switch --force-create main",
        "git switch --force-cr=main",
        "git worktree add -B main ../x HEAD~1",
        "o=-B; git checkout $o main",
        "git \"$x\" -C a b",
        "git fetch -f . a:b",
        "git fetch . +a:b",
        "git fetch --force origin main:main",
        "git fetch origin '+refs/heads/*:refs/heads/*'",
        "git update-ref refs/heads/main HEAD~3",
        "git update-ref -m why refs/heads/main HEAD~3 HEAD",
        "git update-ref --stdin",
        "git gc --prune=now",
        "git gc --aggressive --prune=all",
        "git prune",
        "git prune --expire=now",
    ];

    const NOT_MOVED: &[&str] = &[
        "git branch -M main",
        "git branch -M \"$name\"",
        "git branch -m -f main",
        "git branch -m a b",
        "git branch -c a b",
        "git branch new HEAD~1",
        "git branch -vv",
        "git fetch -f origin",
        "git fetch --force --tags origin",
        "git fetch -f git@host:a/b main",
        "git fetch -f https://host/a/b.git main",
        "git fetch origin a:b",
        "git fetch origin '+refs/heads/*:refs/remotes/origin/*'",
        "git update-ref -h",
        "git gc",
        "git gc --auto",
        "git \"$x\" a b",
        "git \"$x\"",
        "git gc --prune=2.weeks.ago",
        "git prune -n",
        "git remote prune origin",
        "git -C sub branch -a",
        "git checkout -b main origin/main",
        "git switch -c main",
        "git worktree add -b main x",
    ];

    #[test]
    fn branches_that_are_moved_are_asked_about() {
        let wrong = not_asked(&[("irreversible_command", MOVED)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(NOT_MOVED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// All below a directory; `src` is one, and so is `sub/dir`.
    const DIRECTORIES: &[&str] = &[
        "git restore src",
        "git restore src/",
        "git restore gone/",
        "git restore ./src",
        "git restore a.txt src",
        "git restore -s HEAD~1 src",
        "git restore 'src/*'",
        "git restore src/*",
        "git restore '*.py'",
        "git restore 'src/**/*.ts'",
        "git restore \"*.py\"",
        "git checkout -- '*.rs'",
        "git checkout '*.rs'",
        "P='*.rs'; git checkout -- \"$P\"",
        // As many as another command names.
        "git checkout -- $(git ls-files -m)",
        "git checkout HEAD -- `git ls-files -m`",
        "git restore $(git diff --name-only)",
        "git diff --name-only | xargs git checkout --",
        "git diff --name-only | xargs git restore",
        "F=$(git diff --name-only); git restore $F",
        "F=($(git ls-files -m)); git restore \"${F[@]}\"",
        "mapfile -t F < list; git checkout -- \"${F[@]}\"",
        "set -- $(git ls-files -m); git restore \"$@\"",
        "git ls-files -m | xargs sh -c 'git checkout -- \"$@\"' _",
        "git restore s*",
        "git restore :/src",
        "git restore -- src",
        "git restore \"$PWD/src\"",
        "D=src; git restore \"$D\"",
        "git restore --pathspec-from-file=list",
        "git restore sub/..",
        "git checkout -- src",
        "git checkout HEAD -- src",
        "git checkout HEAD src",
        "git checkout src",
        "git checkout src/",
        "git checkout -- sub/dir",
        "git -C sub checkout -- dir",
        "git -C sub restore dir",
        "git -C \"$X\" restore dir",
        "cd sub && git restore dir",
        "cd sub && git restore .",
        "cd sub; git checkout -- src",
        "cd \"$X\" && git restore dir",
        "git \"$x\" src",
    ];

    const FILES: &[&str] = &[
        "git restore a.txt",
        "git restore Makefile",
        "git restore src/a.rs sub/dir/b",
        "git restore link",
        "git restore --staged src",
        "git restore src/*.rs",
        "git restore 'app/[id]/page.tsx'",
        "git restore \"$f\"",
        "F=a.txt; git restore $F",
        "for f in a.txt b.txt; do git restore $f; done",
        "set -- a.txt b.txt; git restore \"$@\"",
        "r() { git restore \"$@\"; }; r a.txt",
        "git checkout $(git rev-parse HEAD)",
        "git restore --staged $(git diff --name-only)",
        "git diff --name-only | xargs git add",
        "git checkout -- Makefile a.txt",
        "git checkout HEAD~1 -- src/a.rs",
        "git checkout main",
        "git checkout -b src",
        "git checkout -b new src",
        "git checkout \"$b\"",
        "cd \"$X\" && git checkout main",
        "cd \"$X\" && git restore a.txt",
        "git -C sub checkout src",
        "git -C sub restore Makefile",
    ];

    #[test]
    fn a_directory_is_all_that_is_below_it() {
        let space = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(space.path().join("src")).expect("made");
        std::fs::create_dir_all(space.path().join("sub/dir")).expect("made");
        std::os::unix::fs::symlink("src", space.path().join("link")).expect("linked");
        let is_asked = |command: &&&str| {
            let judged = Judged {
                workspace: space.path(),
                ..super::super::tests::judged(command, None)
            };
            let found = reasons(&judged);
            found.iter().any(|it| it.code == "irreversible_command")
        };
        let missed: Vec<_> = DIRECTORIES.iter().filter(|it| !is_asked(it)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
        let alarms: Vec<_> = FILES.iter().filter(is_asked).collect();
        assert!(alarms.is_empty(), "{alarms:#?}");
    }

    #[test]
    fn the_disk_is_not_looked_at_without_end() {
        let names = (0..5_000).map(|at| format!("f{at} "));
        let command = format!("git restore {}", names.collect::<String>());
        let found = reasons(&super::super::tests::judged(&command, None));
        assert_eq!(found.len(), 1);
    }
}
