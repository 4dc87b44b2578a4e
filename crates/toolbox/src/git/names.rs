//! Which settings of git name a program, or a file with such settings.

use super::config::Name;

/// Sections, and the keys in them whose every value is a program, or leads to one. With a middle part
/// or without: git does not know the other form, so nobody misses it.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("browser", &["cmd", "path"]),
    (
        "core",
        &[
            "alternaterefscommand",
            "askpass",
            "editor",
            "gitproxy",
            "hookspath",
            "pager",
            "sshcommand",
        ],
    ),
    ("credential", &["helper"]),
    ("diff", &["command", "external", "textconv"]),
    ("difftool", &["cmd", "path"]),
    ("filter", &["clean", "process", "smudge"]),
    ("gpg", &["defaultkeycommand", "program"]),
    ("guitool", &["cmd"]),
    ("hook", &["command"]),
    ("imap", &["tunnel"]),
    ("include", &["path"]),
    ("includeif", &["path"]),
    ("init", &["templatedir"]),
    ("instaweb", &["browser", "httpd"]),
    ("interactive", &["difffilter"]),
    // Git LFS reads the file of the repository, too.
    ("lfs", &["clean", "path", "smudge"]),
    ("man", &["cmd", "path"]),
    ("merge", &["driver"]),
    ("mergetool", &["cmd", "path"]),
    ("remote", &["receivepack", "uploadpack", "vcs"]),
    ("sequence", &["editor"]),
    ("tar", &["command"]),
    ("trailer", &["cmd", "command"]),
    ("uploadpack", &["packobjectshook"]),
    ("web", &["browser"]),
];
/// Values that switch something on or off, and name nothing.
const SWITCHES: &[&str] = &["true", "false", "yes", "no", "on", "off", "1", "0"];
/// Options of git commands that name a program, in an alias.
const IN_ALIASES: &[&str] = &[
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--extcmd",
    "--open-files-in-pager",
    "filter-branch",
    "foreach",
    "bisect run",
];
/// Short ones, which mean something else with other commands.
const IN_ALIASES_OF: &[(&str, &str)] = &[("rebase", "-x"), ("difftool", "-x"), ("grep", "-O")];
/// A transport that runs its address as a command.
const RUNS_ITS_ADDRESS: &[u8] = b"ext::";

/// Whether git would later run what this setting says.
pub(super) fn runs_something(name: &Name, value: Option<&[u8]>) -> bool {
    let Some(value) = value else {
        return false;
    };
    if value.starts_with(RUNS_ITS_ADDRESS) || name.sub().starts_with(RUNS_ITS_ADDRESS) {
        return true;
    }
    let text = String::from_utf8_lossy(value);
    let is_switch = SWITCHES.iter().any(|it| text.eq_ignore_ascii_case(it));
    // An empty path of hooks is the root directory; all other empty values switch something off.
    if value.is_empty() {
        return (name.section.as_str(), name.key.as_str()) == ("core", "hookspath");
    }
    let mut programs = PROGRAMS.iter();
    if programs.any(|(section, keys)| name.section == *section && keys.contains(&&*name.key)) {
        return true;
    }
    match (name.section.as_str(), name.key.as_str()) {
        ("core", "fsmonitor") | ("pager", _) => !is_switch,
        ("alias", _) => {
            let text = text.trim_start();
            let mut short = IN_ALIASES_OF.iter();
            text.starts_with('!')
                || IN_ALIASES.iter().any(|it| text.contains(it))
                || short.any(|(of, option)| text.starts_with(of) && text.contains(option))
        }
        ("protocol", "allow") => !text.eq_ignore_ascii_case("never"),
        ("submodule", "update") => text.trim_start().starts_with('!'),
        ("sendemail", "smtpserver") => text.starts_with(['/', '~', '.']),
        ("sendemail", key) => key.ends_with("cmd"),
        _ => false,
    }
}
