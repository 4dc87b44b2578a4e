//! Which programs do what.

pub(super) use super::actions::{ACTIONS, PAIRS};

/// What they do can not be undone, whatever the arguments.
pub(super) const DESTROYERS: &[(&str, &str)] = &[
    ("shred", "overwrites files beyond recovery"),
    ("wipefs", "erases file systems"),
    ("mkswap", "erases what was on a device"),
    ("blkdiscard", "erases a device"),
    ("fdisk", "changes partitions"),
    ("sfdisk", "changes partitions"),
    ("sgdisk", "changes partitions"),
    ("parted", "changes partitions"),
    ("cryptsetup", "changes encrypted devices"),
    ("shutdown", "stops the machine"),
    ("reboot", "stops the machine"),
    ("halt", "stops the machine"),
    ("poweroff", "stops the machine"),
    ("telinit", "stops the machine"),
    ("killall", "ends processes by their names"),
    ("pkill", "ends processes by their names"),
    ("userdel", "removes an account"),
    ("groupdel", "removes a group"),
    ("passwd", "changes a password"),
    ("chpasswd", "changes a password"),
    ("visudo", "changes who may do what"),
    ("iptables", "changes the firewall"),
    ("nft", "changes the firewall"),
    ("mount", "changes what is mounted"),
    ("umount", "changes what is mounted"),
    ("insmod", "changes the kernel"),
    ("rmmod", "changes the kernel"),
    ("dropdb", "removes a database"),
    ("dropuser", "removes an account"),
    ("srm", "overwrites files beyond recovery"),
    ("wipe", "overwrites files beyond recovery"),
    ("scrub", "overwrites files beyond recovery"),
    ("lvremove", "removes a volume"),
    ("vgremove", "removes a volume"),
    ("pvremove", "removes a volume"),
    ("deluser", "removes an account"),
    ("ip6tables", "changes the firewall"),
    ("ufw", "changes the firewall"),
];

/// They act with other rights than ours.
pub(super) const RIGHTS: &[&str] = &[
    "sudo", "doas", "su", "pkexec", "runuser", "chroot", "nsenter",
];

pub(super) const REMOVES_CLOUD: &str = "removes what runs or is kept elsewhere";
/// How the names of such commands of `aws` begin.
pub(super) const AWS_REMOVES: &[&str] = &[
    "delete-",
    "terminate-",
    "remove-",
    "deregister-",
    "purge-",
    "batch-delete-",
];
/// Programs that hand statements to a database on a server.
pub(super) const DATABASES: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "cockroach",
    "sqlcmd",
    "cqlsh",
    "clickhouse",
    "clickhouse-client",
    "mongo",
    "mongosh",
    "redis-cli",
    "valkey-cli",
];
/// What can be dropped from a database.
pub(super) const DROPPED: &[&str] = &[
    "TABLE",
    "DATABASE",
    "SCHEMA",
    "COLUMN",
    "VIEW",
    "MATERIALIZED",
    "INDEX",
    "KEYSPACE",
    "TYPE",
    "FUNCTION",
    "SEQUENCE",
    "USER",
    "ROLE",
    "OWNED",
    "PARTITION",
    "CONSTRAINT",
];
/// Programs that remove the files they are given, or what is in them.
pub(super) const REMOVERS: &[&str] = &["rm", "rmdir", "unlink", "shred", "truncate"];
/// Tests of `find` by which a part of what is there is chosen.
pub(super) const CHOOSING: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-newer",
];
/// Options of `ssh` that have a value.
pub(super) const SSH_VALUED: &str = "BbcDEeFIiJLlmOopPQRSWw";

/// Interpreters that run what they read.
pub(super) const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "python", "python3", "perl", "ruby", "node",
    "php", "lua", "deno", "bun", "pwsh", "tclsh", "source", ".", "eval", "at", "batch",
];
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
pub(super) const DOWNLOADERS: &[&str] = &["curl", "wget", "fetch", "aria2c", "http", "nc", "ncat"];

/// Words before the command itself, with the number of their own arguments.
pub(super) const WRAPPERS: &[(&str, usize)] = &[
    ("env", 0),
    ("nohup", 0),
    ("nice", 0),
    ("ionice", 0),
    ("setsid", 0),
    ("stdbuf", 0),
    ("time", 0),
    ("timeout", 1),
    ("exec", 0),
    ("command", 0),
    ("builtin", 0),
    ("busybox", 0),
    ("xargs", 0),
    ("if", 0),
    ("then", 0),
    ("else", 0),
    ("elif", 0),
    ("do", 0),
    ("while", 0),
    ("until", 0),
    ("!", 0),
    ("{", 0),
    ("parallel", 0),
    ("unbuffer", 0),
    ("watch", 0),
    ("chronic", 0),
    ("chrt", 1),
    ("coproc", 0),
    ("fakeroot", 0),
    ("flock", 1),
    ("setarch", 1),
    ("strace", 0),
    ("taskset", 1),
    ("xvfb-run", 0),
    (LOADER, 0),
    ("choom", 0),
    ("dumb-init", 0),
    ("eatmydata", 0),
    ("linux32", 0),
    ("linux64", 0),
    ("ltrace", 0),
    ("numactl", 0),
    ("prlimit", 0),
    ("rlwrap", 0),
    ("setpriv", 0),
    ("systemd-run", 0),
    ("tini", 0),
    ("toybox", 0),
    ("valgrind", 0),
];
/// The program that starts all others, under whichever name: given one, it starts that.
pub(super) const LOADER: &str = "ld.so";

/// Options of wrappers that have the next word as their value.
pub(super) const VALUED: &[(&str, &str)] = &[
    ("chrt", "-T"),
    ("chrt", "-P"),
    ("chrt", "-D"),
    ("doas", "-C"),
    ("doas", "-u"),
    ("env", "--chdir"),
    ("env", "--unset"),
    ("env", "-C"),
    ("env", "-u"),
    ("exec", "-a"),
    ("flock", "-E"),
    ("flock", "-w"),
    ("ionice", "--class"),
    ("ionice", "--classdata"),
    ("ionice", "-c"),
    ("ionice", "-n"),
    (LOADER, "--argv0"),
    (LOADER, "--audit"),
    (LOADER, "--inhibit-rpath"),
    (LOADER, "--library-path"),
    (LOADER, "--preload"),
    ("nice", "--adjustment"),
    ("nice", "-n"),
    ("parallel", "-I"),
    ("parallel", "-a"),
    ("parallel", "-j"),
    ("runuser", "-g"),
    ("runuser", "-u"),
    ("stdbuf", "--error"),
    ("stdbuf", "--input"),
    ("stdbuf", "--output"),
    ("stdbuf", "-e"),
    ("stdbuf", "-i"),
    ("stdbuf", "-o"),
    ("strace", "-e"),
    ("strace", "-o"),
    ("strace", "-s"),
    ("sudo", "-C"),
    ("sudo", "-D"),
    ("sudo", "-R"),
    ("sudo", "-U"),
    ("sudo", "-g"),
    ("sudo", "-h"),
    ("sudo", "-p"),
    ("sudo", "-r"),
    ("sudo", "-t"),
    ("sudo", "-u"),
    ("time", "-f"),
    ("time", "-o"),
    ("timeout", "--kill-after"),
    ("timeout", "--signal"),
    ("timeout", "-k"),
    ("timeout", "-s"),
    ("watch", "--interval"),
    ("watch", "-n"),
    ("xargs", "--arg-file"),
    ("xargs", "--delimiter"),
    ("xargs", "--max-args"),
    ("xargs", "--max-procs"),
    ("xargs", "-E"),
    ("xargs", "-I"),
    ("xargs", "-L"),
    ("xargs", "-P"),
    ("xargs", "-a"),
    ("xargs", "-d"),
    ("xargs", "-n"),
    ("xargs", "-s"),
];

/// Options of wrappers without a value: the letters, and the words. What an option that stands in
/// neither table does with the word behind it is not known.
pub(super) const FLAGS: &[(&str, &str, &[&str])] = &[
    ("command", "pvV", &[]),
    (LOADER, "", &["--inhibit-cache", "--list", "--verify"]),
    ("prlimit", "v", &["--noheadings", "--raw"]),
    ("chrt", "abfimorv", &[]),
    ("doas", "Lns", &[]),
    ("env", "i0v", &["--ignore-environment", "--null", "--debug"]),
    ("exec", "cl", &[]),
    ("flock", "eFnosux", &["--nonblock", "--shared"]),
    ("ionice", "t", &["--ignore"]),
    ("parallel", "0kX", &["--will-cite", "--bar"]),
    ("setsid", "cfw", &["--fork", "--wait", "--ctty"]),
    ("strace", "cfqtv", &[]),
    ("su", "lmp", &["--login"]),
    ("sudo", "AbEHiKknPSsvB", &["--non-interactive", "--login"]),
    ("taskset", "ac", &[]),
    ("time", "apqv", &["--verbose", "--portability"]),
    (
        "timeout",
        "fpv",
        &["--foreground", "--preserve-status", "--verbose"],
    ),
    ("unbuffer", "p", &[]),
    ("watch", "bcdegptx", &[]),
    (
        "xargs",
        "0oprtx",
        &["--null", "--no-run-if-empty", "--verbose", "--interactive"],
    ),
];

/// Programs that run what stands behind an option, and what parts it from the rest of the value.
pub(super) const CARRIERS: &[(&str, &str, &str)] = &[
    ("make", "SHELL", "="),
    ("nix-shell", "--command", ""),
    ("nix-shell", "--run", ""),
    ("npm", "--call", ""),
    ("npm", "-c", ""),
    ("npx", "--call", ""),
    ("npx", "-c", ""),
    ("rsync", "--rsh", ""),
    ("rsync", "-e", ""),
    ("script", "--command", ""),
    ("script", "-c", ""),
    ("sort", "--compress-program", ""),
    ("split", "--filter", ""),
    ("ssh", "-o", "Command="),
    ("su", "--command", ""),
    ("su", "-c", ""),
    ("tar", "--checkpoint-action", "exec="),
    ("tar", "--to-command", ""),
    ("tar", "--use-compress-program", ""),
    ("tar", "-I", ""),
];
/// What git does that changes what others have.
pub(super) const GIT_PUSHES: &[&str] = &["push", "send-pack", "http-push"];
/// Options of it that overwrite or remove there, beside all that begin with `force`.
pub(super) const GIT_FORCING: &[&str] = &["force", "delete", "mirror", "prune"];
/// Options before what git is to do that have the next word as their value.
pub(super) const GIT_VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];
/// Where an option has no letter.
pub(super) const NO_LETTER: char = '\0';
/// What git does with an option that holds a command.
pub(super) const GIT_RUNS: &[(&str, char, &str)] = &[
    ("archive", NO_LETTER, "exec"),
    ("clone", 'u', "upload-pack"),
    ("difftool", 'x', "extcmd"),
    ("fetch", NO_LETTER, "upload-pack"),
    ("filter-branch", NO_LETTER, "commit-filter"),
    ("filter-branch", NO_LETTER, "env-filter"),
    ("filter-branch", NO_LETTER, "index-filter"),
    ("filter-branch", NO_LETTER, "msg-filter"),
    ("filter-branch", NO_LETTER, "parent-filter"),
    ("filter-branch", NO_LETTER, "tag-name-filter"),
    ("filter-branch", NO_LETTER, "tree-filter"),
    ("grep", 'O', "open-files-in-pager"),
    ("ls-remote", NO_LETTER, "upload-pack"),
    ("pull", NO_LETTER, "upload-pack"),
    ("push", NO_LETTER, "exec"),
    ("push", NO_LETTER, "receive-pack"),
    ("rebase", 'x', "exec"),
];
/// How settings of git begin that people change and that name no command, in small letters.
pub(super) const GIT_HARMLESS: &[&str] = &[
    "advice.",
    "branch.",
    "color.",
    "commit.",
    "core.attributesfile",
    "core.autocrlf",
    "core.commentchar",
    "core.excludesfile",
    "core.quotepath",
    "format.",
    "http.",
    "i18n.",
    "init.",
    "log.",
    "protocol.",
    "pull.",
    "push.",
    "safe.",
    "user.",
];
/// Variables of the environment that hold a command.
pub(super) const RUN_VARIABLES: &[&str] = &[
    "BASH_ALIASES",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "MANPAGER",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
];
/// Wrappers that make arguments of what they read.
pub(super) const FEEDERS: &[&str] = &["xargs", "parallel"];
/// Options of interpreters that have the next word as their value.
pub(super) const INTERPRETER_VALUED: &[&str] = &[
    "-o",
    "+o",
    "-O",
    "--rcfile",
    "--init-file",
    "-W",
    "-X",
    "-I",
    "-r",
    "--require",
    "-d",
];
/// Names of the standard input.
pub(super) const STDIN_NAMES: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
