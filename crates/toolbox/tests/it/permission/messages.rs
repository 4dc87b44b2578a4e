//! Answers that come as messages, bound to their requests by a code.

use std::sync::Arc;

use holdfast_contract::{Effect, PermissionTier};
use holdfast_toolbox::approval::{AnswerError, Heard};
use serde_json::json;

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

/// A bench with an elevated tool, where these may answer by message.
fn bench(senders: &[&str]) -> (Bench, Arc<Probe>) {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let mut build = Build::default();
    let names = senders.iter().map(|name| (*name).to_owned());
    build.permissions.approvals.senders = names.collect();
    (build.bench(vec![probe.clone()]), probe)
}

/// The first prompt on the channel: its request and its code.
async fn prompted(channel: &Recorded) -> (String, Option<String>) {
    loop {
        tokio::task::yield_now().await;
        if let Some(prompt) = channel.prompts.lock().first() {
            return (prompt.id.clone(), prompt.code.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_named_nobody_answers_by_message() {
    let (bench, probe) = bench(&[]);
    let channel = Recorded::silent();
    bench.main("/".into(), Some(channel.clone())).await;
    let call = bench.stack.call(ask("probe", "main", json!({})));
    let answers = async {
        let (id, code) = prompted(&channel).await;
        assert_eq!(code, None);
        let (named, _) = self::bench(&["ann"]);
        let request = bench.approvals.get(&id).await.unwrap().unwrap();
        // The code it would have had, were somebody named.
        let code = named.approvals.code(&request).expect("a code");
        for sender in ["ann", ""] {
            let text = format!("approve {id}-{code}");
            let heard = bench.approvals.heard(&text, sender);
            let refused = heard.await.unwrap_err();
            assert!(matches!(refused, AnswerError::NoSenders), "{refused}");
            let why = refused.to_string();
            assert!(why.contains("permissions.approvals.senders"), "{why}");
        }
        let chat = bench.approvals.heard("hello", "ann").await;
        assert!(matches!(chat, Ok(Heard::NoAnswer)), "{chat:?}");
    };
    let (result, ()) = tokio::join!(call, answers);
    assert_eq!(word(&result), "permission_denied");
    assert_eq!(probe.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_makes_no_policy() {
    let (bench, probe) = bench(&["ann"]);
    let channel = Recorded::silent();
    bench.main("/".into(), Some(channel.clone())).await;
    let approvals = bench.approvals.clone();
    let call = bench.stack.call(ask("probe", "main", json!({})));
    let answers = async {
        let (id, code) = prompted(&channel).await;
        let named = format!("{id}-{}", code.expect("a code"));
        for word in ["always", "policy"] {
            let text = format!("approve {named} {word}");
            let heard = approvals.heard(&text, "ann");
            let refused = heard.await.unwrap_err();
            let is_scope = matches!(refused, AnswerError::PolicyByMessage(_));
            assert!(is_scope, "{refused}");
        }
        let stranger = approvals.heard(&format!("approve {named}"), "eve").await;
        assert!(matches!(stranger, Err(AnswerError::Sender(_))));
        let heard = approvals
            .heard(&format!("approve {named} session"), "ann")
            .await;
        assert!(matches!(heard, Ok(Heard::Answered(_))));
    };
    let (result, ()) = tokio::join!(call, answers);
    assert_eq!(word(&result), "ran");
    assert_eq!(probe.runs(), 1);
    let rules = approvals.rules().await.unwrap();
    assert!(rules.iter().all(|rule| rule.session.is_some()), "{rules:?}");
}

#[tokio::test(start_paused = true)]
async fn a_code_is_of_one_request() {
    let (bench, probe) = bench(&["ann", "actor"]);
    let channel = Recorded::silent();
    bench.main("/".into(), Some(channel.clone())).await;
    let approvals = bench.approvals.clone();
    let calls = async {
        let first = bench.stack.call(ask("probe", "main", json!({"n": 1})));
        let second = bench.stack.call(ask("probe", "main", json!({"n": 2})));
        tokio::join!(first, second)
    };
    let answers = async {
        let codes = loop {
            tokio::task::yield_now().await;
            let prompts = channel.prompts.lock();
            if let [first, second] = prompts.as_slice() {
                let of = |it: &holdfast_contract::ApprovalPrompt| {
                    (it.id.clone(), it.code.clone().expect("a code"))
                };
                break [of(first), of(second)];
            }
        };
        let [(first, code), (second, other)] = &codes;
        assert_ne!(code, other);
        for wrong in [
            format!("approve {first}-{other}"),
            format!("approve {first}-{}", &code[..code.len() - 1]),
            format!("approve nosuch-{code}"),
        ] {
            let heard = approvals.heard(&wrong, "ann").await;
            assert!(matches!(heard, Err(AnswerError::NotFound(_))), "{wrong}");
        }
        // Its own actor does not answer for itself, code or not.
        let own = approvals
            .heard(&format!("approve {first}-{code}"), "actor")
            .await;
        assert!(matches!(own, Err(AnswerError::Refused { .. })), "{own:?}");
        let yes = approvals
            .heard(&format!("Approve `{first}-{code}`"), "ann")
            .await;
        assert!(matches!(yes, Ok(Heard::Answered(_))), "{yes:?}");
        let no = approvals
            .heard(&format!("no {second}-{other} not now"), "ann")
            .await;
        assert!(matches!(no, Ok(Heard::Answered(_))), "{no:?}");
    };
    let ((first, second), ()) = tokio::join!(calls, answers);
    let mut words = [word(&first), word(&second)];
    words.sort_unstable();
    assert_eq!(words, ["permission_denied", "ran"]);
    assert_eq!(probe.runs(), 1);
}
