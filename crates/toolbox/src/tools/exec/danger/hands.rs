//! Programs that hand a command on: a shell by another name, what runs its arguments, containers.

use super::arguments::OWN_NAME;
use super::expansion::{Part, Variable, parts};
use super::{COMPUTED, Certainty, Judge, SCRIPT_DEPTH_MAX, program};
use crate::tools::exec::shell::{Simple, Word};

/// Variables that hold a shell.
const SHELL_NAMES: &[&str] = &["SHELL", "BASH", OWN_NAME];
/// What the last command had for its last word.
const LAST_WORD: &str = "_";
/// How a function begins that `env` hands to a shell.
const EXPORTED: &str = "BASH_FUNC_";
/// Places at which a command may begin, where options are not known, that are told apart.
const BEGINNINGS_MAX: usize = 4;

/// A program that runs a command in its arguments.
struct Runner {
    program: &'static str,
    /// The words of which one has to be there before the command; without them it is behind the program.
    verbs: &'static [&'static str],
    /// Options that have the next word as their value.
    valued: &'static [&'static str],
    /// Words of its own before the command.
    own: usize,
    place: Place,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// In a container, where no path leads into the workspace.
    Elsewhere,
}

const fn here(
    program: &'static str,
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
) -> Runner {
    Runner {
        program,
        verbs,
        valued,
        own: 0,
        place: Place::Here,
    }
}

const fn within(program: &'static str) -> Runner {
    Runner {
        program,
        verbs: &["exec", "run"],
        valued: CONTAINER,
        own: 1,
        place: Place::Elsewhere,
    }
}

/// Options of what runs a command in a container, in one that is there and in a new one.
const CONTAINER: &[&str] = &[
    "-c",
    "-e",
    "-f",
    "-h",
    "-l",
    "-m",
    "-n",
    "-p",
    "-u",
    "-v",
    "-w",
    "--add-host",
    "--cap-add",
    "--cap-drop",
    "--container",
    "--context",
    "--cpus",
    "--detach-keys",
    "--device",
    "--dns",
    "--entrypoint",
    "--env",
    "--env-file",
    "--expose",
    "--gpus",
    "--group-add",
    "--hostname",
    "--image",
    "--index",
    "--ipc",
    "--label",
    "--link",
    "--log-driver",
    "--log-opt",
    "--memory",
    "--mount",
    "--name",
    "--namespace",
    "--net",
    "--network",
    "--pid",
    "--platform",
    "--publish",
    "--pull",
    "--restart",
    "--security-opt",
    "--shm-size",
    "--tmpfs",
    "--ulimit",
    "--user",
    "--volume",
    "--volumes-from",
    "--workdir",
];
/// Options with which a runner goes elsewhere before it runs anything.
const MOVING: &[&str] = &[
    "-C",
    "-w",
    "--cwd",
    "--dir",
    "--directory",
    "--prefix",
    "--project",
    "--workspace",
];
const PACKAGE: &[&str] = &[
    "-p",
    "--package",
    "-w",
    "--workspace",
    "--prefix",
    "-C",
    "--dir",
];
const PYTHON: &[&str] = &[
    "--with",
    "--from",
    "--python",
    "-p",
    "--project",
    "--directory",
    "--extra",
    "--group",
    "--env-file",
    "--index-url",
    "--spec",
    "-n",
    "--name",
];
const RUNNERS: &[Runner] = &[
    here("npx", &[], PACKAGE),
    here("pnpx", &[], PACKAGE),
    here("bunx", &[], PACKAGE),
    here("npm", &["exec", "x"], PACKAGE),
    here("pnpm", &["exec", "dlx"], PACKAGE),
    here("yarn", &["exec", "dlx", "run"], PACKAGE),
    here("bun", &["x"], PACKAGE),
    here("bundle", &["exec"], &["--gemfile"]),
    here("poetry", &["run"], PYTHON),
    here("pipenv", &["run"], PYTHON),
    here("pdm", &["run"], PYTHON),
    here("hatch", &["run"], PYTHON),
    here("rye", &["run"], PYTHON),
    here("conda", &["run"], PYTHON),
    here("pipx", &["run"], PYTHON),
    here("uv", &["run"], PYTHON),
    here("uvx", &[], PYTHON),
    here("mise", &["exec", "x"], &[]),
    here("shx", &[], &[]),
    here("cross-env", &[], &[]),
    here("dotenv", &[], &["-e", "-f"]),
    here("dotenv", &["run"], &["-f"]),
    Runner {
        own: 1,
        ..here("rustup", &["run"], &[])
    },
    Runner {
        own: 1,
        ..here("direnv", &["exec"], &[])
    },
    within("docker"),
    within("docker-compose"),
    within("podman"),
    within("nerdctl"),
    within("kubectl"),
    within("oc"),
    within("lxc"),
];
/// Options of them without a value.
const FLAGS: &[&str] = &[
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-s",
    "--silent",
    "-v",
    "--verbose",
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "-T",
    "--interactive",
    "--tty",
    "--detach",
    "--stdin",
    "--privileged",
    "--no-install",
    "--isolated",
    "--frozen",
    "--locked",
    "--no-sync",
    "--no-project",
    "--offline",
    "--no-capture-output",
    // Of containers that are made for the command.
    "--build",
    "--init",
    "--no-deps",
    "--quiet-pull",
    "--read-only",
    "--remove-orphans",
    "--rm",
    "--service-ports",
    "--use-aliases",
    "-P",
    "-dit",
    "-itd",
];

impl Judge<'_> {
    /// Judges the command that a program hands on, where it stands among its arguments.
    pub(super) fn hands_on(
        &mut self,
        words: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        let before = simple.words.len().saturating_sub(words.len());
        self.exported(simple.words.get(..before).unwrap_or_default(), depth);
        let Some((first, args)) = words.split_first() else {
            return;
        };
        if names(first, &[LAST_WORD]) {
            self.raise("computed_command", whole, COMPUTED);
        }
        if self.is_shell(first) {
            let shell = plain("sh");
            let words = [shell].into_iter().chain(args.iter().cloned()).collect();
            self.handed(words, simple, all, depth);
        }
        let name = program(first);
        for runner in RUNNERS.iter().filter(|it| it.program == name) {
            for ran in self.ran_by(runner, args) {
                match runner.place {
                    Place::Here if is_moved(args) => {
                        self.handed(package(ran), simple, all, depth);
                    }
                    Place::Here => self.handed_here(package(ran), simple, all, depth),
                    Place::Elsewhere => {
                        let ran = begun_by(args, ran);
                        self.contained(ran, simple, all, depth, whole);
                    }
                }
            }
        }
        self.hands_script(name, args, simple, all, depth, whole);
    }

    /// Judges a command that runs where its runner is, and nowhere else.
    fn handed_here(&mut self, words: Vec<Word>, simple: &Simple, all: &[Simple], depth: usize) {
        let aside = std::mem::take(&mut self.aside);
        self.handed(words, simple, all, depth);
        self.aside = aside;
    }

    pub(super) fn handed(
        &mut self,
        words: Vec<Word>,
        simple: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        if depth >= SCRIPT_DEPTH_MAX {
            let whole = super::shown(&words);
            self.raise("unreadable_command", &whole, "can not be read in full");
            return;
        }
        let handed = Simple {
            words,
            writes: Vec::new(),
            ..simple.clone()
        };
        self.in_child(|judge| judge.simple(&handed, all, depth + 1));
    }

    /// Whether a word stands for a shell: `$SHELL`, `$0`, `/proc/self/exe`.
    fn is_shell(&self, first: &Word) -> bool {
        let is_own = names(first, &[OWN_NAME]) && self.variables.contains_key(OWN_NAME);
        let is_running = first.text.starts_with("/proc/") && first.text.ends_with("/exe");
        is_running || (names(first, SHELL_NAMES) && !is_own)
    }

    /// Functions that `env` hands to a shell: `env 'BASH_FUNC_ls%%=() { …; }' bash -c ls`.
    fn exported(&mut self, words: &[Word], depth: usize) {
        for word in words {
            let named = word.text.strip_prefix(EXPORTED);
            let Some((name, body)) = named.and_then(|it| it.split_once('=')) else {
                continue;
            };
            self.certainty = Certainty::MayRunMore;
            let name = name.trim_end_matches(['%', '(', ')']);
            let body = body.trim_start_matches(['(', ')', ' ']);
            self.script(&format!("{name}() {body}"), depth + 1);
        }
    }

    /// The command among the arguments of a program, or each that it may be.
    fn ran_by<'w>(&mut self, runner: &Runner, args: &'w [Word]) -> Vec<&'w [Word]> {
        let is_verb = |word: &Word| runner.verbs.contains(&word.text.as_str());
        let verb = args.iter().position(is_verb).map(|at| at + 1);
        // One letter may as well be a name: `npm install x`.
        let is_short = |at: usize| args.get(at - 1).is_some_and(|it| it.text.len() == 1);
        let verb = verb.filter(|at| *at == 1 || !is_short(*at));
        let start = if runner.verbs.is_empty() {
            Some(0)
        } else {
            verb
        };
        let Some(mut rest) = start.and_then(|at| args.get(at..)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut own = runner.own;
        while let Some((word, behind)) = rest.split_first() {
            let text = word.text.as_str();
            if text == "--" {
                rest = behind;
                break;
            }
            let is_option = text.starts_with('-') && text.len() > 1;
            let is_set = runner.program.ends_with("env") && text.contains('=');
            if !is_option && !is_set && own == 0 {
                break;
            }
            rest = behind;
            if !is_option {
                own -= usize::from(!is_set && own > 0);
            } else if runner.valued.contains(&text) {
                rest = rest.get(1..).unwrap_or_default();
            } else if !FLAGS.contains(&text) && !text.contains('=') {
                // The next word may be its value or the command.
                self.certainty = Certainty::MayRunMore;
                found.extend(rest.get(1 + own..).filter(|it| !it.is_empty()));
            }
        }
        found.truncate(BEGINNINGS_MAX);
        found.extend(Some(rest).filter(|rest| !rest.is_empty()));
        found
    }
}

/// Whether a word is one of these variables and nothing else.
fn names(word: &Word, known: &[&str]) -> bool {
    let parts = parts(&word.text);
    word.has_variable
        && matches!(parts.as_slice(), [Part::Variable(Variable { name, .. })] if known.contains(name))
}

pub(super) fn plain(text: &str) -> Word {
    Word {
        text: text.to_owned(),
        ..Word::default()
    }
}

/// Whether a program may hand a command on.
pub(super) fn is_runner(name: &str) -> bool {
    RUNNERS.iter().any(|it| it.program == name)
}

/// Whether a runner is told to go elsewhere first.
fn is_moved(args: &[Word]) -> bool {
    let is_moving = |word: &Word| {
        let name = word.text.split('=').next().unwrap_or_default();
        MOVING.contains(&name)
    };
    args.iter().any(is_moving)
}

/// The command of a container: what `--entrypoint` names comes before all else.
fn begun_by(args: &[Word], ran: &[Word]) -> Vec<Word> {
    const NAME: &str = "--entrypoint";
    let named = args.iter().enumerate().find_map(|(at, word)| {
        let value = word.text.strip_prefix(NAME)?.strip_prefix('=');
        match value {
            Some(value) => Some(plain(value)),
            None => args.get(at + 1).filter(|_| word.text == NAME).cloned(),
        }
    });
    named.into_iter().chain(ran.iter().cloned()).collect()
}

/// The command that comes with a package: `rimraf@5`, `@changesets/cli`.
fn package(ran: &[Word]) -> Vec<Word> {
    let mut words = ran.to_vec();
    if let Some(first) = words.first_mut().filter(|it| !it.has_variable) {
        let at = first.text.rfind('@').filter(|at| *at > 0);
        if let Some(at) = at {
            first.text.truncate(at);
        }
        if first.text == "@changesets/cli" {
            "changeset".clone_into(&mut first.text);
        }
    }
    words
}
