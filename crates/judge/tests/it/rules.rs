//! The table of rules, and lists of commands that a person has to see or not.

use holdfast_judge::{Context, Rule, RuleSet, When, blocked, built_in_rules, judge, read};

fn context(undoable: bool) -> Context<'static> {
    Context {
        undoable,
        user_rules: None,
    }
}

fn meets(text: &str, rule: &Rule) -> bool {
    let verdict = judge(text, &context(rule.when == When::Always));
    verdict.reasons.iter().any(|reason| reason.rule == rule.id)
}

#[test]
fn every_rule_of_the_table_is_valid() {
    let rules: Vec<Rule> =
        serde_saphyr::from_str(holdfast_judge::RULES).expect("the table is YAML");
    let count = rules.len();
    assert!((55..=75).contains(&count), "{count} rules");
    let rules = RuleSet::new(rules).expect("the table's rules are valid");
    assert_eq!(built_in_rules().iter().count(), count);
    let mut ids: Vec<_> = rules.iter().map(|rule| &rule.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id stands twice");
}

#[test]
fn every_example_of_a_rule_holds() {
    let mut wrong = Vec::new();
    for rule in built_in_rules().iter() {
        assert!(
            rule.matches.len() + rule.not.len() >= 2,
            "{} needs examples",
            rule.id
        );
        for text in &rule.matches {
            if !meets(text, rule) {
                wrong.push(format!("{} does not match {text:?}", rule.id));
            }
        }
        for text in &rule.not {
            if meets(text, rule) {
                wrong.push(format!("{} matches {text:?}", rule.id));
            }
            if rule.when == When::Always && judge(text, &context(true)).asks {
                let reasons = judge(text, &context(true)).reasons;
                wrong.push(format!(
                    "{:?} asks by {:?}",
                    text,
                    reasons.first().map(|it| &it.rule)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// One command a line; `⏎` stands for the end of a line within one.
fn commands(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.replace('⏎', "\n")).collect()
}

/// The seed's own list.
const SEED_BLOCKED: &[&str] = &["rm -rf /", "shutdown", "reboot"];
/// Of a hundred ordinary commands, about so many a person may be asked at most.
const ASKED_PERCENT_MAX: usize = 2;

#[test]
fn ordinary_commands_do_not_ask() {
    let all = commands(include_str!("../ordinary.txt"));
    assert!(all.len() >= 250, "{}", all.len());
    let asked: Vec<_> = all
        .iter()
        .filter(|it| judge(it, &context(true)).asks)
        .collect();
    let unread = all.iter().filter(|it| !read(it).unreadable.is_empty());
    let unread: Vec<_> = unread.collect();
    println!("{} ordinary, {} ask: {asked:#?}", all.len(), asked.len());
    println!("{} unreadable in part: {unread:#?}", unread.len());
    assert!(
        asked.len() * 100 <= all.len() * ASKED_PERCENT_MAX,
        "{asked:#?}"
    );
}

#[test]
fn outward_commands_all_ask() {
    let all = commands(include_str!("../outward.txt"));
    assert!(all.len() >= 60, "{}", all.len());
    let silent: Vec<_> = all
        .iter()
        .filter(|it| !judge(it, &context(true)).asks)
        .collect();
    println!("{} outward, {} do not ask", all.len(), silent.len());
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn seed_list_refuses_no_ordinary_command() {
    let mut refused = Vec::new();
    for text in commands(include_str!("../ordinary.txt")) {
        let reading = read(&text);
        for rule in SEED_BLOCKED {
            refused.extend(blocked(rule, &reading).map(|why| (text.clone(), why)));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn user_rules_are_checked_with_clear_errors() {
    let parse = |text: &str| serde_saphyr::from_str::<Vec<Rule>>(text);
    let rules = parse("- {id: ship, text: ships it, program: [make], verb: [hoist], when: always}");
    let set = RuleSet::new(rules.expect("a rule")).expect("a valid rule");
    let context = Context {
        undoable: true,
        user_rules: Some(&set),
    };
    let verdict = judge("cd x && make -s hoist", &context);
    assert_eq!(
        verdict.reasons.first().map(|it| it.rule.as_str()),
        Some("ship")
    );

    let error =
        parse("- {id: x, text: y, program: [z], verbs: [a]}").expect_err("a misspelt field");
    assert!(error.to_string().contains("verbs"), "{error}");
    for (text, expected) in [
        ("- {id: X y, text: t, program: [z]}", "small letters"),
        ("- {id: x, program: [z]}", "no text"),
        ("- {id: x, text: t}", "no program"),
        (
            "- {id: x, text: t, program: [z], line: '('}",
            "`line` is no regular expression",
        ),
    ] {
        let error = RuleSet::new(parse(text).expect("YAML")).expect_err("a wrong rule");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn rules_for_trees_without_undo_ask_only_there() {
    for text in [
        "rm -rf build",
        "git clean -fdx",
        "git reset --hard",
        "find . -delete",
    ] {
        assert!(!judge(text, &context(true)).asks, "{text}");
        assert!(judge(text, &context(true)).undoable, "{text}");
        assert!(judge(text, &context(false)).asks, "{text}");
    }
}

#[test]
fn hidden_verb_asks_where_a_rule_could_mean_it() {
    assert!(judge("git $X", &context(true)).asks);
    assert!(judge("bun \"$X\"", &context(true)).asks);
    assert!(judge("bun -c bunfig.toml publish", &context(true)).asks);
    assert!(judge("echo push --force | xargs git", &context(true)).asks);
    for text in [
        "git -C \"$dir\" log",
        "git commit -m \"$M\"",
        "npm run \"$TASK\"",
        "bun -e \"console.log('$X')\"",
        "bun --eval \"$CODE\"",
        "bun -e 'console.log(1)' \"$FILE\"",
        "npm \"$X\" --dry-run",
        "$EDITOR x",
    ] {
        assert!(!judge(text, &context(true)).asks, "{text}");
    }
}

#[test]
fn lists_see_commands_wherever_they_stand() {
    use holdfast_judge::{Why, allowed};
    let blocked_by_any = |text: &str| {
        let rules = ["rm -rf /", "shutdown", "git push"];
        rules
            .iter()
            .find_map(|rule| blocked(rule, &read(text)))
            .map(|it| it.why)
    };
    for text in [
        "rm -rf /",
        "rm -r -f //",
        "/bin/rm --one-file-system -fr /",
        "shutdown now",
        "sudo shutdown",
        "true && sh -c 'shutdown -h'",
        "echo $(shutdown)",
        "find . -exec shutdown \\;",
        "FOO=1 nice git push origin main",
    ] {
        assert_eq!(blocked_by_any(text), Some(Why::Blocked), "{text}");
    }
    for text in [
        "read X < l; git $X",
        "git $(cat l)",
        "cat l | xargs git",
        "$(cat x) y",
        "git \"$X\"",
    ] {
        assert_eq!(blocked_by_any(text), Some(Why::Unreadable), "{text}");
    }
    for text in [
        "rm -rf build",
        "git pull",
        "echo shutdown",
        "git checkout \"$B\"",
        "echo $X; ls $(cat l)",
        "git ls-files | xargs git blame",
        "f=$(mktemp); rm \"$f\"",
        "true &>/dev/null git push",
    ] {
        assert_eq!(blocked_by_any(text), None, "{text}");
    }
    let rules = ["git status".to_owned(), "ls".to_owned(), "cargo".to_owned()];
    for text in ["ls -la", "cd src && git status", "cargo test | ls"] {
        assert_eq!(allowed(&rules, &read(text)), None, "{text}");
    }
    for text in ["git push", "ls; curl x", "$X y", "ls 'unclosed"] {
        assert!(allowed(&rules, &read(text)).is_some(), "{text}");
    }
}
