//! Budgets, what is left out, and what expires.

use std::fs;
use std::process::Command;

use holdfast_undo::{Coverage, NotKept, Options, UndoError, Where, Why};

use crate::tree::{Room, assert_same};

fn refused(room: &Room) -> NotKept {
    let store = room.store();
    let open = store
        .before(&room.work(), "call", &Where::Anywhere)
        .unwrap();
    assert_eq!(open.coverage(), Coverage::None);
    let why = open.not_kept().unwrap().clone();
    assert!(store.after(open).unwrap().is_none());
    why
}

#[test]
fn workspace_with_too_many_files_is_not_kept() {
    let mut room = Room::new();
    room.settings.files_max = 10;
    for number in 0..20 {
        room.write(&format!("f{number}"), "x");
    }
    assert_eq!(refused(&room), NotKept::TooManyFiles { max: 10 });
    // That is remembered for a while, and a higher limit counts at once.
    room.sh("rm f1*");
    assert_eq!(refused(&room), NotKept::TooManyFiles { max: 10 });
    room.settings.files_max = 11;
    assert_eq!(room.call("touch f2").coverage, Coverage::Full);
    room.settings.files_max = 10;
    assert_eq!(refused(&room), NotKept::TooManyFiles { max: 10 });
    room.clock
        .forward(holdfast_undo::limits::OVER_BUDGET_REMEMBERED_MS);
    assert_eq!(room.call("touch f2").coverage, Coverage::Full);
}

#[test]
fn workspace_with_too_many_bytes_is_not_kept() {
    let mut room = Room::new();
    room.settings.bytes_max = 1000;
    for number in 0..20 {
        room.write(&format!("d{number}/f"), &"x".repeat(100));
    }
    assert_eq!(refused(&room), NotKept::TooManyBytes { max: 1000 });
}

#[test]
fn workspace_that_takes_too_long_is_not_kept() {
    let mut room = Room::new();
    room.settings.walk_ms_max = 0;
    room.write("d/a", "x");
    assert_eq!(refused(&room), NotKept::TooSlow { max_ms: 0 });
}

#[test]
fn slow_first_walk_gets_further_every_time() {
    let mut room = Room::new();
    room.settings.walk_ms_max = 5;
    for number in 0..600 {
        room.write(
            &format!("d{}/f{number}", number % 60),
            &"x".repeat(5000 + number),
        );
    }
    let was = room.snapshot();
    let store = room.store();
    let mut rounds = 0;
    let open = loop {
        rounds += 1;
        let open = store
            .before(&room.work(), "call", &Where::Anywhere)
            .unwrap();
        if open.not_kept().is_none() {
            break open;
        }
        room.clock
            .forward(holdfast_undo::limits::OVER_BUDGET_REMEMBERED_MS);
        if rounds > 200 {
            // A machine that is too busy for 5 ms at all.
            return;
        }
    };
    room.sh("rm -r d1 d2");
    let point = store.after(open).unwrap().unwrap();
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn home_directory_is_not_walked() {
    let mut room = Room::new();
    room.settings.home = Some(room.work().join("me"));
    fs::create_dir(room.work().join("me")).unwrap();
    assert_eq!(refused(&room), NotKept::Home);
    let store = room.store();
    let open = store
        .before("/".as_ref(), "call", &Where::Anywhere)
        .unwrap();
    assert_eq!(open.not_kept(), Some(&NotKept::Home));
    assert!(
        fs::read_dir(room.state().join("undo/workspaces"))
            .unwrap()
            .next()
            .is_none()
    );
    // One file of it is kept all the same.
    let point = room.call_where("echo x > x", &Where::Paths(vec!["x".into()]));
    room.undo(&point);
    assert_eq!(room.read("x"), None);
}

#[test]
fn path_outside_of_the_workspace_is_not_kept() {
    let room = Room::new();
    let store = room.store();
    for path in ["../x", "/etc/passwd", "a/../../x"] {
        let writes = Where::Paths(vec![path.into()]);
        let open = store.before(&room.work(), "call", &writes).unwrap();
        assert!(
            matches!(open.not_kept(), Some(NotKept::Outside(_))),
            "{path}"
        );
    }
}

#[test]
fn large_and_special_files_are_left_out_and_named() {
    let mut room = Room::new();
    room.settings.file_bytes_max = 1000;
    room.write("large", &"x".repeat(2000));
    room.write("small", "x");
    room.sh(
        "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    );
    let point = room.call("rm small; echo more >> large");
    assert_eq!(point.coverage, Coverage::Partial);
    let named: Vec<_> = point
        .left_out
        .iter()
        .map(|out| (out.path.to_str().unwrap(), out.why))
        .collect();
    assert_eq!(
        named,
        [
            ("large", Why::TooLarge),
            ("pipe", Why::Special),
            ("sock", Why::Special)
        ]
    );
    let undone = room.undo(&point);
    assert_eq!(room.read("small").as_deref(), Some("x"));
    assert_eq!(undone.left_out.len(), 1);
    assert_eq!(room.read("large").map(|text| text.len()), Some(2005));
}

#[test]
fn ignored_directories_are_left_out_only_where_tools_make_them_again() {
    let room = Room::new();
    room.sh("echo 'target/
node_modules
.env
local/
__pycache__/' > .gitignore
        mkdir -p target/debug local node_modules/x web/node_modules/y py/__pycache__ other/target
        echo 'Signature: 8a477f597d28d172789f06886806bc55' | tee target/CACHEDIR.TAG other/CACHEDIR.TAG
        echo {} > web/package.json
        for d in target/debug local node_modules/x web/node_modules/y py/__pycache__ other/target other; do echo x > $d/f; done
        echo secret > .env");
    let was = room.snapshot();
    let point = room.call("rm -rf .env local node_modules web py other");
    let named: Vec<_> = point
        .left_out
        .iter()
        .map(|out| out.path.to_str().unwrap())
        .collect();
    assert_eq!(named, ["py/__pycache__", "target", "web/node_modules"]);
    assert!(point.left_out.iter().all(|out| out.why == Why::Rebuildable));
    room.undo(&point);
    for path in [
        ".env",
        "local/f",
        "node_modules/x/f",
        "web/package.json",
        "other/f",
        "other/target/f",
    ] {
        assert!(room.read(path).is_some(), "{path}");
    }
    assert_eq!(room.read("web/node_modules/y/f"), None);
    assert!(was.contains_key(&b"target/debug/f"[..]) && room.read("target/debug/f").is_some());
}

#[test]
fn command_can_not_have_kept_files_forgotten_by_ignoring_them() {
    let room = Room::new();
    room.write("src/main.rs", "fn main() {}");
    let was = room.snapshot();
    let point = room.call(
        "echo src > .gitignore; echo 'Signature: 8a477f597d28d172789f06886806bc55' > src/CACHEDIR.TAG; \
         rm src/main.rs",
    );
    let undone = room.undo(&point);
    assert!(undone.left_out.is_empty(), "{undone:?}");
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn state_directory_in_the_workspace_is_neither_kept_nor_restored() {
    let room = Room::new();
    let state = room.work().join(".holdfast");
    fs::create_dir(&state).unwrap();
    room.write("a", "0");
    room.write(".holdfast/audit", "1");
    let clock = std::sync::Arc::clone(&room.clock) as std::sync::Arc<dyn holdfast_contract::Clock>;
    let store = holdfast_undo::UndoStore::open(&state, room.settings.clone(), clock).unwrap();
    let open = store
        .before(&room.work(), "call", &Where::Anywhere)
        .unwrap();
    assert_eq!(open.left_out()[0].why, Why::State);
    room.write("a", "1");
    room.write(".holdfast/audit", "2");
    let point = store.after(open).unwrap().unwrap();
    store.undo(&point.id, &Options::default()).unwrap();
    assert_eq!(room.read("a").as_deref(), Some("0"));
    assert_eq!(room.read(".holdfast/audit").as_deref(), Some("2"));
}

#[test]
fn mounts_are_not_crossed() {
    let room = Room::new();
    let mounted = room.work().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let mount = |arguments: &[&str]| {
        let done = Command::new("mount").args(arguments).arg(&mounted).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !rustix::process::geteuid().is_root() || !mount(&["-t", "tmpfs", "none"]) {
        return;
    }
    fs::write(mounted.join("theirs"), "x").unwrap();
    room.write("a", "0");
    let point = room.call("rm -f mounted/theirs a");
    let undone = room.undo(&point);
    let there = mounted.join("theirs").exists();
    let bare = room.snapshot();
    assert!(
        Command::new("umount")
            .arg(&mounted)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(point.left_out.len(), 1);
    assert_eq!(point.left_out[0].why, Why::Mount);
    assert!(!there && undone.failed.is_empty());
    assert!(bare.contains_key(&b"a"[..]));
}

#[test]
fn oldest_points_go_when_there_are_too_many() {
    let mut room = Room::new();
    room.settings.points_max = 3;
    let points: Vec<_> = (0..5)
        .map(|number| room.call(&format!("echo {number} > a")))
        .collect();
    let listed = room.store().list(&room.work()).unwrap();
    let ids = |points: &[holdfast_undo::Point]| -> Vec<String> {
        points.iter().map(|point| point.id.clone()).collect()
    };
    assert_eq!(ids(&listed), ids(&points[2..]));
    room.undo(&points[4]);
    assert_eq!(room.read("a").as_deref(), Some("3\n"));
}

#[test]
fn old_points_and_their_contents_expire() {
    let room = Room::new();
    room.write("a", &"secret".repeat(1000));
    let point = room.call("rm a");
    room.clock.forward(room.settings.age_ms_max + 1000);
    let expired = room.store().expire().unwrap();
    assert_eq!(expired.points, 1);
    assert_eq!(expired.kept_bytes, 0);
    assert!(expired.freed_bytes > 6000);
    let refused = room.store().undo(&point.id, &Options::default());
    assert!(matches!(refused, Err(UndoError::Unknown(_))));
    let next = room.call("echo b > b");
    assert_ne!(next.id, point.id, "a number is never given twice");
}

#[test]
fn oldest_points_go_when_too_much_is_kept() {
    let mut room = Room::new();
    room.settings.kept_bytes_max = 500_000;
    for number in 0..20_u8 {
        let text: String = (0..100_000_u32)
            .map(|at| char::from(b'a' + ((at * 7 + u32::from(number) * 3 + at / 26) % 26) as u8))
            .collect();
        room.write("a", &text);
        room.call("touch b");
    }
    let expired = room.store().expire().unwrap();
    assert!(expired.kept_bytes <= 500_000, "{expired:?}");
    let listed = room.store().list(&room.work()).unwrap();
    assert!((2..20).contains(&listed.len()), "{}", listed.len());
    let last = room.call("rm a");
    room.undo(&last);
    assert_eq!(room.read("a").map(|text| text.len()), Some(100_000));
}

#[test]
fn expiry_keeps_what_points_need() {
    let room = Room::new();
    room.write("d/a", "0");
    let was = room.snapshot();
    let point = room.call("rm -r d; echo b > b");
    let expired = room.store().expire().unwrap();
    assert_eq!((expired.points, expired.skipped), (0, false));
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn cleared_store_holds_nothing_and_goes_on() {
    let room = Room::new();
    room.write("a", &"secret".repeat(1000));
    room.call("rm a");
    let store = room.store();
    let open = store
        .before(&room.work(), "running", &Where::Anywhere)
        .unwrap();
    store.clear().unwrap();
    assert!(store.after(open).unwrap().is_none());
    let grep = Command::new("grep")
        .args(["-rq", "secret"])
        .arg(room.state())
        .status();
    assert_eq!(grep.unwrap().code(), Some(1));
    room.write("a", "1");
    let point = room.call("rm a");
    room.undo(&point);
    assert_eq!(room.read("a").as_deref(), Some("1"));
}

#[test]
fn damaged_content_is_never_restored() {
    let room = Room::new();
    room.write("a", "whole");
    room.write("b", "whole too");
    let point = room.call("rm a b");
    let grep = Command::new("grep")
        .args(["-rlx", "whole"])
        .arg(room.state())
        .output()
        .unwrap();
    let object = String::from_utf8(grep.stdout).unwrap();
    fs::write(object.trim(), "other").unwrap();
    let undone = room.undo(&point);
    assert_eq!(undone.failed.len(), 1);
    assert_eq!(
        (room.read("a"), room.read("b").as_deref()),
        (None, Some("whole too"))
    );
    // It may be run again once the content is there again.
    fs::write(object.trim(), "whole").unwrap();
    let undone = room.undo(&point);
    assert!(undone.failed.is_empty());
    assert_eq!(room.read("a").as_deref(), Some("whole"));
}

#[test]
fn torn_index_is_as_good_as_none() {
    let room = Room::new();
    room.write("a", "0");
    room.call("echo b > b");
    for file in fs::read_dir(room.state().join("undo/workspaces")).unwrap() {
        for file in fs::read_dir(file.unwrap().path())
            .unwrap()
            .map(Result::unwrap)
        {
            if file.file_name().to_str().unwrap().starts_with("index-") {
                let bytes = fs::read(file.path()).unwrap();
                fs::write(file.path(), &bytes[..bytes.len() / 2]).unwrap();
            }
        }
    }
    let was = room.snapshot();
    let point = room.call("rm a");
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn workspace_for_which_the_store_failed_is_not_kept_for_a_while() {
    let room = Room::new();
    room.write("a", "0");
    let store = room.store();
    let other = room.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let before = || store.before(&room.work(), "call", &Where::Anywhere);
    // Where contents should lie, there is a file.
    let (objects, aside) = (room.state().join("undo/objects"), room.dir.path().join("o"));
    let break_store = || {
        fs::rename(&objects, &aside).unwrap();
        fs::write(&objects, "").unwrap();
    };
    let mend_store = || {
        fs::remove_file(&objects).unwrap();
        fs::rename(&aside, &objects).unwrap();
    };
    assert!(store.keeps(&room.work()));
    break_store();
    before().unwrap_err();
    assert!(!store.keeps(&room.work()) && store.keeps(&other));
    mend_store();
    assert!(!store.keeps(&room.work()), "nobody has tried again");
    store.after(before().unwrap()).unwrap();
    assert!(store.keeps(&room.work()));
    // After a while it is tried again.
    room.write("a", "new");
    break_store();
    before().unwrap_err();
    assert!(!store.keeps(&room.work()));
    room.clock
        .forward(holdfast_undo::limits::OVER_BUDGET_REMEMBERED_MS);
    assert!(store.keeps(&room.work()));
}

/// Whether a call may lose data, and how much of the workspace its point holds.
fn before_call(room: &Room) -> (bool, Coverage) {
    let store = room.store();
    let writes = Where::Anywhere;
    let open = store.before(&room.work(), "call", &writes).unwrap();
    let found = (open.may_lose_data(), open.coverage());
    store.after(open).unwrap();
    found
}

#[test]
fn only_content_that_no_tool_makes_again_may_be_lost() {
    let mut room = Room::new();
    room.settings.file_bytes_max = 1000;
    room.write("a", "a");
    assert_eq!(before_call(&room), (false, Coverage::Full));
    room.write(".gitignore", "node_modules\n");
    room.sh("mkfifo pipe");
    // More than are named.
    for number in 0..150 {
        room.write(&format!("d{number}/package.json"), "{}");
        room.write(&format!("d{number}/node_modules/x"), "x");
    }
    assert_eq!(before_call(&room), (false, Coverage::Partial));
    room.write("z/large", &"x".repeat(2000));
    assert_eq!(before_call(&room), (true, Coverage::Partial));
}

#[test]
fn workspace_that_is_not_kept_may_be_lost() {
    let mut room = Room::new();
    room.settings.files_max = 1;
    room.sh("touch a b c");
    assert_eq!(before_call(&room), (true, Coverage::None));
}

#[test]
fn call_that_names_its_files_loses_data_of_those_only() {
    let mut room = Room::new();
    room.settings.file_bytes_max = 1000;
    room.write("large", &"x".repeat(2000));
    let store = room.store();
    for (name, loses) in [("large", true), ("small", false)] {
        let writes = Where::Paths(vec![name.into()]);
        let open = store.before(&room.work(), name, &writes).unwrap();
        assert_eq!(open.may_lose_data(), loses, "{name}");
        store.after(open).unwrap();
    }
}
