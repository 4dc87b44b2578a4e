//! Everyday work with git succeeds in the confinement, and nothing of it is set aside.

use super::*;

const COMMANDS: &[&str] = &[
    "git init -q -b main .",
    "git config user.name a && git config user.email a@b.c",
    "git config alias.co checkout",
    "git config core.autocrlf input && git config core.fileMode true && git config pull.rebase false",
    "git config commit.gpgsign false && git config advice.detachedHead false",
    "echo one > one && echo two > two && git add .",
    "git status --short",
    "git commit -qm first",
    "git commit -q --allow-empty -m empty",
    "git commit -q --amend -m amended --allow-empty",
    "git branch topic && git branch --list",
    "git switch -q topic && echo three > three && git add three && git commit -qm three",
    "git co -q main",
    "git merge -q --no-ff -m merged topic",
    "git rebase -q HEAD~1",
    "echo x >> one && git stash -q && git stash pop -q && git restore one",
    "git tag v1 && git tag -a v2 -m annotated && git tag -l",
    "git init -q --bare -b main remote.git && git init -q --bare other.git",
    "git remote add origin file://$PWD/remote.git",
    "git remote set-url origin $PWD/other.git && git remote set-url origin file://$PWD/remote.git",
    "git push -q -u origin main",
    "git push -q --tags origin",
    "git fetch -q origin && git fetch -q --all --prune",
    "git pull -q",
    "git branch --set-upstream-to=origin/main main",
    "git remote -v && git remote show origin",
    "git remote rename origin up && git remote rename up origin",
    "git clone -q file://$PWD/remote.git clone && git -C clone log --oneline",
    "git clone -q --depth 1 file://$PWD/remote.git shallow",
    "git worktree add -q ../workspace/wt && git -C wt status --short",
    "git worktree list && git worktree remove wt && git worktree prune",
    "git -c protocol.file.allow=always submodule add -q file://$PWD/remote.git sub",
    "git commit -qm submodule && git submodule status",
    "git -c protocol.file.allow=always submodule update -q --init --recursive",
    "git submodule foreach -q 'git status --short' && git submodule sync -q",
    "git submodule -q deinit -f sub && git rm -qf sub && git commit -qm 'no submodule'",
    "git bisect start -q HEAD HEAD~3 && git bisect good && git bisect reset",
    "git reflog && git reflog expire --expire=now --all",
    "git gc -q",
    "git repack -adq && git prune",
    "git switch -qc pick HEAD~1 && echo p > p && git add p && git commit -qm pick && git switch -q main",
    "git cherry-pick pick",
    "git revert --no-edit HEAD",
    "git notes add -m note && git notes show",
    "git sparse-checkout init --cone && git sparse-checkout set . && git sparse-checkout disable",
    "git config --worktree x.y z",
    "git blame one && git annotate one",
    "git diff HEAD~1 && git diff --stat && git diff --cached",
    "git log --graph --oneline --all && git log -p -1",
    "git grep one",
    "git archive -o out.tar HEAD && git archive -o out.tar.gz HEAD",
    "git bundle create -q b.bundle main && git bundle verify -q b.bundle",
    "git format-patch -q -1 -o patches HEAD~2 && git switch -qc am HEAD~3 && git am -q patches/*.patch; git am --abort; git switch -q main",
    "echo changed > two && git diff > p.diff && git restore two && git apply --check p.diff && git apply p.diff && git checkout -q two",
    "touch junk && git clean -qfd -e 'out*' -e patches -e remote.git -e other.git -e clone -e shallow",
    "git mv two zwei && git rm -q --cached one && git reset -q --hard",
    "git restore --staged . && git reset -q --soft HEAD && git reset -q --mixed HEAD",
    "git show --stat && git show HEAD:one",
    "git describe --tags && git shortlog -sn HEAD",
    "git rerere && git config rerere.enabled true && git rerere status",
    "git range-diff HEAD~2..HEAD~1 HEAD~1..HEAD",
    "git maintenance run --quiet && git commit-graph write && git multi-pack-index write",
    "git fsck --no-progress",
    "git ls-files -s && git ls-tree -r HEAD && git cat-file -p HEAD && git rev-parse --show-toplevel",
    "git for-each-ref && git show-ref && git name-rev HEAD && git merge-base HEAD HEAD~1",
    "git update-index --refresh && git hash-object one && git count-objects -v",
    "git check-ignore -q x || true; echo x > .gitignore; echo '*.txt text' > .gitattributes; git check-attr -a one",
    "git branch -m pick picked && git branch -D picked && git tag -d v1",
    "git config --unset alias.co && git config --list && git config --remove-section rerere",
    "git replace --list && git symbolic-ref HEAD && git whatchanged -1 || git log -1",
    "git filter-branch -f --msg-filter cat HEAD~1..HEAD",
    "git merge-tree --write-tree HEAD HEAD~1",
    "git stash list && git difftool --tool-help && git mergetool --tool-help",
    "git checkout -q --orphan fresh && git commit -qm fresh && git switch -q main",
    "git config core.editor true; git config --unset core.editor",
    "rm -rf .git && git init -q && git add . && git status --short",
];

#[tokio::test(flavor = "multi_thread")]
async fn everyday_commands_succeed_and_nothing_is_set_aside() {
    assert!(COMMANDS.len() >= 60);
    for views in crate::views::forms().into_iter().chain([Views::No]) {
        let kernel = Kernel {
            views,
            ..Kernel::probe()
        };
        let scene = Scene::on(kernel, Path::to_owned, Mode::BestEffort);
        let config = "FILTER_BRANCH_SQUELCH_WARNING=1";
        let mut failed = Vec::new();
        for command in COMMANDS {
            let answer = scene.exec(&format!("export {config}; {command}")).await;
            if answer["exit_code"] != 0 || answer.get("set_aside").is_some() {
                failed.push(format!("{views:?}: {command}: {answer}"));
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        assert!(scene.listed().is_empty());
    }
}
