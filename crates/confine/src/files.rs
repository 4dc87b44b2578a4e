//! A plan's files as a Landlock ruleset.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

use crate::limits::RULES_MAX;
use crate::plan::{Plan, Signals, UnixSockets};
use crate::{ConfineError, kernel};

/// The newest version that was read about; an older kernel takes the part of it that it knows.
const ABI_KNOWN: ABI = ABI::V9;

/// The ruleset, to be laid on a process. What the kernel does not know is left out.
pub(crate) fn ruleset(plan: &Plan, abi: u32) -> Result<OwnedFd, ConfineError> {
    let mut attr = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_KNOWN))?;
    if abi >= kernel::ABI_WITH_SCOPES {
        if plan.unix_sockets == UnixSockets::Deny {
            attr = attr.scope(Scope::AbstractUnixSocket)?;
        }
        if plan.signals == Signals::Own {
            attr = attr.scope(Scope::Signal)?;
        }
    }
    let mut rules = Rules {
        plan,
        created: Some(attr.create()?),
        count: 0,
    };
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    for (paths, access) in [
        (&plan.read, reading()),
        (&plan.write, changing()),
        (&plan.devices, devices),
    ] {
        for path in paths {
            rules.grant(path, access, Link::Followed)?;
        }
    }
    for (paths, access) in [
        (&plan.granted_read, reading()),
        (&plan.granted_write, changing()),
    ] {
        for path in paths {
            rules.grant(path, access, Link::Refused)?;
        }
    }
    let fd: Option<OwnedFd> = rules.created.and_then(Option::from);
    fd.ok_or(ConfineError::NoLandlock)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

/// Everything but devices: making one is a way around all the rest.
fn changing() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI_KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// What a link in a path means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Its target: the path was named by an administrator.
    Followed,
    /// Nothing: commands can write to what the path lies in.
    Refused,
}

struct Rules<'a> {
    plan: &'a Plan,
    created: Option<RulesetCreated>,
    count: usize,
}

impl Rules<'_> {
    /// Grants a path with all below it but what is hidden. One that is not there is left out.
    fn grant(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
        link: Link,
    ) -> Result<(), ConfineError> {
        let real = match link {
            Link::Followed => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            Link::Refused => path.to_owned(),
        };
        if self.plan.hides(&real) {
            return Ok(());
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = match link {
            Link::Followed => open(&real, flags, Mode::empty()),
            Link::Refused => openat2(CWD, &real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS),
        };
        let Ok(file) = opened else {
            return Ok(());
        };
        let kind = FileType::from_raw_mode(fstat(&file).map_err(io::Error::from)?.st_mode);
        if kind == FileType::Symlink {
            return Ok(());
        }
        if !self.plan.leads_to_hidden(&real) {
            return self.add(file, access);
        }
        // Rights count for all below, and none can be taken back there. So the directories that
        // lead to what is hidden are given entry by entry; of themselves only the names in them.
        self.add(file, access & AccessFs::ReadDir)?;
        let entries = match std::fs::read_dir(&real) {
            Ok(entries) => entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<_>>()?,
            // Others' directories may be walked through and not listed: what is known is on the way.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.plan.towards_hidden(&real)
            }
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            self.grant(&entry, access, Link::Refused)?;
        }
        Ok(())
    }

    fn add(&mut self, file: OwnedFd, access: BitFlags<AccessFs>) -> Result<(), ConfineError> {
        self.count += 1;
        if self.count > RULES_MAX {
            return Err(ConfineError::TooManyRules);
        }
        let rule = PathBeneath::new(file, access).set_compatibility(CompatLevel::BestEffort);
        if let Some(created) = self.created.take() {
            self.created = Some(created.add_rule(rule)?);
        }
        Ok(())
    }
}
