//! Commands that try to get out, against the real kernel.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_confine::kernel::Has;
use holdfast_confine::{ConfinementConfig, Kernel, Mode, UnixSockets, Views};
use holdfast_contract::{Tool, ToolContext, ToolError};
use holdfast_toolbox::tools::ExecTool;
use serde_json::{Value, json};

use crate::common::{Workspace, code};
use crate::guarded::{Bystander, SECRET};

/// A workspace beside a state directory with a token, and a file of somebody else.
struct Scene {
    workspace: Workspace,
    state: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let workspace = Workspace::new();
        let state = workspace.outside().join("state");
        fs::create_dir(&state).expect("made");
        fs::write(state.join("approver-token"), SECRET).expect("written");
        fs::write(workspace.outside().join("other"), "untouched").expect("written");
        Self { workspace, state }
    }

    fn context(&self, approved: &[&str]) -> ToolContext {
        crate::guarded::context(&self.workspace.root, &self.state, approved)
    }

    async fn run_with(&self, exec: &ExecTool, command: &str) -> Value {
        let params = json!({"command": command});
        let ran = exec.execute(&params, &self.context(&[])).await;
        ran.expect("runs").output
    }

    async fn run(&self, command: &str) -> Value {
        self.run_with(&ExecTool::new(), command).await
    }

    fn is_untouched(&self) -> bool {
        let outside = self.workspace.outside();
        let mut names: Vec<_> = fs::read_dir(outside)
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names == ["other", "state", "workspace"]
            && fs::read(outside.join("other")).expect("there") == b"untouched"
            && fs::read_dir(&self.state).expect("lists").count() == 1
            && fs::read(self.state.join("approver-token")).expect("there") == SECRET.as_bytes()
    }
}

fn all_of(output: &Value) -> String {
    format!("{}{}", output["stdout"], output["stderr"])
}

/// Every command prints what it could read. None may print the secret or leave a trace outside.
const ATTACKS: &[(&str, &str)] = &[
    ("by name", "cat ../state/approver-token"),
    ("by pattern", "cat ../s*/*"),
    ("from within", "cd ../state && cat approver-token"),
    ("all of it", "cp -r ../state copy; cat copy/*"),
    ("packed", "tar cf all.tar ../state; cat all.tar"),
    ("by link", "ln -s ../state way; cat way/approver-token"),
    ("by hard link", "ln ../state/approver-token mine; cat mine"),
    ("by moving", "mv ../state here; cat here/*"),
    (
        "by searching",
        "find .. -name approver-token -exec cat {} +",
    ),
    (
        "in python",
        "python3 -c 'print(open(\"../state/approver-token\").read())'",
    ),
    (
        "in perl",
        "perl -e 'open F,\"../state/approver-token\"; print <F>'",
    ),
    ("in awk", "awk 1 ../state/approver-token"),
    ("by dd", "dd if=../state/approver-token"),
    ("as a script", ". ../state/approver-token"),
    ("as standard input", "cat < ../state/approver-token"),
    (
        "through a root in proc",
        "cat /proc/$PPID/root$(realpath ..)/state/approver-token",
    ),
    (
        "through a working directory",
        "cat /proc/$PPID/cwd/../state/approver-token",
    ),
    (
        "through descriptors",
        "for f in /proc/$PPID/fd/*; do cat $f/state/approver-token; done",
    ),
    (
        "through init",
        "cat /proc/1/root$(realpath ..)/state/approver-token",
    ),
    (
        "as an orphan",
        "(env -i setsid sh -c 'cat ../state/approver-token > got' &) ; sleep 0.2; cat got",
    ),
    (
        "with other rights",
        "sudo -n cat ../state/approver-token; su -c 'cat ../state/approver-token'",
    ),
    (
        "with a namespace",
        "unshare -rm cat ../state/approver-token",
    ),
    (
        "with a root of its own",
        "chroot .. cat /state/approver-token",
    ),
    (
        "by mounting",
        "mkdir m; mount --bind ../state m; cat m/approver-token",
    ),
    (
        "in another's namespace",
        "nsenter -t 1 -m cat $(realpath ..)/state/approver-token",
    ),
    (
        "by git",
        "git -C .. hash-object -w state/approver-token; git diff --no-index /dev/null ../state/approver-token",
    ),
    ("writing beside", "echo x > ../new"),
    ("writing over", "echo x > ../other"),
    ("adding to", "echo x >> ../other"),
    ("removing", "rm -rf ../other ../state"),
    (
        "shortening",
        "truncate -s 0 ../other; truncate -s 0 ../state/approver-token",
    ),
    ("making a directory", "mkdir ../new"),
    ("making a pipe", "mkfifo ../new"),
    ("making a link", "ln -s /etc/passwd ../new"),
    ("renaming", "mv ../other ../new"),
    ("moving in", "touch a; mv a ../state/b"),
    (
        "exchanging",
        "python3 -c 'import os; os.replace(\"/dev/null\", \"../other\")'; touch a; python3 -c 'import os; os.replace(\"a\", \"../other\")'",
    ),
    (
        "through a link it made",
        "ln -s .. up; echo x > up/other; rm -r up/state",
    ),
    (
        "leaving behind",
        "(setsid sh -c 'sleep 0.1; echo x > ../other' &); sleep 0.4",
    ),
    ("home", "echo x > ~/.profile.attack; cat ~/.profile.attack"),
    (
        "start-up files",
        "echo x >> /etc/profile.d/attack.sh; cat /etc/profile.d/attack.sh",
    ),
    (
        "the common temporary directory",
        "echo x > /tmp/holdfast-attack; cat /tmp/holdfast-attack",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_is_read_or_changed() {
    for (name, attack) in ATTACKS {
        let scene = Scene::new();
        let output = scene.run(attack).await;
        assert!(!all_of(&output).contains(SECRET), "{name}: {output}");
        assert!(scene.is_untouched(), "{name}: {output}");
    }
    let home = PathBuf::from(std::env::var_os("HOME").expect("a home"));
    for trace in [
        "/tmp/holdfast-attack".into(),
        "/etc/profile.d/attack.sh".into(),
        home.join(".profile.attack"),
    ] {
        assert!(!trace.exists(), "{}", trace.display());
    }
}

/// System calls by number, each of which has to fail with EPERM (1) or, for `clone3`, ENOSYS (38).
const CALLS: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *args):
    ctypes.set_errno(0)
    got = libc.syscall(number, *[ctypes.c_long(a) for a in args])
    print(name, ctypes.get_errno() if got == -1 else "done")
call("ptrace", 101, 16, os.getppid(), 0, 0)
call("process_vm_readv", 310, os.getppid(), 0, 0, 0, 0, 0)
call("mount", 165, 0, 0, 0, 0, 0)
call("umount2", 166, 0, 0)
call("unshare", 272, 0x10000000)
call("setns", 308, 0, 0)
call("clone_newuser", 56, 0x10000011, 0, 0, 0, 0)
call("clone3", 435, 0, 0)
call("keyctl", 250, 0, 0)
call("add_key", 248, 0, 0, 0, 0, 0)
call("bpf", 321, 0, 0, 0)
call("perf_event_open", 298, 0, 0, 0, 0, 0)
call("userfaultfd", 323, 0)
call("io_uring_setup", 425, 1, 0)
call("kexec_load", 246, 0, 0, 0, 0)
call("init_module", 175, 0, 0, 0)
call("finit_module", 313, 0, 0, 0)
call("open_by_handle_at", 304, 0, 0, 0)
call("reboot", 169, 0, 0, 0, 0)
call("pidfd_getfd", 438, 0, 0, 0)
call("unix socket", 41, 1, 1, 0)
call("packet socket", 41, 17, 3, 0)
call("raw socket", 41, 2, 3, 6)
call("raw socket that closes", 41, 2, 3 | 0o2000000, 255)
call("raw socket of version 6", 41, 10, 3, 58)
call("packets in the old way", 41, 2, 10, 0x0300)
call("vsock", 41, 40, 1, 0)
call("typing", 16, 0, 0x5412, 0)
call("typing, in a wide number", 16, 0, 0x100005412, 0)
limit = (ctypes.c_ulong * 2)(5, 5)
call("taking off the mark", 160, 15, ctypes.addressof(limit))
call("taking off the mark otherwise", 302, 0, 15, ctypes.addressof(limit), 0)
other = int(sys.argv[1])
call("a limit of another", 302, other, 7, ctypes.addressof(limit), 0)
call("a limit of another, in a wide number", 302, other + (1 << 32), 7, ctypes.addressof(limit), 0)
call("a priority of another", 141, 0, other, 5)
call("a priority of a group", 141, 1, other, 5)
call("a priority of all", 141, 2, 0, 5)
param = (ctypes.c_int * 1)(0)
call("a schedule of another", 144, other, 3, ctypes.addressof(param))
call("a schedule parameter of another", 142, other, ctypes.addressof(param))
call("schedule attributes of another", 314, other, ctypes.addressof(param), 0)
call("a disk priority of another", 251, 1, other, 3 << 13)
call("a disk priority of all", 251, 3, 0, 3 << 13)
pair = (ctypes.c_int * 2)()
call("a pair of datagrams", 53, 1, 2, 0, ctypes.addressof(pair))
call("a pair of raw ones", 53, 1, 3, 0, ctypes.addressof(pair))
call("a pair of raw ones that closes", 53, 1, 3 | 0o2000000, 0, ctypes.addressof(pair))
"#;

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_arch = "x86_64")]
async fn system_calls_that_no_command_needs_are_refused() {
    let scene = Scene::new();
    fs::write(scene.workspace.path("calls.py"), CALLS).expect("written");
    // A process of the same user that is no child of the command.
    let mut other = Bystander::new();
    let output = scene
        .run(&format!("python3 calls.py {}", other.0.id()))
        .await;
    assert!(other.0.try_wait().expect("asks").is_none(), "{output}");
    let said = output["stdout"].as_str().expect("text");
    assert_eq!(said.lines().count(), 44, "{output}");
    for line in said.lines() {
        let expected = if line.starts_with("clone3 ") {
            "38"
        } else {
            "1"
        };
        assert_eq!(line.rsplit(' ').next(), Some(expected), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_guards_a_command_can_not_be_reached() {
    let scene = Scene::new();
    let own = std::process::id();
    let attack = format!(
        "cat /proc/{own}/environ > /dev/null; echo environ $?; cat /proc/{own}/mem > /dev/null; \
         echo mem $?; kill -0 {own}; echo kill $?; sleep 5 & kill $!; echo own $?"
    );
    let output = scene.run(&attack).await;
    assert_eq!(
        output["stdout"], "environ 1\nmem 1\nkill 1\nown 0\n",
        "{output}"
    );
}

/// What commands are for goes on.
const ORDINARY: &[(&str, &str)] = &[
    (
        "files",
        "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && cp d e && rm e && ln d f && cat f && ln -s d g && cat g",
    ),
    ("pipes", "printf 'b\\na\\n' | sort | tee out | wc -l"),
    (
        "devices",
        "echo x > /dev/null; head -c 8 /dev/urandom | wc -c; cat /dev/null",
    ),
    ("a here-document", "cat <<EOF\nx\nEOF"),
    (
        "temporary files",
        "f=$(mktemp) && echo x > $f && rm $f && d=$(mktemp -d) && rmdir $d",
    ),
    (
        "python",
        "python3 -c 'import tempfile, subprocess; tempfile.TemporaryFile(); subprocess.check_output([\"ls\"])'",
    ),
    (
        "python in parallel",
        "python3 -c 'from concurrent.futures import ProcessPoolExecutor as P\nif __name__ == \"__main__\":\n  with P(2) as p: print(list(p.map(abs, [-1, 2])))'",
    ),
    (
        "threads",
        "python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()'",
    ),
    (
        "a pair of sockets",
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'",
    ),
    (
        "the network",
        "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); c = socket.create_connection(s.getsockname()); print(c)'",
    ),
    (
        "git",
        "git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && git log --oneline",
    ),
    ("limits", "ulimit -n 64 && ulimit -t 100 && true"),
    (
        "limits that are asked for",
        "python3 -c 'import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU)'",
    ),
    (
        "priorities",
        "nice -n 5 true && python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, 0, 19); os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))'",
    ),
    (
        "a pair of sockets with packets",
        "python3 -c 'import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); a.send(b\"x\"); print(b.recv(1))'",
    ),
    ("users", "id && ls -la / && ps > /dev/null; true"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_are_for_goes_on() {
    for (name, command) in ORDINARY {
        let scene = Scene::new();
        let output = scene.run(command).await;
        assert_eq!(output["exit_code"], 0, "{name}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_approved_reaches_out_and_nothing_else_does() {
    for (approved, reaches) in [
        (&["unconfined"][..], true),
        (&["other_rights", "gate"], true),
        (&["gate"], false),
        (&["irreversible_command"], false),
        (&["destructive_command"], false),
        (&[], false),
    ] {
        let scene = Scene::new();
        fs::create_dir(scene.workspace.outside().join("beside")).expect("made");
        let params = json!({"command": "echo x > ../beside/new"});
        let ran = ExecTool::new()
            .execute(&params, &scene.context(approved))
            .await;
        assert_eq!(
            ran.expect("runs").output["exit_code"] == 0,
            reaches,
            "{approved:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_within_the_workspace_stays_hidden() {
    let scene = Scene::new();
    let mut context = scene.context(&[]);
    let root = scene.workspace.root.canonicalize().expect("is there");
    fs::create_dir_all(root.join("deep/state")).expect("made");
    fs::create_dir(root.join("src")).expect("made");
    fs::write(root.join("deep/state/token"), SECRET).expect("written");
    fs::write(root.join("notes"), "old").expect("written");
    std::os::unix::fs::symlink("deep/state", root.join("src/way")).expect("linked");
    std::os::unix::fs::symlink("deep/state", root.join("way")).expect("linked");
    let mut session = (*context.session).clone();
    session.reserved = vec![root.join("deep/state")];
    context.session = Arc::new(session);
    let command = "cat deep/state/token way/token src/way/token deep/*/*; echo x > src/new; \
                   echo new > notes; ls; echo x > deep/state/more; mv deep/state src/";
    let params = json!({ "command": command });
    let ran = ExecTool::new().execute(&params, &context).await;
    let output = ran.expect("runs").output;
    assert!(!all_of(&output).contains(SECRET), "{output}");
    assert!(output["stdout"].as_str().expect("text").contains("notes"));
    assert!(root.join("src/new").exists());
    assert_eq!(
        fs::read_to_string(root.join("notes")).expect("there"),
        "new\n"
    );
    assert_eq!(
        fs::read_dir(root.join("deep/state"))
            .expect("lists")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_can_not_is_told_apart() {
    let scene = Scene::new();
    let nothing = Kernel {
        landlock_abi: 0,
        seccomp: Has::No,
        views: Views::No,
    };
    let with = |mode| ConfinementConfig {
        mode,
        ..ConfinementConfig::default()
    };
    let bare = ExecTool::new().on_kernel(nothing);
    let params = json!({"command": "cat ../state/approver-token"});
    let required = bare.clone().with_confinement(with(Mode::Required));
    let refused = required.execute(&params, &scene.context(&[])).await;
    assert!(
        matches!(&refused, Err(ToolError::ExecutionError { message, .. }) if message.contains("Landlock")),
        "{refused:?}"
    );
    assert_eq!(code(refused), "not_confined");
    // Honest: without a kernel that confines, it reads the token, and its description promises nothing.
    let output = scene.run_with(&bare, "cat ../state/approver-token").await;
    assert_eq!(output["stdout"], SECRET);
    assert!(!bare.description().contains("outside the workspace"));
    let off = ExecTool::new().with_confinement(with(Mode::Off));
    let output = scene.run_with(&off, "cat ../state/approver-token").await;
    assert_eq!(output["stdout"], SECRET);
    assert!(
        ExecTool::new()
            .description()
            .contains("outside the workspace")
    );
    let required = ExecTool::new().with_confinement(with(Mode::Required));
    let output = scene.run_with(&required, "echo fine").await;
    assert_eq!(output["stdout"], "fine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_opens_single_doors() {
    let scene = Scene::new();
    let outside = scene.workspace.outside().canonicalize().expect("there");
    let path = |name: &str| outside.join(name).display().to_string();
    fs::create_dir(outside.join("cache")).expect("made");
    let open = ExecTool::new().with_confinement(ConfinementConfig {
        read: vec![path("other")],
        // Also what contains the state: it stays hidden.
        write: vec![path("cache"), outside.display().to_string()],
        unix_sockets: UnixSockets::Allow,
        ..ConfinementConfig::default()
    });
    let command = "cat ../other; echo x > ../cache/new; cat ../state/approver-token; \
                   python3 -c 'import socket; socket.socket(socket.AF_UNIX)' && echo socket";
    let output = scene.run_with(&open, command).await;
    assert_eq!(output["stdout"], "untouchedsocket\n", "{output}");
    assert!(outside.join("cache/new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_without_a_name_is_found_and_ended() {
    let scene = Scene::new();
    // Its parent is gone, its group is another, its environment is empty, and it does not listen.
    let command = "(env -i setsid sh -c 'trap \"\" TERM HUP; (sh -c \"echo \\$\\$ > pid; while :; do sleep 1; done\" &)' &); \
                   while [ ! -s pid ]; do sleep 0.01; done; sleep 100";
    let params = json!({"command": command, "timeout_ms": 1500});
    let ran = ExecTool::new().execute(&params, &scene.context(&[])).await;
    assert!(matches!(ran, Err(ToolError::Timeout { .. })), "{ran:?}");
    let pid = scene.workspace.get("pid").trim().to_owned();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}
