//! A server without people.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Answer, ChannelLevel, Effect, PermissionTier, Scope, Tool};
use holdfast_reliability::config::ReliabilityConfig;
use holdfast_reliability::guard::GuardConfig;
use holdfast_toolbox::permit::{People, PermissionConfig};
use serde_json::json;

use crate::permission::bench::{Build, Probe, Recorded, ask, message, word};

#[tokio::test(start_paused = true)]
async fn without_people_a_call_is_denied_at_once_and_rules_still_hold() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let scope = Scope::Session;
    let yes = Answer::Approve { scope };
    let channel = Recorded::new(ChannelLevel::Elevated, Some(yes));
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/nowhere".into(), Some(channel.clone())).await;
    // A person approves one call for the session, before the people leave.
    let first = ask("probe", "main", json!({"n": 1}));
    assert_eq!(word(&bench.stack.call(first).await), "ran");
    let mut permissions = PermissionConfig::default();
    permissions.approvals.people = People::Nobody;
    let (reliability, guard) = (ReliabilityConfig::default(), GuardConfig::default());
    let exchanged = bench.stack.exchange(&reliability, permissions, guard);
    assert!(exchanged.is_ok(), "{exchanged:?}");

    let covered = ask("probe", "main", json!({"n": 1}));
    assert_eq!(word(&bench.stack.call(covered).await), "ran");
    let other = ask("probe", "main", json!({"n": 2}));
    let begun = tokio::time::Instant::now();
    let denied = bench.stack.call(other).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(word(&denied), "permission_denied");
    let told = message(&denied);
    assert!(
        told.contains("Elevated") && told.contains("permissions.approvals.people"),
        "{told}"
    );
    assert_eq!((probe.runs(), channel.prompts.lock().len()), (2, 1));
    assert!(bench.approvals.open_requests().await.unwrap().is_empty());
}
