//! What git would run later is set aside, and nothing else of a repository is touched: real git, real
//! files, commands in their real confinement.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_confine::{ConfinementConfig, Kernel, Mode, Views};
use holdfast_contract::{
    SessionContext, Status, SystemClock, ToolCallEnvelope, ToolResultEnvelope,
};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_toolbox::git::{GitError, GitKeeper, SetAside};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::tools::{EditTool, ExecTool, WriteTool, own_places};
use holdfast_undo::{UndoSettings, UndoStore};
use serde_json::{Value, json};

mod kinds;
mod leads;
mod ordinary;
mod people;

/// A repository with a commit, a home and a state outside of it, and the stack that works there.
struct Scene {
    outer: tempfile::TempDir,
    root: PathBuf,
    keeper: Arc<GitKeeper>,
    stack: ToolStack,
    calls: AtomicUsize,
}

impl Scene {
    /// A workspace that is no repository yet.
    fn bare() -> Self {
        Self::of(Path::to_owned, Mode::BestEffort)
    }

    fn new() -> Self {
        let scene = Self::bare();
        scene.person(
            "git init -q -b main . && git config user.name a && git config user.email a@b.c",
        );
        scene.person("echo one > one && git add . && git commit -qm first");
        scene
    }

    /// A workspace somewhere beneath the outer directory.
    fn of(workspace: impl FnOnce(&Path) -> PathBuf, mode: Mode) -> Self {
        Self::on(Kernel::probe(), workspace, mode)
    }

    fn on(kernel: Kernel, workspace: impl FnOnce(&Path) -> PathBuf, mode: Mode) -> Self {
        let outer = tempfile::tempdir().unwrap();
        let real = outer.path().canonicalize().unwrap();
        for dir in ["home", "state", "workspace"] {
            fs::create_dir(real.join(dir)).unwrap();
        }
        let root = workspace(&real.join("workspace"));
        let clock = Arc::new(SystemClock);
        let state = real.join("state");
        let keeper = GitKeeper::new(&state, Some(real.join("home")), clock.clone());
        let keeper = Arc::new(keeper);
        let runtime = Arc::new(Runtime::system());
        let stores = Stores::memory(&runtime, MemoryLimits::default());
        let (workspace, reserved) = (root.clone(), vec![state.clone()]);
        let confinement = ConfinementConfig {
            mode,
            ..ConfinementConfig::default()
        };
        let own_places = own_places(&confinement, kernel, None);
        let sessions = Arc::new(move |_: &ToolCallEnvelope| {
            let session = SessionContext::main("session", "agent", workspace.clone());
            Arc::new(SessionContext {
                reserved: reserved.clone(),
                own_places: own_places.clone(),
                ..session
            })
        });
        let mut parts = Parts::new(runtime, stores, sessions);
        let variables = [
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), real.join("home").into()),
        ];
        parts.tools.push(Arc::new(WriteTool));
        parts.tools.push(Arc::new(EditTool));
        let exec = ExecTool::with_environment(variables)
            .with_confinement(confinement)
            .on_kernel(kernel);
        parts.tools.push(Arc::new(exec));
        parts.git = Some(keeper.clone());
        let undo = UndoStore::open(&state, UndoSettings::default(), clock).unwrap();
        parts.undo = Some(Arc::new(undo));
        let stack = ToolStack::new(parts).unwrap();
        Self {
            outer,
            root,
            keeper,
            stack,
            calls: AtomicUsize::new(0),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// What a person does in the workspace, outside of Holdfast.
    fn person(&self, command: &str) {
        let ran = Command::new("bash")
            .args(["-ec", command])
            .current_dir(&self.root)
            .env("HOME", self.outer.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{command}: {ran:?}");
    }

    async fn call(&self, tool: &str, params: Value) -> ToolResultEnvelope {
        let call = format!("call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let Value::Object(params) = params else {
            panic!("no arguments")
        };
        let mut envelope = ToolCallEnvelope::new(&call, tool, params, "session", "actor");
        // A turn each: this is not about loops.
        envelope.target.turn_id = Some(call);
        self.stack.call(envelope).await
    }

    /// The answer's content.
    async fn exec(&self, command: &str) -> Value {
        let result = self.call("exec", json!({"command": command})).await;
        assert_eq!(result.status, Status::Success, "{command}: {result:?}");
        (*result.output.unwrap().content).clone()
    }

    /// What a command left that was set aside, as it is told.
    async fn aside(&self, command: &str) -> Vec<String> {
        let answer = self.exec(command).await;
        assert_eq!(answer["exit_code"], 0, "{command}: {answer}");
        let told = told(&answer);
        let hint = answer["hint"].as_str().unwrap_or_default();
        assert_eq!(
            hint.contains("holdfast git keep"),
            !told.is_empty(),
            "{answer}"
        );
        told
    }

    fn listed(&self) -> Vec<SetAside> {
        self.keeper.list(&self.root).unwrap()
    }

    fn keep(&self) -> Vec<SetAside> {
        self.keeper.keep(&self.root, None).unwrap()
    }
}

fn told(answer: &Value) -> Vec<String> {
    let told = answer["set_aside"].as_array().into_iter().flatten();
    told.map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn write_run(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
