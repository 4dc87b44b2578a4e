//! Many processes, one Redis, and everything that can go wrong with either: every effect at most
//! once, every intent settled, nobody left waiting, and a history that an independent checker finds
//! to be that of one atomic record a key.
//!
//! `HOLDFAST_CHAOS_INTENTS` sets the number of intents (2,000 by default).

mod checker;
mod crowd;
mod history;
mod planted;
mod worker;
