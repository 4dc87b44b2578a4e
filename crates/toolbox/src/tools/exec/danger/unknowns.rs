//! What has to be followed, or else has to count as unknown: quotes of some shells, what variables
//! come to hold by other ways than `a=b`, words that split, and where functions end.

use super::evasions::{asked, not_asked};
use super::tests::judged;
use super::*;

/// A reason and commands that have to give it.
const ASKED: &[(&str, &[&str])] = &[
    (
        "destructive_command",
        &[
            // Quotes that only some shells know, and quotes within braces.
            r"echo $'\''; rm -rf ../victim; echo $'\''",
            r"rm -f $'\x2e\x2e/victim'",
            r"rm -f $'\056\u002e/victim\0/a'",
            "rm -f $\"../victim\"",
            r"D=$'..\x2fvictim'; rm -f $D",
            r#"echo "${a#'"'}"; rm -rf ../victim; echo "${a#'"'}""#,
            "rm -f ${a:-x ../victim}",
            "rm -f ${a:-${b:-../victim}}",
            // `~` that is kept.
            "D=~; rm -f $D/x",
            "D=~/.bashrc; echo x > $D",
            "D=x:~/y; IFS=:; rm $D",
            "export D=~; rm $D/x",
            "f() { local d=~; rm \"$d/x\"; }; f",
            "f() { rm \"$1\"; }; f ~/x",
            "a=(~/x); rm \"${a[@]}\"",
            "a=([1]=~/x); rm \"${a[@]}\"",
            "for d in ~ b; do rm $d/x; done",
            "set -- ~/x; rm $1",
            "read D <<< ~/x; rm $D",
            "rm ${X:-~/x}",
            ": ${D:=~}; rm $D/x",
            "dd if=x of=~/y",
            // Many values.
            "for f in a b c d e f g h ../victim; do rm -f $f; done",
            "f() { rm \"$@\"; }; f a b c d e f g h i ../victim",
            "set -- 1 2 3 4 5 6 7 8 9 ../victim; rm ${10}",
            "for f in ../*; do rm -f $f; done",
            // Arguments that move on, and functions that call themselves.
            "set -- a ../victim; shift; rm -f \"$1\"",
            "f() { shift; rm \"$1\"; }; f a ../victim",
            "f() { while [ $# -gt 0 ]; do rm \"$1\"; shift; done; }; f a ../victim",
            "set -- ../victim; for f; do rm $f; done",
            "set -- ../victim; for f do rm \"$f\"; done",
            "for f do rm -rf ../victim; done",
            "f() { rm \"$1\"; f \"$2\"; }; f a ../victim",
            "f() { g \"$1\"; }; g() { rm \"$1\"; f ../victim; }; f a",
            "f() { rm -f $D; D=../victim; f; }; f",
            // Set later, by other means, or to parts of something.
            ": ${D:=../victim}; rm -f $D",
            ": ${D:=a ../victim}; rm $D",
            "for i in 1 2; do rm -f $D; D=../victim; done",
            "while :; do rm $a; a=$b; b=$c; c=../victim; done",
            "until :; do while :; do rm $a; done; a=../victim; done",
            "while :; do rm $a; a=../victim",
            "trap 'rm -f $D' EXIT; D=../victim",
            "trap c EXIT; c() { rm -f $D; }; D=../victim",
            ": ${a:-${D:=../victim}}; rm $D",
            ": ${a#${D:=../victim}}; rm $D",
            ": ${a/x/${D:=../victim}}; rm $D",
            ": ${a[${D:=../victim}]}; rm $D",
            "D=build; : ${a:D=1}; rm -rf \"$D\"",
            ": > a${D:=../victim}; rm $D",
            ": <<E\n${D:=../victim}\nE\nrm $D",
            "printf -v D %s ../victim; rm $D",
            "a=([0]=../victim); rm \"${a[@]}\"",
            "let n=-1; kill -9 $n",
            "n=D; eval \"$n=../victim\"; rm $D",
            "n=D; declare \"$n=../victim\"; rm $D",
            // Words that are several.
            "rm -rf {../victim,x}",
            "rm -f {.,a}{.,b}/victim",
            "echo x > {..,a}/victim",
            "F=-e; F=-fdx; git clean $F",
            "F=-n; F=-fdx; git clean $F",
            "F=-e; git clean -fd $F -n",
            "P=build; git clean -fd -e $P",
            // Where a function ends, and what only names something.
            "f() { :; >/dev/null }\nrm \"$@\"; }; f ../victim",
            "f() { a=( } ); rm \"$@\"; }; f ../victim",
            "f() { time -p { :; }; rm \"$@\"; }; f ../victim",
            "f() { case x in (}) :;; esac; rm \"$@\"; }; f ../victim",
            "f() { case x in a) { :; };; esac; rm \"$@\"; }; f ../victim",
            "f() { rm -f \"$1\"; f \"$1/..\"; }; f a",
            // Where it was not set.
            "[ -d x ] && D=build; rm -rf \"$D\"/*",
            "[ -d x ] && D=build; rm -rf ./$D",
            "D=build; rm -rf \"$D/$E\"",
            "for d in build ..; do rm -rf \"$d\"; done",
            "clean() { rm -rf \"$1\"; }; clean \"$X\"",
            "f() { coproc N { :; }; rm \"$@\"; }; f ../victim",
            "time -p f() { rm \"$@\"; }; f ../victim",
            "coproc N { rm -rf ../victim; }",
            // What only looks like numbers.
            "echo $((echo ${x:-))} > ../victim; ls) )",
            "echo $((echo x > ../victim); ls)",
            "echo $((echo x > ../victim) )",
            "echo $((echo $(case x in a) :;; esac) > ../victim))",
            "((echo x > ../victim); ls)",
            "python3 -c 'os.system(\"((x<<2)); rm -rf ../victim\")'",
        ],
    ),
    (
        "irreversible_command",
        &[
            r"git push $'\x2df'",
            r"git push $'-\x{66}'",
            "git push $\"-f\"",
            // Words that split.
            "git push origin {+main,x}",
            "git push -{e..g} origin",
            "kubectl {delete,pod} x",
            "git push origin v$(cat f)",
            "git push origin v$X",
            "git push origin HEAD:$X",
            "V=$(cat f); git push origin v$V",
            "T=v$X; git push origin $T",
            "git push -o $X origin main",
            "for x in v$X; do git push origin \"$x\"; done",
            "f() { git push origin \"$2\"; }; f v$X",
            "x=main; git push $(cat f)x",
            // Variables that are set in other ways.
            "F=main; read F; git push $F",
            "F=main; read F < f; git push $F",
            "IFS=, read a b <<< 'x,-f'; git push $b",
            "read -n 2 F <<< '-fx'; git push $F",
            "read F <<< '\\-f'; git push $F",
            "F=main; read $n <<< -f; git push $F",
            "F=main; printf -v F %s -f; git push $F",
            "F=main; printf -vF %s -f; git push $F",
            "F=main; eval \"$X\"; git push $F",
            "F=main; declare \"$n=-f\"; git push $F",
            "F=main; declare -n r=F; r=-f; git push $F",
            "declare -l F; F=-F; git push $F",
            "F=-qz; F=${F/z/f}; git push $F",
            "F=x-f; git push ${F:1}",
            "F=; for c in - f; do F=$F$c; done; git push $F",
            "for i in 1 2; do git push $F; F=$G; G=-f; done",
            "getopts a: o; o=main; git push $OPTARG",
            // What seems to be the value of an option may stand in place of it.
            "F=-o; F=-f; git push $F origin main",
            "for o in -o -f; do git push $o; done",
            "f(){ git push \"$@\"; }; f -o -o -f",
            "F=; G=-f; git push ${F:+-o} $G",
            "F=; F=--; G=-f; git push $F $G",
            "F=x; F=+main; git push -o $F",
            "for c in true 'git push -f'; do git rebase -x \"$c\" main; done",
            "F=list; F=drop; git stash $F",
            "F=--cached; F=-q; git rm -f $F .",
        ],
    ),
    (
        "unreadable_command",
        &[
            // One string to some shells, several commands to others.
            r"echo $'a\'; rm -rf ../victim; echo '",
            "echo \"${a:-'}\"; rm -rf ../victim; echo \"${a:-'}\"",
            "echo ${a",
            "((x<<2))\nrm -rf ~",
            "((x<<2))\nrm -rf ~\n2",
            // More values than are told apart.
            "a=(a b c d e f g h i j k l m n o p q); echo x > ${a[0]}${a[0]}${a[0]}",
        ],
    ),
    (
        "computed_command",
        &["c=; for x in g i t; do c=$c$x; done; $c push -f"],
    ),
];

/// Their likes that people run all day.
const UNASKED: &[&str] = &[
    "echo $'a\\tb'",
    "echo $\"hello\"",
    "IFS=$'\\n'; for f in $(ls); do wc -l \"$f\"; done",
    "while IFS= read -r line; do echo \"$line\"; done < a.txt",
    "read -r a b <<< 'x y'; echo $a $b",
    "D=~/repo; git -C $D push",
    "PREFIX=~/.local make install",
    "if [[ $x =~ ^a ]]; then echo yes; fi",
    "b=main; git push origin \"${b:?}\"",
    "b=main; git push origin ${b:?is not set}",
    "${CC:?} -o x x.c",
    "V=1.2; git tag v$V; git push origin v$V",
    "git push origin \"v$X\"",
    "git push origin v$(git rev-parse --short HEAD)",
    "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done",
    "for f in a b c d e f g h i j; do rm -f \"$f\"; done",
    "for f in src/*.o; do rm -f \"$f\"; done",
    "for t in tests/*.sh; do $t; done",
    "f=a.txt; rm $f; f=/etc/hosts; cat $f",
    "for f in a.txt; do rm $f; done; for f in /etc/hosts; do cat $f; done",
    "for i in 1 2; do rm -f a.o; cd sub; make; cd ..; done",
    "n=0; for f in *.txt; do n=$((n+1)); echo \"$n $f\"; done",
    "list=; for f in a b c; do list=\"$list $f\"; done; wc $list",
    "declare -a xs=(a b c); for x in \"${xs[@]}\"; do echo $x; done",
    "run() { echo \"+ $*\"; \"$@\"; }; run wc -l *.txt",
    "f() { local name=$1; shift; echo \"$name\" \"$@\"; }; f a b c",
    "push() { b=$1; git push origin \"$b\"; }; push main",
    "walk() { for d in \"$1\"/*; do [ -d \"$d\" ] && walk \"$d\"; done; }; walk src",
    "base=${f##*/}; echo \"${base%.*}\" \"${base:-'none'}\"",
    "printf -v out '%03d' 7; echo $out",
    "while getopts 'ab:' o; do case $o in a) echo a;; esac; done",
    "trap 'rm -f \"$t\"' EXIT; t=a.tmp; wc \"$t\"",
    ": ${OUT:=build}; mkdir -p $OUT; rm -f $OUT/x.o",
    "printf '%s\\n' \"${x:-it's}\"",
    "mkdir -p a/{b,c}/d{1..20}; cp x{,.bak}; rm -rf {build,target}",
    "{ echo a; echo b; } > out.txt; echo }",
    "run(){ echo \"+ $*\"; \"$@\"; }; for p in a b c d; do run make -C \"$p\" clean; \
     run make -C \"$p\"; run make -C \"$p\" test; run make -C \"$p\" install; done",
    "walk(){ for n in $(ls \"$1\"); do [ -d \"$1/$n\" ] && walk \"$1/$n\"; done; }; walk src",
    "f() { f \"$1x\"; }; f a",
    "rm -rf build{,.old} {,target}",
    "BUILD=build; rm -rf \"$BUILD\"",
    "D=./build; rm -r \"$D\"",
    "for d in dist target; do rm -rf \"$d\"; done",
    "T=x; rm -rf \"build/$T\"",
    "git checkout -bfix main",
    "git clean -fd -e keep build",
    "P=keep; git clean -fd -e $P build",
    "o=ci.skip; b=main; git push -o \"$o\" origin \"$b\"",
    "b=fix; git checkout -b \"$b\" main",
    "b=fix; cat > x.js <<'EOF'\nconst s = `${pkg.name}`;\nEOF\ngit push -u origin \"$b\"",
    "b=fix; cat > x.sh <<'EOF'\n: ${b:=-f}\nEOF\ngit push -u origin \"$b\"",
    "head -c $((1<<20)) /dev/zero > x.bin",
    "n=$((1 << 4)); m=$(( (n >> 2) + (n > 3) )); echo \"$((n<<m))\" > out.txt",
    "c=HEAD; git restore -s $c --staged .",
    "D=build; git clean -n $D",
];

#[test]
fn what_is_not_followed_is_unknown() {
    let wrong = not_asked(ASKED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_followed_is_known() {
    let wrong = asked(UNASKED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_a_list_without_end_somebody_is_asked() {
    let values: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
    for command in [
        format!("for f in {}; do rm -f $f; done", values.join(" ")),
        format!("a=({}); rm -f \"${{a[@]}}\"", values.join(" ")),
    ] {
        let found = reasons(&judged(&command, None));
        assert!(found.iter().any(|it| it.code == "unreadable_command"));
    }
}

#[test]
fn lines_of_the_standard_input_are_what_is_read() {
    let command = "while read -r f; do rm -f \"$f\"; done";
    let found = reasons(&judged(command, Some("a\n../victim\n")));
    assert!(found.iter().any(|it| it.code == "destructive_command"));
    assert_eq!(reasons(&judged(command, Some("a\nb\n"))), []);
}

#[test]
fn what_is_set_deeper_than_is_read_may_be_anything() {
    for begun in ["${a#", "${a:-"] {
        let (begun, ended) = (begun.repeat(10), "}".repeat(10));
        let command = format!("D=build; : {begun}${{D:=..}}{ended}; rm -rf \"$D\"");
        let found = reasons(&judged(&command, None));
        assert!(found.iter().any(|it| it.code == "destructive_command"));
    }
}

/// However a word is looked at.
#[test]
fn what_a_word_may_mean_is_counted() {
    let values = "x ".repeat(3) + "y";
    let command = format!("a=({values})");
    let judged = judged(&command, None);
    let mut judge = judge(&judged);
    let word = Word {
        text: "$a$a$a".to_owned(),
        has_variable: true,
        ..Word::default()
    };
    let before = judge.judged_bytes;
    assert!(!judge.may_be_option(&word));
    assert!(judge.judged_bytes > before);
    judge.judged_bytes = bounds::JUDGED_BYTES_MAX + 1;
    assert!(judge.may_be_option(&word));
}
