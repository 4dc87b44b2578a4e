//! Functions that the command line defines: `gp() { git push "$@"; }; gp -f`.

use std::ops::Range;
use std::rc::Rc;

use super::{Judge, SCRIPT_DEPTH_MAX};
use crate::tools::exec::shell::{Script, Simple, Word};

/// Commands of functions that are judged where those are called; a command line that runs more counts
/// as unreadable.
const CALLED_COMMANDS_MAX: usize = 4096;

/// What a function runs: some of the commands of the script that defines it.
#[derive(Debug, Clone)]
pub(super) struct Body {
    all: Rc<[Simple]>,
    ran: Range<usize>,
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

    /// Judges the function of this name, with the arguments it is given. Where it is defined its
    /// body was judged without them.
    pub(super) fn calls(&mut self, name: &str, args: &[Word], depth: usize) {
        // Taken out: one that calls itself is not followed for ever.
        let Some(bodies) = self.functions.remove(name) else {
            return;
        };
        let commands: usize = bodies.iter().map(|body| body.ran.len()).sum();
        self.called_commands += commands + 1;
        if self.called_commands > CALLED_COMMANDS_MAX || depth >= SCRIPT_DEPTH_MAX {
            self.raise("unreadable_command", name, "stands for too much");
        } else {
            self.given(args, |judge| {
                for Body { all, ran } in &bodies {
                    for simple in all.get(ran.clone()).unwrap_or_default() {
                        judge.simple(simple, all, depth + 1);
                    }
                }
            });
        }
        self.functions.insert(name.to_owned(), bodies);
    }
}
