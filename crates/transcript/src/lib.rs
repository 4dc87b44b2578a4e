//! Session transcripts of agents: read, check and repair them, whoever wrote them.
//!
//! One result without its call makes a provider refuse every further request of a session. This
//! crate finds such faults at the speed of reading, says what a provider would answer, and mends
//! them without touching a healthy byte.
//!
//! | module | what it does |
//! |---|---|
//! | [`json`] | finds members in JSON and checks the rest, without building values |
//! | [`format`](mod@format) | the formats, and which one a text is in |
//! | `foreign` | formats that are known by their names and not read |
//! | [`adapter`] | one file a format: where ids, parents, calls and results are |
//! | [`seen`] | what an adapter finds in an entry |
//! | `stand_in` | what stands in for a result that was lost |
//! | `lines` | whole lines from a source |
//! | `sniff` | what a source is in, told from its first entries |
//! | [`read`] | bytes in, entries out |
//! | `document` | the list in one JSON document, and where it goes on behind a fault |
//! | [`index`] | a session in 32 bytes an entry |
//! | [`check`] | the rules, on every branch |
//! | [`finding`] | what is wrong, in words |
//! | `host` | what each agent does about it by itself, and what a provider answers |
//! | [`values`] | the same rules for messages in memory |
//! | [`plan`] | repair, decided: entries in, edits out |
//! | `render` | a plan made into text |
//! | [`write`](mod@write) | repair, done: backup, whole new file, same owner and mode |
//! | [`store`] | `OpenClaw`'s database, read and repaired |
//! | [`scan`](mod@scan) | a file in, findings and repairs out |
//! | `unread` | files that were sessions, of which nothing can be read |
//! | [`checkpoint`](mod@checkpoint) | points to come back to, roll back, archive and reset |
//! | [`incident`](mod@incident) | the incident log |
//! | [`live`] | what the host of a session in use can be asked to change |
//! | [`discover`] | where agents keep their sessions |
//! | [`history`] | a session as turns, answers, calls and results |
//! | [`audit`] | what loops, duplicates and orphans cost |

pub mod adapter;
pub mod audit;
pub mod check;
pub mod checkpoint;
mod chunks;
pub mod discover;
mod document;
pub mod finding;
mod foreign;
pub mod format;
pub mod glued;
pub mod history;
mod host;
pub mod incident;
pub mod index;
pub mod json;
pub mod limits;
mod lines;
pub mod live;
pub mod plan;
pub mod read;
mod render;
pub mod scan;
pub mod seen;
mod sniff;
mod stand_in;
pub mod store;
mod time;
mod unread;
pub mod values;
pub mod write;

pub use check::Fault;
pub use finding::Finding;
pub use format::Format;
pub use plan::Strategy;
pub use values::{PairingIssue, validate_tool_result_pairing};
