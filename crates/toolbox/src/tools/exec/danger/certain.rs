//! Where a command certainly is: behind `cd sub &&`, and as long as nothing else comes between. What it
//! calls `../x` is in the workspace then, and not beside it.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::disk::Lies;
use super::tables::WRAPPERS;
use super::wrappers::assigned;
use super::{Judge, PLACES_MAX, Setters, normal, program};
use crate::tools::exec::shell::{Joined, Simple, Word};

/// Programs that leave the directories of a workspace what they are: another one may have put a link in
/// the place of one, and what is up from there lies elsewhere.
const SETTLED: &[&str] = &[
    ":", "[", "cat", "cd", "echo", "false", "ls", "mkdir", "printf", "pwd", "set", "test", "true",
];
/// Commands behind which the shell may be elsewhere, or its directory.
const UNSETTLING: &[&str] = &[".", "cd", "eval", "mv", "popd", "pushd", "source"];
/// Commands before a `cd` that are looked at.
const BEFORE_MAX: usize = 64;

/// Where a `cd` leads for certain, from where it was.
pub(super) struct Goes {
    from: Vec<Option<PathBuf>>,
    to: Vec<Option<PathBuf>>,
}

impl Judge<'_> {
    /// What has been narrowed counts only for commands that are joined to one another.
    pub(super) fn go_on(&mut self, at: usize, simple: &Simple) {
        let before = at.checked_sub(1);
        let is_joined = before.is_some_and(|it| simple.joined == Joined::IfWorks(it));
        if !is_joined && (before.is_none() || simple.reads_from != before) {
            self.come_back();
        }
    }

    /// Where the command leads all that are joined to it, if it does so for certain.
    pub(super) fn goes(&mut self, at: usize, all: &[Simple]) -> Option<Goes> {
        let is_joined = |next: &Simple| next.joined == Joined::IfWorks(at);
        all.get(at + 1).filter(|next| is_joined(next))?;
        let target = plain_target(all.get(at)?)?;
        let has_room = self.places.len() + self.aside.len() <= PLACES_MAX / 2;
        if !has_room || !self.is_settled() {
            return None;
        }
        let from = self.places.clone();
        let mut to = Vec::new();
        for place in &from {
            let path = normal(&place.as_ref()?.join(target));
            if !self.is_beneath(&path) {
                return None;
            }
            to.push(Some(path));
        }
        Some(Goes { from, to })
    }

    /// Whether nothing has been done yet that could make a `cd` lead elsewhere.
    fn is_settled(&self) -> bool {
        let is_settled = |run: &Vec<String>| {
            run.first()
                .is_some_and(|name| SETTLED.contains(&name.as_str()))
        };
        self.setters == Setters::Known
            && !self.variables.contains_key("CDPATH")
            && self.functions.is_empty()
            && self.called.is_empty()
            && self.aliases.is_empty()
            && self.runs.len() <= BEFORE_MAX
            && self.runs.iter().all(is_settled)
    }

    /// Whether a path is in the workspace and no link leads it out. What is not there yet can not be
    /// entered, or is made by then.
    fn is_beneath(&mut self, path: &Path) -> bool {
        let mut whole = normal(self.workspace);
        let Ok(within) = path.strip_prefix(&whole).map(Path::to_owned) else {
            return false;
        };
        for name in within.components() {
            whole.push(name);
            match self.lies_at(&whole) {
                Lies::Directory => {}
                Lies::Nothing => return true,
                Lies::Other | Lies::Unknown => return false,
            }
        }
        true
    }

    /// Narrows the places for what is joined to the command, or lets it be.
    pub(super) fn went(&mut self, goes: Option<Goes>, simple: &Simple) {
        if let Some(Goes { from, to }) = goes {
            self.aside.extend(from);
            self.places = to;
        } else if is_unsettling(&simple.words) {
            self.come_back();
        }
    }

    /// All that was set aside counts again.
    pub(super) fn widen(&mut self) {
        for place in &self.aside {
            if !self.places.contains(place) {
                self.places.push(place.clone());
            }
        }
    }

    /// Judges what runs in a process of its own: wherever that goes, what started it stays where it is.
    pub(super) fn in_child(&mut self, judge: impl FnOnce(&mut Self)) {
        let (places, aside) = (self.places.clone(), self.aside.clone());
        let before = self.runs.len();
        judge(self);
        (self.places, self.aside) = (places, aside);
        // It may have moved the directory itself.
        let mut ran = self.runs.iter().skip(before);
        if ran.any(|run| run.first().is_none_or(|it| it.ends_with("mv"))) {
            self.come_back();
        }
    }

    /// The end of what is joined.
    pub(super) fn come_back(&mut self) {
        self.widen();
        self.aside.clear();
    }
}

/// Whether commands run once each, in their order, and none of them makes a link.
pub(super) fn is_straight(all: &[Simple], ran: Range<usize>) -> bool {
    let is_plain = |simple: &Simple| {
        simple.begins_loops() == 0
            && !simple.ends_loop()
            && simple.words.iter().all(|word| program(word) != "ln")
    };
    all.get(ran).is_some_and(|ran| ran.iter().all(is_plain))
}

/// The directory of a `cd` that says by itself where it leads, and that runs whatever came before, or
/// not at all.
fn plain_target(simple: &Simple) -> Option<&str> {
    let [cd, target] = simple.words.as_slice() else {
        return None;
    };
    let is_literal = !target.has_variable
        && !target.has_substitution
        && !target.is_home
        && !target.has_pattern()
        && !target.text.is_empty()
        && !target.text.starts_with('-');
    let is_down = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    // Another shell may take what writes to a file for the end of it.
    let is_alone = simple.reads_from.is_none()
        && simple.joined != Joined::Otherwise
        && simple.writes.is_empty()
        && simple.reads.is_empty()
        && simple.input.is_none()
        && simple.fills.is_none();
    let leads_down = Path::new(&target.text).components().all(is_down);
    (cd.text == "cd" && is_literal && is_alone && leads_down).then_some(&*target.text)
}

/// Whether nobody knows where the shell is behind a command.
fn is_unsettling(words: &[Word]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let is_wrapped = WRAPPERS.iter().any(|(known, _)| *known == program(first));
    let looked = if is_wrapped || assigned(first).is_some() {
        words
    } else {
        words.get(..1).unwrap_or_default()
    };
    looked.iter().any(|word| {
        let is_unknown = word.has_variable || word.has_substitution || word.has_pattern();
        is_unknown || UNSETTLING.contains(&program(word))
    })
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};
    use super::super::{Judged, reasons};

    const ASKED: &[&str] = &[
        // It may not have been reached.
        "cd sub; rm ../x",
        "cd sub\nrm ../x",
        "cd sub & rm ../x",
        "cd sub || rm ../x",
        "cd sub | rm ../x",
        "a || cd sub && rm ../x",
        "a ||\ncd sub && rm ../x",
        "echo | cd sub && rm ../x",
        "cd sub | true && rm ../x",
        "cd sub && make; rm ../x",
        "cd sub && make || rm ../x",
        "cd sub && make &\nrm ../x",
        "(cd sub) && rm ../x",
        "(cd sub && make) && rm ../x",
        "! cd sub && rm ../x",
        "true && echo $(cd sub) && rm ../x",
        "echo `cd sub` && rm ../x",
        "cd sub &>f && rm ../x",
        "cd sub && make &>f && rm ../x",
        "cd sub && <f\nrm ../x",
        "cd sub && >f\nrm ../x",
        "cd sub && f() { :; } && rm ../x",
        "if cd sub && make; then :; fi; rm ../x",
        // It leads further up.
        "cd sub && rm ../../x",
        "cd sub && cd .. && rm ../x",
        "cd sub/.. && rm ../x",
        "cd .. && rm ../x",
        "cd - && rm ../x",
        "cd && rm ../x",
        "cd ~ && rm x",
        "cd / && rm etc/x",
        "cd sub && cat > ../../x",
        "cd sub && sh -c 'cd .. && rm ../x'",
        "cd sub && eval 'cd ..' && rm ../x",
        // It is not certain where it leads.
        "cd $X && rm ../x",
        "cd s* && rm ../x",
        "cd $(cat f) && rm ../x",
        "cd -P sub && rm ../x",
        "CDPATH=/etc cd sub && rm ../x",
        "CDPATH=/etc; cd sub && rm ../x",
        "export CDPATH=/etc; cd sub && rm ../x",
        ". ./env && cd sub && rm ../x",
        "cd() { :; }; cd sub && rm ../x",
        "alias cd=true\ncd sub && rm ../x",
        "ln -s / sub && cd sub && rm ../x",
        "tar xf a.tar && cd sub && rm ../x",
        "git clone u sub && cd sub && rm ../x",
        "cd sub && rm ../x & ln -sfn / sub",
        // Something in between goes elsewhere.
        "cd sub && sh -c 'cd link && rm ../x'",
        "cd sub && X=1 && Y=2 . ./env && rm ../x",
        "cd sub && command . ./env && rm ../x",
        "cd sub && . ./env && rm ../x",
        "cd sub && popd && rm ../x",
        "cd sub && $X && rm ../x",
        "cd sub && mv ../sub ../../y && rm ../x",
        "cd sub && pushd .. && rm ../x",
        "cd sub && sh -c 'mv ../sub ../../y' && rm ../x",
        "cd sub && npx sh -c 'cd .. && rm ../x'",
        "cd sub && npx rimraf ../../x",
        "cd sub && sh -c make; rm ../x",
        "sh -c 'cd ..; rm x'",
        "f() { cd ..; }; f; rm x",
        // It is run elsewhere.
        "cd sub && pnpm -C .. exec rm ../x",
        "cd web && pnpm --workspace-root exec rimraf ../dist",
        "cd web && pnpm -w exec rimraf ../dist",
        "cd web && pnpm -r exec rimraf ../dist",
        "cd web && pnpm -F x exec rimraf ../dist",
        "cd web && pnpm --filter x exec rimraf ../dist",
        "cd web && npm exec -ws -- rm -rf ../x",
        "cd web && npm exec --workspaces -- rm -rf ../x",
        "cd web && npm exec -iwr -- rm -rf ../x",
        "cd web && npm exec rimraf ../x --workspaces",
        "cd web && yarn workspace x exec rimraf ../x",
        "cd sub && uv run --directory .. rm ../x",
        "cd sub && find .. -execdir rm ../x \\;",
        "cd sub && git rebase -x 'rm ../x' main",
        "cd sub && git -c alias.x='!rm ../x' x",
        "cd sub && GIT_EDITOR='rm ../x' git commit",
        "cd sub && echo ../x | xargs rm",
        // The next round begins elsewhere.
        "for i in 1 2; do\ncd sub && rm ../x\ncd ../..\ndone",
        "while :; do cd sub && rm ../x; cd ../..; done",
        "f() {\ncd sub && rm ../x\n}\ncd ..; f",
        "eval 'cd sub && rm ../x'",
    ];

    const NOT_ASKED: &[&str] = &[
        "cd sub && rm ../x",
        "cd sub && rm -rf ../build",
        "cd sub && cat > ../x",
        "cd sub && cat > ../x <<E\ntext\nE",
        "cd sub/ && make && rm ../x",
        "cd ./a/b && rm ../../x",
        "cd a && cd b && rm ../../x",
        "cd 'a b' &&\n  rm ../x",
        "cd sub && # in there\nrm ../x",
        "cd sub && cat a | tee b > ../x",
        "cd sub && cat a | sort && rm ../x",
        "(cd sub && rm ../x)",
        "mkdir -p sub && cd sub && rm ../x",
        "set -e; cd sub && rm ../x",
        "cd sub && rm -rf *",
        "make; ls",
        "false || (cd sub && rm ../x)",
        "cd sub && make > ../log 2>&1; echo $?",
        "cd web && npx rimraf ../dist",
        "cd web && npx -y -p rimraf@5 rimraf ../dist",
        "cd web && npx --package=rimraf rimraf ../dist",
        "cd web && npm exec rimraf ../dist",
        "cd web && pnpm exec rimraf ../dist",
        "cd web && uv run --with x rm -rf ../dist",
        "cd web && npx tsc && echo ok > ../log",
        "cd web && npm exec -- rimraf ../dist && rm ../x",
        "cd sub && sh -c make && rm ../x",
        "cd sub && docker exec web ls && rm ../x",
        "sh -c 'cd ..'; rm x",
    ];

    #[test]
    fn a_directory_that_may_not_be_reached_is_one_of_several() {
        let wrong = not_asked(&[("destructive_command", ASKED)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn one_that_is_certainly_reached_is_the_only_one() {
        let wrong = asked(NOT_ASKED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What is up from where a link leads lies elsewhere.
    #[test]
    fn a_link_is_no_directory_beneath() {
        let space = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(space.path().join("sub/dir")).expect("made");
        std::os::unix::fs::symlink("/", space.path().join("link")).expect("linked");
        std::fs::write(space.path().join("file"), "x").expect("written");
        let is_asked = |command: &str, working_dir| {
            let judged = Judged {
                workspace: space.path(),
                working_dir,
                ..super::super::tests::judged(command, None)
            };
            !reasons(&judged).is_empty()
        };
        assert!(!is_asked("cd sub && rm ../x", None));
        assert!(!is_asked("cd sub/dir && rm ../../x", None));
        assert!(!is_asked("cd dir && rm ../../x", Some("sub")));
        assert!(is_asked("cd link && rm ../x", None));
        assert!(is_asked("cd link/dir && rm ../x", None));
        assert!(is_asked("cd file && rm ../x", None));
        assert!(is_asked("cd dir && rm ../../x", Some("link")));
    }
}
