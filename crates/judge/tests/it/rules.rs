//! The table of rules, and lists of commands that a person has to see or not.

use holdfast_judge::{Context, Rule, RuleSet, When, built_in_rules, judge};

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
    let rules: Vec<Rule> = serde_saphyr::from_str(holdfast_judge::RULES).expect("the table is YAML");
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
        assert!(rule.matches.len() + rule.not.len() >= 2, "{} needs examples", rule.id);
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
                wrong.push(format!("{:?} asks by {:?}", text, reasons.first().map(|it| &it.rule)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
