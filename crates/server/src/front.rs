//! The front door: what a web page could have sent does not get in.
//!
//! A page in a browser can make it send requests to this machine, with a Host header that is the
//! page's own name when it has rebound it to our address, and with an Origin header that names the
//! page. So both have to be ours or allowed, on every route and before anything else is looked at.

use std::net::IpAddr;

use axum::extract::Request;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, HOST,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, StatusCode};

use crate::respond::{Refusal, text_response};

/// Which Host headers are ours.
#[derive(Debug, Clone)]
pub struct HostRule {
    /// Lower case, without ports and brackets.
    allowed: Vec<String>,
}

impl HostRule {
    /// Loopback names, the address we listen on, and what was configured.
    pub fn new(listen: IpAddr, configured: &[String]) -> Self {
        let mut allowed = vec!["localhost".to_owned()];
        if !listen.is_unspecified() {
            allowed.push(listen.to_string());
        }
        allowed.extend(
            configured
                .iter()
                .map(|name| bare(name).to_ascii_lowercase()),
        );
        Self { allowed }
    }

    /// Whether a Host header names us.
    pub fn allows(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else {
            return false;
        };
        // What everybody sends, without a parse.
        if name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let name = bare(name);
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        is_loopback
            || self
                .allowed
                .iter()
                .any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A host without its port; nothing for one whose port is no number.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')? + 2;
            (&host[..end], host[end..].strip_prefix(':'))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_whole = port.map_or(name.len(), |port| name.len() + 1 + port.len()) == host.len();
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (!name.is_empty() && is_whole && port_fits).then_some(name)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name)
}

/// The front door's rules.
#[derive(Debug, Clone)]
pub struct Front {
    /// Which Host headers are ours.
    pub hosts: HostRule,
    /// Which web pages may talk to us.
    pub origins: Vec<HeaderValue>,
}

impl Front {
    /// Lets a request in, or says why not.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        self.check_host(request)?;
        match one(request.headers(), &ORIGIN)? {
            Some(origin) if !self.origins.contains(origin) => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "forbidden_origin",
                "Requests from web pages are refused; `server.allowedOrigins` lists those that are not",
            )),
            _ => Ok(()),
        }
    }

    fn check_host(&self, request: &Request) -> Result<(), Refusal> {
        let header = one(request.headers(), &HOST)?;
        // An absolute request target replaces the header, so it has to be ours as well.
        let target = request.uri().authority().map(http::uri::Authority::as_str);
        let host = match (header, target) {
            (None, None) => return Err(Refusal::invalid("A Host header is required")),
            (Some(value), _) => value.to_str().unwrap_or_default(),
            (None, Some(target)) => target,
        };
        if self.hosts.allows(host) && target.is_none_or(|target| self.hosts.allows(target)) {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "forbidden_host",
            "This is not the name of this server; `server.allowedHosts` lists its further names",
        ))
    }

    /// Answers a browser that asks whether an allowed page may send a request.
    pub fn preflight(&self, request: &Request) -> Option<Response> {
        let asks = request.method() == Method::OPTIONS
            && request
                .headers()
                .contains_key("access-control-request-method");
        asks.then(|| {
            let mut response = text_response(StatusCode::NO_CONTENT, Vec::new());
            let headers = response.headers_mut();
            headers.insert(
                ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static("GET, POST"),
            );
            headers.insert(
                ACCESS_CONTROL_ALLOW_HEADERS,
                HeaderValue::from_static("authorization, content-type, idempotency-key"),
            );
            response
        })
    }

    /// Lets the allowed page see the answer.
    pub fn mark(&self, origin: Option<HeaderValue>, response: &mut Response) {
        if let Some(origin) = origin {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(VARY, HeaderValue::from_static("origin"));
        }
    }
}

/// A header that may be there once. Two of them would let two readers see different things.
pub(crate) fn one<'a>(
    headers: &'a HeaderMap,
    name: &http::HeaderName,
) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (found, None) => Ok(found),
        (_, Some(_)) => Err(Refusal::invalid(format!("More than one {name} header"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let rule = HostRule::new(
            "192.0.2.7".parse().expect("an address"),
            &["Tools.example.org".to_owned(), "[2001:db8::7]".to_owned()],
        );
        for ours in [
            "localhost",
            "LOCALHOST:8001",
            "127.0.0.1",
            "127.0.0.1:65535",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:8001",
            "192.0.2.7:8001",
            "tools.example.org:80",
            "[2001:db8::7]:80",
        ] {
            assert!(rule.allows(ours), "{ours}");
        }
        for foreign in [
            "",
            ":8001",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:127.0.0.1",
            "localhost:",
            "localhost:99999",
            "localhost:80:80",
            "localhost@evil.example",
            "[::1",
            "[::1]x:1",
            "[::1]80",
            "192.0.2.8",
            "0.0.0.0",
        ] {
            assert!(!rule.allows(foreign), "{foreign}");
        }
    }
}
