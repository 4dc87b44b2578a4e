//! Commands that are another one for each value of a variable, and directories that are known without
//! standing in the command line.

use super::evasions::{asked, not_asked};
use super::tests::judged;
use super::*;

/// A reason and commands that have to give it.
const ASKED: &[(&str, &[&str])] = &[
    (
        "destructive_command",
        &[
            // Each value makes another command.
            "for c in status clean; do git $c -fdx; done",
            "for c in status clean; do git \"$c\" -fdx; done",
            "for c in status clean; do git -C sub $c -fdx; done",
            "F=; F=-C; git $F clean -fdx",
            "c=log; c=clean; git $c -fdx",
            "c=log; c='clean -fdx'; git $c",
            "g() { git \"$@\"; }; for c in status clean; do g $c -fdx; done",
            "g() { git $1 -fdx; }; for c in status clean; do g $c; done",
            "g() { git $F \"$@\"; }; F=; F=-C; for c in status clean; do g $c -fdx; done",
            "f() { rm -rf \"$2\"; }; for x in a b; do f $x ../victim; done",
            "g() { shift; git \"$@\"; }; g x clean -fdx",
            "g() { git \"${@:2}\"; }; g x clean -fdx",
            "set -- x clean -fdx; shift; git \"$@\"",
            "a=(status clean); git ${a[1]} -fdx",
            "a=(status clean); git \"${a[1]}\" -fdx",
            "for g in l g; do ${g}it clean -fdx; done",
            "for g in ls git; do /usr/bin/$g clean -fdx; done",
            "for c in ls 'rm -rf ../victim'; do sh -c \"$c\"; done",
            "for c in ls 'rm -rf ../victim'; do eval \"$c\"; done",
            "for c in ls 'rm -rf /srv'; do ssh host $c; done",
            "for c in ls rm; do env $c -rf ../victim; done",
            "for c in : 'rm -rf ../victim'; do trap \"$c\" EXIT; done",
            "for d in a b; do for c in gc clean; do git -C $d $c -fdx; done; done",
            // Where it holds nothing, the next word is the command.
            "$X git clean -fdx",
            "[ -n \"$DRY\" ] && S=echo; $S git clean -fdx",
            // Directories that may be others.
            "rm -rf \"$PWD\"",
            "rm -rf \"$PWD\"/*",
            "rm -rf \"$PWD/../other\"",
            "rm -rf \"${PWD%/*}\"",
            "rm -rf \"$OLDPWD\"",
            "rm -rf \"$TMPDIR\"",
            "PWD=/; rm -rf \"$PWD/build\"",
            "PWD=; rm -rf \"$PWD/build\"",
            "unset PWD; rm -rf \"$PWD/build\"",
            "n=PWD; unset \"$n\"; rm -rf \"$PWD/build\"",
            "unset \"$X\"; rm -rf \"$PWD/build\"",
            "f() { local PWD; rm -rf \"$PWD/build\"; }; f",
            "read PWD; rm -rf \"$PWD/build\"",
            "for PWD in / /etc; do rm -rf \"$PWD/build\"; done",
            "eval \"$X\"; rm -rf \"$PWD/build\"",
            "declare -n r=PWD; r=/; rm -rf \"$PWD/build\"",
            "cd /; rm -rf \"$PWD/build\"",
            "cd \"$X\"; rm -rf \"$PWD/build\"",
            "IFS=/; rm -rf $PWD/build",
            "rm -rf \"$PWD/$X\"",
            "perl -e 'system(\"rm -rf $PWD/build\")'",
            "T=$(mktemp -d); rm -rf \"$T\"",
            "T=$(mktemp -d); mv ./* .git \"$T\"; rm -rf \"$T\"",
            "T=$(mktemp -d); rm -rf \"$T\"/*",
            "T=$(mktemp -d); rm -rf \"$T/x\"",
            "T=$(mktemp -d); rm -rf \"$T/..\"",
            "T=$(mktemp -d); rm -rf $T",
            "T=$(mktemp -d); rm -rf \"${T%/*}\"",
            "T=$(mktemp -d); T=${T%/*}; rm -rf \"$T\"",
            "T=$(mktemp -d); T=..; rm -rf \"$T\"",
            "T=$(mktemp -d); E=${T%/*}; rm -rf \"$E\"",
            "T=$(mktemp -d); f() { rm -rf \"$1\"; }; f \"${T%/*}\"",
            "T=$(mktemp -d); T=$(cat f); rm -rf \"$T\"",
            "T=$(mktemp -d); read T < f; rm -rf \"$T\"",
            "T=$(mktemp -d); eval \"$X\"; rm -rf \"$T\"",
            "T=$(mktemp -d || echo /); rm -rf \"$T\"",
            "T=$(mktemp -d | sed s,tmp.*,,); rm -rf \"$T\"",
            "T=$(mktemp -d)/..; rm -rf \"$T\"",
            "T=$(mktemp -d -p /); rm -rf \"$T\"",
            "T=$(mktemp -d $(cat f)); rm -rf \"$T\"",
            "T=$(mktemp -u); rm -rf \"$T\"",
            "T=$(./mktemp -d); rm -rf \"$T\"",
            "mktemp() { echo ~; }; T=$(mktemp -d); rm -rf \"$T\"",
            "T=$(mktemp -d); mktemp() { echo ~; }; T=$(mktemp -d); rm -rf \"$T\"",
            "eval 'mktemp() { echo ~; }'; T=$(mktemp -d); rm -rf \"$T\"",
            "alias mktemp='echo ~'\nT=$(mktemp -d); rm -rf \"$T\"",
            "BASH_ALIASES[mktemp]='echo ~'; T=$(mktemp -d); rm -rf \"$T\"",
            "hash -p ./x mktemp; T=$(mktemp -d); rm -rf \"$T\"",
            "PATH=.; T=$(mktemp -d); rm -rf \"$T\"",
            ". ./lib.sh; T=$(mktemp -d); rm -rf \"$T\"",
            "for i in 1 2; do T=$(mktemp -d); rm -rf \"$T\"; PATH=.; done",
            "D=build-$(cat f); rm -rf \"$D\"",
            "D=/etc/x-$(cat f); echo x > \"$D\"",
        ],
    ),
    (
        "irreversible_command",
        &[
            "for c in fetch push; do git $c -f; done",
            "for c in get delete; do kubectl $c pod x; done",
            "for c in status stop; do systemctl $c nginx; done",
            "for c in 'stash list' 'stash drop'; do git $c; done",
            "for a in soft hard; do git reset --$a; done",
            "$X git push -f",
            "[ -n \"$DRY\" ] && S=echo; $S git push -f",
            // Nobody knows which.
            "git \"$x\" -fdx",
            "git \"$x\" --hard",
            "git \"$x\" drop",
            "git \"$x\" -D y",
            "c=$(cat f); kubectl $c pod x",
            "c=$(cat f); kubectl \"$c\" pod x",
            "kubectl \"$VERB\" pod x",
            "npm $(cat f)",
            "c=$(cat f); docker --debug $c x",
            "c=test; c=$(cat f); cargo $c",
            "c=cle$(echo an); git \"$c\" -fdx",
            "git \"cle$(echo an)\" -fdx",
            "kubectl \"del$(echo ete)\" pod x",
            "git checkout -- \"$PWD\"",
            "git restore \"$PWD\"",
            "cat l | xargs git",
            "cat f | xargs -n1 kubectl",
            "b=$(git branch --format='+%(refname:short)'); git push origin \"$b\"",
            // What begins with a sign of its own.
            "b=-$(cat f); git push origin \"$b\"",
            "b=+$(cat f); git push origin \"$b\"",
            "b=:$(cat f); git push origin \"$b\"",
            "b=x-$(cat f); git push origin $b",
            "b=x; b+=$(cat f); b=$(cat g); git push origin \"$b\"",
        ],
    ),
    (
        "computed_command",
        &[
            "x='xgit clean -fdx'; ${x#x}",
            "n=x; x=ls; ${!n}",
            "c=x-$(cat f); $c",
            "c=rm; c=\"$c $(cat f)\"; $c",
        ],
    ),
];

/// Their likes that people run all day.
const UNASKED: &[&str] = &[
    "for c in status diff; do git $c; done",
    "for c in status diff log; do git -C sub \"$c\" --stat; done",
    "g() { git \"$@\"; }; for c in status diff; do g $c --stat; done",
    "g() { local d=$1; shift; git -C \"$d\" \"$@\"; }; g sub log --stat; g sub status",
    "a=(git log --stat); \"${a[@]}\"",
    "for c in build test; do cargo $c --locked; done",
    "for v in get describe; do kubectl $v pods; done",
    "kubectl -n \"$NS\" get pods",
    "npm --prefix \"$D\" test",
    "docker run -v \"$PWD:/x\" image",
    "cargo +$TOOLCHAIN build",
    "for d in a b; do for b in main fix; do git -C $d log $b; done; done",
    "for i in 1 2 3; do for j in 1 2 3; do f=$i$j; echo $f > out-$f; rm -f out-$f; done; done",
    "rm -rf \"$PWD/build\"",
    "rm -rf $PWD/build \"${PWD}/target\"",
    "cd sub && rm -rf \"$PWD/build\"",
    "CMD=\"cargo test\"; CMD=\"$CMD --locked\"; $CMD",
    "CMD=ls; if [ -n \"$X\" ]; then CMD=\"$CMD -l\"; fi; $CMD",
    "CC=gcc; for f in *.c; do o=\"${f%.c}.o\"; $CC -c \"$f\" -o \"$o\"; done",
    "b=$(git branch --show-current); t=${b#release/}; git push origin \"$b\"",
    "OPTS=; [ -n \"$V\" ] && OPTS=\"$OPTS --verbose\"; cargo build $OPTS",
];

#[test]
fn each_value_is_judged() {
    let wrong = not_asked(ASKED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_known_all_the_same_is_not_asked_about() {
    let wrong = asked(UNASKED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the order decides and there are too many of them.
#[test]
fn of_more_ways_than_are_told_apart_somebody_is_asked() {
    let many: Vec<String> = (0..60).map(|number| format!("x{number}")).collect();
    let many = many.join(" ");
    let command = format!("for a in {many}; do for b in {many}; do git $a $b; done; done");
    let found = reasons(&judged(&command, None));
    assert!(found.iter().any(|it| it.code == "unreadable_command"));
    let command = format!("for a in {many}; do for b in {many}; do cp $a $b; done; done");
    assert_eq!(reasons(&judged(&command, None)), []);
}

#[test]
fn a_reason_shows_what_was_written() {
    for (command, shown) in [
        ("rm -rf $(cat f)/x", "rm -rf $(cat f)/x"),
        ("rm -rf \"a$(cat f)b`cat g`\"", "rm -rf a$(cat f)b`cat g`"),
        ("git push -f \"$(git branch)\"", "git push -f $(git branch)"),
        ("echo x > /etc/$(cat f)", "echo x > /etc/$(cat f)"),
        ("rm -rf $(cat $(cat f))", "rm -rf $(cat $(cat f))"),
    ] {
        let found = reasons(&judged(command, None));
        let subjects: Vec<&str> = found.iter().map(|it| it.subject.as_str()).collect();
        assert!(subjects.contains(&shown), "{command}: {subjects:?}");
    }
}

/// However many values a command has, one thing is said of it once.
#[test]
fn a_reason_is_not_given_for_each_value() {
    let found = reasons(&judged("for f in ../a ../b ../c; do rm $f; done", None));
    assert_eq!(found.len(), 1, "{found:?}");
}
