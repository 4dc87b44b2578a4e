//! L1: where a text comes from, and how far that is trusted.

use std::collections::BTreeSet;

use holdfast_contract::Trust;
use serde::{Deserialize, Serialize};

/// Sources that are named; of more, the least trusted stay.
pub const PROVENANCE_CHAIN_MAX: usize = 50;

/// One source. Ordered by trust first, so that the least trusted comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// How far it is trusted.
    pub trust: Trust,
    /// What it is: `user`, or a tool's name.
    pub source: String,
}

/// The tag of a text: all that went into it.
///
/// What is made of several texts is trusted like the least of them. Merging is a lattice's meet:
/// neither order, nor grouping, nor repeating changes what comes out, and nothing that is merged in
/// ever raises the trust.
///
/// ```
/// use holdfast_contract::Trust;
/// use holdfast_trust::Provenance;
/// let page = Provenance::of(Trust::Untrusted, "web_fetch");
/// let wish = Provenance::of(Trust::User, "user");
/// assert_eq!(wish.merged(&page).trust(), Trust::Untrusted);
/// assert_eq!(Provenance::nothing().merged(&wish), wish);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    chain: BTreeSet<Link>,
}

impl Provenance {
    /// Of no text at all: it takes nothing from what it is merged with.
    pub fn nothing() -> Self {
        Self {
            chain: BTreeSet::new(),
        }
    }

    /// Of one text.
    pub fn of(trust: Trust, source: &str) -> Self {
        let source = source.to_owned();
        Self {
            chain: BTreeSet::from([Link { trust, source }]),
        }
    }

    /// Of a text that was made of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        // The lowest of the union: what is cut off never decides the trust, and cutting at each
        // step is the same as cutting once at the end.
        let union = self.chain.union(&other.chain);
        Self {
            chain: union.take(PROVENANCE_CHAIN_MAX).cloned().collect(),
        }
    }

    /// How far it is trusted: like the least trusted of its sources.
    pub fn trust(&self) -> Trust {
        self.chain.first().map_or(Trust::System, |link| link.trust)
    }

    /// The sources, the least trusted first.
    pub fn chain(&self) -> impl Iterator<Item = &Link> {
        self.chain.iter()
    }

    /// Whether merging `other` in would change nothing.
    pub fn holds(&self, other: &Self) -> bool {
        other.chain.is_subset(&self.chain)
    }
}
