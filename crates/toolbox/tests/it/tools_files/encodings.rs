//! Text that is not UTF-8.

use std::fs;

use holdfast_contract::{Cause, ToolError};
use holdfast_toolbox::tools::{EditTool, ReadTool};
use serde_json::json;

use crate::common::{Workspace, code};

#[tokio::test]
async fn utf_16_is_read_as_text() {
    let workspace = Workspace::new();
    let text = "eins\r\nzwölf\r\n";
    let mut bytes = vec![0xff, 0xfe];
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    fs::write(workspace.path("windows.txt"), &bytes).expect("writes");
    let params = json!({"path": "windows.txt", "offset": 2});
    let read = workspace.call(&ReadTool, params).await.unwrap().output;
    assert_eq!(read["content"], "zwölf\r\n");
    assert_eq!(read["encoding"], "utf-16le");
    bytes.pop();
    fs::write(workspace.path("cut.txt"), &bytes).expect("writes");
    let cut = workspace.call(&ReadTool, json!({"path": "cut.txt"})).await;
    assert_eq!(code(cut), "binary_file");
}

/// Half of what a model writes would be one encoding and half the other.
#[tokio::test]
async fn utf_16_is_not_edited_and_stays_as_it_is() {
    let workspace = Workspace::new();
    let text = "one line\r\nand another\r\n";
    let units = || text.encode_utf16();
    let files: [(&str, Vec<u8>, &str); 3] = [
        (
            "le.txt",
            [0xfeff]
                .into_iter()
                .chain(units())
                .flat_map(u16::to_le_bytes)
                .collect(),
            "UTF-16LE",
        ),
        (
            "be.txt",
            [0xfeff]
                .into_iter()
                .chain(units())
                .flat_map(u16::to_be_bytes)
                .collect(),
            "UTF-16BE",
        ),
        (
            "unmarked.txt",
            units().flat_map(u16::to_le_bytes).collect(),
            "UTF-16LE",
        ),
    ];
    for (name, bytes, encoding) in files {
        fs::write(workspace.path(name), &bytes).unwrap();
        let params = json!({"path": name, "old_string": "another", "new_string": "one more"});
        let error = workspace.call(&EditTool, params).await.unwrap_err();
        let ToolError::ExecutionError {
            message,
            cause: Cause::Coded { code },
        } = error
        else {
            panic!("{name}: {error:?}");
        };
        assert_eq!(code, "not_utf8");
        assert!(
            message.contains(encoding) && message.contains("iconv -f"),
            "{message}"
        );
        assert_eq!(fs::read(workspace.path(name)).unwrap(), bytes, "{name}");
    }
}
