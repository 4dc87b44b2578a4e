//! Who is next when all places are taken.
//!
//! Each client has a line of its own, and the lines take turns: one that asks a thousand times does
//! not keep another with one question waiting for all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::desk::RunsLimits;

/// Places, and the lines before them.
pub(super) struct Turns {
    waiting_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    free: usize,
    waiting: usize,
    /// The lines in the order of their turns; none is empty.
    lines: VecDeque<Line>,
}

struct Line {
    client: String,
    places: VecDeque<oneshot::Sender<Place>>,
}

/// A place for one run; the next in turn gets it when it is dropped.
pub(super) struct Place {
    turns: Option<Arc<Turns>>,
}

impl Turns {
    pub(super) fn new(limits: RunsLimits) -> Arc<Self> {
        Arc::new(Self {
            waiting_max: limits.waiting_max,
            inner: Mutex::new(Inner {
                free: limits.runs_max,
                ..Inner::default()
            }),
        })
    }

    /// A place at once, or one that will come; nothing when as many wait as may.
    pub(super) fn ask(self: &Arc<Self>, client: &str) -> Option<Asked> {
        let mut inner = self.inner.lock();
        // Whoever left the line made no room in it; those are counted out first.
        inner.forget_gone();
        if inner.free > 0 && inner.waiting == 0 {
            inner.free -= 1;
            return Some(Asked::Now(self.place()));
        }
        if inner.waiting >= self.waiting_max {
            return None;
        }
        let (place, comes) = oneshot::channel();
        inner.waiting += 1;
        match inner.lines.iter_mut().find(|line| line.client == client) {
            Some(line) => line.places.push_back(place),
            None => inner.lines.push_back(Line {
                client: client.to_owned(),
                places: VecDeque::from([place]),
            }),
        }
        Some(Asked::Later(comes))
    }

    fn place(self: &Arc<Self>) -> Place {
        Place {
            turns: Some(self.clone()),
        }
    }

    /// Gives a free place to the next in turn who still waits.
    fn give_back(self: &Arc<Self>) {
        loop {
            let next = {
                let mut inner = self.inner.lock();
                let Some(next) = inner.next() else {
                    inner.free += 1;
                    return;
                };
                next
            };
            match next.send(self.place()) {
                Ok(()) => return,
                // Nobody waits there any more; the place is not given back twice.
                Err(mut place) => place.turns = None,
            }
        }
    }
}

impl Inner {
    /// The first of the line whose turn it is; the line goes to the end.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        let mut line = self.lines.pop_front()?;
        let place = line.places.pop_front();
        if !line.places.is_empty() {
            self.lines.push_back(line);
        }
        self.waiting -= usize::from(place.is_some());
        place
    }

    fn forget_gone(&mut self) {
        for line in &mut self.lines {
            let before = line.places.len();
            line.places.retain(|place| !place.is_closed());
            self.waiting -= before - line.places.len();
        }
        self.lines.retain(|line| !line.places.is_empty());
    }
}

/// What was got for asking.
pub(super) enum Asked {
    Now(Place),
    Later(oneshot::Receiver<Place>),
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(runs_max: usize, waiting_max: usize) -> Arc<Turns> {
        Turns::new(RunsLimits {
            runs_max,
            waiting_max,
            ..RunsLimits::default()
        })
    }

    fn now(turns: &Arc<Turns>, client: &str) -> Place {
        match turns.ask(client) {
            Some(Asked::Now(place)) => place,
            _ => panic!("no place for {client}"),
        }
    }

    fn later(turns: &Arc<Turns>, client: &str) -> oneshot::Receiver<Place> {
        match turns.ask(client) {
            Some(Asked::Later(comes)) => comes,
            _ => panic!("{client} does not wait"),
        }
    }

    #[test]
    fn each_client_has_its_turn() {
        let turns = turns(1, 10);
        let mut held = Some(now(&turns, "busy"));
        let mut waiting: Vec<(&str, oneshot::Receiver<Place>)> = Vec::new();
        for client in ["busy", "busy", "busy", "other", "third", "other"] {
            waiting.push((client, later(&turns, client)));
        }
        let mut order = Vec::new();
        for _ in 0..6 {
            drop(held.take());
            let got = waiting.iter_mut().enumerate().find_map(|(at, (_, comes))| {
                let place = comes.try_recv().ok()?;
                Some((at, place))
            });
            let (at, place) = got.expect("somebody is next");
            order.push(waiting.remove(at).0);
            held = Some(place);
        }
        assert_eq!(order, ["busy", "other", "third", "busy", "other", "busy"]);
        drop(held);
        drop(now(&turns, "busy"));
    }

    #[test]
    fn the_line_is_bounded_and_whoever_leaves_it_leaves_no_gap() {
        let turns = turns(1, 2);
        let held = now(&turns, "a");
        let (first, mut second) = (later(&turns, "a"), later(&turns, "b"));
        assert!(turns.ask("c").is_none());
        drop(first);
        let mut third = later(&turns, "c");
        assert!(turns.ask("d").is_none());
        drop(held);
        let got = second.try_recv().expect("b is next");
        drop(got);
        drop(third.try_recv().expect("c is next"));
        drop(now(&turns, "d"));
    }

    #[test]
    fn no_place_is_lost_or_doubled_whoever_leaves() {
        let turns = turns(3, 100);
        for round in 0..50 {
            let held: Vec<Place> = (0..3).map(|_| now(&turns, "x")).collect();
            let mut comes: Vec<_> = (0..20)
                .map(|at| later(&turns, if at % 2 == 0 { "x" } else { "y" }))
                .collect();
            comes.retain(|_| round % 2 == 0);
            drop(held);
            // Whoever got a place and leaves gives it on.
            drop(comes);
            assert_eq!(turns.inner.lock().free, 3);
            assert_eq!(turns.inner.lock().waiting, 0);
        }
    }
}
