//! What tools reach over HTTP.
//!
//! | module | what it does |
//! |---|---|
//! | [`address`] | which addresses no tool may reach |
//! | [`names`] | names, and which of their addresses are connected to |
//! | [`client`] | one HTTP client: connects to checked addresses only, follows redirects by itself |
//! | [`fetch`] | the tool `web_fetch` |
//! | [`channel`] | a webhook and the gateway as channels for messages and prompts |
//! | [`page`] | a page as readable Markdown |
//! | `tidy` | a page's tags in order, so that no page is too much for the readers |
//! | [`search`] | the tool `web_search`, and whom it asks |
//! | [`gateway`] | tools of the `OpenClaw` gateway behind the same trait |
//! | `known` | the tier and the effect of the gateway's tools |
//! | `schemas` | the arguments of the gateway's tools |
//! | `files` | which paths among a gateway's arguments lead out of the workspace |
//! | [`config`] | `web:` and `gateway:` in the configuration |

pub mod address;
pub mod channel;
pub mod client;
pub mod config;
pub mod fetch;
mod files;
pub mod gateway;
mod hands_on;
mod known;
pub mod limits;
pub mod names;
pub mod page;
mod schemas;
pub mod search;
mod tidy;

pub use channel::HttpChannel;
pub use config::{ChannelConfig, GatewayConfig, WebConfig};
pub use fetch::WebFetchTool;
pub use gateway::{GatewayClient, GatewayTool};
pub use search::WebSearchTool;
