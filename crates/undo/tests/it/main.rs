//! What the store promises, shown with real files.

mod attack;
mod basics;
mod conflict;
mod kill;
mod limits;
mod overlap;
mod property;
mod tree;
