//! Merging tags is a lattice's meet.

use holdfast_contract::Trust;
use holdfast_trust::Provenance;
use holdfast_trust::provenance::PROVENANCE_CHAIN_MAX;
use proptest::prelude::*;

/// Tags of up to three times as many sources as are kept.
fn tags() -> impl Strategy<Value = Provenance> {
    let link = (prop::sample::select(Trust::ALL.to_vec()), 0_u32..90);
    prop::collection::vec(link, 0..150).prop_map(|links| {
        links
            .iter()
            .fold(Provenance::nothing(), |all, (trust, number)| {
                all.merged(&Provenance::of(*trust, &format!("s{number}")))
            })
    })
}

proptest! {
    #[test]
    fn neither_grouping_nor_order_nor_repeating_matters(a in tags(), b in tags(), c in tags()) {
        prop_assert_eq!(a.merged(&b).merged(&c), a.merged(&b.merged(&c)));
        prop_assert_eq!(a.merged(&b), b.merged(&a));
        prop_assert_eq!(a.merged(&a), a.clone());
        prop_assert_eq!(Provenance::nothing().merged(&a), a);
    }

    #[test]
    fn the_lowest_trust_wins_and_nothing_raises_it(a in tags(), b in tags()) {
        let both = a.merged(&b);
        prop_assert_eq!(both.trust(), a.trust().min(b.trust()));
        prop_assert!(both.chain().count() <= PROVENANCE_CHAIN_MAX);
        prop_assert!(both.merged(&a).trust() <= a.trust());
    }

    #[test]
    fn a_tag_is_read_as_it_was_written(a in tags()) {
        let text = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(serde_json::from_str::<Provenance>(&text).unwrap(), a);
    }
}
