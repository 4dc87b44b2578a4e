//! What the host of a session in use can be asked to change in it.
//!
//! Nobody but the host writes such a session. `OpenClaw` lets a plugin replace a message by another one,
//! and leaves messages marked `excludeFromContext` out of what a provider gets. So a result that no call
//! asked for is marked, and stays readable; nothing is removed and nothing is added.

use std::collections::HashMap;

use serde_json::Value;

use crate::check::Fault;
use crate::format::Format;
use crate::values::validate_as;

/// The ids of the entries whose results belong to no call, or to one that has its result already.
///
/// ```
/// use holdfast_transcript::live::results_to_exclude;
/// use serde_json::json;
/// let entries = [
///     json!({"type": "message", "id": "a", "parentId": null,
///            "message": {"role": "user", "content": "go on"}}),
///     json!({"type": "message", "id": "b", "parentId": "a",
///            "message": {"role": "toolResult", "toolCallId": "gone", "toolName": "exec", "content": []}}),
/// ];
/// assert_eq!(results_to_exclude(&entries), ["b"]);
/// ```
pub fn results_to_exclude(entries: &[Value]) -> Vec<String> {
    let entries = branch_in_use(entries);
    let issues = validate_as(Format::OpenClaw, &entries);
    let surplus = issues.into_iter().filter(|issue| {
        matches!(
            issue.fault,
            Fault::OrphanedToolResult | Fault::DuplicateToolResult
        )
    });
    let mut ids: Vec<String> = surplus
        .filter_map(|issue| entries.get(issue.message_index)?["id"].as_str())
        .map(str::to_owned)
        .collect();
    ids.dedup();
    ids
}

/// The entries that lead to the last one; none where one on the way names a parent that can not be followed,
/// since calls before it would then be missing. A host that replaces an entry begins a new branch with it, and
/// keeps the old one.
fn branch_in_use(entries: &[Value]) -> Vec<Value> {
    let by_id: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| Some((entry["id"].as_str()?, place)))
        .collect();
    let mut places = Vec::new();
    let mut next = entries.len().checked_sub(1);
    // An entry that continues a later one, or itself, would lead in circles.
    while let Some(place) = next {
        places.push(place);
        let parent = entries[place]["parentId"].as_str();
        next = parent.and_then(|id| by_id.get(id).copied());
        let leads_back = next.is_some_and(|parent| parent < place);
        if parent.is_some() && !leads_back {
            return Vec::new();
        }
    }
    places.reverse();
    places
        .into_iter()
        .map(|place| entries[place].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: &str, parent: Option<&str>, message: &Value) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "message": message})
    }

    fn called(id: &str) -> Value {
        json!({"role": "assistant", "stopReason": "toolUse",
               "content": [{"type": "toolCall", "id": id, "name": "exec", "arguments": {}}]})
    }

    fn result(id: &str) -> Value {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "exec",
               "content": [{"type": "text", "text": "done"}]})
    }

    #[test]
    fn surplus_results_are_named_and_once_they_are_marked_nothing_is() {
        let user = json!({"role": "user", "content": "go on"});
        let mut entries = vec![
            entry("a", None, &user),
            entry("b", Some("a"), &called("one")),
            entry("c", Some("b"), &result("one")),
            entry("d", Some("c"), &result("one")),
            entry("e", Some("d"), &result("gone")),
            entry("f", Some("e"), &called("two")),
            entry("g", Some("f"), &user),
        ];
        assert_eq!(results_to_exclude(&entries), ["d", "e"]);
        for at in [3, 4] {
            entries[at]["message"]["excludeFromContext"] = json!(true);
        }
        assert_eq!(results_to_exclude(&entries), Vec::<String>::new());
        // The host's answer to that: a new branch, with the old one still there.
        entries[3]["message"]["excludeFromContext"] = json!(false);
        let mut marked = entries[3].clone();
        marked["id"] = json!("d2");
        marked["message"]["excludeFromContext"] = json!(true);
        entries.push(marked);
        for (at, parent) in [(4, "d2"), (5, "e2"), (6, "f2")] {
            let mut again = entries[at].clone();
            again["id"] = json!(format!("{}2", again["id"].as_str().unwrap()));
            again["parentId"] = json!(parent);
            entries.push(again);
        }
        assert_eq!(results_to_exclude(&entries), Vec::<String>::new());
        let entries = branch_in_use(&entries);
        assert_eq!(entries.len(), 7);
        // A call without a result stays a finding: only the host's owner can say what it did.
        let left = validate_as(Format::OpenClaw, &entries);
        let faults: Vec<Fault> = left.iter().map(|issue| issue.fault).collect();
        assert_eq!(faults, [Fault::MissingToolResult]);
    }

    #[test]
    fn a_result_behind_a_break_in_the_chain_is_not_taken_for_an_orphan() {
        let user = json!({"role": "user", "content": "go on"});
        let whole = vec![
            entry("a", None, &user),
            entry("b", Some("a"), &called("one")),
            entry("c", Some("b"), &result("one")),
            entry("d", Some("c"), &result("gone")),
        ];
        assert_eq!(results_to_exclude(&whole), ["d"]);
        let mut broken = whole.clone();
        broken[2]["parentId"] = json!("lost");
        assert_eq!(results_to_exclude(&broken), Vec::<String>::new());
    }
}
