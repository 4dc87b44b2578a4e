//! What an undo does: decided here, done elsewhere.
//!
//! The points are gone through from the last to the first. Each change of a point is taken back where the
//! path still holds what the point left there. A path that holds something else was changed by somebody
//! else since: it is a conflict, and stays.

use std::collections::BTreeMap;

use crate::diff::{Change, diff};
use crate::entry::{Entry, Kind, Why};
use crate::error::UndoResult;
use crate::index::Node;
use crate::objects::Objects;

/// One path that an undo changes.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) path: Vec<u8>,
    pub(crate) now: Entry,
    pub(crate) target: Entry,
}

/// What an undo does in one root. Steps are in order: directories before what is in them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// Paths that somebody changed since, and whether they are overwritten all the same.
    pub(crate) conflicts: Vec<(Vec<u8>, bool)>,
    /// Paths that can not be brought back, since no state holds their content.
    pub(crate) left_out: Vec<(Vec<u8>, Why)>,
}

/// What will stand at one path.
#[derive(Debug, Clone)]
struct Slot {
    now: Entry,
    value: Entry,
    state: SlotState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Free,
    Conflict,
    Forced,
    LeftOut(Why),
}

impl Slot {
    fn keep(&mut self, state: SlotState) {
        self.value = self.now.clone();
        self.state = state;
    }

    fn is_settled(&self) -> bool {
        matches!(self.state, SlotState::Conflict | SlotState::LeftOut(_))
    }
}

/// Makes the plan of one root.
pub(crate) struct Planner<'a> {
    objects: &'a Objects,
    now: &'a Node,
    force: bool,
    slots: BTreeMap<Vec<u8>, Slot>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(objects: &'a Objects, now: &'a Node, force: bool) -> Self {
        Self {
            objects,
            now,
            force,
            slots: BTreeMap::new(),
        }
    }

    /// Takes back what happened between two states. Points are given from the last to the first.
    pub(crate) fn take_back(&mut self, before: &Entry, after: &Entry) -> UndoResult<()> {
        for change in diff(self.objects, before, after)? {
            let hidden = matches!(
                change.new.kind,
                Kind::LeftOut {
                    why: Why::Unreadable,
                    ..
                }
            );
            let below = hidden && change.old.is_dir();
            let (path, old) = (change.path.clone(), change.old.clone());
            // A workspace that a call removed was made anew, empty, to be restored.
            let is_removed_root = path.is_empty() && change.new.is_absent();
            self.fold(change, hidden || is_removed_root);
            if below && let Ok(now) = self.now_at(&path) {
                // What was in a directory that nobody could read is known again now.
                for mut change in diff(self.objects, &old, &now)? {
                    if !change.path.is_empty() {
                        change.path = [&path, &b"/"[..], &change.path].concat();
                        self.fold(change, true);
                    }
                }
            }
        }
        Ok(())
    }

    fn fold(&mut self, change: Change, certainly: bool) {
        let is_touch = change.is_touch();
        let now = match self.now_at(&change.path) {
            Ok(now) => now,
            Err(why) => {
                let slot = Slot {
                    now: Entry::ABSENT,
                    value: Entry::ABSENT,
                    state: SlotState::LeftOut(why),
                };
                self.slots.insert(change.path, slot);
                return;
            }
        };
        let slot = self.slots.entry(change.path).or_insert_with(|| Slot {
            value: now.clone(),
            now,
            state: SlotState::Free,
        });
        if slot.is_settled() {
            return;
        }
        if certainly || slot.value.agrees(&change.new) {
            slot.value = change.old;
        } else if self.force {
            if !slot.value.agrees(&change.old) {
                slot.state = SlotState::Forced;
            }
            slot.value = change.old;
        } else if !is_touch && !slot.value.agrees(&change.old) {
            slot.state = SlotState::Conflict;
        }
    }

    /// What stands at a path now, or why nobody knows: it lies in something that was left out.
    fn now_at(&self, path: &[u8]) -> Result<Entry, Why> {
        let mut node = self.now;
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            if let Kind::LeftOut { why, .. } = node.entry.kind
                && !why.replaceable()
            {
                return Err(why);
            }
            match node.child(name) {
                Some(child) => node = child,
                None => return Ok(Entry::ABSENT),
            }
        }
        Ok(node.entry.clone())
    }

    /// The plan, such that every path that stays or comes back has its directories.
    pub(crate) fn finish(mut self) -> Plan {
        self.leave_unknown();
        self.keep_parents();
        self.leave_children();
        let mut plan = Plan::default();
        for (path, slot) in self.slots {
            match slot.state {
                SlotState::Conflict => plan.conflicts.push((path.clone(), false)),
                SlotState::Forced => plan.conflicts.push((path.clone(), true)),
                SlotState::LeftOut(why) => plan.left_out.push((path.clone(), why)),
                SlotState::Free => {}
            }
            let differs = !slot.now.agrees(&slot.value) || slot.now.mtime != slot.value.mtime;
            let exists = !slot.now.is_absent() || !slot.value.is_absent();
            if differs && exists {
                plan.steps.push(Step {
                    path,
                    now: slot.now,
                    target: slot.value,
                });
            }
        }
        plan
    }

    /// Content that no state holds can not come back, and what was never looked into stays.
    fn leave_unknown(&mut self) {
        for slot in self.slots.values_mut() {
            if slot.is_settled() || slot.now.agrees(&slot.value) {
                continue;
            }
            match (&slot.value.kind, &slot.now.kind) {
                (Kind::LeftOut { why, .. }, _) => slot.keep(SlotState::LeftOut(*why)),
                (_, Kind::LeftOut { why, .. }) if !why.replaceable() => {
                    slot.keep(SlotState::LeftOut(*why));
                }
                _ => {}
            }
        }
    }

    /// A directory in which something stays, stays. Innermost directories come first.
    fn keep_parents(&mut self) {
        let paths: Vec<Vec<u8>> = self.slots.keys().rev().cloned().collect();
        for path in paths {
            let Some(slot) = self.slots.get(&path) else {
                continue;
            };
            if !slot.now.is_dir() || slot.value.is_dir() {
                continue;
            }
            let children = self.now.at(&path).map_or(&[][..], |node| &node.children);
            let something_stays = children.iter().any(|(name, _)| {
                let below = [&path, &b"/"[..], name].concat();
                let child = self.slots.get(&below);
                child.is_none_or(|child| !child.value.is_absent())
            });
            if something_stays && let Some(slot) = self.slots.get_mut(&path) {
                slot.keep(SlotState::Conflict);
            }
        }
    }

    /// Nothing comes back below a path where somebody else's file stays.
    fn leave_children(&mut self) {
        let paths: Vec<Vec<u8>> = self.slots.keys().cloned().collect();
        for path in paths {
            let Some(end) = path.iter().rposition(|byte| *byte == b'/') else {
                continue;
            };
            let parent = &path[..end];
            let has_parent = match self.slots.get(parent) {
                Some(parent) => parent.value.is_dir(),
                None => self.now.at(parent).is_some_and(|node| node.entry.is_dir()),
            };
            if let Some(slot) = self.slots.get_mut(&path)
                && !has_parent
                && !slot.value.is_absent()
            {
                slot.keep(SlotState::Conflict);
            }
        }
    }
}
