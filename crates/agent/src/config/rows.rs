//! Every key of `executor.yaml`, a file a section.

mod executor;
mod models;
mod parser;
mod server;
mod tools;

use super::table::Row;

/// The sections, in the order in which they are documented.
const SECTIONS: [&[Row]; 6] = [
    executor::EXECUTOR,
    models::MODELS,
    parser::PARSER,
    server::HTTP_SERVER,
    server::LOGGING,
    tools::TOOLS,
];

/// The table.
pub const ROWS: &[Row] = &joined();

const COUNT: usize = {
    let mut count = 0;
    let mut section = 0;
    while section < SECTIONS.len() {
        count += SECTIONS[section].len();
        section += 1;
    }
    count
};

/// The rows of all sections. Loops by hand, because a constant can not iterate.
const fn joined() -> [Row; COUNT] {
    // Each place is written over; some row has to stand there until then.
    let mut rows = [SECTIONS[0][0]; COUNT];
    let mut filled = 0;
    let mut section = 0;
    while section < SECTIONS.len() {
        let mut place = 0;
        while place < SECTIONS[section].len() {
            rows[filled] = SECTIONS[section][place];
            filled += 1;
            place += 1;
        }
        section += 1;
    }
    rows
}
