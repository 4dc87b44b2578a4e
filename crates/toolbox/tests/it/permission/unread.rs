//! Requests that this version can not read, beside others that it can.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Effect, PermissionTier, Tool};
use holdfast_reliability::observe::{Event, Observer, Observers};
use holdfast_reliability::store::documents::{Replaced, Replacement};
use parking_lot::Mutex;
use serde_json::json;

use crate::permission::adopted::{Asking, kill, open, resume, wait_until_asked, yes};
use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

/// What the store is said to be in trouble with.
#[derive(Default)]
struct Troubles(Mutex<Vec<String>>);

impl Observer for Troubles {
    fn observe(&self, event: &Event<'_>) {
        if let Event::StoreTrouble { error, .. } = event {
            self.0.lock().push(error.to_string());
        }
    }
}

struct House {
    bench: Bench,
    probe: Arc<Probe>,
    troubles: Arc<Troubles>,
    /// Of a dead caller, approved, and in a state that a newer version knows.
    parked: String,
    /// The same without that state.
    approved: String,
    /// Of a run's call.
    pending: String,
}

/// The request of a call with this number that was killed.
async fn left(bench: &Bench, number: usize, run: Option<&str>) -> String {
    let before: Vec<String> = open(bench).await.into_iter().map(|it| it.id).collect();
    let mut envelope = ask("probe", "main", json!({"n": number}));
    envelope.target.run_id = run.map(Into::into);
    let mut call: Asking<'_> = Box::pin(bench.stack.call(envelope));
    let found = wait_until_asked(bench, &mut call, before.len() + 1).await;
    kill(call);
    let mut ids = found.into_iter().map(|it| it.id);
    ids.find(|id| !before.contains(id)).unwrap()
}

async fn house() -> House {
    let troubles = Arc::new(Troubles::default());
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
    let build = Build {
        observers: Observers::new().with(troubles.clone()),
        ..Build::default()
    };
    let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let parked = left(&bench, 1, None).await;
    let approved = left(&bench, 2, None).await;
    let pending = left(&bench, 3, Some("run")).await;
    for id in [&parked, &approved] {
        yes(&bench, id).await;
    }
    let document = bench.documents.document("approval", &parked).await;
    let document = document.unwrap().unwrap();
    let mut body = document.body.clone();
    body["state"] = json!("parked");
    let replaced = bench.documents.replace(Replacement::of(&document, body));
    assert!(matches!(replaced.await.unwrap(), Replaced::Done(_)));
    House {
        bench,
        probe,
        troubles,
        parked,
        approved,
        pending,
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_can_not_be_read_keeps_no_other_from_being_found_and_run() {
    let house = house().await;
    let approvals = &house.bench.approvals;
    let found = approvals.approved().await.unwrap();
    let found: Vec<&str> = found.iter().map(|it| &*it.id).collect();
    assert_eq!(found, [&*house.approved]);
    let mut listed: Vec<String> = open(&house.bench)
        .await
        .into_iter()
        .map(|it| it.id)
        .collect();
    listed.sort();
    let mut others = [house.approved.clone(), house.pending.clone()];
    others.sort();
    assert_eq!(listed, others);
    let waiting = approvals.waiting_for_run("run").await.unwrap();
    assert_eq!(waiting, std::slice::from_ref(&house.pending));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((resume(&house.bench).await, house.probe.runs()), (1, 1));
    approvals.withdraw_run("run").await.unwrap();
    assert!(open(&house.bench).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_can_not_be_read_is_told_of_once() {
    let house = house().await;
    for _ in 0..5 {
        house.bench.approvals.approved().await.unwrap();
        house.bench.approvals.list().await.unwrap();
    }
    let troubles = house.troubles.0.lock().clone();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].contains(&house.parked), "{troubles:?}");
    let unread = house.bench.approvals.unread();
    let said = format!("the approval {} can not be read: ", house.parked);
    assert_eq!(unread.len(), 1);
    assert!(unread[&house.parked].starts_with(&said), "{unread:?}");
    // Asked for by name it is trouble each time.
    assert!(house.bench.approvals.get(&house.parked).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_asks_the_same_as_one_that_can_not_be_read_is_asked_about() {
    let house = house().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let envelope = ask("probe", "main", json!({"n": 1}));
    let mut call: Asking<'_> = Box::pin(house.bench.stack.call(envelope));
    let found = wait_until_asked(&house.bench, &mut call, 3).await;
    let known = [&house.approved, &house.pending];
    let own = found.into_iter().find(|it| !known.contains(&&it.id));
    yes(&house.bench, &own.unwrap().id).await;
    assert_eq!(word(&call.await), "ran");
}
