//! Every kind of hook and setting.

use super::*;

/// Settings that name a program, as `git config` takes them.
const SETTINGS: &[&str] = &[
    "core.hooksPath .hooks",
    "core.fsmonitor ./watch",
    "core.sshCommand 'ssh -o ProxyCommand=x'",
    "core.editor ./edit",
    "core.pager ./page",
    "core.askPass ./ask",
    "core.gitProxy ./proxy",
    "core.alternateRefsCommand ./refs",
    "pager.log ./page",
    "sequence.editor ./edit",
    "include.path ../more",
    "includeIf.gitdir:/.path ../more",
    "alias.st '!echo x'",
    "alias.up 'fetch --upload-pack=./x'",
    "filter.x.clean ./x",
    "filter.x.smudge ./x",
    "filter.x.process ./x",
    "diff.x.command ./x",
    "diff.x.textconv ./x",
    "diff.external ./x",
    "merge.x.driver ./x",
    "mergetool.x.cmd ./x",
    "difftool.x.cmd ./x",
    "credential.helper '!echo x'",
    "credential.https://a.b.helper ./x",
    "gpg.program ./x",
    "gpg.ssh.program ./x",
    "remote.x.uploadpack ./x",
    "remote.x.receivepack ./x",
    "remote.x.vcs x",
    "remote.x.url 'ext::sh -c x'",
    "branch.main.remote 'ext::sh -c x'",
    "url.ext::sh.insteadOf https://a.b/",
    "uploadpack.packObjectsHook ./x",
    "protocol.ext.allow always",
    "submodule.x.update '!x'",
    "trailer.x.command ./x",
    "trailer.x.cmd ./x",
    "man.x.cmd ./x",
    "browser.x.cmd ./x",
    "web.browser x",
    "interactive.diffFilter ./x",
    "sendemail.toCmd ./x",
    "sendemail.sendmailCmd ./x",
    "init.templateDir ../x",
    "tar.x.command ./x",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_that_names_a_program_is_set_aside_and_the_rest_of_the_file_stays() {
    let scene = Scene::new();
    // Whatever a person writes into a file is kept as it is.
    let mut by_hand = scene.get(".git/config");
    by_hand
        .push_str("; mine\n[Alias]\tci = commit # short\n\n[core \"odd\"]\n  a=\"b;c\" \\\n  d\n");
    fs::write(scene.path(".git/config"), &by_hand).unwrap();
    for setting in SETTINGS {
        let name = setting.split(' ').next().unwrap();
        let told = scene.aside(&format!("git config {setting}")).await;
        assert_eq!(told.len(), 1, "{setting}: {told:?}");
        assert!(
            told[0].to_lowercase().contains(&name.to_lowercase()),
            "{told:?}"
        );
        // Headers of sections that git has added stay, as after `git config --unset`.
        let now = scene.get(".git/config");
        let rest = now.strip_prefix(by_hand.as_str());
        let rest = rest.unwrap_or_else(|| panic!("{setting}: {now}"));
        assert!(
            rest.lines().all(|line| line.starts_with('[')),
            "{setting}: {now}"
        );
        fs::write(scene.path(".git/config"), &by_hand).unwrap();
    }
    assert_eq!(scene.listed().len(), SETTINGS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_before_is_put_back() {
    let scene = Scene::new();
    scene.person("git config core.editor vim; git config --add credential.helper store");
    let before = scene.get(".git/config");
    let told = scene.aside("git config core.editor ./evil").await;
    assert!(told[0].contains("core.editor = ./evil"), "{told:?}");
    assert_eq!(scene.get(".git/config"), before);
    assert_eq!(
        scene
            .aside("git config --add credential.helper ./evil")
            .await
            .len(),
        1
    );
    assert_eq!(scene.get(".git/config"), before);
    // A harmless change beside it stays.
    assert_eq!(
        scene
            .aside("git config core.pager ./evil; git config user.email x@y.z")
            .await
            .len(),
        1
    );
    assert_eq!(scene.get(".git/config"), before.replace("a@b.c", "x@y.z"));
    // A person's own hook comes back with its mode, after a command has changed or replaced it.
    write_run(&scene.path(".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n");
    for change in [
        "echo evil >> .git/hooks/pre-commit",
        "ln -sf ../../evil .git/hooks/pre-commit",
    ] {
        assert_eq!(scene.aside(change).await.len(), 1, "{change}");
        assert_eq!(scene.get(".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n");
        let mode = fs::metadata(scene.path(".git/hooks/pre-commit"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
    }
    // Removing a program is no danger.
    assert_eq!(
        scene
            .aside("git config --unset core.editor; rm .git/hooks/pre-commit")
            .await
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn harmless_settings_stay() {
    let scene = Scene::new();
    for setting in [
        "alias.co checkout",
        "core.fsmonitor true",
        "pager.log false",
        "commit.template .template",
        "protocol.ext.allow never",
        "remote.o.url https://a.b/c",
        "submodule.x.update rebase",
        "gpg.format ssh",
        "core.worktree ..",
    ] {
        let told = scene.aside(&format!("git config {setting}")).await;
        assert!(told.is_empty(), "{setting}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_every_place_are_set_aside() {
    let scene = Scene::new();
    scene.person(
        "git init -q --bare sub && mkdir -p .git/modules/a/modules/c .git/modules/dir/b && \
         for it in a a/modules/c dir/b; do cp -r sub/. .git/modules/$it; done && rm -rf sub && \
         mkdir .githooks && git config core.hooksPath .githooks && \
         git worktree add -q wt && git config extensions.worktreeConfig true",
    );
    for place in [
        ".git/hooks/pre-commit",
        ".git/hooks/helper",
        ".githooks/post-checkout",
        ".githooks/pre-commit.d/10-x",
        ".git/modules/a/hooks/post-merge",
        ".git/modules/a/modules/c/hooks/update",
        ".git/modules/dir/b/hooks/update",
    ] {
        let dir = Path::new(place).parent().unwrap().display();
        let told = scene
            .aside(&format!(
                "mkdir -p {dir}; echo x > {place}; chmod +x {place}"
            ))
            .await;
        assert_eq!(told.len(), 1, "{place}: {told:?}");
        assert!(told[0].ends_with(&format!("hook {place}")), "{told:?}");
        assert!(!scene.path(place).exists(), "{place}");
    }
    for (place, file) in [
        (".git/config.worktree", ".git/config.worktree"),
        (
            ".git/worktrees/wt/config.worktree",
            ".git/worktrees/wt/config.worktree",
        ),
        (".git/modules/a/config", ".git/modules/a/config"),
        (
            ".git/modules/a/modules/c/config",
            ".git/modules/a/modules/c/config",
        ),
    ] {
        let told = scene
            .aside(&format!("git config -f {file} core.pager ./x"))
            .await;
        assert_eq!(told.len(), 1, "{place}: {told:?}");
        assert!(!scene.get(file).contains("./x"), "{place}");
    }
    // Git runs no samples.
    assert!(
        scene
            .aside("cp .git/hooks/pre-commit.sample .git/hooks/x.sample")
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_can_not_be_read_is_put_back_as_a_whole() {
    let scene = Scene::new();
    let before = scene.get(".git/config");
    let told = scene.aside("echo '[core' >> .git/config").await;
    assert!(told[0].contains("configuration .git/config"), "{told:?}");
    assert_eq!(scene.get(".git/config"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_repository_is_looked_at_as_a_whole() {
    let scene = Scene::bare();
    assert!(scene.aside("true").await.is_empty());
    let told = scene
        .aside("git init -q . && git config core.pager ./x && echo x > .git/hooks/pre-push && chmod +x .git/hooks/*")
        .await;
    assert_eq!(told.len(), 2, "{told:?}");
    // Without a `.git`, git takes the directory itself for a repository.
    let scene = Scene::bare();
    let told = scene
        .aside("git init -q --bare . && git config core.fsmonitor ./x")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn write_and_edit_are_compared_too() {
    let scene = Scene::new();
    let written = json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"});
    let result = scene.call("write", written).await;
    let answer = (*result.output.unwrap().content).clone();
    assert_eq!(told(&answer).len(), 1, "{answer}");
    assert!(!scene.path(".git/hooks/pre-commit").exists());
    let edited = json!({"path": ".git/config", "old_string": "[user]", "new_string": "[core]\npager = ./x\n[user]"});
    let result = scene.call("edit", edited).await;
    let answer = (*result.output.expect("edited").content).clone();
    assert_eq!(told(&answer).len(), 1, "{answer}");
    assert!(!scene.get(".git/config").contains("./x"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_works_within_the_run_that_made_it() {
    let scene = Scene::new();
    let told = scene
        .aside(
            "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && \
             git commit -q --allow-empty -m x && test -e ran",
        )
        .await;
    assert_eq!(told.len(), 1);
    assert!(!scene.path(".git/hooks/pre-commit").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_or_times_out_is_compared_too() {
    let scene = Scene::new();
    let answer = scene.exec("git config core.pager ./x; exit 3").await;
    assert_eq!(
        (told(&answer).len(), &answer["exit_code"]),
        (1, &json!(3)),
        "{answer}"
    );
    let slow = json!({"command": "git config core.editor ./x; sleep 100", "timeout_ms": 1000});
    let result = scene.call("exec", slow).await;
    let details = result
        .error
        .expect("it timed out")
        .details
        .expect("has details");
    assert_eq!(told(&details).len(), 1, "{details}");
    assert!(!scene.get(".git/config").contains("./x"));
}
