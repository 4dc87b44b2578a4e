//! Any text as a search: the full-text index takes what is made of it and never takes it for
//! syntax, and a text finds itself by any of its words.

#![no_main]

use std::cell::RefCell;

use holdfast_memory::terms::{indexable, terms};
use libfuzzer_sys::fuzz_target;
use rusqlite::{Connection, params};

thread_local! {
    static INDEX: RefCell<Connection> = RefCell::new(index());
}

fn index() -> Connection {
    let conn = Connection::open_in_memory().expect("a database");
    conn.execute_batch(
        "CREATE VIRTUAL TABLE words USING fts5 (content,
             tokenize = 'porter unicode61 remove_diacritics 2')",
    )
    .expect("an index");
    conn
}

fuzz_target!(|text: &str| {
    let found = terms(text);
    INDEX.with_borrow(|conn| {
        conn.execute("DELETE FROM words", []).expect("empty");
        conn.execute("INSERT INTO words VALUES (?1)", params![indexable(text)])
            .expect("indexed");
        let matches = |expression: &str| -> i64 {
            conn.query_row(
                "SELECT count(*) FROM words WHERE words MATCH ?1",
                [expression],
                |row| row.get(0),
            )
            .expect("a query")
        };
        for expression in [&found.words, &found.beginnings].into_iter().flatten() {
            let count = matches(expression);
            // Plain letters are words for both sides; what else is one may differ.
            if text.split_whitespace().any(is_plain) && text.is_ascii() {
                assert_eq!(count, 1, "{text:?} does not find itself with {expression}");
            }
        }
    });
});

fn is_plain(word: &str) -> bool {
    word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_lowercase())
}
