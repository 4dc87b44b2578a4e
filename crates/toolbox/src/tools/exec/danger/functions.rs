//! Functions that the command line defines: `gp() { git push "$@"; }; gp -f`.

use std::ops::Range;
use std::rc::Rc;

use super::bounds::WORD_BYTES;
use super::{Judge, SCRIPT_DEPTH_MAX};
use crate::tools::exec::shell::{Script, Simple, Word};

/// Commands of functions that are judged where those are called; a command line that runs more counts
/// as unreadable.
const CALLED_COMMANDS_MAX: usize = 4096;
/// Ways in which a function calls itself that are followed.
const RECURSIONS_MAX: usize = 8;

/// What a function runs: some of the commands of the script that defines it.
#[derive(Debug, Clone)]
pub(super) struct Body {
    all: Rc<[Simple]>,
    ran: Range<usize>,
}

/// A function that is being judged.
#[derive(Debug, Default)]
pub(super) struct Called {
    /// What it gives itself.
    recursions: Vec<Vec<Word>>,
    /// It gives itself more than that.
    has_more: bool,
}

impl Judge<'_> {
    /// Notes the functions of a script, and hands back its commands. A name that is defined twice
    /// stands for both: which of them is called depends on what ran before.
    pub(super) fn note_functions(&mut self, script: Script) -> Rc<[Simple]> {
        let all: Rc<[Simple]> = script.commands.into();
        for function in script.functions {
            let body = Body {
                all: all.clone(),
                ran: function.commands,
            };
            self.functions.entry(function.name).or_default().push(body);
        }
        all
    }

    /// Judges the function of this name, with the arguments it is given and what it reads. Where it is
    /// defined its body was judged without them.
    pub(super) fn calls(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        if self.called.contains_key(name) {
            self.calls_itself(name, args);
            return;
        }
        let Some(defined) = self.functions.remove(name) else {
            return;
        };
        let bodies = self.fed_bodies(&defined, simple, all);
        let bodies = bodies.as_deref().unwrap_or(&defined);
        self.called.insert(name.to_owned(), Called::default());
        self.call(name, bodies, args, depth);
        // What it gives itself comes after, and may bring more of it.
        let mut followed = 0;
        while let Some(args) = self.recursion(name, followed) {
            self.call(name, bodies, &args, depth);
            followed += 1;
        }
        if self.called.remove(name).is_some_and(|it| it.has_more) {
            self.called.insert(name.to_owned(), Called::default());
            self.call_with_anything(bodies, depth);
            self.called.remove(name);
        }
        self.functions.insert(name.to_owned(), defined);
    }

    /// The bodies of a function that is given something to read: all in them that read nothing else read
    /// that.
    fn fed_bodies(
        &mut self,
        bodies: &[Body],
        simple: &Simple,
        all: &[Simple],
    ) -> Option<Vec<Body>> {
        simple.is_fed().then_some(())?;
        let text = self.fed(simple, all).text;
        let length: usize = bodies.iter().map(|body| body.all.len()).sum();
        // Too much of it ends the judging, and is said.
        self.may_look(length * WORD_BYTES).then_some(())?;
        let fed = |body: &Body| {
            let mut all = body.all.to_vec();
            let end = all.len();
            let within = all.get_mut(body.ran.clone()).unwrap_or_default();
            for reader in within.iter_mut().filter(|it| !it.is_fed()) {
                reader.reads_from = Some(end);
            }
            all.push(Simple {
                input: text.clone(),
                ends_subshell: Some(body.ran.start),
                ..Simple::default()
            });
            Body {
                all: all.into(),
                ran: body.ran.clone(),
            }
        };
        Some(bodies.iter().map(fed).collect())
    }

    fn call(&mut self, name: &str, bodies: &[Body], args: &[Word], depth: usize) {
        let commands: usize = bodies.iter().map(|body| body.ran.len()).sum();
        // What a loop runs once more, or is judged in several ways, is counted with all that is judged.
        if !self.is_repeated && self.ways == 0 {
            self.called_commands += commands + 1;
        }
        if self.called_commands > CALLED_COMMANDS_MAX || depth >= SCRIPT_DEPTH_MAX {
            self.raise("unreadable_command", name, "stands for too much");
            return;
        }
        self.given(args, |judge| judge.bodies(bodies, depth + 1));
    }

    fn bodies(&mut self, bodies: &[Body], depth: usize) {
        for Body { all, ran } in bodies {
            self.in_order(all, ran.clone(), depth);
        }
    }

    /// Notes what a function gives itself.
    fn calls_itself(&mut self, name: &str, args: &[Word]) {
        let args = self.resolved(args).unwrap_or_else(|| args.to_vec());
        let Some(called) = self.called.get_mut(name) else {
            return;
        };
        if called.recursions.contains(&args) {
            return;
        }
        if called.recursions.len() < RECURSIONS_MAX {
            called.recursions.push(args);
        } else {
            called.has_more = true;
        }
    }

    /// Judges a function once more, whatever it is given.
    fn call_with_anything(&mut self, bodies: &[Body], depth: usize) {
        self.given_anything(|judge| judge.bodies(bodies, depth + 1));
    }

    fn recursion(&self, name: &str, at: usize) -> Option<Vec<Word>> {
        self.called.get(name)?.recursions.get(at).cloned()
    }
}
