//! The text that the full-text index sees.
//!
//! Words are cut here, as for the embedded store, so that both find the same: accents and capitals
//! are taken off, and signs of scripts without blanks stand alone and in pairs. The index itself
//! only splits at blanks, takes off English endings and ranks.

use holdfast_memory::terms::index_words;
use lancedb::index::scalar::FtsIndexBuilder;
use unicode_normalization::UnicodeNormalization as _;

/// How the index reads the text.
pub(crate) fn index() -> FtsIndexBuilder {
    FtsIndexBuilder::default()
        .base_tokenizer("whitespace".to_owned())
        .lower_case(false)
        .stem(true)
        .remove_stop_words(false)
        .ascii_folding(true)
        .with_position(false)
        .max_token_length(None)
}

/// The words of a record, each with a blank before it.
pub(crate) fn of_record(content: &str) -> String {
    let mut text = String::with_capacity(content.len() + 1);
    for word in index_words(content) {
        text.push(' ');
        text.push_str(&plain(&word));
    }
    text
}

/// A word without accents and capitals.
pub(crate) fn plain(word: &str) -> String {
    let bare = word.nfd().filter(|sign| !is_accent(*sign));
    bare.flat_map(char::to_lowercase).nfc().collect()
}

fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}')
}
