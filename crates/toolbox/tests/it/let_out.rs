//! Commands that a person has let out of their confinement, against the real kernel.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use holdfast_confine::{ConfinementConfig, Mode};
use holdfast_contract::Tool;
use holdfast_toolbox::tools::ExecTool;
use serde_json::{Value, json};

use crate::common::Workspace;
use crate::guarded::{Bystander, SECRET};

/// A workspace with a state directory aside, and a directory of somebody else.
struct Scene {
    workspace: Workspace,
    state: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let workspace = Workspace::new();
        let state = workspace.outside().join("own/state");
        fs::create_dir_all(&state).expect("made");
        fs::write(state.join("approver-token"), SECRET).expect("written");
        fs::create_dir(workspace.outside().join("others")).expect("made");
        Self { workspace, state }
    }

    async fn run(&self, approved: &str, command: &str) -> Value {
        let context = crate::guarded::context(&self.workspace.root, &self.state, &[approved]);
        let required = ExecTool::new().with_confinement(ConfinementConfig {
            mode: Mode::Required,
            ..ConfinementConfig::default()
        });
        let params = json!({"command": command});
        let ran = required.execute(&params, &context).await;
        ran.expect("runs").output
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_outside_the_workspace() {
    for approved in ["unconfined"] {
        let scene = Scene::new();
        let command = "echo x > ../others/new && mkdir ../others/dir && rm -r ../others/dir && \
                       mv ../others/new ../others/other && cat ~/.bashrc /etc/hosts > ../others/all; \
                       sleep 1000 & kill $! && ls ../others /proc /dev > /dev/null";
        let output = scene.run(approved, command).await;
        assert_eq!(output["exit_code"], 0, "{output}");
        assert!(scene.workspace.outside().join("others/other").exists());
    }
}

/// The kernel's words do not say who forbids it; where it is the confinement, the answer does.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_held_and_failed_is_told_why() {
    let scene = Scene::new();
    let forbidden = "echo 'Permission denied' >&2; false";
    let setting = Some("confinement.write");
    // As Docker's client says it.
    let docker =
        "echo 'dial unix /var/run/docker.sock: socket: operation not permitted' >&2; false";
    let sockets = Some("confinement.unixSockets");
    for (approved, command, told) in [
        ("none", "echo x > f; cp f ~/holdfast-attack", setting),
        ("none", forbidden, setting),
        ("none", "echo 'Permission denied' >&2", None),
        ("none", "false", None),
        (
            "unconfined",
            "touch ../beside-the-state",
            Some("HOLDFAST_STATE"),
        ),
        ("unconfined", "false", None),
        ("other_rights", forbidden, None),
        ("none", docker, sockets),
        ("unconfined", docker, sockets),
        ("other_rights", docker, None),
    ] {
        let output = scene.run(approved, command).await;
        let hint = output["hint"].as_str();
        assert_eq!(
            hint.is_some(),
            told.is_some(),
            "{approved}, {command}: {output}"
        );
        let says = hint.unwrap_or_default().contains(told.unwrap_or_default());
        assert!(says, "{approved}, {command}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_reach_the_state() {
    for attack in [
        "cat ../own/state/approver-token",
        "cp -r ../own/state ../others; cat ../others/state/*",
        "mv ../own/state ../others; cat ../others/state/*",
        "mv ../own ../moved; cat ../moved/state/*",
        "ln ../own/state/approver-token ../others/token; cat ../others/token",
        "ln -s ../own/state ../others/way; cat ../others/way/approver-token",
        "rm -rf ../own",
        "echo x > ../own/state/approver-token",
        "cat /proc/$PPID/root$(realpath ..)/own/state/approver-token",
        "mkdir m; mount --bind ../own/state m; cat m/approver-token",
        "unshare -rm cat ../own/state/approver-token",
        "python3 -c 'import os; fd = os.open(\"..\", 0); print(os.read(os.open(\"own/state/approver-token\", 0, dir_fd=fd), 99))'",
    ] {
        let scene = Scene::new();
        let output = scene.run("unconfined", attack).await;
        let told = format!("{}{}", output["stdout"], output["stderr"]);
        assert!(!told.contains(SECRET), "{attack}: {output}");
        let token = fs::read_to_string(scene.state.join("approver-token"));
        assert_eq!(token.expect("is there"), SECRET, "{attack}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_starts_from_the_workspace_does_not_either() {
    let scene = Scene::new();
    let prepare = "git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x \
                   && git init -q --bare there && git remote add there ./there && \
                   printf '#!/bin/sh\\ncp ../own/state/approver-token got; echo ran > hook\\n' \
                   > .git/hooks/pre-push && chmod +x .git/hooks/pre-push";
    let output = scene.run("gate", prepare).await;
    assert_eq!(output["exit_code"], 0, "{output}");
    let push = "git push -q --force there HEAD:refs/heads/main";
    let output = scene.run("unconfined", push).await;
    assert_eq!(output["exit_code"], 0, "{output}");
    assert_eq!(scene.workspace.get("hook"), "ran\n");
    assert!(!scene.workspace.path("got").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_that_no_command_needs_stay_refused() {
    let scene = Scene::new();
    let mut other = Bystander::new();
    let attack = format!(
        "python3 -c 'import resource; resource.prlimit({0}, resource.RLIMIT_CPU, (0, 0))'; \
         python3 -c 'import socket; socket.socket(socket.AF_UNIX)'; true",
        other.0.id()
    );
    let output = scene.run("unconfined", &attack).await;
    let said = output["stderr"].as_str().expect("text");
    assert_eq!(said.matches("PermissionError").count(), 2, "{output}");
    assert!(other.0.try_wait().expect("asks").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_look_into_the_state_stays_as_it_was() {
    let scene = Scene::new();
    let token = scene.state.join("approver-token");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("changes");
    };
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    set(&scene.state, 0o700);
    set(&token, 0o600);
    for (approved, attack) in [
        (
            "gate",
            "chmod 755 ../own/state; chmod 644 ../own/state/approver-token",
        ),
        ("gate", "chmod 000 ../own/state/approver-token ../own/state"),
        ("unconfined", "chmod -R a+rwx ../own"),
    ] {
        scene.run(approved, attack).await;
        assert_eq!(mode(&scene.state), 0o700, "{attack}");
        assert_eq!(mode(&token), 0o600, "{attack}");
    }
    // The same for everything else in there, also for what came meanwhile, and for owners.
    fs::create_dir(scene.state.join("locks")).expect("made");
    let inside = ["audit.log", "locks", "locks/one"].map(|name| scene.state.join(name));
    fs::write(&inside[0], "x").expect("written");
    fs::write(&inside[2], "x").expect("written");
    set(&inside[0], 0o640);
    set(&inside[1], 0o750);
    set(&inside[2], 0o600);
    let owner = fs::metadata(&scene.state).expect("there").uid();
    let attack = "chmod -R 777 ../own/state; chown -R 65534:65534 ../own/state; \
                  chmod 777 ../own/state/*/* ../own/state/audit.log ../own/state/locks/one; true";
    scene.run("gate", attack).await;
    scene.run("unconfined", attack).await;
    for (path, kept) in inside.iter().zip([0o640, 0o750, 0o600]) {
        assert_eq!(mode(path), kept, "{}", path.display());
    }
    for path in inside.iter().chain([&scene.state, &token]) {
        let found = fs::metadata(path).expect("there");
        assert_eq!(found.uid(), owner, "{}", path.display());
    }
    assert_eq!((mode(&scene.state), mode(&token)), (0o700, 0o600));
    // What was done to a token while nobody looked does not last either.
    set(&token, 0o644);
    scene.run("gate", "true").await;
    assert_eq!(mode(&token), 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_roots_powers_only_those_are_left_that_builds_need() {
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID and NET_BIND_SERVICE.
    const LEFT: u64 = 0b100_1111_1011;
    let scene = Scene::new();
    for approved in ["gate", "unconfined"] {
        let output = scene
            .run(approved, "grep -E '^Cap(Eff|Prm|Bnd)' /proc/self/status")
            .await;
        let said = output["stdout"].as_str().expect("text");
        assert_eq!(said.lines().count(), 3, "{output}");
        for line in said
            .lines()
            .filter(|line| !line.starts_with("CapBnd") || is_root())
        {
            let powers = line.rsplit('\t').next().expect("a number");
            let powers = u64::from_str_radix(powers, 16).expect("a number");
            assert_eq!(powers & !LEFT, 0, "{approved}: {line}");
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
