//! One change is taken back, and kept so that a person can put it in place.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::GIT_ASIDE_BYTES_MAX;
use super::config::{Name, Setting, insert, parse, replace};
use super::disk;
use super::snapshot::{Change, Entry, FileKind, Snapshot, fingerprint};
use super::text::Bytes;
use holdfast_reliability::canonical::Digest;

/// Digits of an id.
const ID_DIGITS: usize = 8;

/// Something that was set aside, with what is needed to put it in place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Aside {
    pub(super) id: String,
    pub(super) at_ms: u64,
    /// Whether an answer has named it.
    pub(super) is_told: bool,
    pub(super) path: Bytes,
    /// What it is known by once a person has kept it.
    pub(super) fingerprint: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum What {
    /// A file, whose content is kept beside the record.
    File {
        kind: FileKind,
        mode: u32,
        link: Option<Bytes>,
        /// The hash of what stands in its place since.
        instead: Option<String>,
    },
    Setting {
        name: Name,
        value: Option<Bytes>,
        line: Bytes,
        /// The lines that were put back in its place.
        instead: Vec<Bytes>,
    },
}

/// A record, and the content that goes with it.
pub(super) type Taken = (Aside, Option<Vec<u8>>);

fn id_of(fingerprint: &str) -> String {
    fingerprint.chars().take(ID_DIGITS).collect()
}

/// Takes a change back. The content has to be kept by `keep` before anything is removed.
pub(super) fn take(
    change: &Change,
    before: &Snapshot,
    at_ms: u64,
    keep: &mut dyn FnMut(Taken) -> io::Result<()>,
) -> io::Result<()> {
    match change {
        Change::File { path, kind } => file(path, *kind, before.get(path), at_ms, keep),
        Change::Settings {
            path,
            group,
            new,
            gone,
        } => settings(path, group, new, gone, at_ms, keep),
    }
}

fn file(
    path: &Path,
    kind: FileKind,
    was: Option<&Entry>,
    at_ms: u64,
    keep: &mut dyn FnMut(Taken) -> io::Result<()>,
) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    let link = if found.is_symlink() {
        Some(std::fs::read_link(path)?)
    } else {
        None
    };
    let content = match link {
        Some(_) => None,
        None => disk::read(path, GIT_ASIDE_BYTES_MAX)?,
    };
    // What is known of a link is what it leads to as well.
    let behind = match &link {
        Some(_) => path.canonicalize().ok(),
        None => Some(path.to_owned()),
    };
    let behind = behind.map(|behind| disk::read(&behind, GIT_ASIDE_BYTES_MAX));
    let entry = Entry::new(&found, link.as_deref(), behind);
    let fingerprint = entry.fingerprint(path);
    // What is behind a link or a pointer has changed, where it is as it was: it must not lead there.
    let is_as_it_was = |was: &Entry| {
        was.link == entry.link
            && (was.link.is_some() || (kind == FileKind::Lead && was.hash == entry.hash))
    };
    let put_back = was.filter(|was| was.link.is_some() || was.content.is_some());
    let put_back = put_back.filter(|was| !is_as_it_was(was));
    let aside = Aside {
        id: id_of(&fingerprint),
        at_ms,
        is_told: false,
        path: path.into(),
        fingerprint,
        what: What::File {
            kind,
            mode: entry.mode,
            link: entry.link,
            instead: put_back.map(|was| was.hash.clone()),
        },
    };
    keep((aside, content))?;
    match put_back {
        Some(Entry {
            link: Some(link), ..
        }) => disk::link(path, &link.path()),
        Some(Entry {
            content: Some(content),
            mode,
            ..
        }) => disk::write(path, &content.0, *mode),
        _ => disk::remove(path),
    }
}

fn settings(
    path: &Path,
    group: &Path,
    new: &[Setting],
    gone: &[(Name, Vec<u8>)],
    at_ms: u64,
    keep: &mut dyn FnMut(Taken) -> io::Result<()>,
) -> io::Result<()> {
    let (real, bytes, mode) = read_config(path)?;
    let config = parse(&bytes).ok_or_else(unreadable)?;
    let is_new = |it: &&Setting| {
        new.iter()
            .any(|new| new.name == it.name && new.value == it.value)
    };
    let mut put_back: Vec<&Name> = Vec::new();
    let mut edits = Vec::new();
    for setting in config.settings.iter().filter(is_new) {
        let first = !put_back.contains(&&setting.name);
        let instead = gone
            .iter()
            .filter(|(name, _)| first && *name == setting.name);
        let instead: Vec<Bytes> = instead.map(|(_, line)| Bytes(line.clone())).collect();
        put_back.push(&setting.name);
        let fingerprint = fingerprint(group, setting);
        let lines: Vec<u8> = instead.iter().flat_map(|it| it.0.clone()).collect();
        edits.push((setting.span.clone(), lines));
        keep((
            Aside {
                // The same setting may be in several files.
                id: id_of(
                    &Digest::of(format!("{fingerprint}{}", path.display()).as_bytes()).to_string(),
                ),
                at_ms,
                is_told: false,
                path: path.into(),
                fingerprint,
                what: What::Setting {
                    name: setting.name.clone(),
                    value: setting.value.clone().map(Bytes),
                    line: Bytes(setting.line(&bytes)),
                    instead,
                },
            },
            None,
        ))?;
    }
    disk::write(&real, &replace(&bytes, &edits), mode)
}

fn unreadable() -> io::Error {
    io::Error::other("the file can not be read as git's configuration")
}

/// The file itself, its content and its mode. It may be behind a link that was there before.
fn read_config(path: &Path) -> io::Result<(PathBuf, Vec<u8>, u32)> {
    use std::os::unix::fs::MetadataExt;
    let real = path.canonicalize()?;
    let mode = std::fs::metadata(&real)?.mode();
    let bytes = disk::read(&real, GIT_ASIDE_BYTES_MAX)?.ok_or_else(unreadable)?;
    Ok((real, bytes, mode))
}

/// Puts it in place, as a person wishes.
pub(super) fn put_in_place(aside: &Aside, content: Option<&[u8]>) -> io::Result<()> {
    let path = aside.path.path();
    match &aside.what {
        What::Setting {
            name,
            value,
            line,
            instead,
        } => {
            let (real, bytes, mode) = match read_config(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    (path.clone(), Vec::new(), 0o644)
                }
                read => read?,
            };
            let config = parse(&bytes).ok_or_else(unreadable)?;
            let value = value.as_ref().map(|it| &it.0);
            let mut settings = config.settings.iter();
            if settings.any(|it| it.name == *name && it.value.as_ref() == value) {
                return Ok(());
            }
            let is_instead =
                |it: &&Setting| it.name == *name && instead.contains(&Bytes(it.line(&bytes)));
            let old = config.settings.iter().filter(is_instead);
            let edits: Vec<_> = old
                .enumerate()
                .map(|(at, it)| {
                    (
                        it.span.clone(),
                        if at == 0 { line.0.clone() } else { Vec::new() },
                    )
                })
                .collect();
            let written = if edits.is_empty() {
                insert(&bytes, name, &line.0).ok_or_else(unreadable)?
            } else {
                replace(&bytes, &edits)
            };
            disk::write(&real, &written, mode)
        }
        What::File {
            mode,
            link,
            instead,
            ..
        } => {
            if let Some(dir) = path.parent().filter(|dir| !dir.exists()) {
                std::fs::create_dir(dir)?;
            }
            let found = std::fs::symlink_metadata(&path).ok();
            if let Some(found) = &found {
                let old_link = std::fs::read_link(&path).ok();
                let read = disk::read(&path, GIT_ASIDE_BYTES_MAX);
                let now = Entry::new(found, old_link.as_deref(), Some(read));
                let is_same = now.content.as_ref().map(|it| &*it.0) == content && now.link == *link;
                if !is_same && instead.as_ref() != Some(&now.hash) {
                    return Err(io::Error::other(
                        "something else stands there by now; move it away first",
                    ));
                }
            }
            match (link, content) {
                (Some(link), _) => disk::link(&path, &link.path()),
                (None, Some(content)) => disk::write(&path, content, *mode),
                (None, None) => Err(io::Error::other("its content is gone")),
            }
        }
    }
}
