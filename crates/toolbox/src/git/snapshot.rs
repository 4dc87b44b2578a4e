//! What git would run later in a workspace, at one moment.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdfast_reliability::canonical::Digest;
use serde::{Deserialize, Serialize};

use super::config::{Config, Name, Setting, parse};
use super::names::runs_something;
use super::text::Bytes;

/// Why git looks at a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Role {
    /// It runs it, or what it runs reads it.
    Hook,
    /// It reads settings of this git directory in it.
    Config { group: Bytes },
    /// It leads to another place: a pointer file or a link.
    #[serde(rename_all = "camelCase")]
    Lead {
        /// The place is not known to be ours, or was never behind a link before.
        is_risky: bool,
    },
}

/// One such file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) mode: u32,
    pub(super) link: Option<Bytes>,
    /// Of its content; of its time stamps where the content is too large.
    pub(super) hash: String,
    pub(super) content: Option<Bytes>,
}

impl Entry {
    pub(super) fn new(
        found: &Metadata,
        link: Option<&Path>,
        content: Option<io::Result<Option<Vec<u8>>>>,
    ) -> Self {
        let content = content.and_then(|read| read.ok().flatten());
        let hash = match &content {
            Some(content) => Digest::of(content).to_string(),
            None if link.is_some() => "elsewhere".to_owned(),
            None => format!(
                "unread {} {} {}.{}",
                found.ino(),
                found.size(),
                found.ctime(),
                found.ctime_nsec()
            ),
        };
        Self {
            mode: found.mode() & 0o7777,
            link: link.map(Bytes::from),
            hash,
            content: content.map(Bytes),
        }
    }

    /// Whether git would run the same.
    fn is_same(&self, other: &Self) -> bool {
        let may_run = |mode: u32| mode & 0o111 != 0;
        // A file that may no longer be run is no danger.
        let is_mode = may_run(self.mode) || !may_run(other.mode);
        self.link == other.link && self.hash == other.hash && is_mode
    }

    /// What a person knows it by.
    pub(super) fn fingerprint(&self, path: &Path) -> String {
        let link = self.link.as_ref().map(Bytes::lossy);
        let text = format!("{}\0{link:?}\0{}", path.display(), self.hash);
        Digest::of(text.as_bytes()).to_string()
    }
}

/// All of them, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) entries: Vec<(Bytes, Role, Entry)>,
    /// A limit was reached, so there may be more.
    pub(super) is_cut: bool,
}

impl Snapshot {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Entry> {
        let path = Bytes::from(path);
        let found = self.entries.iter().find(|(known, _, _)| *known == path);
        found.map(|(_, _, entry)| entry)
    }

    fn leads_well(&self, path: &Bytes) -> bool {
        let well = Role::Lead { is_risky: false };
        self.entries.iter().any(|it| it.0 == *path && it.1 == well)
    }

    /// A file may be there for two reasons; a link that leads elsewhere is the stronger one.
    pub(super) fn put(&mut self, path: &Path, role: Role, entry: Entry) {
        self.entries.push((Bytes::from(path), role, entry));
    }

    fn configs<'s>(&'s self, group: &'s Bytes) -> impl Iterator<Item = Config> + 's {
        self.entries
            .iter()
            .filter_map(move |(_, role, entry)| match role {
                Role::Config { group: of } if of == group => parse(&entry.content.as_ref()?.0),
                _ => None,
            })
    }

    /// The values of `core.hooksPath` in all files of a git directory. Which of them counts depends
    /// on the worktree, so all do.
    pub(super) fn hooks_paths(&self, group: &Path) -> Vec<Vec<u8>> {
        let group = Bytes::from(group);
        let all = self.configs(&group);
        all.filter_map(|it| it.last("core", "hookspath")).collect()
    }

    /// Whether a setting of a git directory has this value somewhere.
    pub(super) fn has_value(&self, group: &Path, section: &str, key: &str, value: &[u8]) -> bool {
        let group = Bytes::from(group);
        let mut all = self.configs(&group);
        all.any(|it| it.last(section, key).as_deref() == Some(value))
    }

    /// The settings of a git directory that name a program.
    fn programs(&self, group: &Bytes) -> Vec<Value> {
        let settings = self.configs(group).flat_map(|it| it.settings);
        let running = settings.filter(is_running);
        running.map(|it| (it.name, it.value)).collect()
    }
}

fn is_running(setting: &Setting) -> bool {
    runs_something(&setting.name, setting.value.as_deref())
}

impl Config {
    /// The value of a setting that counts: the last one.
    pub(super) fn last(&self, section: &str, key: &str) -> Option<Vec<u8>> {
        let mut all = self.settings.iter().rev();
        let is_it = |name: &Name| name.section == section && name.sub.is_none() && name.key == key;
        all.find(|it| is_it(&it.name))?.value.clone()
    }
}

/// A setting, without its place.
type Value = (Name, Option<Vec<u8>>);

/// Something that git would run, and that was not there before.
#[derive(Debug)]
pub(super) enum Change {
    /// A link or a pointer, a hook, or a whole file of settings that can not be read.
    File { path: PathBuf, kind: FileKind },
    /// Settings of a file, and what they were.
    Settings {
        path: PathBuf,
        group: PathBuf,
        new: Vec<Setting>,
        /// The lines that are gone, each with its setting's name.
        gone: Vec<(Name, Vec<u8>)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum FileKind {
    Hook,
    Lead,
    Config,
}

/// What came or changed. Only of the first kind that there is something of: where links and settings
/// lead decides which hooks count.
pub(super) fn changes(
    before: &Snapshot,
    now: &Snapshot,
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<Change> {
    let (mut leads, mut settings, mut hooks) = (Vec::new(), Vec::new(), Vec::new());
    let mut known_values: BTreeMap<Bytes, Vec<Value>> = BTreeMap::new();
    for (place, role, entry) in &now.entries {
        let path = place.path();
        let was = before.get(&path);
        // The same pointer may lead elsewhere by now.
        let leads_off = *role == Role::Lead { is_risky: true } && before.leads_well(place);
        if was.is_some_and(|was| was.is_same(entry)) && !leads_off {
            continue;
        }
        let file = |kind| Change::File {
            path: path.clone(),
            kind,
        };
        let is_new = || !is_known(&entry.fingerprint(&path));
        match role {
            Role::Lead { is_risky: true } if is_new() => leads.push(file(FileKind::Lead)),
            Role::Hook if is_new() => hooks.push(file(FileKind::Hook)),
            Role::Lead { .. } | Role::Hook => {}
            Role::Config { group } => {
                let content = entry.content.as_ref();
                let Some(config) = content.and_then(|it| parse(&it.0)) else {
                    if is_new() {
                        settings.push(file(FileKind::Config));
                    }
                    continue;
                };
                let known = known_values
                    .entry(group.clone())
                    .or_insert_with(|| before.programs(group));
                let new = config.settings.iter().filter(|it| {
                    let is_here = known
                        .iter()
                        .any(|(name, value)| *name == it.name && *value == it.value);
                    is_running(it) && !is_here && !is_known(&fingerprint(&group.path(), it))
                });
                let new: Vec<Setting> = new.cloned().collect();
                if !new.is_empty() {
                    let gone = gone(was, &config);
                    settings.push(Change::Settings {
                        path,
                        group: group.path(),
                        new,
                        gone,
                    });
                }
            }
        }
    }
    [leads, settings, hooks]
        .into_iter()
        .find(|it| !it.is_empty())
        .unwrap_or_default()
}

/// What a person knows a setting by.
pub(super) fn fingerprint(group: &Path, setting: &Setting) -> String {
    let value = setting.value.clone().map(Bytes);
    let text = format!("{}\0{:?}\0{value:?}", group.display(), setting.name);
    Digest::of(text.as_bytes()).to_string()
}

/// The settings of a file that name a program and are no longer in it.
fn gone(was: Option<&Entry>, config: &Config) -> Vec<(Name, Vec<u8>)> {
    let Some(content) = was.and_then(|was| was.content.as_ref()) else {
        return Vec::new();
    };
    let settings = parse(&content.0).unwrap_or_default().settings;
    let is_here = |old: &Setting| {
        let mut all = config.settings.iter();
        all.any(|it| it.name == old.name && it.value == old.value)
    };
    let gone = settings
        .into_iter()
        .filter(|old| is_running(old) && !is_here(old));
    gone.map(|old| (old.name.clone(), old.line(&content.0)))
        .collect()
}

impl Change {
    /// The file that it is about.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Settings { path, .. } => path,
        }
    }
}
