//! One yes for a workspace and a content.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn husky_needs_one_yes() {
    let scene = Scene::new();
    scene.person("mkdir .husky && echo 'npm test' > .husky/pre-commit");
    let prepare = "git config core.hooksPath .husky/_ && mkdir -p .husky/_ && \
                   for it in pre-commit pre-push; do printf '#!/bin/sh\\n. \"$(dirname \"$0\")/h\"\\n' > .husky/_/$it; \
                   chmod 755 .husky/_/$it; done; echo 'sh .husky/pre-commit' > .husky/_/h; echo '*' > .husky/_/.gitignore";
    // The files do nothing until git is told to look at them.
    let first = scene.aside(prepare).await;
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(scene.listed()[0].setting.as_deref(), Some("core.hookspath"));
    scene.keep();
    assert!(scene.get(".git/config").contains("hooksPath = .husky/_"));
    for _ in 0..2 {
        let again = scene.aside(prepare).await;
        assert!(again.is_empty(), "{again:?}");
    }
    // What they run is looked at from then on.
    assert_eq!(scene.aside("echo evil >> .husky/pre-commit").await.len(), 1);
    assert_eq!(scene.get(".husky/pre-commit"), "npm test\n");
    assert_eq!(scene.aside("echo evil >> .husky/_/h").await.len(), 1);
    let for_people = "echo x >> .husky/notes.md; echo x >> .husky/_/.gitignore";
    assert!(scene.aside(for_people).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn pre_commit_needs_one_yes() {
    let scene = Scene::new();
    let install =
        "printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/pre-commit && chmod 755 .git/hooks/pre-commit";
    assert_eq!(scene.aside(install).await.len(), 1);
    // The same thing is there once.
    assert_eq!(scene.aside(install).await.len(), 1);
    assert_eq!(scene.listed().len(), 1);
    assert_eq!(scene.listed()[0].content, "#!/bin/sh\nexit 0\n");
    scene.keep();
    let mode = fs::metadata(scene.path(".git/hooks/pre-commit"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(scene.listed().is_empty());
    assert!(
        scene
            .aside(&format!("rm .git/hooks/pre-commit; {install}"))
            .await
            .is_empty()
    );
    // Another content is another question.
    assert_eq!(
        scene
            .aside("echo more >> .git/hooks/pre-commit")
            .await
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_comes_back_and_what_is_dropped_does_not() {
    let scene = Scene::new();
    scene.person("git config core.editor vim");
    scene.aside("git config core.editor ./mine; git config filter.x.clean ./x; git config alias.st '!x'").await;
    let listed = scene.listed();
    assert_eq!(listed.len(), 3);
    let id_of = |name: &str| {
        let found = listed.iter().find(|it| it.setting.as_deref() == Some(name));
        found.unwrap().id.clone()
    };
    let keep = |name: &str| scene.keeper.keep(&scene.root, Some(&id_of(name)));
    keep("core.editor").unwrap();
    keep("filter.x.clean").unwrap();
    scene
        .keeper
        .drop_aside(&scene.root, Some(&id_of("alias.st")))
        .unwrap();
    scene.person("test \"$(git config --get-all core.editor)\" = ./mine");
    scene.person("test \"$(git config --get-all filter.x.clean)\" = ./x; ! git config alias.st");
    assert!(scene.listed().is_empty());
    assert!(matches!(keep("alias.st"), Err(GitError::Unknown(_))));
    // Dropped is not known.
    assert_eq!(scene.aside("git config alias.st '!x'").await.len(), 1);
    assert!(
        scene
            .aside("git config --unset filter.x.clean; git config filter.x.clean ./x")
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_put_there_since_is_not_overwritten() {
    let scene = Scene::new();
    scene.aside("echo x > .git/hooks/pre-push").await;
    write_run(&scene.path(".git/hooks/pre-push"), "mine");
    let kept = scene.keeper.keep(&scene.root, None);
    assert!(matches!(kept, Err(GitError::NotPlaced { .. })), "{kept:?}");
    assert_eq!(scene.get(".git/hooks/pre-push"), "mine");
    assert_eq!(scene.listed().len(), 1);
}

/// Only the owner may read what is kept aside.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_is_the_owners_alone() {
    let scene = Scene::new();
    scene.aside("echo x > .git/hooks/pre-push").await;
    let drawers = fs::read_dir(scene.outer.path().join("state/git")).unwrap();
    for drawer in drawers.map(|it| it.unwrap().path()) {
        assert_eq!(
            fs::metadata(&drawer).unwrap().permissions().mode() & 0o077,
            0
        );
        for file in fs::read_dir(drawer).unwrap() {
            let file = file.unwrap().path();
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", file.display());
        }
    }
}

/// An undo point holds the workspace without what was set aside.
#[tokio::test(flavor = "multi_thread")]
async fn undo_brings_no_hook_back() {
    let scene = Scene::new();
    let state = scene.outer.path().join("state");
    scene
        .aside("echo x > .git/hooks/pre-push; echo two > two")
        .await;
    let store = UndoStore::open(&state, UndoSettings::default(), Arc::new(SystemClock)).unwrap();
    let point = store.list(&scene.root).unwrap().pop().unwrap();
    let undone = store
        .undo(&point.id, &holdfast_undo::Options::default())
        .unwrap();
    assert!(undone.conflicts.is_empty(), "{undone:?}");
    assert!(!scene.path("two").exists());
    store
        .undo(
            &undone.new_point.unwrap().id,
            &holdfast_undo::Options::default(),
        )
        .unwrap();
    assert!(scene.path("two").exists() && !scene.path(".git/hooks/pre-push").exists());
}
