//! Directories to work through whose names come out of variables: `D=build; rm -rf "$D"`.
//!
//! Only what is certain counts as known here: one that is mistaken for a harmless one is gone with all
//! that is in it.

use super::expansion::{Form, Part, Variable, parts};
use super::variables::{MEANINGS_MAX, SEPARATORS, Set, is_argument};
use super::{Judge, Setters};
use crate::tools::exec::shell::{Splitting, Word};

/// Variables that shells set, or that come with the environment.
const THE_SHELLS: &[&str] = &[
    "_",
    "?",
    "!",
    "$",
    "#",
    "-",
    "0",
    "CDPATH",
    "COLUMNS",
    "DIRSTACK",
    "ENV",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOME",
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "INSIDE_EMACS",
    "LANG",
    "LINENO",
    "LINES",
    "MACHTYPE",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PATH",
    "PIPESTATUS",
    "PPID",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TERM",
    "TIMEFORMAT",
    "TMPDIR",
    "TZ",
    "UID",
    "USER",
];
const THE_SHELLS_BEGIN: &[&str] = &["BASH", "COMP", "COPROC", "HIST", "LC_", "READLINE"];

impl Judge<'_> {
    /// Whether a directory to work through is only known when it runs. What its variables hold by then
    /// is judged for itself; but each of them was perhaps not set, and what is left may be worse.
    pub(super) fn is_uncertain_directory(&mut self, word: &Word) -> bool {
        if word.has_substitution {
            return true;
        }
        if !word.has_variable || self.is_own_temporary(word) {
            return false;
        }
        let Some(wholes) = self.directories(&word.text) else {
            return true;
        };
        wholes.into_iter().any(|text| self.is_worse(word, text))
    }

    /// Whether a word that has become this text leads out of the workspace, or is all of it.
    fn is_worse(&self, word: &Word, text: String) -> bool {
        let mut separators = self.variables.get(SEPARATORS).into_iter().flatten();
        if word.splitting == Splitting::Splits && separators.any(|set| !matches!(set, Set::To(_))) {
            // Nobody knows into what it is split.
            return true;
        }
        let texts = match word.splitting {
            Splitting::Never | Splitting::Alternative => vec![text],
            Splitting::Splits => self.split(&text),
        };
        let mut words = texts.into_iter().map(|text| Word {
            text,
            has_variable: false,
            ..word.clone()
        });
        words.any(|word| {
            !word.text.is_empty() && (self.leaves(&word) || self.is_whole_workspace(&word))
        })
    }

    /// All that a word may be; nothing where something in it is not certain, or there is too much of it.
    fn directories(&mut self, text: &str) -> Option<Vec<String>> {
        let mut wholes = vec![String::new()];
        for part in parts(text) {
            let held = match &part {
                Part::Text(text) => vec![(*text).to_owned()],
                Part::Variable(variable) => self.certain(variable)?,
                Part::Unread => return None,
            };
            let all = wholes
                .iter()
                .flat_map(|begun| held.iter().map(move |text| format!("{begun}{text}")));
            wholes = all.take(MEANINGS_MAX + 1).collect();
            self.judged_bytes += wholes.iter().map(|it| it.len() + 1).sum::<usize>();
            if wholes.len() > MEANINGS_MAX || self.has_too_much() {
                return None;
            }
        }
        Some(wholes)
    }

    /// All that a variable may hold, if the command line itself sets it to what stands there, and nothing in
    /// it sets variables in any other way. Nothing among it: what sets it may not have run.
    fn certain(&self, variable: &Variable<'_>) -> Option<Vec<String>> {
        let name = variable.name;
        let is_certain = variable.form == Form::AsItIs
            && self.setters == Setters::Known
            && !self.unclear.contains(name)
            && !is_the_shells(name);
        let sets = self.variables.get(name).filter(|_| is_certain)?;
        let mut held = vec![String::new()];
        for set in sets {
            let Set::To(text) = set else {
                return None;
            };
            held.push(text.clone());
        }
        Some(held)
    }
}

/// Whether a variable is set by the shell as well, or comes with the environment.
fn is_the_shells(name: &str) -> bool {
    is_argument(name)
        || THE_SHELLS.contains(&name)
        || THE_SHELLS_BEGIN.iter().any(|it| name.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};

    const ASKED: &[&str] = &[
        "rm -rf \"$PWD\"",
        "cd sub && rm -rf \"$OLDPWD\"",
        "D=$PWD; rm -rf \"$D\"",
        "D=\"$PWD/build\"; rm -rf \"$D\"",
        "rm -rf \"$TMPDIR\"",
        "rm -rf \"${PWD%/*}\"",
        "rm -rf \"${D:-$PWD}\"",
        "D=${PWD:-build}; rm -rf \"$D\"",
        "D=${HOME:-build}; rm -rf \"$D\"",
        "f() { rm -rf \"$1\"; }; f \"${PWD:-x}\"",
        "for d in \"${HOME:-x}\"; do rm -rf \"$d\"; done",
        // What the shell sets as well.
        "PWD=build true; rm -rf \"$PWD\"",
        "OLDPWD=build; cd sub; rm -rf \"$OLDPWD\"",
        "(PWD=$(mktemp -d)); rm -rf \"$PWD\"",
        "PWD=build; cd .; rm -rf \"$PWD\"",
        "TMPDIR=$(mktemp -d) make; rm -rf \"$TMPDIR\"",
        ": ${TMPDIR:=x}; rm -rf \"$TMPDIR\"",
        "_=build; : $PWD; rm -rf \"$_\"",
        "DIRSTACK=build; rm -rf \"$DIRSTACK\"",
        "REPLY=x; select d in *; do rm -rf \"$REPLY\"; done",
        "BASH_REMATCH=build; [[ . =~ . ]]; rm -rf \"$BASH_REMATCH\"",
        "LC_ALL=build; rm -rf \"$LC_ALL\"",
        // What git prints is not always a name.
        "D=$(git rev-parse --show-toplevel); rm -rf \"$D\"",
        "D=$(git rev-parse --git-dir); rm -rf \"$D\"",
        // Patterns, lists and arguments.
        "set -- *; rm -rf \"$@\"",
        "clean() { rm -rf \"$@\"; }; clean *",
        "clean() { rm -rf \"$1\"; }; clean build",
        "sh -c 'rm -rf \"$@\"' _ *",
        "for d in build *; do rm -rf \"$d\"; done",
        "d=build; for d in *; do rm -rf \"$d\"; done",
        "D=*; rm -rf $D",
        "a=(*); rm -rf \"${a[@]}\"",
        "a=build; a[1]=..; rm -rf \"${a[1]}\"",
        "ls | xargs sh -c 'rm -rf \"$@\"' _",
        "ls | xargs -n 1 bash -c 'rm -rf \"$0\"'",
        "cat list | xargs bash -c 'for d; do rm -rf \"$d\"; done' _",
        "find . -exec sh -c 'rm -rf \"$1\"' _ {} +",
        "echo 'rm -rf \"$1\"' | sh -s -- \"$PWD\"",
        "rm -rf \"$1\"",
        "f() { rm -rf \"$1\"; }; export -f f; parallel f ::: ..",
        "command_not_found_handle() { rm -rf \"$2\"; }; nosuch ..",
        // Something is made of what it holds.
        "set -- x../victim; rm -rf \"${1#x}\"",
        "f() { rm -rf \"${1#x}\"; }; f x/home",
        "D=build; rm -rf \"${!D}\"",
        "D=x.; rm -rf \"${D#x}\"",
        // Some of its parts were perhaps not set.
        "[ -d x ] && P=build; S=/home; rm -rf \"$P$S\"",
        "[ -d x ] && P=build/; S=*; rm -rf $P$S",
        "[ -d x ] && P=build/; S='a *'; rm -rf $P$S",
        "[ -d x ] && P=a; Q=b; S=.; rm -rf \"$P$S$Q\" \"$P$S\"",
        "[ -d x ] && P=build; D=\"$PWD/$P\"; rm -rf \"$D\"",
        "[ -d x ] && P=build; D=\"./$P\"; rm -rf \"$D\"",
        "[ -d x ] && P=build; rm -rf \"./$P\"",
        "[ -d x ] && P=build; for d in \"$P\"*; do rm -rf \"$d\"; done",
        "[ -d x ] && P=build; a=(\"./$P\"); rm -rf \"${a[@]}\"",
        "D=build; rm -rf \"$D/\"",
        // Set by others.
        "set -- *; D=x; for D; do rm -rf \"$D\"; done",
        "f() { D=x; for D; do rm -rf \"$D\"; done; }; f *",
        "IFS=$(echo x); D=buildx../victim; rm -rf $D",
        "bash -c 'shopt -s extglob; D=\"!(x)\"; rm -rf $D'",
        "Z=1; [ -d x ] && E=build; : \"${Z#${E:=../victim}}\"; rm -rf \"$E\"",
        "D=build; zsh -c ': ${D::=..}; rm -rf $D'",
        "D=build; fish -c 'set D ..; rm -rf $D'",
        "D=build; trap \"$X\" DEBUG; rm -rf \"$D\"",
        "export D=build; BASH_ENV=./e bash -c 'rm -rf \"$D\"'",
        "F=$(echo -rf); rm $F ./*",
        "mv -t sub ../victim",
        "mv -t -t ../victim",
        "mv -S -t ../victim sub",
        "mv -- -t ../victim",
        "mv a -t ../victim sub",
        "mv $X -t ../victim sub",
        "mv --target-directory=sub /etc/x",
        "D=build; . ./env.sh; rm -rf \"$D\"",
        "D=build; source vars; rm -rf \"$D\"",
        ". ./env.sh; D=build; rm -rf \"$D\"",
        "D=build; sleep 1 & wait -n -p D; rm -rf \"$D\"",
        "D=build; wait -pD; rm -rf \"$D\"",
        "D=build; printf -v D ..; rm -rf \"$D\"",
        "declare -n r=D; D=build; r=$PWD; rm -rf \"$D\"",
        "D=build; eval \"$X\"; rm -rf \"$D\"",
        "cat l | { echo; read D; D=${D:-build}; rm -rf \"$D\"; }",
        "{ read D; } <<< ..; [ -n \"$D\" ] || D=build; rm -rf \"$D\"",
        "f() { read D; }; f < list; : ${D:=build}; rm -rf \"$D\"",
        "D=build; : ${D:=..}; rm -rf \"$D\"",
        "D=build; D+=/../..; rm -rf \"$D\"",
        "D=build; env D=.. sh -c 'rm -rf \"$D\"'",
        "D=build; perl -e '$D=\".git keep\"; system(\"rm -rf $D\")'",
        "D=build; ssh host 'rm -rf \"$D\"'",
        // Modes and owners.
        "chmod -R 000 \"$X\"",
        "chown -R x \"$X\"",
        "chmod 000 -R \"$X\"",
        "chmod -R 000 /etc",
        "chgrp -R x ..",
        "chmod -R -rwx /etc",
        "chmod -R -w ..",
        "chmod -R -- -w ..",
        "chmod -R -x \"$X\"",
        "chmod -w ../victim",
        "chown -R --reference=f /etc",
    ];

    const NOT_ASKED: &[&str] = &[
        "D=build; rm -rf \"$D\"",
        "D=build; rm -rf $D",
        "D=./build; E=out; rm -rf \"$D\" \"$E\"",
        "D=build E=x; rm -rf \"$D-$E\"",
        "export D=build; rm -rf \"$D\" && mkdir \"$D\"",
        "if [ -d out ]; then D=out; else D=build; fi; rm -rf \"$D\"",
        "for d in build dist; do rm -rf \"$d\"; done",
        "printf 'x\\n'; OUT=dist; rm -rf \"$OUT\"",
        "rm -rf \"$PWD/build\"",
        "unset FOO; D=build; rm -rf \"$D\"",
        "for f in *.o; do rm $f; done",
        "mv -t sub a b && mv c ../x",
        "mv -t ../out a b",
        "mv -v -ft ../out a",
        "mv --target-directory ../out a",
        "chmod -R 755 build",
        "chmod -R -w build",
        "chown -R me build",
        "chmod +x build/run",
    ];

    #[test]
    fn what_is_not_certain_is_asked() {
        let missed = not_asked(&[("destructive_command", ASKED)]);
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn what_is_certain_is_not() {
        let alarms = asked(NOT_ASKED);
        assert!(alarms.is_empty(), "{alarms:#?}");
    }
}
