//! L1 and L4: what a session has read, and what is held because of it.

use std::collections::BTreeMap;

use holdfast_contract::Trust;
use serde::{Deserialize, Serialize};

use crate::provenance::Provenance;
use crate::signal::{Finding, Findings};

/// Default of `trust.signals.holdMs`.
pub const HOLD_MS: u64 = 5 * 60 * 1000;
/// Holds of one session that stand at once; of more, the newest stay.
pub const HOLDS_MAX: usize = 16;
/// Tools of one session whose calls are counted; one more starts anew.
pub const COUNTED_TOOLS_MAX: usize = 64;
/// The window that calls are counted in.
const MINUTE_MS: u64 = 60 * 1000;

/// Why risky tools wait, and until when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// A digest of the source and the text: a text whose hold the user has ended holds no more.
    pub id: String,
    /// Where the text came from.
    pub source: String,
    /// How far it is trusted.
    pub trust: Trust,
    /// What was found.
    pub findings: Vec<Finding>,
    /// When.
    pub at_ms: u64,
    /// When it is over by itself.
    pub until_ms: u64,
    /// When a user's message ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at_ms: Option<u64>,
}

impl Hold {
    /// Whether it stands.
    pub fn stands(&self, now_ms: u64) -> bool {
        self.released_at_ms.is_none() && now_ms < self.until_ms
    }

    /// Why a call of `tool` waits, for a person to read.
    pub fn why(&self, tool: &str, now_ms: u64) -> String {
        let findings = Findings {
            id: self.id.clone(),
            found: self.findings.clone(),
        };
        let left_s = self.until_ms.saturating_sub(now_ms).div_ceil(1000);
        format!(
            "{} content of this session, from {}, looks like an attack ({}); {tool} is held until the \
             user's next message, or for {left_s} s",
            self.trust.as_str(),
            self.source,
            findings.summary()
        )
    }
}

/// A text that came into a session.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// Where it comes from, and how far that is trusted.
    pub provenance: &'a Provenance,
    /// What speaks against it.
    pub findings: &'a Findings,
    /// From which confidence on it holds, if anything does.
    pub hold_at: Option<f64>,
    /// For how long.
    pub hold_ms: u64,
    /// When.
    pub now_ms: u64,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionTrust {
    /// What it has read.
    pub provenance: Provenance,
    /// What holds it, and what has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
    /// Calls by tool, where a manifest bounds them: since when, and how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, (u64, u32)>,
}

impl Default for SessionTrust {
    /// A session begins with what its user wants.
    fn default() -> Self {
        Self {
            provenance: Provenance::of(Trust::User, "user"),
            holds: Vec::new(),
            calls: BTreeMap::new(),
        }
    }
}

impl SessionTrust {
    /// How far its content is trusted.
    pub fn trust(&self) -> Trust {
        self.provenance.trust()
    }

    /// The session after a text has come in. Never trusted more than before.
    #[must_use]
    pub fn with(mut self, arrived: &Arrived<'_>) -> Self {
        self.provenance = self.provenance.merged(arrived.provenance);
        let confidence = arrived.findings.confidence();
        let holds = arrived.hold_at.is_some_and(|at| confidence >= at) && confidence > 0.0;
        if !holds {
            return self;
        }
        let chain = arrived.provenance.chain().next();
        let hold = Hold {
            id: arrived.findings.id.clone(),
            source: chain.map(|link| link.source.clone()).unwrap_or_default(),
            trust: arrived.provenance.trust(),
            findings: arrived.findings.found.clone(),
            at_ms: arrived.now_ms,
            until_ms: arrived.now_ms.saturating_add(arrived.hold_ms),
            released_at_ms: None,
        };
        self.raise(hold, arrived.now_ms);
        self
    }

    /// Adds a hold, unless the same text holds already or the user has ended its hold. One that only
    /// ran out says nothing about the text: nobody has looked at it.
    fn raise(&mut self, hold: Hold, now_ms: u64) {
        let is_settled = |known: &Hold| {
            known.id == hold.id && (known.released_at_ms.is_some() || known.stands(now_ms))
        };
        if self.holds.iter().any(is_settled) {
            return;
        }
        self.holds.retain(|known| known.id != hold.id);
        self.holds.push(hold);
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let surplus = self.holds.len().saturating_sub(HOLDS_MAX);
        self.holds.drain(..surplus);
    }

    /// The session after its user has spoken: the person is there and has seen where things stand.
    /// What was read stays read.
    #[must_use]
    pub fn user_spoke(mut self, now_ms: u64) -> Self {
        for hold in &mut self.holds {
            if hold.stands(now_ms) {
                hold.released_at_ms = Some(now_ms);
            }
        }
        self
    }

    /// The session with what another one has read: a child with its parent's content, a parent with
    /// its child's result.
    #[must_use]
    pub fn with_session(mut self, other: &Self, now_ms: u64) -> Self {
        self.provenance = self.provenance.merged(&other.provenance);
        for hold in other.holds.iter().filter(|hold| hold.stands(now_ms)) {
            self.raise(hold.clone(), now_ms);
        }
        self
    }

    /// The session with what was seen of the same session elsewhere. A hold that has ended in one
    /// has ended, and stays known.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        self.provenance = self.provenance.merged(&other.provenance);
        for hold in &other.holds {
            match self.holds.iter_mut().find(|known| known.id == hold.id) {
                Some(known) => {
                    let released_at_ms = known.released_at_ms.or(hold.released_at_ms);
                    if hold.at_ms > known.at_ms {
                        // It ran out, and was raised again elsewhere.
                        known.clone_from(hold);
                    }
                    known.released_at_ms = released_at_ms;
                }
                None => self.holds.push(hold.clone()),
            }
        }
        self.forget_oldest();
        self
    }

    /// The holds that stand, the newest first.
    pub fn standing(&self, now_ms: u64) -> impl Iterator<Item = &Hold> {
        let newest_first = self.holds.iter().rev();
        newest_first.filter(move |hold| hold.stands(now_ms))
    }

    /// The newest hold that stands.
    pub fn held(&self, now_ms: u64) -> Option<&Hold> {
        self.standing(now_ms).next()
    }

    /// The session after one more call of a tool, and how many came before it within a minute.
    #[must_use]
    pub fn counted(mut self, tool: &str, now_ms: u64) -> (Self, u32) {
        if self.calls.len() >= COUNTED_TOOLS_MAX && !self.calls.contains_key(tool) {
            self.calls.clear();
        }
        let entry = self.calls.entry(tool.to_owned()).or_insert((now_ms, 0));
        if now_ms.saturating_sub(entry.0) >= MINUTE_MS {
            *entry = (now_ms, 0);
        }
        let before = entry.1;
        entry.1 = before.saturating_add(1);
        (self, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::SignalKind;

    fn findings(id: &str, confidence: f64) -> Findings {
        Findings {
            id: id.to_owned(),
            found: vec![Finding {
                kind: SignalKind::Override,
                confidence,
                excerpt: String::new(),
            }],
        }
    }

    fn arrived<'a>(provenance: &'a Provenance, findings: &'a Findings, now_ms: u64) -> Arrived<'a> {
        Arrived {
            provenance,
            findings,
            hold_at: Some(0.8),
            hold_ms: HOLD_MS,
            now_ms,
        }
    }

    #[test]
    fn a_hold_ends_with_a_user_message_or_its_time_and_the_taint_stays() {
        let page = Provenance::of(Trust::Untrusted, "web_fetch");
        let high = findings("a", 0.9);
        let session = SessionTrust::default().with(&arrived(&page, &high, 1_000));
        assert_eq!(session.trust(), Trust::Untrusted);
        assert!(session.held(1_000).is_some());
        assert!(session.held(1_000 + HOLD_MS).is_none());
        let spoken = session.user_spoke(2_000);
        assert!(spoken.held(2_000).is_none());
        assert_eq!(spoken.trust(), Trust::Untrusted);
        // The same text again is known, another one holds again.
        let same = spoken.clone().with(&arrived(&page, &high, 3_000));
        assert!(same.held(3_000).is_none());
        let other = spoken.with(&arrived(&page, &findings("b", 0.9), 3_000));
        assert!(other.held(3_000).is_some());
    }

    #[test]
    fn a_hold_that_only_ran_out_is_raised_again_by_the_same_text() {
        let page = Provenance::of(Trust::Untrusted, "web_fetch");
        let high = findings("a", 0.9);
        let over_ms = 1_000 + HOLD_MS;
        let first = SessionTrust::default().with(&arrived(&page, &high, 1_000));
        // While it stands, the same text does not make it longer.
        let first = first.with(&arrived(&page, &high, 2_000));
        assert!(first.held(over_ms).is_none());
        let again = first.clone().with(&arrived(&page, &high, over_ms));
        assert_eq!(again.holds.len(), 1);
        assert!(again.held(over_ms + HOLD_MS - 1).is_some());
        assert!(again.held(over_ms + HOLD_MS).is_none());
        // So it is for whoever has it from another session, or from another view of this one.
        for heir in [
            first.clone().with_session(&again, over_ms),
            first.clone().joined(&again),
            again.clone().joined(&first),
        ] {
            assert_eq!(heir.holds.len(), 1);
            assert!(heir.held(over_ms + HOLD_MS - 1).is_some());
        }
        // A person who has seen it is not asked about it a second time.
        let spoken = again.user_spoke(over_ms + 1);
        for heir in [
            spoken.clone().with(&arrived(&page, &high, 9 * over_ms)),
            spoken.joined(&first.with(&arrived(&page, &high, 9 * over_ms))),
        ] {
            assert!(heir.held(9 * over_ms).is_none());
        }
    }

    #[test]
    fn a_low_signal_holds_nothing_and_holds_are_bounded() {
        let page = Provenance::of(Trust::Untrusted, "web_fetch");
        let low = findings("a", 0.79);
        let mut session = SessionTrust::default().with(&arrived(&page, &low, 0));
        assert_eq!(session.held(0), None);
        for at in 0..100 {
            let high = findings(&format!("{at}"), 1.0);
            session = session.with(&arrived(&page, &high, at));
        }
        assert_eq!(session.holds.len(), HOLDS_MAX);
        assert_eq!(session.held(99).unwrap().id, "99");
    }

    #[test]
    fn a_child_and_its_parent_share_what_was_read() {
        let page = Provenance::of(Trust::Untrusted, "web_fetch");
        let child = SessionTrust::default().with(&arrived(&page, &findings("a", 0.9), 0));
        let parent = SessionTrust::default().with_session(&child, 1);
        assert_eq!(parent.trust(), Trust::Untrusted);
        assert!(parent.held(1).is_some());
    }

    #[test]
    fn two_views_of_a_session_join_and_what_has_ended_in_one_has_ended() {
        let page = Provenance::of(Trust::Untrusted, "web_fetch");
        let one = SessionTrust::default().with(&arrived(&page, &findings("a", 0.9), 0));
        let other = one.clone().user_spoke(1);
        let other = other.with(&arrived(&page, &findings("b", 0.9), 2));
        for joined in [one.clone().joined(&other), other.clone().joined(&one)] {
            assert_eq!(joined.holds.len(), 2);
            let stands = joined.holds.iter().filter(|hold| hold.stands(3));
            assert_eq!(stands.map(|hold| &*hold.id).collect::<Vec<_>>(), ["b"]);
        }
        assert_eq!(
            SessionTrust::default().joined(&one).trust(),
            Trust::Untrusted
        );
    }

    #[test]
    fn calls_are_counted_by_the_minute() {
        let mut session = SessionTrust::default();
        let mut before = 0;
        for at_ms in [0, 1, 2, 59_999] {
            (session, before) = session.counted("exec", at_ms);
        }
        assert_eq!(before, 3);
        (_, before) = session.counted("exec", 60_000);
        assert_eq!(before, 0);
    }
}
