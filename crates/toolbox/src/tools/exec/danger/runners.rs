//! Where the command stands among the arguments of a program that runs it, and where it runs.

use std::collections::BTreeSet;

use super::Judge;
use super::hands::plain;
use crate::tools::exec::shell::Word;

/// Places at which a command may begin, where options are not known, that are told apart.
pub(super) const BEGINNINGS_MAX: usize = 8;
const ENTRYPOINT: &str = "--entrypoint";

/// A program that runs a command in its arguments.
pub(super) struct Runner {
    program: &'static str,
    /// The words of which one has to be there before the command; without them it is behind the program.
    verbs: &'static [&'static str],
    /// Options that have the next word as their value.
    valued: &'static [&'static str],
    /// Words of its own before the command.
    own: usize,
    pub(super) place: Place,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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
/// Programs with those of their options that have a value, and with which they stay where they are. Only
/// with these and flags is it known where a command runs: all others may lead elsewhere.
const STAYING: &[(&[&str], &[&str])] = &[
    (
        &["npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "bun"],
        &["-p", "--package"],
    ),
    (
        &["uv", "uvx", "pipx"],
        &[
            "-p",
            "--env-file",
            "--extra",
            "--from",
            "--group",
            "--index-url",
            "--python",
            "--spec",
            "--with",
        ],
    ),
    (&["conda"], &["-n", "--name", "-p"]),
    (&["bundle"], &["--gemfile"]),
    (&["dotenv"], &["-e", "-f"]),
];
/// Programs that read their options also behind the container, up to `--`; for the others the command
/// begins right behind it.
const READING_ON: &[&str] = &["kubectl", "oc", "lxc"];

pub(super) fn runners(name: &str) -> impl Iterator<Item = &'static Runner> {
    RUNNERS.iter().filter(move |it| it.program == name)
}

/// Whether a program may hand a command on.
pub(super) fn is_runner(name: &str) -> bool {
    RUNNERS.iter().any(|it| it.program == name)
}

/// Where a command may begin among arguments.
#[derive(Default)]
pub(super) struct Beginnings {
    pub(super) starts: BTreeSet<usize>,
    /// There is an option of which it is not known whether it has a value.
    pub(super) is_unsure: bool,
}

impl Runner {
    fn stops_at_own(&self) -> bool {
        self.place == Place::Elsewhere && !READING_ON.contains(&self.program)
    }

    /// Where its own words end that come before all else.
    fn behind_verb(&self, args: &[Word]) -> Option<usize> {
        if self.verbs.is_empty() {
            return Some(0);
        }
        let is_verb = |word: &Word| self.verbs.contains(&word.text.as_str());
        let at = args.iter().position(is_verb)?;
        // One letter may as well be a name: `npm install x`.
        let is_short = args.get(at).is_some_and(|it| it.text.len() == 1);
        (at == 0 || !is_short).then_some(at + 1)
    }
}

/// Each place at which a command may begin. Where an option is not known, the next word may be its value or
/// not: both are followed, and they meet again, so there are never more ways than words.
pub(super) fn beginnings(runner: &Runner, args: &[Word]) -> Beginnings {
    let mut found = Beginnings::default();
    let start = runner.behind_verb(args).map(|at| (at, runner.own));
    let mut open: BTreeSet<(usize, usize)> = start.into_iter().collect();
    while let Some((at, own)) = open.pop_first() {
        let Some(text) = args.get(at).map(|word| word.text.as_str()) else {
            found.starts.insert(args.len());
            continue;
        };
        let is_option = text.starts_with('-') && text.len() > 1;
        let is_set = runner.program.ends_with("env") && text.contains('=');
        if own == 0 && runner.stops_at_own() {
            found.starts.insert(at);
        } else if text == "--" {
            let own = if runner.stops_at_own() { own } else { 0 };
            found.starts.insert((at + 1 + own).min(args.len()));
        } else if !is_option && !is_set && own == 0 {
            found.starts.insert(at);
        } else if !is_option {
            open.insert((at + 1, own - usize::from(!is_set && own > 0)));
        } else if runner.valued.contains(&text) {
            open.insert((at + 2, own));
        } else {
            open.insert((at + 1, own));
            if !FLAGS.contains(&text) && !text.contains('=') {
                found.is_unsure = true;
                open.insert((at + 2, own));
            }
        }
    }
    // Without a command there is nothing to judge, and none begins with a dash: what `--entrypoint` names
    // is begun by itself, and may have such arguments.
    let begun = args
        .iter()
        .position(|word| word.text.starts_with(ENTRYPOINT));
    found.starts.retain(|at| {
        let is_command = args.get(*at).is_some_and(|it| !it.text.starts_with('-'));
        let is_begun = runner.place == Place::Elsewhere && begun.is_some_and(|begun| begun < *at);
        is_command || is_begun
    });
    found
}

/// Whether a runner stays where it is, as far as all that stands before the command is known.
pub(super) fn stays(runner: &Runner, before: &[Word], ran: &[Word]) -> bool {
    let known = STAYING
        .iter()
        .filter(|(names, _)| names.contains(&runner.program));
    let valued: Vec<&str> = known
        .flat_map(|(_, options)| options.iter().copied())
        .collect();
    let is_known = |text: &str| {
        let name = text.split('=').next().unwrap_or_default();
        FLAGS.contains(&text) || valued.contains(&name)
    };
    let mut own = runner.own + usize::from(!runner.verbs.is_empty());
    let mut rest = before.iter().map(|word| word.text.as_str());
    while let Some(text) = rest.next() {
        let is_set = runner.program.ends_with("env") && text.contains('=');
        if text == "--" || is_set {
            continue;
        }
        if !text.starts_with('-') {
            // `yarn workspace x exec`: a word that is none of its own.
            let Some(left) = own.checked_sub(1) else {
                return false;
            };
            own = left;
        } else if !is_known(text) {
            return false;
        } else if valued.contains(&text) {
            rest.next();
        }
    }
    // `npm exec rimraf x -w y`: npm reads its options wherever they stand.
    let is_ended = before.iter().any(|word| word.text == "--");
    let reads_on = runner.program == "npm" && !is_ended;
    let mut behind = ran.iter().take_while(|word| word.text != "--");
    !reads_on || behind.all(|word| !word.text.starts_with('-') || is_known(&word.text))
}

/// Whether a container is made for the command: `docker run`, and not `docker exec`.
pub(super) fn is_new(runner: &Runner, before: &[Word]) -> bool {
    let mut texts = before.iter().map(|word| word.text.as_str());
    texts.find(|text| runner.verbs.contains(text)) == Some("run")
}

/// What `--entrypoint` names, which comes before all else: a program, or several words of one.
pub(super) fn entrypoint(before: &[Word]) -> Vec<Word> {
    let named = values(before, &[ENTRYPOINT], None).pop();
    let Some(named) = named else {
        return Vec::new();
    };
    let texts = named.text.split([',', ' ']);
    let texts = texts.map(|it| it.trim_matches(['[', ']', '"', '\'']));
    let word = |text: &str| Word {
        text: text.to_owned(),
        ..named.clone()
    };
    texts.filter(|it| !it.is_empty()).map(word).collect()
}

/// The values of options, by their names and, also behind other letters, by their letter.
fn values(words: &[Word], names: &[&str], letter: Option<char>) -> Vec<Word> {
    let value = |(at, word): (usize, &Word)| {
        let text = word.text.as_str();
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ => (text, None),
        };
        let by_letter = letter.filter(|_| !text.starts_with("--")).and_then(|it| {
            let (flags, behind) = text.strip_prefix('-')?.split_once(it)?;
            flags
                .chars()
                .all(|flag| "ditP".contains(flag))
                .then_some(behind)
        });
        let attached = match by_letter {
            Some(behind) => Some(behind).filter(|it| !it.is_empty()),
            None if names.contains(&name) => attached,
            None => return None,
        };
        match attached {
            Some(value) => Some(Word {
                text: value.trim_start_matches('=').to_owned(),
                ..word.clone()
            }),
            None => words.get(at + 1).cloned(),
        }
    };
    words.iter().enumerate().filter_map(value).collect()
}

impl Judge<'_> {
    /// Whether a container sees nothing of what is outside the workspace here.
    pub(super) fn mounts_within(&self, before: &[Word]) -> bool {
        let is_within = |word: &Word| {
            let mut parts = word.text.split([':', ',']);
            let is_spelt = word.text.contains("type=");
            let source = if is_spelt {
                // The last one counts.
                parts
                    .rev()
                    .find_map(|it| it.strip_prefix("src=").or(it.strip_prefix("source=")))
            } else {
                parts.next()
            };
            source.is_none_or(|source| self.is_source_within(source, word))
        };
        let mut mounts = values(before, &["--volume", "--mount"], Some('v')).into_iter();
        let takes_others = values(before, &["--volumes-from"], None);
        takes_others.is_empty() && mounts.all(|word| is_within(&word))
    }

    /// A name is that of a volume; a path is in the workspace if it is from here on, or said to be.
    fn is_source_within(&self, source: &str, word: &Word) -> bool {
        let printed = word
            .substitutions
            .first()
            .map(|(_, command)| command.trim());
        let here = ["${PWD}", "$PWD"]
            .iter()
            .find_map(|it| source.strip_prefix(it))
            .or_else(|| {
                source
                    .strip_prefix('$')
                    .filter(|_| matches!(printed, Some("$(pwd)" | "`pwd`")))
            });
        match here {
            Some(behind) if behind.is_empty() || behind.starts_with('/') => {
                !behind.contains('$') && !self.leaves(&plain(&format!(".{behind}")))
            }
            _ if word.is_home || source.contains('$') || word.has_substitution => false,
            _ => !source.contains(['/', '.', '~']) || !self.leaves(&plain(source)),
        }
    }
}
