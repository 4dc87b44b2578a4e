//! Names and their addresses.
//!
//! A name is asked about once for each connection. All that it answers is checked, and what was
//! checked is what is connected to. So a name that leads to a private address is refused, one that
//! has both kinds is refused, and one that answers differently the next time (DNS rebinding) gains
//! nothing by it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address;

/// Somebody who knows the addresses of names.
#[async_trait]
pub trait Names: Send + Sync {
    /// All addresses of a name.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Whoever this machine asks.
struct System;

#[async_trait]
impl Names for System {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Who is asked about names, and which addresses are out of bounds.
#[derive(Clone)]
pub struct Checked {
    names: Arc<dyn Names>,
    forbidden: fn(IpAddr) -> Option<&'static str>,
}

impl Default for Checked {
    /// This machine's names, and public addresses only.
    fn default() -> Self {
        Self::new(Arc::new(System), address::forbidden)
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checked")
    }
}

/// An address that the rules forbid; how it travels through the library's errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Forbidden(String);

impl Checked {
    /// With these names and this rule, which says why an address is out of bounds.
    pub fn new(names: Arc<dyn Names>, forbidden: fn(IpAddr) -> Option<&'static str>) -> Self {
        Self { names, forbidden }
    }

    /// Whether an address may be connected to, which this host led to.
    pub(crate) fn check(&self, host: &str, address: IpAddr) -> Result<(), Forbidden> {
        match (self.forbidden)(address) {
            None => Ok(()),
            Some(why) => Err(Forbidden(format!(
                "{host} leads to {address}, which is {why}; web.allowedHosts does not name it"
            ))),
        }
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = rule.names.addresses(host).await?;
            // All of them have to be public: which one is taken is not ours to say.
            for address in &found {
                rule.check(host, *address)?;
            }
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            let addresses: Addrs = Box::new(found);
            Ok(addresses)
        })
    }
}
