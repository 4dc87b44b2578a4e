//! One HTTP client that connects to checked addresses only.
//!
//! A name is resolved once, its addresses are checked, and those very addresses are connected to: a
//! name that answers differently the second time (DNS rebinding) is not asked a second time. Redirects
//! are followed here and not by the library, so that each one is checked like the first address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{PermissionTier, ToolError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use crate::address::forbidden;
use crate::limits::{URL_BYTES_MAX, WEB_BODY_BYTES_MAX, WEB_REDIRECTS_MAX};

/// Which addresses may be reached although they are not public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Hosts as they are written in an address: names and literal addresses.
    pub hosts: Vec<String>,
}

impl Allowed {
    fn has(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(host))
    }
}

/// What came back.
#[derive(Debug)]
pub struct Page {
    /// Where it came from in the end.
    pub url: Url,
    /// What it says it is, without parameters.
    pub content_type: String,
    /// The character set it names.
    pub charset: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The client.
#[derive(Debug, Clone)]
pub struct WebClient {
    client: Client,
    allowed: Arc<Allowed>,
}

/// An address that the rules forbid; how it travels through the library's errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Forbidden(String);

struct Checked {
    allowed: Arc<Allowed>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if !allowed.has(&host) {
                // All of them have to be public: which one is taken is not ours to say.
                for address in &found {
                    check(&host, address.ip())?;
                }
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

fn check(host: &str, address: IpAddr) -> Result<(), Forbidden> {
    match forbidden(address) {
        None => Ok(()),
        Some(why) => Err(Forbidden(format!(
            "{host} leads to {address}, which is {why}; web.allowedHosts does not name it"
        ))),
    }
}

impl WebClient {
    /// A client with these exceptions.
    pub fn new(allowed: Allowed, timeout: Duration) -> Result<Self, String> {
        let allowed = Arc::new(allowed);
        let client = Client::builder()
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            // A proxy would resolve the name itself, out of our sight.
            .no_proxy()
            .referer(false)
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Checked {
                allowed: allowed.clone(),
            }))
            .build()
            .map_err(|error| format!("the HTTP client can not be built: {error}"))?;
        Ok(Self { client, allowed })
    }

    /// An address as it was written, checked as far as that goes without asking anybody.
    pub fn checked_url(&self, text: &str) -> Result<Url, ToolError> {
        let invalid = |why: String| ToolError::invalid(Some("/url"), why);
        if text.len() > URL_BYTES_MAX {
            return Err(invalid(format!(
                "`url` is longer than {URL_BYTES_MAX} bytes"
            )));
        }
        let url = Url::parse(text.trim())
            .map_err(|error| invalid(format!("`url` can not be read: {error}")))?;
        self.permit(&url)?;
        Ok(url)
    }

    /// Whether an address may be asked for. Names are checked when they are resolved.
    fn permit(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(denied(format!(
                "only http and https are fetched, not {}",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(denied("an address must not carry credentials".to_owned()));
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(denied("the address names no host".to_owned()));
        };
        if self.allowed.has(host) {
            return Ok(());
        }
        // Whatever a resolver makes of it, this name is this host (RFC 6761).
        let name = host.trim_end_matches('.');
        if name == "localhost" || name.ends_with(".localhost") {
            return Err(denied(format!(
                "{host} is loopback; web.allowedHosts does not name it"
            )));
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        match literal.parse() {
            Ok(address) => check(host, address).map_err(|error| denied(error.to_string())),
            Err(_) => Ok(()),
        }
    }

    /// Fetches a page, following redirects.
    pub async fn get(&self, url: Url, headers: &HeaderMap) -> Result<Page, ToolError> {
        let mut url = url;
        let mut headers = headers.clone();
        for _ in 0..=WEB_REDIRECTS_MAX {
            self.permit(&url)?;
            let asked = self.client.get(url.clone()).headers(headers.clone());
            let answer = asked.send().await.map_err(|error| failed(&error))?;
            let Some(next) = next_of(&answer, &url) else {
                return page(answer).await;
            };
            let next = next?;
            // What was meant for one host is not handed to another.
            if next.host_str() != url.host_str() || next.scheme() != url.scheme() {
                let accept = headers.remove(ACCEPT);
                headers = accept.map(|value| (ACCEPT, value)).into_iter().collect();
            }
            url = next;
        }
        Err(ToolError::coded(
            "too_many_redirects",
            format!("more than {WEB_REDIRECTS_MAX} redirects"),
        ))
    }
}

/// Where an answer sends us on to, if it does.
fn next_of(answer: &Response, url: &Url) -> Option<Result<Url, ToolError>> {
    let moved = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if !moved.contains(&answer.status()) {
        return None;
    }
    let target = answer.headers().get(LOCATION)?;
    let read = target.to_str().ok().and_then(|text| url.join(text).ok());
    Some(read.ok_or_else(|| {
        ToolError::coded("bad_redirect", "a redirect leads nowhere that can be read")
    }))
}

async fn page(mut answer: Response) -> Result<Page, ToolError> {
    let status = answer.status();
    if !status.is_success() {
        let retry_after_ms = retry_after_ms(answer.headers());
        let message = format!("{} answered {status}", answer.url());
        return Err(ToolError::http(status.as_u16(), retry_after_ms, message));
    }
    let named = answer.headers().get(CONTENT_TYPE);
    let named = named
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let (kind, parameters) = named.split_once(';').unwrap_or((&named, ""));
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("charset");
        is_it.then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    });
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > WEB_BODY_BYTES_MAX {
            let message = format!("the answer is larger than {WEB_BODY_BYTES_MAX} bytes");
            return Err(ToolError::coded("too_large", message));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Page {
        url: answer.url().clone(),
        content_type: kind.trim().to_ascii_lowercase(),
        charset,
        body,
    })
}

/// `Retry-After` in seconds; dates are left to the retry layer's own backoff.
pub(crate) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse::<u64>().ok()?.checked_mul(1000)
}

pub(crate) fn denied(reason: String) -> ToolError {
    ToolError::PermissionDenied {
        tier: PermissionTier::Elevated,
        reason,
    }
}

/// What a failed request means. The innermost reason says the most.
pub(crate) fn failed(error: &reqwest::Error) -> ToolError {
    let mut reason: &dyn std::error::Error = error;
    loop {
        if let Some(rule) = reason.downcast_ref::<Forbidden>() {
            return denied(rule.to_string());
        }
        let Some(source) = reason.source() else { break };
        reason = source;
    }
    let code = if error.is_timeout() {
        "ETIMEDOUT"
    } else if let Some(io) = reason.downcast_ref::<std::io::Error>() {
        match io.kind() {
            std::io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
            std::io::ErrorKind::ConnectionReset => "ECONNRESET",
            _ if error.is_connect() => "ENOTFOUND",
            _ => "EIO",
        }
    } else if error.is_connect() {
        "ECONNREFUSED"
    } else {
        "EPROTO"
    };
    ToolError::transport(code, reason.to_string())
}
