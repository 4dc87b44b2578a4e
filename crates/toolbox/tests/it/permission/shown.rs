//! Whoever answers has seen what runs.

use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_contract::visible::is_unseen;
use holdfast_contract::{Answer, Audience, Effect, PermissionTier, Scope, Shown};
use holdfast_toolbox::approval::AnswerError;
use serde_json::{Value, json};

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

const SECRET: &str = "correct-horse-battery";

/// Arguments whose worst part looks like a secret, or like nothing at all.
fn attacks() -> Vec<Value> {
    vec![
        json!({"command": "rm -rf ../old # -----BEGIN PRIVATE KEY-----\ncp /tmp/x pwned"}),
        json!({"command": "CACHE_TOKEN=\"$(cp /tmp/x pwned)\" rm -rf ../old"}),
        json!({"command": "curl --password $(cp /tmp/x pwned)"}),
        json!({"command": "git push https://user:$(id)@host/x"}),
        json!({"to": "stranger@elsewhere.example", "cc": ["ann@example.org"]}),
        json!({"password": "x; rm -rf ..", "env": [{"name": "API_KEY", "value": "y"}]}),
        json!({"command": "echo \u{202e}fr- mr\u{202c} \u{200b}x\u{a0}y\u{7}\u{1b}[2K\u{9b}"}),
        json!({"stranger@elsewhere.example": "\u{e0041}\u{2028}"}),
    ]
}

fn bench(secret: Option<&str>) -> (Bench, Arc<Probe>) {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let mut build = Build::default();
    build.permissions.approvals.senders = vec!["ann".to_owned()];
    build.secrets = secret.map(str::to_owned).into_iter().collect();
    (build.bench(vec![probe.clone()]), probe)
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_reads_back_as_what_runs() {
    let (bench, probe) = bench(Some(SECRET));
    let yes = Answer::Approve { scope: Scope::Once };
    let channel = Recorded::new(holdfast_contract::ChannelLevel::Elevated, Some(yes));
    bench.main("/".into(), Some(channel.clone())).await;
    for params in attacks() {
        let result = bench.stack.call(ask("probe", "main", params.clone())).await;
        assert_eq!(word(&result), "ran", "{params}");
        let prompt = channel.prompts.lock().pop().expect("a prompt");
        assert_eq!(prompt.shown, Shown::Whole);
        assert!(!prompt.arguments.chars().any(is_unseen), "{prompt:?}");
        let read: Value = serde_json::from_str(&prompt.arguments).expect("JSON");
        assert_eq!(read, params);
        assert_eq!(probe.seen.lock().pop(), Some(params));
        let request = bench.approvals.get(&prompt.id).await.unwrap().unwrap();
        for audience in [Audience::Approver, Audience::Readers] {
            let view = request.view(audience, &Redactor::default(), 0);
            assert_eq!(view["arguments"], json!(prompt.arguments), "{audience:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_hides_a_secret_is_not_answered_where_it_is_hidden() {
    for params in [
        json!({"command": format!("deploy --with {SECRET} --to prod")}),
        json!({"list": [{"deep": SECRET}]}),
        json!({ SECRET: 1 }),
    ] {
        let (bench, probe) = bench(Some(SECRET));
        // Whoever reads there says yes at once, and that is no answer.
        let yes = Answer::Approve { scope: Scope::Once };
        let channel = Recorded::new(holdfast_contract::ChannelLevel::Elevated, Some(yes));
        bench.main("/".into(), Some(channel.clone())).await;
        let approvals = bench.approvals.clone();
        let call = bench.stack.call(ask("probe", "main", params.clone()));
        let answers = async {
            let prompt = loop {
                tokio::task::yield_now().await;
                if let Some(prompt) = channel.prompts.lock().first() {
                    break prompt.clone();
                }
            };
            assert_eq!((prompt.shown, &prompt.code), (Shown::Partly, &None));
            assert!(!format!("{prompt:?}").contains(SECRET), "{prompt:?}");
            let id = prompt.id.clone();
            // The code it would have, were the secret not known.
            let (other, _) = self::bench(None);
            let request = approvals.get(&id).await.unwrap().unwrap();
            let code = other.approvals.code(&request).expect("a code");
            for answer in ["approve", "deny"] {
                let text = format!("{answer} {id}-{code}");
                let refused = approvals.heard(&text, "ann").await.unwrap_err();
                assert!(
                    matches!(refused, AnswerError::NotShownWhole(_)),
                    "{refused}"
                );
                let why = refused.to_string();
                assert!(
                    why.contains(&format!("holdfast approvals show {id}")),
                    "{why}"
                );
            }
            assert_eq!(probe.runs(), 0);
            let whole = request.view(Audience::Approver, &Redactor::default(), 0);
            assert!(whole["arguments"].as_str().unwrap().contains(SECRET));
            let yes = Answer::Approve { scope: Scope::Once };
            approvals.answer(&id, &yes, "owner").await.unwrap();
        };
        let (result, ()) = tokio::join!(call, answers);
        assert_eq!(word(&result), "ran");
        assert_eq!(probe.seen.lock().pop(), Some(params));
    }
}

/// Everything that stands beside the arguments is shown as well, and must not turn them around.
#[tokio::test(start_paused = true)]
async fn no_field_of_a_request_hides_a_sign() {
    let (bench, _) = bench(None);
    let session = "main\u{202e}cod.exe";
    let channel = Recorded::silent();
    let opened = bench
        .tree
        .open_main(session, "agent", "/w\u{2066}".into(), Some(channel));
    opened.await.unwrap();
    let call = ask("probe", session, json!({"command": "x"}));
    let approvals = bench.approvals.clone();
    let answers = async {
        let id = loop {
            if let Some(request) = approvals.open_requests().await.unwrap().pop() {
                break request.id;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        let no = Answer::Deny {
            reason: Some("no\u{202e}, never".to_owned()),
        };
        approvals.answer(&id, &no, "ann\u{200b}").await.unwrap();
        approvals.get(&id).await.unwrap().unwrap()
    };
    let (_, request) = tokio::join!(bench.stack.call(call), answers);
    for audience in [Audience::Approver, Audience::Readers] {
        let view = request.view(audience, &Redactor::default(), 0).to_string();
        assert!(!view.chars().any(is_unseen), "{view}");
        assert!(view.contains(r"\\u{202e}"), "{view}");
    }
}
