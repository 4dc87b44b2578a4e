//! Which programs do what.

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
];

/// They act with other rights than ours.
pub(super) const RIGHTS: &[&str] = &[
    "sudo", "doas", "su", "pkexec", "runuser", "chroot", "nsenter",
];

/// A program and the words of which one makes it irreversible.
pub(super) const ACTIONS: &[(&str, &[&str], &str)] = &[
    ("npm", &["publish", "unpublish"], "publishes to others"),
    ("pnpm", &["publish"], "publishes to others"),
    ("yarn", &["publish"], "publishes to others"),
    ("cargo", &["publish", "yank"], "publishes to others"),
    ("twine", &["upload"], "publishes to others"),
    ("gem", &["push", "yank"], "publishes to others"),
    ("docker", &["push", "prune"], "publishes or removes images"),
    ("terraform", &["apply", "destroy"], "changes infrastructure"),
    ("tofu", &["apply", "destroy"], "changes infrastructure"),
    (
        "kubectl",
        &["delete", "drain"],
        "removes what runs in a cluster",
    ),
    (
        "helm",
        &["uninstall", "delete"],
        "removes what runs in a cluster",
    ),
    (
        "systemctl",
        &[
            "stop", "disable", "mask", "poweroff", "reboot", "halt", "kill",
        ],
        "stops services",
    ),
    ("gh", &["delete", "merge"], "changes a repository of others"),
    ("crontab", &["-r"], "removes all scheduled jobs"),
    ("init", &["0", "6"], "stops the machine"),
    ("sysctl", &["-w"], "changes the kernel"),
];

/// Interpreters that run what they read.
pub(super) const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "python", "python3", "perl", "ruby", "node",
    "php", "lua", "deno", "bun", "pwsh", "tclsh", "source", ".", "eval", "at", "batch",
];
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
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
];

/// Options of wrappers that have the next word as their value.
pub(super) const VALUED: &[(&str, &str)] = &[
    ("xargs", "-I"),
    ("xargs", "-d"),
    ("xargs", "-E"),
    ("xargs", "-a"),
    ("parallel", "-I"),
    ("parallel", "-a"),
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
