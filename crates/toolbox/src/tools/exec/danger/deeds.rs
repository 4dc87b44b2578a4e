//! What programs do that can not be taken back and that takes more than a word to tell: what is published,
//! dropped or emptied, and what only rehearses that.

use super::actions::{PUBLISHES, REMOVES_DATABASE};
use super::feeding::ReadAs;
use super::hands::plain;
use super::losses::UNCOMMITTED;
use super::options::Options;
use super::{DROPS_DATA, Judge, written};
use crate::tools::exec::shell::{Simple, Splitting, Word};

/// What a program can rehearse, and the word for it. Of what is not here nobody knows whether it would.
const REHEARSED: &[(&str, &str, &str)] = &[
    ("bun", "publish", "--dry-run"),
    ("cargo", "publish", "--dry-run"),
    ("deno", "publish", "--dry-run"),
    ("goreleaser", "release", "--snapshot"),
    ("npm", "publish", "--dry-run"),
    ("pnpm", "publish", "--dry-run"),
    ("poetry", "publish", "--dry-run"),
];
/// Options behind which no value of theirs stands.
const FLAGS: &[&str] = &[
    "--all-features",
    "--allow-dirty",
    "--clean",
    "--json",
    "--locked",
    "--no-git-checks",
    "--no-verify",
    "--provenance",
    "--quiet",
    "--verbose",
    "-q",
    "-v",
];
/// Options with a value behind them.
const VALUED: &[&str] = &["--access", "--package", "--tag", "-p"];
/// Programs whose first word is most often a file, with words that decide all the same.
const TOLD: &[(&str, &[&str], &str)] = &[
    (
        "artisan",
        &[
            "migrate:fresh",
            "migrate:refresh",
            "migrate:reset",
            "db:wipe",
        ],
        REMOVES_DATABASE,
    ),
    ("manage.py", &["flush", "reset_db"], REMOVES_DATABASE),
];
/// What removes in the shell of a document store, without its brackets.
const MONGO_REMOVES: &[&str] = &[
    ".drop(",
    ".deleteMany(",
    ".deleteOne(",
    ".remove(",
    ".dropDatabase(",
    ".dropIndexes(",
    ".findOneAndDelete(",
];

impl Judge<'_> {
    /// What a program does with its arguments that can not be taken back.
    pub(super) fn does(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        whole: &str,
    ) {
        if !is_rehearsal(name, args) {
            self.acts(name, args, whole);
        }
        match name {
            "semantic-release" | "release-it" if !has(args, "--dry-run") => {
                self.raise("irreversible_command", whole, PUBLISHES);
            }
            "gradle" | "gradlew" | "mvnw" | "sbt" if args.iter().any(is_publishing) => {
                self.raise("irreversible_command", whole, PUBLISHES);
            }
            "skopeo" if copies_to_registry(args) => {
                self.raise("irreversible_command", whole, PUBLISHES);
            }
            "mongo" | "mongosh" => self.mongo(args, simple, all, whole),
            "rimraf" | "del-cli" => {
                let args: Vec<Word> = [plain("-rf")].iter().chain(args).cloned().collect();
                self.removal("rm", &args, whole);
            }
            _ => self.told(name, args, whole),
        }
    }

    /// What an interpreter is told through a file or a module: `php artisan db:wipe`, `python -m twine`.
    fn told(&mut self, name: &str, args: &[Word], whole: &str) {
        let module = args.iter().position(|word| word.text == "-m");
        let is_python = name.starts_with("python");
        if let Some(behind) = module.filter(|_| is_python)
            && let Some((module, args)) = args.get(behind + 1..).and_then(<[Word]>::split_first)
        {
            self.acts(&module.text, args, whole);
        }
        let mut files = [name]
            .into_iter()
            .chain(args.iter().take(2).map(|word| word.text.as_str()))
            .map(|path| path.rsplit('/').next().unwrap_or_default());
        let told = files.find_map(|file| TOLD.iter().find(|(known, ..)| *known == file));
        if let Some((_, words, what)) = told
            && words.iter().any(|word| has(args, word))
        {
            self.raise("irreversible_command", whole, what);
        }
    }

    /// Statements for a document store, also those that it reads.
    fn mongo(&mut self, args: &[Word], simple: &Simple, all: &[Simple], whole: &str) {
        let fed = self.fed(simple, all).text.unwrap_or_default();
        if removes_documents(&written(args)) || removes_documents(&fed) {
            self.raise("irreversible_command", whole, DROPS_DATA);
        }
        if simple.reads_from.is_none() {
            self.feeding.is_read_as(ReadAs::Documents);
        }
    }

    /// Commands of git that write over files by what they were to become.
    pub(super) fn loses_by_index(&mut self, name: &str, args: &[Word], whole: &str) {
        let options = Options::of(name, args);
        let loses = match name {
            "reset" => options
                .spelt()
                .any(|it| it.len() > 1 && "merge".starts_with(it)),
            "read-tree" => options.has_letter('u') && options.has_name("reset"),
            "checkout-index" => {
                options.has('f', "force")
                    && options.has('a', "all")
                    && !options.spelt().any(|it| it.starts_with("pre"))
            }
            _ => false,
        };
        if loses {
            self.raise("irreversible_command", whole, UNCOMMITTED);
        }
    }
}

/// Whether a text tells a document store to remove something.
pub(super) fn removes_documents(text: &str) -> bool {
    MONGO_REMOVES.iter().any(|it| text.contains(it))
}

fn has(args: &[Word], known: &str) -> bool {
    args.iter().any(|word| word.text == known)
}

/// Whether a command surely does nothing but say what it would do: all of its words stand there, and none
/// takes it back or may hold the word for it.
fn is_rehearsal(name: &str, args: &[Word]) -> bool {
    let Some((_, verb, word)) = REHEARSED.iter().find(|(known, ..)| *known == name) else {
        return false;
    };
    let is_plain = |it: &Word| {
        !it.has_variable
            && !it.has_substitution
            && !it.has_pattern()
            && it.splitting == Splitting::Never
    };
    let texts: Vec<&str> = args.iter().map(|it| it.text.as_str()).collect();
    let takes_back = |text: &&str| matches!(*text, "false" | "yank" | "unpublish" | "deprecate");
    // Any other option may take it back: `--no-dr` is one to npm.
    let is_known = |(at, text): (usize, &&str)| {
        let has_value = || texts.get(at + 1).is_some_and(|it| !it.starts_with('-'));
        let is_valued = VALUED.contains(text) && has_value();
        !text.starts_with('-') || text == word || FLAGS.contains(text) || is_valued
    };
    let Some(at) = texts.iter().position(|text| text == word) else {
        return false;
    };
    // One that has a value takes the next word for it, whatever that looks like.
    let before = at.checked_sub(1).and_then(|at| texts.get(at));
    let is_free =
        before.is_some_and(|it| !it.starts_with('-') || it.contains('=') || FLAGS.contains(it));
    let is_named = texts.get(..at).is_some_and(|it| it.contains(verb));
    let are_known = texts.iter().enumerate().all(is_known) && !texts.iter().any(takes_back);
    is_free && is_named && are_known && args.iter().all(is_plain)
}

/// A task that puts packages where others find them: `publish`, `:lib:publishPlugins`, `+publish`.
fn is_publishing(word: &Word) -> bool {
    let task = word.text.rsplit(':').next().unwrap_or_default();
    let task = task.trim_start_matches('+');
    (task.starts_with("publish") && !task.ends_with("Local") && !word.text.starts_with('-'))
        || matches!(task, "deploy" | "uploadArchives")
}

/// `skopeo copy x docker://y`, or one that removes there.
fn copies_to_registry(args: &[Word]) -> bool {
    let is_there = |word: &Word| word.text.starts_with("docker://");
    let copies = has(args, "copy") && args.last().is_some_and(is_there);
    copies || has(args, "delete") || has(args, "sync")
}
