//! What guards the calls, and file tools that get there by another way: through a link, under a
//! second name, in other capitals, or by making a directory on the way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext, ToolError, ToolResult};
use holdfast_toolbox::tools::{EditTool, ReadTool, WriteTool};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::common::{Workspace, code};

const SECRET: &str = "the secret of this test";
const WRITTEN: &str = "written by an attack";

/// A workspace with the state in it, which is the worst place for it.
struct Scene {
    workspace: Workspace,
    root: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let workspace = Workspace::new();
        let root = workspace.root.canonicalize().expect("is there");
        fs::create_dir_all(root.join("state/locks")).expect("made");
        fs::write(root.join("state/approver-token"), SECRET).expect("written");
        fs::write(root.join("state/locks/one"), SECRET).expect("written");
        fs::write(root.join("config.yaml"), SECRET).expect("written");
        symlink("state", root.join("way")).expect("linked");
        Self { workspace, root }
    }

    fn context(&self) -> ToolContext {
        let mut session = SessionContext::main("session", "agent", self.root.clone());
        let reserved = ["state", "config.yaml", "later"];
        session.reserved = reserved.map(|name| self.root.join(name)).to_vec();
        ToolContext {
            session: Arc::new(session),
            call: CallContext::default(),
        }
    }

    fn is_untouched(&self) -> bool {
        let reads = |name: &str| fs::read_to_string(self.root.join(name)).expect("is there");
        names(&self.root.join("state")) == ["approver-token", "locks"]
            && names(&self.root.join("state/locks")) == ["one"]
            && !self.root.join("later").exists()
            && ["state/approver-token", "state/locks/one", "config.yaml"]
                .iter()
                .all(|name| reads(name) == SECRET)
    }

    /// The file tools on a path, each with its answer.
    async fn tried(&self, path: &str) -> Vec<(String, Result<ToolResult, ToolError>)> {
        let tools: [(&dyn Tool, Value); 3] = [
            (&ReadTool, json!({ "path": path })),
            (&WriteTool, json!({"path": path, "content": WRITTEN})),
            (
                &EditTool,
                json!({"path": path, "old_string": SECRET, "new_string": WRITTEN}),
            ),
        ];
        let mut answers = Vec::new();
        for (tool, params) in tools {
            let result = tool.execute(&params, &self.context()).await;
            let told = format!("{} {path}: {result:?}", tool.name());
            assert!(!told.contains(SECRET), "{told}");
            assert!(self.is_untouched(), "{told}");
            answers.push((told, result));
        }
        answers
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("lists").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn is_reserved(result: &Result<ToolResult, ToolError>) -> bool {
    matches!(result, Err(ToolError::PermissionDenied { reason, .. }) if reason.contains("no tool may reach"))
}

#[tokio::test]
async fn nothing_is_made_in_what_is_reserved_before_it_is_refused() {
    let scene = Scene::new();
    for path in [
        "way/new/deep/file",
        "way/locks/new/file",
        "state/new/file",
        "new/../way/made/file",
        "a/b/../../state/made/deep/file",
        "later/file",
        "later/new/file",
        "way/new",
    ] {
        let params = json!({"path": path, "content": WRITTEN});
        let refused = WriteTool.execute(&params, &scene.context()).await;
        assert!(is_reserved(&refused), "{path}: {refused:?}");
        assert!(scene.is_untouched(), "{path}");
    }
    // What is not reserved is made as ever, also behind a way that leads around.
    let params = json!({"path": "fresh/../other/deep/file", "content": "x"});
    let written = WriteTool.execute(&params, &scene.context()).await;
    written.expect("writes");
    assert_eq!(scene.workspace.get("other/deep/file"), "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_directory_is_made_in_the_state_while_a_link_takes_the_place_of_another() {
    let scene = Scene::new();
    fs::create_dir(scene.root.join("swap")).expect("made");
    symlink("state", scene.root.join("swap-link")).expect("linked");
    let going = Arc::new(AtomicBool::new(true));
    let swapper = {
        let (root, going) = (scene.root.clone(), going.clone());
        std::thread::spawn(move || {
            while going.load(Ordering::Relaxed) {
                let (one, other) = (root.join("swap"), root.join("swap-link"));
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("exchanged");
            }
        })
    };
    let (mut inside, mut refused) = (0_u32, 0_u32);
    for number in 0..3_000 {
        let params = json!({"path": format!("swap/{number}/deep/file"), "content": WRITTEN});
        match WriteTool.execute(&params, &scene.context()).await {
            Ok(_) => inside += 1,
            Err(_) => refused += 1,
        }
    }
    going.store(false, Ordering::Relaxed);
    swapper.join().expect("no panic");
    assert!(
        scene.is_untouched(),
        "{:?}",
        names(&scene.root.join("state"))
    );
    // Both happened, or nothing was tried.
    assert!(
        inside > 0 && refused > 0,
        "{inside} inside, {refused} refused"
    );
}

#[tokio::test]
async fn a_second_name_of_what_is_reserved_is_refused() {
    let scene = Scene::new();
    for (reserved, second) in [
        ("state/approver-token", "harmless.txt"),
        ("state/locks/one", "deep.txt"),
        ("config.yaml", "notes.txt"),
    ] {
        fs::hard_link(scene.root.join(reserved), scene.root.join(second)).expect("linked");
        symlink(second, scene.root.join(format!("{second}-link"))).expect("linked");
        for path in [second.to_owned(), format!("{second}-link")] {
            for (told, result) in scene.tried(&path).await {
                assert!(is_reserved(&result), "{told}");
            }
        }
    }
}

/// Where the test below finds itself once more, with mounts of its own.
const MOUNTED: &str = "HOLDFAST_TEST_MOUNTED";

/// As a container does with secrets: the file has its place by a mount, and another name elsewhere.
#[tokio::test]
async fn what_is_reserved_by_a_mount_is_known_by_its_other_names() {
    if std::env::var_os(MOUNTED).is_none() {
        let name = "reserved::what_is_reserved_by_a_mount_is_known_by_its_other_names";
        let own = std::env::current_exe().expect("a path");
        let mut again = std::process::Command::new("unshare");
        again.args(["-rm"]).arg(own).args(["--exact", name]);
        let can_mount = std::process::Command::new("unshare")
            .args(["-rm", "mount", "--bind", "/etc", "/mnt"])
            .status();
        if !can_mount.is_ok_and(|status| status.success()) {
            println!("no mounts of one's own here");
            return;
        }
        let status = again.env(MOUNTED, "1").status().expect("runs");
        assert!(status.success(), "{status}");
        return;
    }
    let scene = Scene::new();
    let outside = scene.workspace.outside();
    let bind = |from: &Path, to: &Path| {
        let status = std::process::Command::new("mount")
            .arg("--bind")
            .args([from, to])
            .status();
        assert!(status.expect("runs").success());
    };
    let (secret, token) = (
        outside.join("secret"),
        scene.root.join("state/approver-token"),
    );
    fs::write(&secret, SECRET).expect("written");
    bind(&secret, &token);
    fs::hard_link(&secret, scene.root.join("linked.txt")).expect("linked");
    fs::write(scene.root.join("mounted.txt"), "").expect("written");
    bind(
        &scene.root.join("state/locks/one"),
        &scene.root.join("mounted.txt"),
    );
    for path in ["linked.txt", "mounted.txt"] {
        for (told, result) in scene.tried(path).await {
            assert!(result.is_err(), "{told}");
        }
        let params = json!({ "path": path });
        let read = ReadTool.execute(&params, &scene.context()).await;
        assert!(is_reserved(&read), "{path}: {read:?}");
    }
}

/// The second name keeps what it had: a file is replaced, never written into.
#[tokio::test]
async fn a_second_name_elsewhere_keeps_its_content() {
    let scene = Scene::new();
    let outside = scene.workspace.outside().join("outside.txt");
    fs::write(&outside, "one").expect("written");
    for (at, tool) in [&WriteTool as &dyn Tool, &EditTool].into_iter().enumerate() {
        let name = format!("linked-{at}");
        fs::hard_link(&outside, scene.root.join(&name)).expect("linked");
        let params = match at {
            0 => json!({"path": name, "content": "two"}),
            _ => json!({"path": name, "old_string": "one", "new_string": "two"}),
        };
        let changed = tool.execute(&params, &scene.context()).await;
        changed.expect("changes");
        assert_eq!(scene.workspace.get(&name), "two");
        assert_eq!(fs::read_to_string(&outside).expect("reads"), "one");
    }
}

/// Where capitals count, another spelling is another file; where they do not, it is the same one and
/// refused. It never is a way in.
#[tokio::test]
async fn other_capitals_are_no_way_in() {
    let scene = Scene::new();
    for path in [
        "STATE/approver-token",
        "State/Approver-Token",
        "state/APPROVER-TOKEN",
        "WAY/approver-token",
        "way/Approver-token",
        "CONFIG.YAML",
        "Config.yaml",
        "LATER/file",
    ] {
        for (told, result) in scene.tried(path).await {
            let is_other = result.is_ok() || code(result.clone()) == "not_found";
            let is_other = is_other || code(result.clone()) == "no_match";
            assert!(is_other || is_reserved(&result), "{told}");
        }
    }
}
