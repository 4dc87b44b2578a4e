//! A server on loopback that nobody is to reach.

use std::net::TcpListener;

/// A server on every address of this host that the corpus names, which counts who comes by.
pub(crate) struct Watched {
    pub(crate) port: u16,
    listeners: Vec<TcpListener>,
}

impl Watched {
    pub(crate) fn start() -> Self {
        let first = TcpListener::bind("127.0.0.1:0").expect("binds");
        let port = first.local_addr().expect("an address").port();
        // A machine may be without IPv6.
        let others = ["127.255.255.254", "::1"].map(|host| TcpListener::bind((host, port)));
        let listeners: Vec<TcpListener> = std::iter::once(first)
            .chain(others.into_iter().flatten())
            .collect();
        for listener in &listeners {
            listener.set_nonblocking(true).expect("set");
        }
        Self { port, listeners }
    }

    /// How many have come since the last look.
    pub(crate) fn connections(&self) -> usize {
        let accepted = |it: &TcpListener| std::iter::from_fn(|| it.accept().ok()).count();
        self.listeners.iter().map(accepted).sum()
    }

    /// The same address with the port of this server, however its host is spelt.
    pub(crate) fn aimed(&self, url: &str) -> Option<String> {
        let (scheme, rest) = url.split_once("://")?;
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let end = rest.find(['/', '#', '?', '\\']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host,
            _ => host,
        };
        Some(format!("{scheme}://{host}:{}{path}", self.port))
    }
}
