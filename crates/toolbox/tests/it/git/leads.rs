//! Links and pointers that lead git elsewhere, and what runs beyond its call.

use holdfast_testkit::wait::eventually;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn links_that_lead_elsewhere_are_set_aside_and_nothing_behind_them_is_touched() {
    let scene = Scene::new();
    let other = scene.outer.path().join("other");
    scene.person("git init -q ../other && git -C ../other config core.pager ./theirs");
    let theirs = fs::read_to_string(other.join(".git/config")).unwrap();
    scene.person(
        "mkdir evil && printf '[core]\\n\\tpager = ./x\\n' > evil/config && mv .git/hooks hooks",
    );
    for (command, place) in [
        ("ln -s ../evil .git/hooks", ".git/hooks"),
        (
            "ln -s ../evil/config .git/config.worktree",
            ".git/config.worktree",
        ),
        ("ln -s /nowhere .git/modules", ".git/modules"),
        ("echo ../../other/.git > .git/commondir", ".git/commondir"),
        (
            "mkdir -p .git/worktrees/w; echo ../../../evil > .git/worktrees/w/commondir",
            ".git/worktrees/w/commondir",
        ),
    ] {
        let told = scene.aside(command).await;
        assert_eq!(told.len(), 1, "{command}: {told:?}");
        assert!(
            fs::symlink_metadata(scene.path(place)).is_err(),
            "{command}"
        );
    }
    // The directory itself, exchanged for a way to another repository.
    for command in [
        "mv .git git; echo 'gitdir: ../other/.git' > .git",
        "ln -s ../other/.git .git",
    ] {
        let told = scene.aside(command).await;
        assert_eq!(told.len(), 1, "{command}: {told:?}");
        assert!(
            fs::symlink_metadata(scene.path(".git")).is_err(),
            "{command}"
        );
    }
    assert_eq!(
        fs::read_to_string(other.join(".git/config")).unwrap(),
        theirs
    );
    assert_eq!(scene.get("evil/config"), "[core]\n\tpager = ./x\n");
}

/// Its common directory is outside of the workspace. What is written there in whatever way is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_linked_worktree_is_compared_with_its_common_directory() {
    let scene = Scene::of(
        |workspace| {
            let ran = Command::new("bash")
                .args([
                    "-ec",
                    "git init -q main && cd main && git -c user.name=a -c user.email=a@b.c \
                               commit -q --allow-empty -m x && git worktree add -q ../wt",
                ])
                .current_dir(workspace)
                .output()
                .unwrap();
            assert!(ran.status.success(), "{ran:?}");
            workspace.join("wt")
        },
        Mode::Off,
    );
    assert!(scene.aside("git status").await.is_empty());
    let told = scene
        .aside("git config core.pager ./x; echo x > ../main/.git/hooks/pre-push")
        .await;
    assert_eq!(told.len(), 2, "{told:?}");
    let common = scene.root.parent().unwrap().join("main/.git");
    assert!(!common.join("hooks/pre-push").exists());
    let config = fs::read_to_string(common.join("config")).unwrap();
    assert!(!config.contains("./x"), "{config}");
    // A directory that does not know this worktree is none of ours.
    let told = scene
        .aside("rm ../main/.git/worktrees/wt/gitdir; echo x > ../main/.git/hooks/pre-push")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(common.join("hooks/pre-push").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_included_is_a_file_of_settings_too() {
    let scene = Scene::new();
    scene.person("printf '[alias]\\n\\tco = checkout\\n' > .gitconfig && git config include.path ../.gitconfig");
    let before = scene.get(".gitconfig");
    let told = scene.aside("git config -f .gitconfig alias.st '!x'").await;
    assert!(told[0].ends_with("in .gitconfig"), "{told:?}");
    assert_eq!(scene.get(".gitconfig"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_behind_a_link_is_known_by_what_is_behind_it() {
    let scene = Scene::new();
    let put = "mkdir -p scripts; echo one > scripts/hook; ln -sf ../../scripts/hook .git/hooks/pre-commit";
    assert_eq!(scene.aside(put).await.len(), 1);
    scene.keep();
    assert_eq!(scene.get(".git/hooks/pre-commit"), "one\n");
    assert!(scene.aside("true").await.is_empty());
    // The script is a file of the project: it stays, and the link to it waits.
    assert_eq!(scene.aside("echo two > scripts/hook").await.len(), 1);
    assert!(fs::symlink_metadata(scene.path(".git/hooks/pre-commit")).is_err());
    assert_eq!(scene.get("scripts/hook"), "two\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_in_the_background_is_compared_until_its_end() {
    let scene = Scene::new();
    let left = "(until [ -e go ]; do sleep 0.01; done; git config core.pager ./x; touch done; sleep 100) \
                > /dev/null 2>&1 & true";
    let answer = scene.exec(left).await;
    assert_eq!(answer["still_running"], true, "{answer}");
    assert!(told(&answer).is_empty());
    fs::write(scene.path("go"), "").unwrap();
    eventually("it is set aside", || {
        let is_clean = !scene.get(".git/config").contains("./x");
        (scene.path("done").exists() && is_clean && scene.listed().len() == 1).then_some(())
    });
    // The next answer names it, once.
    assert_eq!(scene.aside("true").await.len(), 1);
    assert!(scene.aside("true").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_at_a_time_share_what_was_there_before() {
    let scene = Scene::new();
    let first = "git config core.pager ./x; touch begun; until [ -e go ]; do sleep 0.01; done";
    let second = "until [ -e begun ]; do sleep 0.01; done; touch go";
    let (first, second) = tokio::join!(scene.exec(first), scene.exec(second));
    assert_eq!(told(&first).len() + told(&second).len(), 1);
    assert!(!scene.get(".git/config").contains("./x"));
}

/// As after a `kill -9`: nobody has seen the end of the call.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_call_left_is_set_aside_by_the_next() {
    let scene = Scene::new();
    scene.exec("true").await;
    let state = scene.outer.path().join("state/git");
    let drawer = fs::read_dir(&state)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let running = scene.exec("until [ -e go ]; do sleep 0.01; done");
    let look = async {
        let kept = drawer.join("before.json");
        while !kept.exists() {
            tokio::task::yield_now().await;
        }
        fs::copy(&kept, drawer.join("copy")).unwrap();
        fs::write(scene.path("go"), "").unwrap();
    };
    tokio::join!(running, look);
    fs::rename(drawer.join("copy"), drawer.join("before.json")).unwrap();
    write_run(&scene.path(".git/hooks/pre-push"), "evil");
    assert_eq!(scene.aside("true").await.len(), 1);
    assert!(!scene.path(".git/hooks/pre-push").exists());
    assert!(!drawer.join("before.json").exists());
}

/// `git status` of the workspace looks into each of them.
#[tokio::test(flavor = "multi_thread")]
async fn repositories_that_the_index_names_are_looked_at() {
    for format in ["sha1", "sha256"] {
        let scene = Scene::bare();
        scene.person(&format!(
            "git init -q --object-format={format} . && git init -q --object-format={format} deep/sub && \
             git -C deep/sub -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && \
             for it in $(seq 20); do touch file-$it; done"
        ));
        for index in [
            "",
            "git update-index --index-version 4",
            "git update-index --split-index",
        ] {
            scene.person("rm -f .git/index .git/sharedindex.*; touch later");
            let add = format!("git add . 2> /dev/null; {index}");
            let evil = "git -C deep/sub config core.fsmonitor ./x";
            // Not before the index names it.
            assert!(scene.aside(evil).await.is_empty());
            assert_eq!(scene.aside(&add).await.len(), 1, "{format} {index}");
            assert_eq!(scene.aside(evil).await.len(), 1, "{format} {index}");
        }
    }
    // The way from a submodule to its repository, exchanged.
    let scene = Scene::new();
    scene.person(
        "git init -q ../other && git -C ../other -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && \
         git -c protocol.file.allow=always submodule add -q ../other sub",
    );
    assert!(scene.aside("git status").await.is_empty());
    let told = scene
        .aside("rm sub/.git; git init -q sub && git -C sub config core.fsmonitor ./x")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(!scene.get("sub/.git/config").contains("./x"));
}

/// Whatever fills the limits up, what git runs by its name and what was there before is compared.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_filled_up_hides_nothing_that_was_there() {
    let scene = Scene::new();
    scene.person("mkdir -p .git/modules/zz/hooks .hooks && echo ref > .git/modules/zz/HEAD && git config core.hooksPath .hooks");
    let told = scene
        .aside("for it in $(seq 400); do echo x > .git/hooks/a$it; done; echo x > .hooks/pre-push")
        .await;
    // So many are kept.
    assert!(told.len() >= 256, "{}", told.len());
    assert!(!scene.path(".hooks/pre-push").exists() && !scene.path(".git/hooks/a400").exists());
    scene.person("git config -f .git/modules/zz/config a.b c");
    let told = scene
        .aside(
            "mkdir .git/modules/a; cd .git/modules/a; mkdir $(seq 4200); cd ../zz; \
             git config -f config core.pager ./x",
        )
        .await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(!scene.get(".git/modules/zz/config").contains("./x"));
}

/// Larger than what is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_of_any_size_goes() {
    let scene = Scene::new();
    let told = scene
        .aside("echo '#!/bin/sh' > .git/hooks/pre-push; truncate -s 65M .git/hooks/pre-push")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(!scene.path(".git/hooks/pre-push").exists());
    // A repository beside a `.git` that is none.
    let scene = Scene::bare();
    let told = scene
        .aside("git init -q --bare . && git config core.fsmonitor ./x && mkdir .git")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
}
