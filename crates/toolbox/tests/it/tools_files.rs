//! `read`, `write` and `edit` against a real file system.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::Arc;

use holdfast_contract::{
    Artifact, CallContext, PermissionTier, SessionContext, Tool, ToolContext, ToolError,
};
use holdfast_toolbox::tools::{EditTool, ReadTool, WriteTool};
use serde_json::{Value, json};

mod encodings;
use crate::common::{Workspace, code};

/// Arguments with which each of the file tools would touch `path`.
fn all_three(path: &str) -> [(Arc<dyn Tool>, Value); 3] {
    [
        (Arc::new(ReadTool), json!({"path": path})),
        (Arc::new(WriteTool), json!({"path": path, "content": "new"})),
        (
            Arc::new(EditTool),
            json!({"path": path, "old_string": "secret", "new_string": "new"}),
        ),
    ]
}

#[tokio::test]
async fn no_path_leads_outside() {
    let workspace = Workspace::new();
    let secret = workspace.outside().join("secret.txt");
    fs::write(&secret, "secret").expect("writes");
    fs::create_dir(workspace.path("sub")).expect("creates");
    symlink(&secret, workspace.path("absolute_link")).expect("links");
    symlink("../secret.txt", workspace.path("relative_link")).expect("links");
    symlink("..", workspace.path("directory_link")).expect("links");
    symlink("/proc/self/root", workspace.path("magic_link")).expect("links");

    let secret_path = secret.to_str().expect("is text");
    for path in [
        secret_path,
        "../secret.txt",
        "sub/../../secret.txt",
        "absolute_link",
        "relative_link",
        "directory_link/secret.txt",
        "directory_link/../secret.txt",
        &format!("magic_link{secret_path}"),
        &format!("{}/../secret.txt", workspace.root.display()),
        "directory_link/new/file.txt",
        "/etc/passwd",
        "..",
        "/",
    ] {
        for (tool, params) in all_three(path) {
            let error = workspace.call(&*tool, params).await.unwrap_err();
            assert!(
                matches!(
                    &error,
                    ToolError::PermissionDenied { tier: PermissionTier::Elevated, reason }
                        if reason.contains("beneath the workspace")
                ),
                "{} {path}: {error:?}",
                tool.name()
            );
        }
    }
    assert_eq!(fs::read_to_string(&secret).expect("reads"), "secret");
    let mut names: Vec<_> = fs::read_dir(workspace.outside())
        .expect("lists")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["secret.txt", "workspace"]);
}

#[tokio::test]
async fn what_is_not_a_file_is_said_so_and_never_waited_for() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("directory")).expect("creates");
    let made = Command::new("mkfifo").arg(workspace.path("fifo")).status();
    assert!(made.expect("runs").success());
    let _socket = UnixListener::bind(workspace.path("socket")).expect("binds");
    symlink("loop", workspace.path("loop")).expect("links");
    workspace.put("file", "text");
    let long = "x".repeat(300);
    // The kernel's own memory device would be the prize; the one that gives nothing will do. Only who
    // has the right can make one.
    let made = Command::new("mknod")
        .arg(workspace.path("device"))
        .args(["c", "1", "3"])
        .output();
    let made = made.expect("runs").status.success();
    let device = if made { "device" } else { "fifo" };

    for (path, expected) in [
        (device, "special_file"),
        ("directory", "is_directory"),
        (".", "is_directory"),
        (workspace.root.to_str().expect("is text"), "is_directory"),
        ("fifo", "special_file"),
        ("socket", "special_file"),
        ("loop", "symlink_loop"),
        ("file/below", "not_a_directory"),
        (&long, "name_too_long"),
        ("a\0b", "invalid Some(\"/path\")"),
        ("", "invalid Some(\"/path\")"),
        (&"x/".repeat(3000), "invalid Some(\"/path\")"),
    ] {
        for (tool, params) in all_three(path) {
            let name = tool.name().to_owned();
            let result = workspace.call(&*tool, params).await;
            assert_eq!(code(result), expected, "{name} {path:?}");
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_said_so() {
    let workspace = Workspace::new();
    symlink("nowhere", workspace.path("dangling")).expect("links");
    let edit = json!({"path": "a/b.txt", "old_string": "x", "new_string": "y"});
    let read = workspace.call(&ReadTool, json!({"path": "a.txt"})).await;
    assert_eq!(code(read), "not_found");
    assert_eq!(code(workspace.call(&EditTool, edit).await), "not_found");
    assert!(
        !workspace.path("a").exists(),
        "a failed edit creates nothing"
    );
    let through = json!({"path": "dangling", "content": "x"});
    assert_eq!(
        code(workspace.call(&WriteTool, through).await),
        "dangling_symlink"
    );
    assert!(!workspace.path("nowhere").exists());
    let directory = json!({"path": "new/", "content": "x"});
    assert_eq!(
        code(workspace.call(&WriteTool, directory).await),
        "is_directory"
    );
}

#[tokio::test]
async fn a_session_without_the_handle_can_not() {
    let workspace = Workspace::new();
    workspace.put("file", "secret");
    let session = SessionContext {
        read: None,
        write: None,
        exec: None,
        ..SessionContext::main("session", "agent", workspace.root.clone())
    };
    let ctx = ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    };
    for (tool, params) in all_three("file") {
        assert_eq!(code(tool.execute(&params, &ctx).await), "permission_denied");
    }
    assert_eq!(workspace.get("file"), "secret");
}

#[tokio::test]
async fn reads_text_and_only_text() {
    let workspace = Workspace::new();
    workspace.put("a.txt", "one\r\ntwo\n");
    let absolute = workspace.path("a.txt");
    for path in ["a.txt", "./a.txt", absolute.to_str().expect("is text")] {
        let result = workspace
            .call(&ReadTool, json!({"path": path}))
            .await
            .expect("reads");
        assert_eq!(
            result.output,
            json!({
                "path": "a.txt", "content": "one\r\ntwo\n", "first_line": 1, "lines": 2,
                "total_lines": 2, "size_bytes": 9, "truncated": false,
            })
        );
        assert_eq!(result.display, "Read 2 lines of a.txt");
        assert!(result.artifacts.is_empty());
    }
    workspace.put("image.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    workspace.put("latin", b"caf\xe9\n");
    workspace.put("late", [&b"text\n".repeat(5000)[..], b"\0"].concat());
    for (path, expected) in [
        ("image.png", "binary_file"),
        ("latin", "not_utf8"),
        ("late", "binary_file"),
    ] {
        let result = workspace.call(&ReadTool, json!({"path": path})).await;
        assert_eq!(code(result), expected, "{path}");
    }
    let result = workspace
        .call(&ReadTool, json!({"path": "a.txt", "offset": 9}))
        .await;
    assert_eq!(
        result.expect("reads").output["note"],
        "the file has only 2 lines"
    );
}

#[tokio::test]
async fn reads_a_long_file_in_parts_that_join() {
    let workspace = Workspace::new();
    let line = format!("{}\n", "ä".repeat(100));
    let whole = line.repeat(5000);
    workspace.put("long.txt", &whole);
    let mut joined = String::new();
    let mut offset = json!(1);
    loop {
        let params = json!({"path": "long.txt", "offset": offset});
        let output = workspace
            .call(&ReadTool, params)
            .await
            .expect("reads")
            .output;
        joined.push_str(output["content"].as_str().expect("is text"));
        assert_eq!(output["total_lines"], 5000);
        if output["truncated"] == false {
            break;
        }
        offset = output["next_offset"].clone();
    }
    assert_eq!(joined, whole);
}

#[tokio::test]
async fn write_creates_and_replaces_in_one_step() {
    let workspace = Workspace::new();
    let params = json!({"path": "new/deep/file.sh", "content": "one"});
    let result = workspace.call(&WriteTool, params).await.expect("writes");
    assert_eq!(
        result.output,
        json!({"path": "new/deep/file.sh", "bytes": 3, "created": true})
    );
    let artifact = Artifact::File {
        path: "new/deep/file.sh".into(),
    };
    assert_eq!(result.artifacts, [artifact]);

    let file = workspace.path("new/deep/file.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).expect("sets");
    let before = fs::metadata(&file).expect("is there");
    let params = json!({"path": "new/deep/file.sh", "content": "two"});
    let result = workspace.call(&WriteTool, params).await.expect("writes");
    assert_eq!(result.output["created"], false);
    let after = fs::metadata(&file).expect("is there");
    assert_eq!(after.mode(), before.mode());
    assert_ne!(after.ino(), before.ino(), "replaced, not rewritten");
    assert_eq!(fs::read_to_string(&file).expect("reads"), "two");
    let entries = fs::read_dir(workspace.path("new/deep")).expect("lists");
    assert_eq!(entries.count(), 1, "no temporary file stays");
}

#[tokio::test]
async fn write_respects_links_and_protection() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("real")).expect("creates");
    workspace.put("real/file", "one");
    symlink("real/file", workspace.path("link")).expect("links");
    let params = json!({"path": "link", "content": "two"});
    workspace.call(&WriteTool, params).await.expect("writes");
    assert_eq!(workspace.get("real/file"), "two");
    assert!(workspace.path("link").is_symlink());

    let protected = fs::Permissions::from_mode(0o444);
    fs::set_permissions(workspace.path("real/file"), protected).expect("sets");
    for (tool, params) in &all_three("link")[1..] {
        let result = tool.execute(params, &workspace.context()).await;
        assert_eq!(code(result), "read_only_file", "{}", tool.name());
    }
    assert_eq!(workspace.get("real/file"), "two");
}

#[tokio::test]
async fn another_name_of_a_file_outside_keeps_what_it_has() {
    let workspace = Workspace::new();
    let outside = workspace.outside().join("secret.txt");
    fs::write(&outside, "secret").expect("writes");
    for (tool, params) in &all_three("name")[1..] {
        fs::hard_link(&outside, workspace.path("name")).expect("links");
        let done = tool.execute(params, &workspace.context()).await;
        assert!(done.is_ok(), "{}: {done:?}", tool.name());
        assert_ne!(workspace.get("name"), "secret", "{}", tool.name());
        let kept = fs::read_to_string(&outside).expect("reads");
        assert_eq!(kept, "secret", "{}", tool.name());
        fs::remove_file(workspace.path("name")).expect("removes");
    }
}

#[tokio::test]
async fn edit_changes_one_place_and_nothing_else() {
    let workspace = Workspace::new();
    workspace.put("file", "a\r\nb\r\nc");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(workspace.path("file"), mode).expect("sets");
    let params = json!({"path": "file", "old_string": "b\nc", "new_string": "x\ny"});
    let result = workspace.call(&EditTool, params).await.expect("edits");
    assert_eq!(
        result.output,
        json!({"path": "file", "replacements": 1, "first_line": 2, "bytes": 7})
    );
    assert_eq!(workspace.get("file"), "a\r\nx\r\ny");
    let metadata = fs::metadata(workspace.path("file")).expect("is there");
    assert_eq!(metadata.mode() & 0o7777, 0o640);
}

#[tokio::test]
async fn edit_refuses_without_touching_the_file() {
    let workspace = Workspace::new();
    workspace.put("file", "same\nsame\n");
    workspace.put("binary", b"same\0");
    let before = fs::metadata(workspace.path("file"))
        .expect("is there")
        .ino();
    for (path, old, new, expected) in [
        ("file", "same", "x", "ambiguous_match"),
        ("file", "other", "x", "no_match"),
        ("file", "", "x", "invalid Some(\"/old_string\")"),
        ("file", "same", "same", "invalid Some(\"/new_string\")"),
        ("binary", "same", "x", "binary_file"),
    ] {
        let params = json!({"path": path, "old_string": old, "new_string": new});
        assert_eq!(
            code(workspace.call(&EditTool, params).await),
            expected,
            "{path} {old}"
        );
    }
    let after = fs::metadata(workspace.path("file"))
        .expect("is there")
        .ino();
    assert_eq!(before, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_one_file_at_the_same_time_are_all_kept() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..20).map(|number| format!("[{number}]")).collect();
    workspace.put("file", names.join("\n"));
    let edits: Vec<_> = names
        .iter()
        .map(|name| {
            let params = json!({"path": "file", "old_string": name, "new_string": "done"});
            let ctx = workspace.context();
            tokio::spawn(async move { EditTool.execute(&params, &ctx).await })
        })
        .collect();
    for edit in edits {
        edit.await.expect("runs").expect("edits");
    }
    assert_eq!(workspace.get("file"), ["done"; 20].join("\n"));
}

/// Larger than what is counted through; most of it is a hole.
#[tokio::test]
async fn the_end_of_a_huge_file_is_its_end() {
    use std::os::unix::fs::FileExt;
    let workspace = Workspace::new();
    let log = fs::File::create(workspace.path("log")).expect("a file");
    log.write_all_at("the beginning\n".repeat(1000).as_bytes(), 0)
        .expect("writes");
    // One byte more than is counted through.
    let far = 1024 * 1024 * 1024 + 1;
    log.write_all_at(b"\nbut two\nbut one\nlast\n", far)
        .expect("writes");
    let params = json!({"path": "log", "tail": 2});
    let read = workspace.call(&ReadTool, params).await.expect("reads");
    assert_eq!(read.output["content"], "but one\nlast\n");
    assert_eq!(read.output["lines"], 2);
    assert_eq!(read.output["truncated"], false);
}

#[tokio::test]
async fn the_end_of_a_file_is_read_without_its_beginning() {
    let workspace = Workspace::new();
    let lines: Vec<String> = (1..=200_000).map(|n| format!("line {n}")).collect();
    let text = lines.join("\n") + "\n";
    fs::write(workspace.path("log"), text).expect("writes");
    let read = |params: Value| workspace.call(&ReadTool, params);
    let last = read(json!({"path": "log", "tail": 2}))
        .await
        .unwrap()
        .output;
    assert_eq!(last["content"], "line 199999\nline 200000\n");
    assert_eq!(
        (&last["first_line"], &last["total_lines"]),
        (&json!(199_999), &json!(200_000))
    );
    assert_eq!(last["truncated"], false);
    let middle = read(json!({"path": "log", "offset": 150_000, "limit": 1}))
        .await
        .unwrap()
        .output;
    assert_eq!(middle["content"], "line 150000\n");
    fs::write(workspace.path("short"), "a\nb").expect("writes");
    let all = read(json!({"path": "short", "tail": 9}))
        .await
        .unwrap()
        .output;
    assert_eq!(
        (&all["content"], &all["first_line"]),
        (&json!("a\nb"), &json!(1))
    );
    fs::write(workspace.path("empty"), "").expect("writes");
    let none = read(json!({"path": "empty", "tail": 9}))
        .await
        .unwrap()
        .output;
    assert_eq!(none["content"], "");
    let both = read(json!({"path": "log", "tail": 2, "limit": 1}))
        .await
        .unwrap_err();
    assert!(
        matches!(both, ToolError::ValidationError { .. }),
        "{both:?}"
    );
}

/// A line that is too long for one answer is read on within itself.
#[tokio::test]
async fn a_line_that_is_too_long_is_read_in_parts_that_join() {
    let workspace = Workspace::new();
    let line = "aä€😀".repeat(60_000);
    let text = format!("before\n{line}\nafter\n");
    fs::write(workspace.path("long.txt"), &text).unwrap();
    let (mut joined, mut params) = (String::new(), json!({"path": "long.txt"}));
    for _ in 0..20 {
        let read = workspace.call(&ReadTool, params).await.unwrap().output;
        joined.push_str(read["content"].as_str().unwrap());
        if read["truncated"] == false {
            break;
        }
        params = json!({"path": "long.txt", "offset": read["next_offset"]});
        if let Some(column) = read.get("next_column") {
            params["column"] = column.clone();
        }
    }
    assert_eq!(joined.len(), text.len());
    assert!(joined == text);
}
