//! Whether a command names what no tool may reach.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Directories that shells know by a variable, and where they are beneath the home directory.
const KNOWN: &[(&str, &str)] = &[
    ("HOME", ""),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CONFIG_HOME", ".config"),
];
/// Signs at which a word of a command ends, or a path in it begins.
const ENDS: &[char] = &['=', ':', '<', '>', '|', '&', ';', '(', ')', '`', ','];

/// The first of `reserved` that the text spells out: in full, through `~` or a variable that is
/// known, or relative to where it runs. What a script or a pattern makes of it is not seen: the
/// kernel keeps that out. This is so that whoever asks learns why.
pub(super) fn named<'r>(
    text: &str,
    reserved: &'r [PathBuf],
    start: &Path,
    environment: &[(OsString, OsString)],
) -> Option<&'r PathBuf> {
    if reserved.is_empty() {
        return None;
    }
    let bare: String = text
        .chars()
        .filter(|sign| !matches!(sign, '\'' | '"' | '\\'))
        .collect();
    let spelt = expanded(&bare, environment);
    let ends = |sign: char| sign.is_whitespace() || ENDS.contains(&sign);
    let paths: Vec<PathBuf> = spelt
        .split(ends)
        .map(|path| normal(&start.join(path)))
        .collect();
    reserved.iter().find(|dir| {
        let written = dir.to_string_lossy();
        text.contains(&*written)
            || spelt.contains(&*written)
            || paths.iter().any(|path| path.starts_with(dir))
    })
}

/// A path without `.` and `..`, by name alone.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The text with `~` and the known variables replaced.
fn expanded(text: &str, environment: &[(OsString, OsString)]) -> String {
    let value = |name: &str| {
        let found = environment.iter().find(|(known, _)| known == name)?;
        Some(PathBuf::from(&found.1))
    };
    let Some(home) = value("HOME") else {
        return text.to_owned();
    };
    let mut spelt = text.to_owned();
    for (name, beneath) in KNOWN {
        let dir = value(name).unwrap_or_else(|| home.join(beneath));
        let dir = dir.to_string_lossy();
        let dir = dir.trim_end_matches('/');
        spelt = spelt.replace(&format!("${{{name}}}"), dir);
        spelt = spelt.replace(&format!("${name}/"), &format!("{dir}/"));
    }
    spelt.replace("~/", &format!("{}/", home.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_what_is_reserved_are_seen() {
        let environment = [("HOME".into(), "/home/u".into())];
        let reserved = [
            PathBuf::from("/home/u/.local/state/holdfast"),
            PathBuf::from("/home/u/.config/holdfast/holdfast.yaml"),
            PathBuf::from("/home/u/space/token"),
        ];
        let start = Path::new("/home/u/space/sub");
        let names = |text: &str| named(text, &reserved, start, &environment).is_some();
        for text in [
            "cat /home/u/.local/state/holdfast/approver-token",
            "cat ~/.local/state/holdfast/approver-token",
            "cat $HOME/.local/state/holdfast/approver-token",
            "cat \"$HOME\"/.local/state/holdfast/approver-token",
            "cat ${HOME}/.local/'state'/holdfast/approver-token",
            "cat $XDG_STATE_HOME/holdfast/approver-token",
            "cat \"${XDG_STATE_HOME}/holdfast/approver-token\"",
            "cat ../../.local/state/holdfast/approver-token",
            "cat ~/.local//state/./holdfast/x",
            "cp -r ~/.local/state/holdfast .",
            "echo x > ~/.config/holdfast/holdfast.yaml",
            "cat $XDG_CONFIG_HOME/holdfast/holdfast.yaml",
            "cat ../token",
            "dd if=../token",
            "python3 -c 'open(\"/home/u/space/token\")'",
        ] {
            assert!(names(text), "{text}");
        }
        for text in ["ls ~/.local/share", "cat token", "echo $HOME", "ls ../.."] {
            assert!(!names(text), "{text}");
        }
    }
}
