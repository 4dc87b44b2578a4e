use proptest::prelude::*;

use super::*;
use crate::store::conformance::{done, key, last_word, wish};

const SIZES: Sizes = Sizes {
    compress_above_bytes: 256,
    value_bytes_max: 4096,
};

fn output(text: String) -> Ending {
    Ending::Done(ResultOutput {
        content: Arc::new(serde_json::Value::String(text)),
        metadata: None,
    })
}

#[test]
fn a_large_result_is_compressed_and_one_that_stays_large_is_left_out() {
    let none = Execution::default();
    let small = ending_body(7, &output("x".repeat(100)), &none, SIZES).unwrap();
    assert_eq!((&small[..8], small[8]), (&7_u64.to_le_bytes()[..], b'j'));
    let large = ending_body(7, &output("x".repeat(100_000)), &none, SIZES).unwrap();
    assert_eq!(large[8], b'z');
    assert!(large.len() < 1_000);
    let back = unpack_body(&large[8..], "").unwrap();
    assert_eq!(
        back.payload.unwrap().content.as_str().map(str::len),
        Some(100_000)
    );
    // Digits that do not compress well.
    let noise: String = (0..20_000_u64)
        .map(|n| xxh3_64(&n.to_le_bytes()).to_le_bytes()[0])
        .map(|byte| char::from(33 + byte % 90))
        .collect();
    let dropped = ending_body(7, &output(noise), &none, SIZES).unwrap();
    assert!(dropped.len() < 200);
    assert!(unpack_body(&dropped[8..], "").unwrap().payload.is_none());
}

#[test]
fn damaged_records_are_errors_and_never_panics() {
    let record = DedupeRecord {
        state: RecordState::Done,
        ..crate::store::conformance::example_record()
    };
    let packed = pack(&record, SIZES).unwrap();
    assert_eq!(unpack(key(1), &packed).unwrap().state, RecordState::Done);
    for end in 0..packed.len() {
        let _ = unpack(key(1), &packed[..end]);
    }
    for at in 0..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x55;
        let _ = unpack(key(1), &damaged);
    }
    // What can not be unpacked is told by its place.
    let mut later = packed.clone();
    later[0] = b'q';
    let why = unpack(key(1), &later).unwrap_err();
    let told = unread(key(1), &later, &why);
    let updated_at_ms = unpack(key(1), &packed).unwrap().updated_at_ms;
    assert_eq!((told.key, told.state.as_str()), (key(1), "q"));
    assert_eq!(
        (told.updated_at_ms, told.is_in_flight()),
        (updated_at_ms, false)
    );
    let _ = (done(), last_word(&wish(1, "a"), done()));
}

#[test]
fn a_claim_to_unpack_to_a_gigabyte_is_refused() {
    let mut bomb = vec![b'z'];
    bomb.extend_from_slice(&u32::MAX.to_le_bytes());
    bomb.extend_from_slice(&[0; 64]);
    assert!(unpack_body(&bomb, "").is_err());
}

#[test]
fn a_family_shares_a_shard() {
    let names = Names::new("p", 16);
    let wish = wish(7, "a");
    let content = names.content(&wish.key);
    let own = names.of(&wish.key);
    let tag = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == b'}').unwrap();
        name[..=end].to_vec()
    };
    assert_eq!(tag(&content), tag(&own.record));
    assert_eq!(tag(&own.index), tag(&own.record));
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = unpack(key(1), &bytes);
    }
}
