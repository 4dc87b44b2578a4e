//! Holds while they stand, while the store is away, and when somebody answers.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{
    Answer, ChannelLevel, Effect, PermissionTier, Scope, SessionContext, SessionKind, Trust,
};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{DocumentFilter, all_documents};
use holdfast_reliability::store::unavailable::UnavailableStore;
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::approval::{ResumeWhich, resume_open};
use holdfast_toolbox::session::{SessionResult, SessionStatus, Spawn};
use holdfast_toolbox::trust::{SESSION_TRUST_KEPT_MS, SESSIONS_UNRECORDED_MAX, Speaker, TrustBook};
use holdfast_trust::signal::scan;
use holdfast_trust::{Provenance, SessionTrust, TrustConfig};
use serde_json::json;

use crate::permission::bench::{Build, Flaky, Probe, Recorded, ask, word};
use crate::permission::trust::{ATTACK, bench, call, config, exec, says, yes};

/// A process of its own on this store.
fn process(store: &Arc<Flaky>) -> TrustBook {
    let clock = Arc::new(TokioClock::new());
    let runtime = Runtime::new(clock, Arc::new(SeededEntropy::new(1)), Observers::new());
    TrustBook::new(TrustConfig::default(), store.clone(), Arc::new(runtime))
}

async fn reads(book: &TrustBook, session: &SessionContext, from: &str, text: &str) {
    let trust = Trust::Untrusted;
    book.arrived(session, &Provenance::of(trust, from), &scan(text, trust))
        .await;
}

/// What another process finds on record.
async fn on_record(store: &Arc<Flaky>, session: &SessionContext) -> SessionTrust {
    process(store).session(session).await.unwrap()
}

fn standing(known: &SessionTrust) -> usize {
    let now_ms = 1;
    known.holds.iter().filter(|it| it.stands(now_ms)).count()
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_while_the_store_was_away_is_recorded_when_it_is_back() {
    let session = SessionContext::main("main", "agent", "/".into());
    // What is read once the store is back, or what is done then instead.
    for then in ["page", "known page", "user", "count"] {
        let store = Flaky::new();
        let book = process(&store);
        reads(&book, &session, "web_search", "An ordinary page.").await;
        store.away(true);
        reads(&book, &session, "web_search", ATTACK).await;
        reads(&book, &session, "web_fetch", &format!("Again. {ATTACK}")).await;
        assert_eq!(standing(&book.unrecorded(&session)), 2, "{then}");
        store.away(false);
        assert_eq!(standing(&on_record(&store, &session).await), 0, "{then}");
        let stands = match then {
            "page" => {
                reads(&book, &session, "browser", "Another page.").await;
                2
            }
            "known page" => {
                reads(&book, &session, "web_search", "An ordinary page.").await;
                2
            }
            "user" => {
                book.heard(&session, Speaker::User, "go on").await.unwrap();
                0
            }
            _ => {
                book.count(&session, "exec").await.unwrap();
                2
            }
        };
        let recorded = on_record(&store, &session).await;
        assert_eq!(standing(&recorded), stands, "{then}");
        assert_eq!(recorded.holds.len(), 2, "{then}");
        let sources = recorded.provenance.chain();
        assert!(sources.map(|it| &*it.source).any(|it| it == "web_fetch"));
        assert_eq!(book.unrecorded(&session), SessionTrust::default(), "{then}");
        assert_eq!(book.session(&session).await.unwrap(), recorded, "{then}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_speaks_while_the_store_is_away_ends_what_this_process_holds() {
    let session = SessionContext::main("main", "agent", "/".into());
    let store = Flaky::new();
    let book = process(&store);
    store.away(true);
    reads(&book, &session, "web_fetch", ATTACK).await;
    let heard = book.heard(&session, Speaker::User, "go on").await;
    assert!(heard.is_err(), "it could not be put on record");
    assert_eq!(standing(&book.unrecorded(&session)), 0);
    store.away(false);
    reads(&book, &session, "web_fetch", ATTACK).await;
    let recorded = on_record(&store, &session).await;
    assert_eq!(standing(&recorded), 0, "the same text is known");
    assert_eq!(recorded.trust(), Trust::Untrusted);
}

#[tokio::test(start_paused = true)]
async fn what_never_came_on_record_can_be_forgotten() {
    let session = SessionContext::main("main", "agent", "/".into());
    let store = Flaky::new();
    let book = process(&store);
    store.away(true);
    reads(&book, &session, "web_fetch", ATTACK).await;
    store.away(false);
    book.clear("another").await.unwrap();
    assert_eq!(standing(&book.unrecorded(&session)), 1);
    book.clear("main").await.unwrap();
    assert_eq!(book.unrecorded(&session), SessionTrust::default());
}

#[tokio::test(start_paused = true)]
async fn without_its_store_a_process_goes_by_what_it_has_seen_itself() {
    for (setting, expected) in [("audit", "ran"), ("enforce", "store_unavailable")] {
        let exec = exec();
        let gone = StoreError::Unavailable("gone".to_owned());
        let build = Build {
            trust: Some(config(json!({"capabilities": {"inputTrust": setting}}))),
            ..Build::default()
        };
        let page = says("web_fetch", ATTACK);
        let bench = build.bench_with_trust_in(
            vec![page, exec.clone()],
            Arc::new(UnavailableStore::new(gone)),
        );
        bench.main("/".into(), None).await;
        assert_eq!(word(&call(&bench, "exec").await), expected, "{setting}");
        if setting == "audit" {
            assert_eq!(word(&call(&bench, "web_fetch").await), "ran");
            let held = call(&bench, "exec").await;
            assert_eq!(word(&held), "permission_denied", "nobody can be asked");
            assert_eq!(exec.runs(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_call_that_is_resumed_still_waits_for_its_answer_when_the_hold_is_over() {
    let setting = json!({"signals": {"holdMs": 1_000}});
    let (bench, _, exec) = bench(setting, None).await;
    call(&bench, "web_fetch").await;
    let stack = bench.stack.clone();
    let waiting = tokio::spawn(async move { stack.call(ask("exec", "main", json!({}))).await });
    let pending = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if let Some(found) = bench.approvals.open_requests().await.unwrap().pop() {
            break found;
        }
    };
    // The process dies: nothing of it runs on, and the request stays as it is on record.
    let before = all_documents(&*bench.documents, DocumentFilter::of("approval"))
        .await
        .unwrap();
    assert_eq!(before.len(), 1);
    waiting.abort();
    let _ = waiting.await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    if bench.approvals.open_requests().await.unwrap().is_empty() {
        // A caller that goes away takes its request back, which is as good as dead.
        return assert_eq!(exec.runs(), 0);
    }
    let (stack, approvals) = (bench.stack.clone(), bench.approvals.clone());
    let resumed =
        tokio::spawn(async move { resume_open(&stack, &approvals, &ResumeWhich::All).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(exec.runs(), 0, "nobody has said yes");
    let answer = Answer::Approve { scope: Scope::Once };
    bench
        .approvals
        .answer(&pending.id, &answer, "person")
        .await
        .unwrap();
    let resumed = resumed.await.unwrap().unwrap();
    assert_eq!(word(&resumed[0].result), "ran");
    assert_eq!(exec.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_yes_about_a_held_call_is_found_when_the_call_is_delivered_again() {
    let (bench, channel, exec) = bench(json!({}), None).await;
    call(&bench, "web_fetch").await;
    let mut envelope = ask("exec", "main", json!({}));
    let clock = bench.stack.runtime().clock.clone();
    envelope.control.deadline_at_ms = Some(clock.now_ms() + 7_000);
    // The caller's time is over while the person thinks.
    let late = bench.stack.call(envelope.clone()).await;
    assert_eq!(word(&late), "timeout");
    let open = bench.approvals.open_requests().await.unwrap();
    let [request] = open.as_slice() else {
        panic!("one request is open: {open:?}");
    };
    bench
        .approvals
        .answer(&request.id, &yes(Scope::Once), "person")
        .await
        .unwrap();
    // The reason says how long the hold still lasts, which is less by now.
    envelope.control.deadline_at_ms = Some(clock.now_ms() + 7_000);
    assert_eq!(word(&bench.stack.call(envelope).await), "ran");
    assert_eq!(exec.runs(), 1);
    let texts: Vec<String> = channel
        .prompts
        .lock()
        .iter()
        .map(|prompt| prompt.reasons[0].text.clone())
        .collect();
    assert!(texts.iter().all(|it| *it == texts[0]), "{texts:?}");
    assert_eq!(bench.approvals.list().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_session_covers_this_page_and_not_the_next() {
    let exec = exec();
    let page = says("web_fetch", ATTACK);
    let build = Build {
        trust: Some(TrustConfig::default()),
        ..Build::default()
    };
    let bench = build.bench(vec![page.clone(), exec.clone()]);
    let channel = Recorded::new(ChannelLevel::Elevated, Some(yes(Scope::Session)));
    bench.main("/".into(), Some(channel.clone())).await;
    call(&bench, "web_fetch").await;
    for _ in 0..3 {
        assert_eq!(word(&call(&bench, "exec").await), "ran");
    }
    assert_eq!(channel.prompts.lock().len(), 1);
    *page.text.lock() = format!("Another page. {ATTACK}");
    call(&bench, "web_fetch").await;
    assert_eq!(word(&call(&bench, "exec").await), "ran");
    assert_eq!(channel.prompts.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_session_covers_each_page_it_was_asked_about_and_no_other() {
    let exec = exec();
    let pages = [
        says("web_fetch", ATTACK),
        says("web_search", &format!("Another page. {ATTACK}")),
    ];
    let build = Build {
        trust: Some(TrustConfig::default()),
        ..Build::default()
    };
    let [first, second] = pages;
    let bench = build.bench(vec![first, second, exec.clone()]);
    let channel = Recorded::new(ChannelLevel::Elevated, Some(yes(Scope::Session)));
    bench.main("/".into(), Some(channel.clone())).await;
    call(&bench, "web_fetch").await;
    call(&bench, "web_search").await;
    for _ in 0..2 {
        assert_eq!(word(&call(&bench, "exec").await), "ran");
    }
    let prompts = channel.prompts.lock().clone();
    assert_eq!(prompts.len(), 1);
    let subjects: Vec<&str> = prompts[0].reasons.iter().map(|it| &*it.subject).collect();
    assert_eq!(
        subjects,
        [
            "exec after content from web_search",
            "exec after content from web_fetch"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_brings_no_manifest_and_acts_is_held() {
    let page = says("web_fetch", ATTACK);
    let acts = Probe::new("mine", PermissionTier::ReadOnly, Effect::External);
    let build = Build {
        trust: Some(TrustConfig::default()),
        ..Build::default()
    };
    let bench = build.bench(vec![page, acts.clone()]);
    bench.main("/".into(), None).await;
    assert_eq!(word(&call(&bench, "mine").await), "ran");
    call(&bench, "web_fetch").await;
    assert_eq!(word(&call(&bench, "mine").await), "permission_denied");
    assert_eq!(acts.runs(), 1);
}

/// A process does not grow without end while its store is away, and what it has no room for makes
/// nobody more trusted.
#[tokio::test(start_paused = true)]
async fn what_too_many_sessions_read_while_the_store_is_away_counts_for_all() {
    let store = Flaky::new();
    let book = process(&store);
    store.away(true);
    let session = |number: usize| {
        let name = format!("session-{number}");
        SessionContext::main(&name, "agent", "/".into())
    };
    for number in 0..SESSIONS_UNRECORDED_MAX {
        reads(&book, &session(number), "web_search", "An ordinary page.").await;
    }
    let (innocent, surplus) = (session(900_000), session(900_001));
    assert_eq!(book.unrecorded(&innocent), SessionTrust::default());
    reads(&book, &surplus, "web_search", ATTACK).await;
    for touched in [&surplus, &innocent, &session(7)] {
        assert_eq!(standing(&book.unrecorded(touched)), 1);
        assert_eq!(book.unrecorded(touched).trust(), Trust::Untrusted);
    }
    store.away(false);
    assert_eq!(standing(&book.session(&innocent).await.unwrap()), 1);
    // As long as a record would have been kept.
    tokio::time::advance(Duration::from_millis(SESSION_TRUST_KEPT_MS)).await;
    assert_eq!(
        book.session(&innocent).await.unwrap(),
        SessionTrust::default()
    );
}

/// What a child says may come from what it has read. A parent that would not know hears nothing.
#[tokio::test(start_paused = true)]
async fn a_result_is_withheld_while_what_the_child_has_read_can_not_be_noted_down() {
    for is_away in [false, true] {
        let store = Flaky::new();
        let build = Build {
            trust: Some(config(json!({}))),
            ..Build::default()
        };
        let bench = build.bench_with_trust_in(vec![], store.clone());
        bench.main("/".into(), None).await;
        let wish = Spawn {
            kind: SessionKind::Branch,
            context_summary: "Look".to_owned(),
            token_budget: None,
        };
        let child = bench.tree.spawn("main", wish).await.unwrap().id;
        let (book, context) = (bench.trust.as_ref().unwrap(), bench.tree.context(&child));
        reads(book, &context.unwrap(), "web", ATTACK).await;
        store.away(is_away);
        let said = SessionResult::new(SessionStatus::Completed, "what the page said");
        let finished = bench.tree.finish(&child, said).await;
        store.away(false);
        assert_eq!(finished.is_err(), is_away, "{finished:?}");
        let result = bench.tree.get(&child).await.unwrap().result.unwrap();
        assert_eq!(result.summary.contains("what the page said"), !is_away);
        assert!(bench.tree.context(&child).is_none(), "it has ended");
        assert!(bench.tree.get("main").await.unwrap().children.is_empty());
        let main = bench.tree.context("main").unwrap();
        let read = on_record(&store, &main).await.provenance;
        assert_eq!(read.trust() == Trust::Untrusted, !is_away);
    }
}
