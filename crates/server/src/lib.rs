//! The stack over HTTP.
//!
//! A request's way: [`mod@serve`] takes the connection and holds it to its limits, [`front`] refuses
//! what a web page could have sent and what has no business here, [`access`] asks for the token
//! that the route names, and a file under [`routes`] reads the body and hands it to the stack. There
//! is no second way to call a tool in here: [`routes::call`] and [`routes::invoke`] translate, and
//! the stack decides.
//!
//! | module | what it knows |
//! |---|---|
//! | [`config`] | `server:` in the configuration, checked into [`config::Settings`] |
//! | `approved` | calls that were approved and that nobody runs |
//! | [`strikes`] | who sent wrong tokens lately |
//! | [`health`] | whether calls can be protected right now |
//! | [`executor`] | what the routes to the model share: its runs, their defaults and limits |
//! | [`client`] | the other end, for our own command line |
//! | [`shape`] | what goes over the wire, as types |
//! | [`openapi`] | the document of all routes, made of them |
//! | [`running`] | which servers work on a state directory |

pub mod access;
mod approved;
pub mod body;
pub mod client;
pub mod config;
mod connection;
pub mod executor;
pub mod front;
pub mod health;
pub mod limits;
pub mod openapi;
mod receipts;
mod repeats;
pub mod respond;
pub mod routes;
pub mod running;
pub mod serve;
pub mod server;
pub mod shape;
pub mod strikes;
mod windows;

pub use access::Tokens;
pub use config::{ServerConfig, Settings};
pub use executor::{Executor, ExecutorParts, Served};
pub use holdfast_toolbox::token::{self, Token};
pub use serve::{Ended, serve};
pub use server::{Parts, Server};
