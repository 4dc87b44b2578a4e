//! The workspace's own `/tmp` and `/dev/shm`, in each way in which a kernel gives them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use holdfast_confine::{ConfinementConfig, Kernel, Views};
use holdfast_contract::{
    CallContext, PermissionTier, SessionContext, Tool, ToolContext, ToolResult,
};
use holdfast_toolbox::tools::{EditTool, ExecTool, ReadTool, WriteTool, own_places};
use serde_json::{Value, json};

use crate::common::Workspace;

/// A workspace on a kernel that gives views in this way.
struct Scene {
    workspace: Workspace,
    kernel: Kernel,
    config: ConfinementConfig,
}

impl Scene {
    fn new(views: Views) -> Self {
        Self {
            workspace: Workspace::new(),
            kernel: Kernel {
                views,
                ..Kernel::probe()
            },
            config: ConfinementConfig::default(),
        }
    }

    fn context(&self) -> ToolContext {
        let root = self.workspace.root.canonicalize().expect("is there");
        let mut session = SessionContext::main("session", "agent", root);
        session.own_places = own_places(&self.config, self.kernel, None);
        ToolContext {
            session: Arc::new(session),
            call: CallContext::default(),
        }
    }

    async fn run(&self, command: &str) -> Value {
        let exec = ExecTool::new()
            .on_kernel(self.kernel)
            .with_confinement(self.config.clone());
        let params = json!({"command": command});
        let ran = exec.execute(&params, &self.context()).await;
        ran.expect("runs").output
    }

    async fn call(&self, tool: &dyn Tool, params: Value) -> ToolResult {
        let verdict = tool.tier_for(&params, &self.context().session);
        assert!(verdict.tier < PermissionTier::Elevated, "{verdict:?}");
        let called = tool.execute(&params, &self.context()).await;
        called.expect("works")
    }
}

/// The ways that this machine has, but for none.
pub(crate) fn forms() -> Vec<Views> {
    let mut forms = vec![Views::Plain, Views::User];
    forms.retain(|views| views.works());
    assert_eq!(forms.is_empty(), Kernel::probe().views == Views::No);
    forms
}

/// A file of somebody else in the directory that all share.
fn theirs() -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new()
        .prefix("holdfast-theirs")
        .tempfile_in("/tmp");
    let file = file.expect("a file");
    fs::write(file.path(), "theirs").expect("written");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_writes_to_tmp_is_its_workspaces_own() {
    for views in forms() {
        let (scene, other) = (Scene::new(views), Scene::new(views));
        let theirs = theirs();
        let name = format!("/tmp/holdfast-own-{}", std::process::id());
        let command = format!(
            "echo mine > {name}; echo shared > /dev/shm/mine; cat {}; mktemp > made; \
             echo $TMPDIR; stat -c %a /tmp; pwd",
            theirs.path().display()
        );
        let output = scene.run(&command).await;
        let pwd = scene.workspace.root.canonicalize().expect("is there");
        let expected = format!("/tmp\n1777\n{}\n", pwd.display());
        assert_eq!(output["stdout"], expected, "{views:?}: {output}");
        assert!(!Path::new(&name).exists() && !Path::new("/dev/shm/mine").exists());
        assert!(scene.workspace.get("made").starts_with("/tmp/tmp."));
        // Later commands of the workspace see it, and those of others do not.
        let again = format!("cat {name} /dev/shm/mine $(cat made)");
        assert_eq!(scene.run(&again).await["stdout"], "mine\nshared\n");
        assert_eq!(other.run(&format!("cat {name}")).await["exit_code"], 1);
        // What is theirs is there by name where the configuration says so.
        let mut granted = Scene::new(views);
        granted.config.read = vec![theirs.path().display().to_string()];
        let command = format!("cat {0}; echo x > {0}", theirs.path().display());
        assert_eq!(granted.run(&command).await["stdout"], "theirs");
        assert_eq!(fs::read_to_string(theirs.path()).expect("there"), "theirs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_tools_and_commands_mean_the_same_tmp() {
    for views in forms() {
        let scene = Scene::new(views);
        scene
            .run("mkdir /tmp/dir; echo from a command > /tmp/dir/a")
            .await;
        let read = scene.call(&ReadTool, json!({"path": "/tmp/dir/a"})).await;
        assert!(
            read.output.to_string().contains("from a command"),
            "{read:?}"
        );
        let write = json!({"path": "/tmp/dir/new/b", "content": "from a tool"});
        let written = scene.call(&WriteTool, write).await;
        assert_eq!(written.output["path"], "/tmp/dir/new/b");
        let edit = json!({"path": "/tmp/dir/new/b", "old_string": "tool", "new_string": "hand"});
        scene.call(&EditTool, edit).await;
        let output = scene.run("cat /tmp/dir/new/b").await;
        assert_eq!(output["stdout"], "from a hand", "{views:?}: {output}");
        assert!(!Path::new("/tmp/dir/new/b").exists());
        // A file that all can see is asked about, as anywhere outside.
        let theirs = theirs();
        let params = json!({"path": theirs.path()});
        let verdict = ReadTool.tier_for(&params, &scene.context().session);
        assert_eq!(verdict.tier, PermissionTier::Elevated);
        // A link out of it leads nowhere.
        scene.run("ln -s /etc/passwd /tmp/dir/link").await;
        let params = json!({"path": "/tmp/dir/link"});
        assert!(ReadTool.execute(&params, &scene.context()).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_leave_its_view() {
    for views in forms() {
        let scene = Scene::new(views);
        let theirs = theirs();
        let name = theirs.path().display();
        let command = format!(
            "umount /tmp; umount -l /tmp; mount --bind / /mnt; nsenter -t $PPID -m cat {name}; \
             cat /proc/$PPID/root{name}; unshare -m true; cat {name}; \
             cat ../../{base}; ls ..; ls /tmp | wc -l",
            base = theirs.path().file_name().expect("a name").display(),
        );
        let output = scene.run(&command).await;
        let said = format!("{}{}", output["stdout"], output["stderr"]);
        assert!(
            !said.contains("theirs\\n") && !said.contains("\"theirs"),
            "{views:?}: {said}"
        );
        assert_eq!(fs::read_to_string(theirs.path()).expect("there"), "theirs");
        // Beside the workspace is the workspace's own, too.
        let output = scene.run("echo x > ../beside; cat ../beside").await;
        assert_eq!(output["stdout"], "x\n", "{output}");
        assert!(!scene.workspace.outside().join("beside").exists());
    }
}

/// Below a directory that may be changed Landlock lets everything be changed, also what is mounted there.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_in_a_view_has_the_rights_it_was_given() {
    for views in forms() {
        let mut scene = Scene::new(views);
        let outside = scene.workspace.outside().canonicalize().expect("is there");
        fs::create_dir_all(outside.join("read/deep")).expect("made");
        fs::create_dir(outside.join("write")).expect("made");
        fs::write(outside.join("read/file"), "theirs").expect("written");
        fs::write(outside.join("other"), "theirs").expect("written");
        let path = |name: &str| outside.join(name).display().to_string();
        scene.config.read = vec![path("read")];
        scene.config.write = vec![path("write")];
        let command = "cat ../read/file; echo x > ../read/file; echo x > ../read/deep/new; rm -r ../read; \
                       mkdir ../read/dir; mount -o remount,rw ../read; mv ../read ../moved; echo x > ../write/new; cat ../other";
        let output = scene.run(command).await;
        assert_eq!(output["stdout"], "theirs", "{views:?}: {output}");
        let listed = |name: &str| fs::read_dir(outside.join(name)).expect("lists").count();
        assert_eq!(
            (listed("read"), listed("read/deep"), listed("write")),
            (2, 0, 1)
        );
        assert_eq!(
            fs::read(outside.join("read/file")).expect("there"),
            b"theirs"
        );
    }
}

/// Where the workspace holds the state there is no view: what is hidden must not become the command's own.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_in_a_workspace_stays_hidden() {
    for views in forms() {
        let scene = Scene::new(views);
        scene.workspace.put("file", "mine");
        fs::create_dir(scene.workspace.path("state")).expect("made");
        scene.workspace.put("state/token", "secret");
        let mut context = scene.context();
        let mut session = (*context.session).clone();
        session.reserved = vec![session.workspace_root.join("state")];
        context.session = Arc::new(session);
        let command = "cat state/token; echo x > state/token; cat file; echo x > $TMPDIR/x && cat $TMPDIR/x; echo $TMPDIR";
        let exec = ExecTool::new().on_kernel(scene.kernel);
        let ran = exec.execute(&json!({"command": command}), &context).await;
        let output = ran.expect("runs").output;
        let said = output["stdout"].as_str().expect("text");
        assert!(said.starts_with("minex\n/tmp/"), "{views:?}: {output}");
        assert_eq!(scene.workspace.get("state/token"), "secret");
    }
}

/// Commands that need what a shared directory gives: a semaphore, a lock, a socket, other users.
#[tokio::test(flavor = "multi_thread")]
async fn programs_work_in_a_view() {
    for views in forms() {
        let scene = Scene::new(views);
        let command = "python3 -c 'import multiprocessing as m; print(m.Semaphore(2).acquire())'; \
                       cd /tmp && git init -q repo && cd repo && git -c user.name=a -c user.email=a@b \
                       commit -q --allow-empty -m x && git log --oneline | wc -l; \
                       flock /tmp/lock echo locked; tar cf /tmp/a.tar -C /tmp repo && echo packed; id -u";
        let output = scene.run(command).await;
        let user = rustix::process::geteuid().as_raw();
        let expected = format!("True\n1\nlocked\npacked\n{user}\n");
        assert_eq!(output["stdout"], expected, "{views:?}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_views_there_is_a_directory_by_name() {
    let scene = Scene::new(Views::No);
    assert!(scene.context().session.own_places.is_empty());
    let name = format!("/tmp/holdfast-own-{}", std::process::id());
    let command =
        format!("echo $TMPDIR > where; echo x > $TMPDIR/x && cat $TMPDIR/x; echo y > {name}");
    let output = scene.run(&command).await;
    assert_eq!(output["stdout"], "x\n", "{output}");
    assert!(
        output["stderr"]
            .as_str()
            .expect("text")
            .contains("Permission denied")
    );
    assert!(output["hint"].as_str().expect("a hint").contains("$TMPDIR"));
    assert!(!Path::new(&name).exists());
}
