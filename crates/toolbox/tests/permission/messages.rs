//! Answers that come as messages, bound to their requests by a code.

use holdfast_contract::{Effect, PermissionTier};
use holdfast_toolbox::approval::{AnswerError, Heard};
use serde_json::json;

use crate::bench::{Build, Probe, Recorded, ask, word};

#[tokio::test(start_paused = true)]
async fn a_code_is_of_one_request() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = Build::default().bench(vec![probe.clone()]);
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
