//! What happens on other machines: in their shells, their databases, their clouds.

use std::path::Path;

use super::bounds::STATEMENT_COST;
use super::feeding::ReadAs;
use super::tables::{AWS_REMOVES, DATABASES, DROPPED, FEEDERS, REMOVES_CLOUD, SSH_VALUED};
use super::{Judge, Setters, input, program, runners, written};
use crate::tools::exec::shell::{self, Quoting, Simple, Word};

/// No path leads into the workspace there.
const THERE: &str = "/another machine";

/// What of a place is there when a command has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Files,
    /// A container that is made for the command goes with it, and sees nothing but the workspace. What it
    /// does to single files is of no more weight than if that was done here.
    Nothing,
}

impl Judge<'_> {
    /// Judges what runs on another machine, or in a container: every path is outside there, and what is
    /// set here is not set there.
    pub(super) fn elsewhere(&mut self, judge: impl FnOnce(&mut Self)) {
        let is_there = self.workspace == Path::new(THERE);
        let (workspace, places) = (self.workspace, std::mem::take(&mut self.places));
        let aside = std::mem::take(&mut self.aside);
        self.workspace = Path::new(THERE);
        self.places = vec![None];
        let keeps = std::mem::replace(&mut self.keeps, Keeps::Files);
        let before = std::mem::replace(&mut self.setters, Setters::Unknown);
        if !is_there {
            self.feeding.change_place();
        }
        judge(self);
        if !is_there {
            self.feeding.change_place();
        }
        (self.workspace, self.places, self.aside) = (workspace, places, aside);
        self.setters = before;
        self.keeps = keeps;
    }

    /// Judges what a shell on another machine is given as that.
    pub(super) fn ssh(
        &mut self,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        let command = written(behind_host(args));
        let fed = self.fed(simple, all);
        let input = fed.text.as_deref();
        let first = shell::read(&command).commands.into_iter().next();
        let runs_input = first.is_none_or(|first| runs_input(&first.words));
        self.elsewhere(|judge| {
            judge.script_fed(&command, input, depth + 1);
            match input.filter(|_| runs_input) {
                Some(text) => judge.script(text, depth + 1),
                None if runs_input => judge.feeding.is_read_as(ReadAs::Commands),
                None => {}
            }
        });
        self.runs_there(runs_input && fed.is_unknown, runs_input, simple, whole);
    }

    /// Judges what runs in a container. No shell reads its words once more, and it reads what its runner
    /// is fed.
    pub(super) fn contained(
        &mut self,
        ran: Vec<Word>,
        keeps: Keeps,
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        self.runs_there(false, runs_input(&ran), simple, whole);
        self.elsewhere(|judge| {
            judge.keeps = keeps;
            judge.handed(ran, simple, all, depth);
        });
    }

    /// A file that holds what is run there is none that the kernel would hold to anything.
    fn runs_there(&mut self, is_unknown: bool, runs_input: bool, simple: &Simple, whole: &str) {
        if is_unknown || (runs_input && !simple.reads.is_empty()) {
            let what = "runs elsewhere what another command prints";
            self.raise("unreadable_command", whole, what);
        }
    }

    /// Judges a script of which each command may read this.
    pub(super) fn script_fed(&mut self, text: &str, input: Option<&str>, depth: usize) {
        if !self.may_read(text) {
            return;
        }
        let mut script = shell::read(text);
        let readers = script.commands.iter_mut().filter(|it| reads_input(it));
        for (simple, input) in readers.zip(std::iter::repeat(input)) {
            let Some(input) = input.filter(|it| self.may_look(it.len())) else {
                break;
            };
            simple.input = Some(input.to_owned());
            simple.input_quoting = Quoting::Quoted;
        }
        self.read_script(text, script, depth);
    }

    /// Statements for a database.
    pub(super) fn database(&mut self, args: &[Word], simple: &Simple, all: &[Simple], whole: &str) {
        let fed = self.fed(simple, all).text.unwrap_or_default();
        let may_look = self.may_look(STATEMENT_COST * fed.len());
        if removes_data(&written(args)) || may_look && removes_data(&fed) {
            self.raise("irreversible_command", whole, super::DROPS_DATA);
        }
        if simple.reads_from.is_none() {
            self.feeding.is_read_as(ReadAs::Statements);
        }
    }

    pub(super) fn aws(&mut self, args: &[Word], whole: &str) {
        let has = |known: &str| args.iter().any(|word| word.text == known);
        let removes = args.iter().any(|word| {
            let mut begins = AWS_REMOVES.iter();
            begins.any(|begin| word.text.starts_with(begin))
        });
        let in_store = (has("s3") || has("s3api")) && (has("rm") || has("rb") || has("--delete"));
        if removes || in_store {
            self.raise("irreversible_command", whole, REMOVES_CLOUD);
        }
    }
}

/// The words behind the machine's name, which options may stand on both sides of.
fn behind_host(args: &[Word]) -> &[Word] {
    let mut has_host = false;
    let mut rest = args;
    while let Some(word) = rest.first() {
        let letters = word.text.strip_prefix('-').filter(|it| !it.is_empty());
        match letters {
            Some("-") => {
                let skipped = if has_host { 1 } else { 2 };
                return rest.get(skipped..).unwrap_or_default();
            }
            Some(letters) => {
                // The last letter of several may have the next word for its value.
                let at = letters.find(|letter| SSH_VALUED.contains(letter));
                let takes_next = at.is_some_and(|at| at + 1 == letters.len());
                rest = rest.get(1 + usize::from(takes_next)..).unwrap_or_default();
            }
            None if has_host => return rest,
            None => {
                has_host = true;
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    rest
}

/// Whether a command runs what it reads.
fn runs_input(words: &[Word]) -> bool {
    let args = words.get(1..).unwrap_or_default();
    words
        .first()
        .map(program)
        .is_some_and(|name| input::is_interpreter(name) && input::reads_its_program(name, args))
}

/// Whether a command makes something of what the script around it reads: nothing else feeds it, and it is
/// a database's, runs commands, or hands both on.
fn reads_input(simple: &Simple) -> bool {
    let is_told = |word: &Word| {
        let name = program(word);
        DATABASES.contains(&name)
            || FEEDERS.contains(&name)
            || matches!(name, "ssh" | "make" | "gmake")
            || input::is_interpreter(name)
            || runners::is_runner(name)
    };
    simple.input.is_none()
        && simple.reads.is_empty()
        && simple.reads_from.is_none()
        && simple.words.iter().any(is_told)
}

/// Words that empty something whatever stands beside them; an option's letter may stand before one.
const EMPTYING: &[&str] = &[
    "TRUNCATE",
    "ETRUNCATE",
    "FLUSHALL",
    "FLUSHDB",
    "DROPDATABASE",
];

/// Whether a statement among these drops or empties something.
pub(super) fn removes_data(text: &str) -> bool {
    text.split(';').any(is_removing)
}

fn is_removing(statement: &str) -> bool {
    let is = |word: &str, known: &[&str]| known.iter().any(|it| word.eq_ignore_ascii_case(it));
    let is_between = |sign: char| sign != '_' && !sign.is_ascii_alphanumeric();
    let mut before = "";
    let (mut empties, mut chooses) = (false, false);
    for word in statement.split(is_between).filter(|it| !it.is_empty()) {
        // `mysql -e'DROP …'`: an option's letter stands before it.
        let first = before.strip_prefix(['e', 'E']).unwrap_or(before);
        if is(word, EMPTYING) || (is(first, &["DROP"]) && is(word, DROPPED)) {
            return true;
        }
        empties |= is(first, &["DELETE"]) && is(word, &["FROM"]);
        chooses |= is(word, &["WHERE"]);
        before = word;
    }
    empties && !chooses
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};
    use super::super::reasons;
    use super::super::tests::judged;
    use super::removes_data;

    const REMOVES_FILES: &[&str] = &[
        "docker exec web sh -c \"rm -rf $DIR\"",
        "docker exec web sh -c \"rm -rf $(cat list)\"",
        "docker exec web sh -c \"cd /srv && rm -rf *\"",
        "D=/srv; docker exec web sh -c \"rm -rf $D\"",
        "docker exec web rm -rf \"$DIR\"",
        "docker exec web bash -lc 'sh -c \"rm -rf data\"'",
        "docker exec -i web sh <<E\nrm -rf data\nE",
        "echo 'rm -rf data' | docker exec -i web sh",
        "echo data | docker exec -i web xargs rm -rf",
        "ssh host sh <<E\nrm -rf data\nE",
        "echo 'rm -rf data' | ssh host 'cd /srv && sh'",
        "docker exec -i web xargs rm -rf < list",
        "docker exec web docker exec db rm -rf data",
        // In a container that is made for it.
        "docker run --rm -v \"$PWD:/w\" alpine rm -rf /w",
        "podman run -v \"$PWD\":/w:z -w /w alpine sh -c 'rm -rf *'",
        "docker run --rm --gpus all -it img rm -rf /w",
        "docker run --unheard of img rm -rf /w",
        "docker run --rm --entrypoint rm img -rf /w",
        "docker run --rm --entrypoint=rm img -rf /w",
        "docker compose -f x.yml run --rm web rm -rf data",
        "docker run --rm --entrypoint sh -v \"$PWD:/w\" alpine -c 'rm -rf /w/*'",
        "podman run --rm --entrypoint '[\"sh\",\"-c\"]' -v \"$PWD:/w\" alpine 'rm -rf /w/*'",
        "docker compose run --entrypoint 'sh -c' web 'rm -rf /w/*'",
        "echo 'rm -rf /w/*' | docker run -i -v \"$PWD:/w\" --entrypoint sh alpine",
        "docker run --runtime nvidia --rm -v /srv:/w img rm -rf /w",
        "docker run -itv /srv:/w img rm -rf /w",
        "docker run --rm -- img rm -rf /w",
        "docker run --rm -v \"$PWD:/w\" alpine sh -c 'rm -f /w/*'",
        "docker run --rm -v \"$PWD:/w\" alpine mv /w/src /tmp/src",
        // It sees what is outside.
        "docker run --rm -v /:/host alpine sh -c 'echo x > /host/etc/passwd'",
        "docker run --rm -itv/etc:/e alpine rm /e/passwd",
        "docker run --rm -v ~/.ssh:/s alpine chmod 777 /s/id",
        "docker run --rm -v \"$HOME:/h\" alpine sh -c 'echo x > /h/.bashrc'",
        "docker run --rm --mount type=bind,source=/etc,target=/e alpine rm /e/passwd",
        "docker run --rm --volumes-from db alpine rm /data/x",
        "cd ..; docker run --rm -v \"$PWD:/w\" alpine rm /w/x",
        "docker exec web sh -c 'echo x > a'",
        "docker run --rm img ssh host 'echo x > a'",
    ];
    const REMOVES_DATA: &[&str] = &[
        "kubectl exec pod -- sh -c \"psql -c 'DROP TABLE $t'\"",
        "echo 'DROP TABLE users' | docker exec -i db psql -U u",
        "docker compose exec -T db psql <<E\nDROP DATABASE x;\nE",
        "docker exec -i db sh -c 'psql -U $USER' <<E\nDROP TABLE x;\nE",
        "echo 'db.users.drop()' | docker exec -i db mongosh x",
        "kubectl exec -i db -- mongosh <<< 'db.users.drop()'",
        "echo 'DROP TABLE x' | ssh host psql",
        "echo 'DROP TABLE x' | ssh host 'cd /srv && psql -U u'",
        "ssh host mongosh <<< 'db.users.drop()'",
        "ssh host 'docker exec -i db psql' <<< 'DROP TABLE x'",
        "sh -c psql <<< 'DROP TABLE x'",
        "docker compose run --rm web rails db:drop",
        "docker compose run web bundle exec rake db:drop",
    ];
    const UNREADABLE: &[&str] = &[
        "cat x | docker exec -i web sh",
        "docker exec -i web sh < x.sh",
        "cat x | ssh host",
        "ssh host sh < x.sh",
    ];
    const UNASKED: &[&str] = &[
        "docker run --rm alpine ls",
        "docker run --rm -it -v \"$PWD:/w\" -w /w node:20 npm test",
        "docker run -d --name db -p 5432:5432 -e POSTGRES_PASSWORD=x postgres:16",
        "docker compose run --rm web pytest -q",
        "docker compose up -d",
        "docker run --rm img sh -c 'echo x > /tmp/a'",
        "docker run --rm img sh -c 'echo x > /etc/a'",
        "docker run --rm -v \"$PWD:/w\" -w /w node:20 sh -c 'npm ci > ci.log'",
        "docker run --rm -v \"$(pwd):/w\" -w /w node:20 sh -c 'npm ci > ci.log'",
        "docker run --rm -v ./x:/x -v cache:/c img sh -c 'date > /x/log'",
        "docker run --rm --mount type=bind,src=\"$PWD\",dst=/w img sh -c 'date > /w/log'",
        "docker run --rm img sh -c 'chmod +x gradlew && ./gradlew build'",
        "docker run --rm img sh -c 'rm /app/x.log'",
        "docker run --rm img tool --entrypoint rm -rf x",
        "docker run --rm --runtime nvidia img nvidia-smi",
        "docker run --cidfile c --log-x y --oom-z w --unheard of img ls",
        "podman run --rm -v ./x:/x:Z img make",
        "kubectl run x --image=y --rm -it -- sh",
        "docker exec web sh -c \"ls $DIR\"",
        "docker exec web sh -c \"grep x $(cat list)\"",
        "docker exec web cat /etc/hosts > hosts.txt",
        "docker exec -i db psql -U u < schema.sql",
        "cat schema.sql | docker exec -i db psql -U u",
        "echo 'select 1' | docker exec -i db psql",
        "docker exec -i db psql <<E\nDELETE FROM x WHERE a = 1;\nE",
        "ssh host uptime",
        "echo 'select 1' | ssh host psql",
        "sh -c 'psql -U u' <<< 'select 1'",
    ];

    #[test]
    fn what_runs_elsewhere_is_judged_as_if_it_ran_here() {
        let wrong = not_asked(&[
            ("destructive_command", REMOVES_FILES),
            ("irreversible_command", REMOVES_DATA),
            ("unreadable_command", UNREADABLE),
        ]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(UNASKED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What is in the workspace here is not there.
    #[test]
    fn what_is_read_elsewhere_is_judged_there() {
        for (command, stdin) in [
            ("docker exec -i web sh", "rm -rf data"),
            ("docker exec -i web xargs rm -rf", "data"),
            ("kubectl exec -i web -- sh -s", "rm -rf data"),
            ("ssh host", "rm -rf data"),
            ("ssh host 'cd x; sh'", "rm -rf data"),
            ("docker exec -i db psql", "DROP TABLE x"),
            ("docker exec -i db mongosh", "db.users.drop()"),
            ("ssh host mongosh", "db.users.drop()"),
            ("sh", "docker exec -i db psql\nDROP TABLE x"),
        ] {
            let found = reasons(&judged(command, Some(stdin)));
            assert!(!found.is_empty(), "{command} < {stdin}");
        }
        for (command, stdin) in [
            ("sh", "rm -rf data"),
            ("docker exec web ls; sh", "rm -rf data"),
            ("xargs rm -rf", "data"),
            ("docker exec -i db psql", "select 1"),
            ("docker exec -i db mongosh", "db.users.find()"),
        ] {
            let found = reasons(&judged(command, Some(stdin)));
            assert_eq!(found, [], "{command} < {stdin}");
        }
    }

    #[test]
    fn statements_that_remove_are_told_from_others() {
        for text in [
            "drop table x",
            "select 1; Drop Database x",
            "-eDROP TABLE x",
            "delete from x; select 1 where a",
            "TRUNCATE x",
            "-etruncate x",
            "flushall",
        ] {
            assert!(removes_data(text), "{text}");
        }
        for text in [
            "",
            "select * from drops",
            "delete from x where a = 1",
            "drop the table",
            "insert into x values ('dropped')",
        ] {
            assert!(!removes_data(text), "{text}");
        }
    }
}
