//! All sessions of a state, for people who look at it from another process.

use std::collections::{HashMap, HashSet};

use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{DocumentFilter, DocumentStore, all_documents};

use super::model::Session;
use super::tree::{KIND, read};

/// Every session that is still kept, ended ones included: parents before their children, children
/// in the order in which they were made.
pub async fn overview(store: &dyn DocumentStore) -> StoreResult<Vec<Session>> {
    let found = all_documents(store, DocumentFilter::of(KIND)).await?;
    let sessions = found.iter().map(read).collect::<StoreResult<Vec<_>>>()?;
    Ok(as_a_tree(sessions))
}

/// Puts sessions in the order of their tree. One whose parent is not kept any more is a root.
fn as_a_tree(mut sessions: Vec<Session>) -> Vec<Session> {
    sessions.sort_by(|a, b| (a.created_at_ms, &a.id).cmp(&(b.created_at_ms, &b.id)));
    let known: HashSet<String> = sessions.iter().map(|it| it.id.clone()).collect();
    let mut below: HashMap<Option<String>, Vec<Session>> = HashMap::new();
    for session in sessions {
        let parent = session.parent.clone().filter(|it| known.contains(it));
        below.entry(parent).or_default().push(session);
    }
    // The next one is at the end. Each session is taken out once, so a ring that somebody wrote
    // into the store ends nowhere instead of going on for ever.
    let mut waiting: Vec<Session> = below.remove(&None).unwrap_or_default();
    waiting.reverse();
    let mut ordered = Vec::new();
    while let Some(session) = waiting.pop() {
        let children = below.remove(&Some(session.id.clone())).unwrap_or_default();
        waiting.extend(children.into_iter().rev());
        ordered.push(session);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::step;

    fn session(id: &str, parent: Option<&str>, made_ms: u64) -> Session {
        Session {
            parent: parent.map(str::to_owned),
            ..step::main(id, "agent", "/".into(), None, made_ms)
        }
    }

    #[test]
    fn children_stand_below_their_parents() {
        let sessions = vec![
            session("late child", Some("root"), 9),
            session("grandchild", Some("child"), 5),
            session("orphan", Some("gone"), 3),
            session("child", Some("root"), 2),
            session("root", None, 1),
            session("ring", Some("ring"), 4),
        ];
        let ordered: Vec<String> = as_a_tree(sessions).into_iter().map(|it| it.id).collect();
        assert_eq!(
            ordered,
            ["root", "child", "grandchild", "late child", "orphan"]
        );
    }
}
