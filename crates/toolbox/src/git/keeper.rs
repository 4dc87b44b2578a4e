//! One comparison from its beginning to its end, also across processes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use holdfast_contract::Clock;
use parking_lot::Mutex;

use super::aside::{put_in_place, take};
use super::book::{Book, Drawer, Locked, SetAside};
use super::index::Indexes;
use super::places::look;
use super::snapshot::{Snapshot, changes};
use super::{GIT_ROUNDS_MAX, GIT_WATCH_MS};
use crate::tools::exec;

/// Why something that was set aside can not be put in place.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is nothing with this id.
    #[error("nothing with the id {0} is set aside in this workspace")]
    Unknown(String),
    /// It can not be put where it was.
    #[error("{id} can not be put in place at {}: {why}", .path.display())]
    NotPlaced {
        /// Its id.
        id: String,
        /// Where it was.
        path: PathBuf,
        /// What speaks against it.
        why: io::Error,
    },
    /// The state can not be used.
    #[error("what is set aside can not be read or written: {0}")]
    State(#[from] io::Error),
}

/// Keeps what git would run later from being changed by calls.
pub struct GitKeeper {
    state: PathBuf,
    home: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    indexes: Indexes,
    open: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    by_workspace: BTreeMap<PathBuf, Open>,
    is_watched: bool,
}

/// A workspace in which calls of this process run, or something that they left. They share one
/// state of before: what one of them has just made must not count as known to another.
struct Open {
    calls: usize,
    before: Snapshot,
    /// Held while the state of before is on disk.
    running: Option<Locked>,
}

fn real(workspace: &Path) -> PathBuf {
    workspace
        .canonicalize()
        .unwrap_or_else(|_| workspace.to_owned())
}

impl GitKeeper {
    /// A keeper with its records in a state directory. The person's own settings are in `home`.
    pub fn new(state: &Path, home: Option<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: state.to_owned(),
            home,
            clock,
            indexes: Indexes::default(),
            open: Mutex::default(),
        }
    }

    fn drawer(&self, workspace: &Path) -> Drawer {
        Drawer::of(&self.state, &real(workspace))
    }

    fn look(&self, workspace: &Path, before: &Snapshot) -> Snapshot {
        look(
            &real(workspace),
            self.home.as_deref(),
            &self.indexes,
            before,
        )
    }

    /// A call begins.
    pub(super) fn begin(&self, workspace: &Path) {
        let mut open = self.open.lock();
        if let Some(open) = open.by_workspace.get_mut(workspace) {
            open.calls += 1;
            return;
        }
        let drawer = self.drawer(workspace);
        let mut begun = Open {
            calls: 1,
            before: self.look(workspace, &Snapshot::default()),
            running: None,
        };
        if !begun.before.is_empty() || drawer.has_before() {
            // Without a state there is still the comparison in this process.
            let _ = self.take_over(workspace, &drawer, &mut begun);
        }
        open.by_workspace.insert(workspace.to_owned(), begun);
    }

    /// Takes the state of before to disk. One that is there is of a process that runs, and counts for
    /// this one too; or of one that is gone, and what it left is compared now.
    fn take_over(&self, workspace: &Path, drawer: &Drawer, open: &mut Open) -> io::Result<()> {
        let _locked = drawer.lock()?;
        // One that can not be read says nothing.
        let kept: Option<Snapshot> = drawer.before().ok().flatten();
        let is_quiet = drawer.is_quiet()?;
        match kept {
            Some(kept) if !is_quiet => open.before = kept,
            kept => {
                if let Some(kept) = kept {
                    self.compare(workspace, drawer, &kept)?;
                    open.before = self.look(workspace, &Snapshot::default());
                }
                drawer.keep_before(&open.before)?;
            }
        }
        open.running = drawer.running()?;
        Ok(())
    }

    /// A call has ended: what it changed is set aside. Everything that no answer has named yet, line
    /// by line.
    pub(super) fn end(self: &Arc<Self>, workspace: &Path) -> Vec<String> {
        let mut opened = self.open.lock();
        let Some(open) = opened.by_workspace.get_mut(workspace) else {
            return Vec::new();
        };
        open.calls -= 1;
        let told = self.compared(workspace, open);
        self.close_or_watch(workspace, &mut opened);
        told
    }

    /// Nobody waits for the call any more; what it started may still be ending.
    pub(super) fn abandon(self: &Arc<Self>, workspace: &Path) {
        let mut opened = self.open.lock();
        if let Some(open) = opened.by_workspace.get_mut(workspace) {
            open.calls -= 1;
            self.watch(&mut opened);
        }
    }

    fn compared(&self, workspace: &Path, open: &Open) -> Vec<String> {
        let now = self.look(workspace, &open.before);
        let is_cut = now.is_cut && !open.before.is_cut;
        let drawer = self.drawer(workspace);
        let has_changed = !changes(&open.before, &now, &|_| false).is_empty();
        let mut told = Vec::new();
        if has_changed || drawer.has_untold() {
            let done = self.set_aside_and_tell(workspace, &drawer, &open.before);
            told = done.unwrap_or_else(|error| vec![format!("NOT set aside: {error}")]);
        }
        if is_cut {
            told.push(
                "NOT all looked at: a limit was reached, or git's index can not be read".to_owned(),
            );
        }
        told
    }

    fn set_aside_and_tell(
        &self,
        workspace: &Path,
        drawer: &Drawer,
        before: &Snapshot,
    ) -> io::Result<Vec<String>> {
        let _locked = drawer.lock()?;
        let (mut book, mut told) = self.compare(workspace, drawer, before)?;
        let root = real(workspace);
        for aside in book.aside.iter_mut().filter(|aside| !aside.is_told) {
            told.push(aside.line(&root));
            aside.is_told = true;
        }
        drawer.keep_book(&book)?;
        Ok(told)
    }

    /// Sets aside what differs, round by round: with a link gone, other hooks may count.
    fn compare(
        &self,
        workspace: &Path,
        drawer: &Drawer,
        before: &Snapshot,
    ) -> io::Result<(Book, Vec<String>)> {
        let mut book = drawer.book()?;
        let mut failed = Vec::new();
        for _ in 0..GIT_ROUNDS_MAX {
            let now = self.look(workspace, before);
            let found = changes(before, &now, &|it| book.is_known(it));
            failed.clear();
            let count = found.len();
            for change in found {
                let mut keep = |taken| drawer.take(&mut book, taken);
                if let Err(error) = take(&change, before, self.clock.now_ms(), &mut keep) {
                    let path = change.path().display();
                    failed.push(format!("NOT set aside: {path}: {error}"));
                }
            }
            if failed.len() == count {
                break;
            }
        }
        Ok((book, failed))
    }

    fn close_or_watch(self: &Arc<Self>, workspace: &Path, opened: &mut Opened) {
        let Some(open) = opened.by_workspace.get_mut(workspace) else {
            return;
        };
        if open.calls > 0 {
            return;
        }
        let drawer = self.drawer(workspace);
        if exec::is_at_work(workspace) {
            if open.running.is_none() {
                let _ = self.take_over(workspace, &drawer, open);
            }
            self.watch(opened);
            return;
        }
        let open = opened.by_workspace.remove(workspace);
        if let Some(running) = open.and_then(|open| open.running) {
            let _ = close(&drawer, running);
        }
    }

    /// Compares once more where no call runs, and closes what is over.
    pub fn settle(self: &Arc<Self>) {
        let mut opened = self.open.lock();
        let quiet = opened
            .by_workspace
            .iter()
            .filter(|(_, open)| open.calls == 0);
        let quiet: Vec<PathBuf> = quiet.map(|(workspace, _)| workspace.clone()).collect();
        for workspace in quiet {
            // What ends between the two is compared again.
            let is_at_work = exec::is_at_work(&workspace);
            if let Some(open) = opened.by_workspace.get(&workspace) {
                let now = self.look(&workspace, &open.before);
                if !changes(&open.before, &now, &|_| false).is_empty() {
                    let drawer = self.drawer(&workspace);
                    // It is named in the next answer.
                    let _ = drawer
                        .lock()
                        .and_then(|_locked| self.compare(&workspace, &drawer, &open.before));
                }
            }
            if !is_at_work {
                self.close_or_watch(&workspace, &mut opened);
            }
        }
    }

    /// Settles again and again, on a thread of its own, until nothing is left to be settled.
    fn watch(self: &Arc<Self>, opened: &mut Opened) {
        if opened.is_watched {
            return;
        }
        let keeper = Arc::downgrade(self);
        let thread = thread::Builder::new().name("holdfast-git".into());
        // Where there is no thread, the next call in the workspace compares.
        opened.is_watched = thread.spawn(move || watch(&keeper)).is_ok();
    }

    /// What is set aside in a workspace, the oldest first.
    pub fn list(&self, workspace: &Path) -> Result<Vec<SetAside>, GitError> {
        let drawer = self.drawer(workspace);
        if !drawer.is_there() {
            return Ok(Vec::new());
        }
        let _locked = drawer.lock()?;
        let book = drawer.book()?;
        Ok(book.aside.iter().map(|aside| drawer.shown(aside)).collect())
    }

    /// Puts one of them in place, or all, and knows it from now on. What was done, also where one fails.
    pub fn keep(&self, workspace: &Path, id: Option<&str>) -> Result<Vec<SetAside>, GitError> {
        self.answer(workspace, id, |drawer, book, aside| {
            let content = drawer.content(aside);
            put_in_place(aside, content.as_deref()).map_err(|why| GitError::NotPlaced {
                id: aside.id.clone(),
                path: aside.path.path(),
                why,
            })?;
            book.know(aside.fingerprint.clone());
            Ok(())
        })
    }

    /// Throws one of them away, or all.
    pub fn drop_aside(
        &self,
        workspace: &Path,
        id: Option<&str>,
    ) -> Result<Vec<SetAside>, GitError> {
        self.answer(workspace, id, |_, _, _| Ok(()))
    }

    fn answer(
        &self,
        workspace: &Path,
        id: Option<&str>,
        act: impl Fn(&Drawer, &mut Book, &super::aside::Aside) -> Result<(), GitError>,
    ) -> Result<Vec<SetAside>, GitError> {
        let drawer = self.drawer(workspace);
        let unknown = || Err(GitError::Unknown(id.unwrap_or_default().to_owned()));
        if !drawer.is_there() {
            return if id.is_some() {
                unknown()
            } else {
                Ok(Vec::new())
            };
        }
        let _locked = drawer.lock()?;
        let mut book = drawer.book()?;
        let is_meant = |known: &str| id.is_none_or(|id| known == id);
        let meant = book.aside.iter().filter(|it| is_meant(&it.id));
        let meant: Vec<_> = meant.cloned().collect();
        if id.is_some() && meant.is_empty() {
            return unknown();
        }
        let mut done = Vec::new();
        for aside in &meant {
            let shown = drawer.shown(aside);
            act(&drawer, &mut book, aside)?;
            book.aside.retain(|it| it.id != aside.id);
            drawer.keep_book(&book)?;
            drawer.forget(aside);
            done.push(shown);
        }
        Ok(done)
    }
}

fn close(drawer: &Drawer, running: Locked) -> io::Result<()> {
    let _locked = drawer.lock()?;
    drop(running);
    // Another process that runs a command here needs it.
    if drawer.is_quiet()? {
        drawer.forget_before();
    }
    Ok(())
}

fn watch(keeper: &Weak<GitKeeper>) {
    loop {
        thread::sleep(Duration::from_millis(GIT_WATCH_MS));
        let Some(keeper) = keeper.upgrade() else {
            return;
        };
        keeper.settle();
        let mut opened = keeper.open.lock();
        if opened.by_workspace.values().all(|open| open.calls > 0) {
            opened.is_watched = false;
            return;
        }
    }
}
