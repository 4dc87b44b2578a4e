//! What removes files by a list: all of the workspace, or what lies outside.

use std::path::Path;

use super::tables::{CHOOSING, REMOVERS};
use super::{Judge, SCRIPT_DEPTH_MAX, normal, program};
use crate::tools::exec::shell::{Simple, Word};

const WIPES: &str = "removes the whole workspace";
const OUTSIDE: &str = "removes files outside the workspace";
pub(super) const REPOSITORY: &str = "removes a repository with all that it keeps";
const UNKNOWN: &str = "removes what is only known when it runs";

impl Judge<'_> {
    /// `find` with every command that it is told to run.
    pub(super) fn find(&mut self, args: &[Word], whole: &str, depth: usize) {
        let mut removes = args.iter().any(|word| word.text == "-delete");
        for (at, word) in args.iter().enumerate() {
            if self.is_too_much() {
                return;
            }
            let behind = args.get(at + 1..).unwrap_or_default();
            match word.text.as_str() {
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    // Its end is looked for among all that is behind it.
                    self.looked_bytes += behind.len();
                    let end = behind.iter().position(|word| word.text == ";");
                    let ran = behind.get(..end.unwrap_or(behind.len()));
                    removes |= self.run_by_find(ran.unwrap_or_default(), depth);
                }
                "-fprint" | "-fprint0" | "-fprintf" | "-fls"
                    if behind.first().is_some_and(|file| self.leaves(file)) =>
                {
                    let what = "overwrites a file outside the workspace";
                    self.raise("destructive_command", whole, what);
                }
                _ => {}
            }
        }
        if removes && let Some(what) = self.found_by(args) {
            self.raise("destructive_command", whole, what);
        }
    }

    /// Judges one of them; whether it removes what was found, which is judged by where that is.
    fn run_by_find(&mut self, ran: &[Word], depth: usize) -> bool {
        let removes = ran
            .first()
            .is_some_and(|word| REMOVERS.contains(&program(word)));
        let is_what_was_found =
            |word: &Word| word.text == "{}" || word.text.starts_with(['-', '+']);
        if removes && ran.iter().skip(1).all(is_what_was_found) {
            self.note_run(ran);
            return true;
        }
        let before = self.runs.len();
        if !ran.is_empty() && depth < SCRIPT_DEPTH_MAX {
            let simple = Simple {
                words: ran.to_vec(),
                ..Simple::default()
            };
            self.simple(&simple, &[], depth + 1);
        }
        // Also behind a wrapper or in a script: `sh -c 'rm "$1"' _ {}`.
        let mut ran = self.runs.iter().skip(before);
        ran.any(|run| is_remover(run.first().map_or("", String::as_str)))
    }

    /// What removing all that a `find` finds would do to others.
    fn found_by(&self, args: &[Word]) -> Option<&'static str> {
        let options = args
            .iter()
            .take_while(|word| matches!(&*word.text, "-H" | "-L" | "-P"));
        let args = args.get(options.count()..).unwrap_or_default();
        let is_test = |word: &&Word| word.text.starts_with(['-', '(', '!']);
        let starts: Vec<&Word> = args.iter().take_while(|word| !is_test(word)).collect();
        if starts.iter().any(|word| self.leaves(word)) {
            return Some(OUTSIDE);
        }
        if starts.iter().any(|word| self.is_repository(word)) || args.iter().any(seeks_repositories)
        {
            return Some(REPOSITORY);
        }
        if is_choosy(args) {
            return None;
        }
        let here = Word {
            text: ".".to_owned(),
            ..Word::default()
        };
        let starts = if starts.is_empty() {
            vec![&here]
        } else {
            starts
        };
        if starts.iter().any(|word| self.is_whole_workspace(word)) {
            Some(WIPES)
        } else if starts.iter().any(|word| self.is_unknown(word)) {
            Some(UNKNOWN)
        } else {
            None
        }
    }

    /// `… | xargs rm`: what another command lists is removed. `piped` are the commands before it, the
    /// nearest first.
    pub(super) fn removes_list(&mut self, behind: &[Word], piped: &[&Simple], whole: &str) {
        let Some((first, args)) = behind.split_first() else {
            return;
        };
        let Some(words) = piped.last().map(|head| head.words.as_slice()) else {
            return;
        };
        if !REMOVERS.contains(&program(first)) {
            return;
        }
        let name = words.first().map(program).unwrap_or_default();
        let listed = words.get(1..).unwrap_or_default();
        let narrowed = piped.iter().any(|simple| chooses_lines(simple));
        let what = match name {
            "find" => self
                .found_by(listed)
                .filter(|what| !narrowed || *what == OUTSIDE),
            _ if narrowed => None,
            _ if self.lists_all(name, listed) => Some(WIPES),
            _ if is_recursive(args) && !only_reads_input(words) => Some(UNKNOWN),
            _ => None,
        };
        if let Some(what) = what {
            self.raise("destructive_command", whole, what);
        }
    }

    /// `tar --remove-files`: what goes into the archive is removed.
    pub(super) fn archive(&mut self, args: &[Word], whole: &str) {
        if !args.iter().any(removes_archived) {
            return;
        }
        // Where the names behind it are looked for.
        let mut dir = Word::default();
        let mut before = "";
        for (at, word) in args.iter().enumerate() {
            let text = word.text.as_str();
            let option = std::mem::replace(&mut before, text);
            if text.starts_with("-T") || text.starts_with("--files-from") {
                self.raise("destructive_command", whole, UNKNOWN);
                return;
            }
            let attached = text
                .strip_prefix("--directory=")
                .or_else(|| text.strip_prefix("-C"))
                .filter(|path| !path.is_empty());
            if let Some(path) = attached {
                dir = joined(&dir, word, path);
                continue;
            }
            if matches!(option, "-C" | "--directory") {
                dir = joined(&dir, word, text);
                continue;
            }
            // `cf x`, `-cf x`, `--file x`
            let has_letters = at == 1 || (option.starts_with('-') && !option.starts_with("--"));
            let is_archive = option == "--file" || (has_letters && option.ends_with('f'));
            let is_letters = at == 0 && text.chars().all(|sign| sign.is_ascii_alphabetic());
            if text.starts_with('-') || is_archive || is_letters {
                continue;
            }
            let target = joined(&dir, word, text);
            if let Some(what) = self.harm_of_removing(&target) {
                self.raise("destructive_command", whole, what);
                return;
            }
        }
    }

    /// `zip -m`: what goes into the archive, which is named first, is removed.
    pub(super) fn moves_into_archive(&mut self, args: &[Word], whole: &str) {
        let moves = |word: &Word| match word.text.strip_prefix("--") {
            Some(long) => long.len() > 1 && "move".starts_with(long),
            None => word.text.starts_with('-') && word.text.contains('m'),
        };
        if !args.iter().any(moves) {
            return;
        }
        if args.iter().any(|word| word.text == "-@") {
            self.raise("destructive_command", whole, UNKNOWN);
            return;
        }
        let named = args.iter().filter(|word| !word.text.starts_with('-'));
        self.removes_sources(named.skip(1), whole);
    }

    /// `rsync` that removes: at its destination, or what it has copied.
    pub(super) fn synchronises(&mut self, args: &[Word], whole: &str) {
        let has = |option: &str| args.iter().any(|word| word.text == option);
        if has("--del") || args.iter().any(|word| word.text.starts_with("--delete")) {
            let what = "removes files at its destination";
            self.raise("irreversible_command", whole, what);
        }
        if has("--remove-source-files") {
            let named: Vec<&Word> = args
                .iter()
                .filter(|word| !word.text.starts_with('-'))
                .collect();
            let sources = named.len().saturating_sub(1);
            self.removes_sources(named.into_iter().take(sources), whole);
        }
    }

    fn removes_sources<'w>(&mut self, mut sources: impl Iterator<Item = &'w Word>, whole: &str) {
        if let Some(what) = sources.find_map(|word| self.harm_of_removing(word)) {
            self.raise("destructive_command", whole, what);
        }
    }

    /// What is wrong with removing what a path names, with all that is in it.
    fn harm_of_removing(&self, target: &Word) -> Option<&'static str> {
        if self.leaves(target) {
            Some(OUTSIDE)
        } else if self.is_whole_workspace(target) {
            Some(WIPES)
        } else if self.is_repository(target) {
            Some(REPOSITORY)
        } else if self.is_unknown(target) {
            Some(UNKNOWN)
        } else {
            None
        }
    }

    fn is_unknown(&self, word: &Word) -> bool {
        (word.has_variable || word.has_substitution) && !self.is_own_temporary(word)
    }

    /// Whether a command prints the names of all there is.
    fn lists_all(&self, name: &str, args: &[Word]) -> bool {
        let mut named = args.iter().filter(|word| !word.text.starts_with('-'));
        match name {
            "ls" | "dir" | "vdir" | "du" | "tree" => {
                let mut named = named.peekable();
                named.peek().is_none() || named.any(|word| self.is_whole_workspace(word))
            }
            "git" => {
                named.next().is_some_and(|word| word.text == "ls-files") && named.next().is_none()
            }
            "fd" | "fdfind" => named.all(|word| !is_specific(&word.text)),
            "rg" => args.iter().any(|word| word.text == "--files") && named.next().is_none(),
            _ => false,
        }
    }

    /// Whether a path is where a repository keeps its history, or may be: `.git`, `.git/objects`,
    /// `.g*`. A lock in there is none.
    pub(super) fn is_repository(&self, word: &Word) -> bool {
        let of = |place: &Path| {
            let path = normal(&place.join(&word.text));
            let names: Vec<_> = path.iter().filter_map(|name| name.to_str()).collect();
            let is_git = |name: &&str| *name == ".git" || (word.has_pattern() && may_be_git(name));
            let behind = names.iter().rposition(is_git);
            behind.is_some_and(|at| match names.get(at + 1) {
                None => true,
                Some(part) => KEEPING.contains(part) || (word.has_pattern() && !is_specific(part)),
            })
        };
        self.places.iter().flatten().any(|place| of(place))
    }

    /// Whether a path stands for the workspace, or for everything in it.
    pub(super) fn is_whole_workspace(&self, word: &Word) -> bool {
        let mut bare = word.text.trim_end_matches('/');
        while let Some(dir) = all_in(bare) {
            bare = dir.trim_end_matches('/');
        }
        let is_root = bare.is_empty() && word.text.starts_with('/');
        self.places.iter().flatten().any(|place| {
            let path = if is_root {
                std::path::PathBuf::from("/")
            } else {
                normal(&place.join(bare))
            };
            path == normal(self.workspace)
        })
    }
}

/// Whether it is `--remove-files`, or as much of that as is enough.
fn removes_archived(word: &Word) -> bool {
    let long = word.text.strip_prefix("--").unwrap_or_default();
    long.starts_with("rem") && "remove-files".starts_with(long)
}

/// A path of a word in a directory.
fn joined(dir: &Word, word: &Word, path: &str) -> Word {
    let text = Path::new(&dir.text).join(path);
    Word {
        text: text.to_string_lossy().into_owned(),
        has_variable: dir.has_variable || word.has_variable,
        has_substitution: dir.has_substitution || word.has_substitution,
        is_home: dir.is_home || word.is_home,
        ..word.clone()
    }
}

/// What of a repository is its history.
const KEEPING: &[&str] = &["objects", "refs", "logs", "HEAD", "packed-refs"];

/// Whether a pattern begins and ends as the name of a repository does.
fn may_be_git(pattern: &str) -> bool {
    let is_wild = |sign: char| matches!(sign, '*' | '?' | '[' | ']');
    let begins = pattern.split(is_wild).next().unwrap_or_default();
    let ends = pattern.rsplit(is_wild).next().unwrap_or_default();
    begins.len() < pattern.len()
        && begins.starts_with('.')
        && ".git".starts_with(begins)
        && ".git".ends_with(ends)
}

/// Whether a word of a `find` names repositories: `-name .git`.
fn seeks_repositories(word: &Word) -> bool {
    word.text == ".git" || word.text.contains("/.git/") || word.text.ends_with("/.git")
}

/// The directory of which a pattern fits everything: `a/*`, `.[!.]*`, `{*,.*}`.
pub(super) fn all_in(pattern: &str) -> Option<&str> {
    let (dir, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let is_any = last.contains('*') && !is_specific(last);
    is_any.then_some(dir)
}

/// Whether a pattern holds anything that a name would have to have.
fn is_specific(pattern: &str) -> bool {
    let mut in_set = false;
    pattern.chars().any(|sign| {
        match sign {
            '[' => in_set = true,
            ']' => in_set = false,
            _ => {}
        }
        !in_set && sign.is_alphanumeric()
    })
}

/// Whether the tests of a `find` choose, as far as their words say.
fn is_choosy(args: &[Word]) -> bool {
    let texts = || args.iter().map(|word| word.text.as_str());
    let widens = texts().any(|text| matches!(text, "-o" | "-or" | "," | "!" | "-not"));
    let mut pairs = texts().zip(texts().skip(1));
    let chooses = pairs.any(|(test, value)| CHOOSING.contains(&test) && is_specific(value));
    !widens && (chooses || texts().any(|text| text == "-empty"))
}

/// `grep x`, and not `grep -v x`.
fn chooses_lines(simple: &Simple) -> bool {
    let name = simple.words.first().map(program).unwrap_or_default();
    let args = || simple.words.iter().skip(1).map(|word| word.text.as_str());
    let is_option = |text: &str| text.starts_with('-');
    let inverts = |text: &str| {
        is_option(text)
            && (text == "--invert-match" || (!text.starts_with("--") && text.contains('v')))
    };
    matches!(name, "grep" | "egrep" | "fgrep" | "rg")
        && !args().any(inverts)
        && args().any(|text| !is_option(text) && is_specific(text))
}

/// Whether a command only hands on what it reads: without that it prints nothing.
pub(super) fn only_reads_input(words: &[Word]) -> bool {
    let mut named = words.iter().skip(1).map(|word| word.text.as_str());
    match words.first().map(program) {
        Some("cat") => named.all(|text| text.starts_with('-')),
        Some("tee" | "tr") => true,
        _ => false,
    }
}

pub(super) fn is_remover(path: &str) -> bool {
    REMOVERS.contains(&path.rsplit('/').next().unwrap_or_default())
}

/// Whether it works through directories; as much of a long option as is enough will do.
pub(super) fn is_recursive(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let long = word.text.strip_prefix("--");
        let short = word
            .text
            .strip_prefix('-')
            .filter(|it| !it.starts_with('-'));
        long.is_some_and(|long| !long.is_empty() && "recursive".starts_with(long))
            || short.is_some_and(|letters| letters.contains(['r', 'R']))
    })
}

/// What `mv` moves: all but where to, which an option may say.
pub(super) fn moved(args: &[Word]) -> Vec<Word> {
    let is_target = |word: &Word| {
        let short = word.text.strip_prefix('-').unwrap_or_default();
        word.text.starts_with("--t") || !short.starts_with('-') && short.contains('t')
    };
    if !args.iter().any(is_target) {
        let sources = args.len().saturating_sub(1);
        return args.iter().take(sources).cloned().collect();
    }
    let named = target_behind(args);
    let left = args.iter().enumerate().filter(|(it, _)| Some(*it) != named);
    left.map(|(_, word)| word.clone()).collect()
}

/// Where the directory stands that an option names with the next word: `mv -t dir x`. Nothing where the
/// option itself may be something else, a name or the value of another.
fn target_behind(args: &[Word]) -> Option<usize> {
    let at = args.iter().position(|word| {
        let long = word.text.strip_prefix("--").unwrap_or_default();
        let is_long = !long.is_empty() && "target-directory".starts_with(long);
        is_long || matches!(word.text.as_str(), "-t" | "-vt" | "-ft" | "-nt" | "-it")
    })?;
    let before = args.get(..at)?;
    let is_flag = |word: &Word| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|it| "bfinuv".contains(it))
    };
    before.iter().all(is_flag).then_some(at + 1)
}

/// Whether it says what is to be set without a word of its own: `chmod -w x`, `chown --reference=f x`.
fn is_mode(word: &Word) -> bool {
    let letters = word.text.strip_prefix('-').unwrap_or_default();
    let is_change = !letters.is_empty() && letters.chars().all(|it| "rwxXstugo".contains(it));
    is_change || word.text.starts_with("--ref")
}

/// The words without the first that is no option: a mode, an owner.
pub(super) fn without_first_name(args: &[Word]) -> Vec<Word> {
    let has_mode = args.iter().any(is_mode);
    let at = args
        .iter()
        .position(|word| !has_mode && !word.text.starts_with('-'));
    let left = args.iter().enumerate().filter(|(it, _)| Some(*it) != at);
    left.map(|(_, word)| word.clone()).collect()
}
