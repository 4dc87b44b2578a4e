//! One HTTP client that connects to checked addresses only.
//!
//! A name is resolved once, its addresses are checked, and those very addresses are connected to: a
//! name that answers differently the second time (DNS rebinding) is not asked a second time. Redirects
//! are followed here and not by the library, so that each one is checked like the first address.

use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use holdfast_contract::{Cause, Clock, HostRule, PermissionTier, ToolError};
use holdfast_reliability::retry::{TransportCode, parse_retry_after};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};

use crate::limits::{URL_BYTES_MAX, WEB_BODY_BYTES_MAX, WEB_REDIRECTS_MAX};
use crate::names::{Checked, Forbidden};

/// A host and the port, or ports, of it that are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    /// None for those of the web, 80 and 443.
    port: Option<u16>,
}

impl Endpoint {
    /// Reads `host` or `host:port`; an IPv6 address with a port is in brackets.
    ///
    /// ```
    /// use holdfast_web::client::Endpoint;
    /// assert!(Endpoint::parse("wiki.internal:8080").is_ok() && Endpoint::parse("[::1]:80").is_ok());
    /// assert!(Endpoint::parse("http://wiki.internal").is_err() && Endpoint::parse("a:b").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} has to be a host or host:port");
        if text.is_empty() || text.contains(['/', '@', ' ', '*', '?', '#']) {
            return Err(invalid());
        }
        let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            _ if is_bare_v6 => (format!("[{text}]"), None),
            Some((host, port)) if !text.ends_with(']') => {
                let port = port.parse().map_err(|_| invalid())?;
                (host.to_owned(), Some(port))
            }
            _ => (text.to_owned(), None),
        };
        // Spelled as in the addresses that it is compared with.
        let url = Url::parse(&format!("http://{host}/")).map_err(|_| invalid())?;
        let host = url.host_str().ok_or_else(invalid)?.to_owned();
        match url.port() {
            None => Ok(Self { host, port }),
            Some(_) => Err(invalid()),
        }
    }

    fn is(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        let is_port = match self.port {
            Some(_) => port == self.port,
            None => matches!(port, Some(80 | 443)),
        };
        is_port && url.host_str() == Some(self.host.as_str())
    }
}

/// How far a client may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// To public addresses, and to these although they are not.
    Public(Vec<Endpoint>),
    /// To this address's scheme, host and port, which may be private, and nowhere else.
    Origin(Url),
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

/// A client that is built when it is first used: that reads the system's hundreds of certificates.
type Late = LazyLock<Result<Client, String>, Box<dyn FnOnce() -> Result<Client, String> + Send>>;

fn built(late: &Late) -> Result<&Client, ToolError> {
    late.as_ref()
        .map_err(|why| ToolError::coded("no_http_client", why.clone()))
}

/// The client.
#[derive(Debug, Clone)]
pub struct WebClient {
    /// Connects to public addresses only.
    strict: Arc<Late>,
    /// For what was allowed by host and port: a resolver is told no port, so it can not tell them apart.
    open: Arc<Late>,
    reach: Arc<Reach>,
    checked: Checked,
    time: Time,
}

/// The time by which a date is a wait.
#[derive(Clone)]
pub(crate) struct Time(pub(crate) Arc<dyn Clock>);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}

impl WebClient {
    /// A client that goes this far.
    pub fn new(reach: Reach, timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self::with_names(reach, timeout, clock, Checked::default())
    }

    /// The same, which asks these about names.
    pub fn with_names(
        reach: Reach,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        checked: Checked,
    ) -> Self {
        let late = |names: Option<Checked>| {
            let build = move || {
                let mut builder = holdfast_client::builder()
                    // What the model client may speak was not meant for others.
                    .http1_only()
                    .timeout(timeout)
                    // A proxy would resolve the name itself, out of our sight.
                    .no_proxy()
                    .referer(false)
                    .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")));
                if let Some(names) = names {
                    builder = builder.dns_resolver(Arc::new(names));
                }
                let built = builder.build();
                built.map_err(|error| format!("the HTTP client can not be built: {error}"))
            };
            Arc::new(Late::new(Box::new(build)))
        };
        Self {
            strict: late(Some(checked.clone())),
            open: late(None),
            reach: Arc::new(reach),
            checked,
            time: Time(clock),
        }
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

    /// Who may ask for an address, if anybody. Names are checked when they are resolved.
    fn permit(&self, url: &Url) -> Result<&Client, ToolError> {
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
        match self.reach.as_ref() {
            Reach::Origin(own) if own.origin() == url.origin() => return built(&self.open),
            Reach::Origin(own) => {
                let (own, other) = (own.origin(), url.origin());
                return Err(denied(format!(
                    "{} leads to {}, and only the first is asked",
                    own.ascii_serialization(),
                    other.ascii_serialization()
                )));
            }
            Reach::Public(allowed) if allowed.iter().any(|one| one.is(url)) => {
                return built(&self.open);
            }
            Reach::Public(_) => {}
        }
        // Whatever a resolver makes of it, this name is this host (RFC 6761).
        let name = host.trim_end_matches('.');
        if name == "localhost" || name.ends_with(".localhost") {
            return Err(denied(format!(
                "{host} is loopback; web.allowedHosts does not name it"
            )));
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse() {
            let allowed = self.checked.check(host, address);
            allowed.map_err(|error| denied(error.to_string()))?;
        }
        built(&self.strict)
    }

    /// Fetches a page, following redirects as far as the rule for hosts goes.
    pub async fn get(
        &self,
        url: Url,
        headers: &HeaderMap,
        hosts: Option<&HostRule>,
    ) -> Result<Page, ToolError> {
        let mut url = url;
        let mut headers = headers.clone();
        for _ in 0..=WEB_REDIRECTS_MAX {
            let client = self.permit(&url)?;
            let host = url.host_str().unwrap_or_default();
            if hosts.is_some_and(|hosts| !hosts.allows(host)) {
                let why = format!("the tool's manifest does not allow the host {host:?}");
                return Err(denied(why));
            }
            let asked = client.get(url.clone()).headers(headers.clone());
            let answer = asked.send().await.map_err(|error| self.failed(&error))?;
            let Some(next) = next_of(&answer, &url) else {
                return page(answer, &self.time).await;
            };
            let next = next?;
            // What was meant for one server is not handed to another, also not on the same host.
            if next.origin() != url.origin() {
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

impl WebClient {
    /// What a failed request means for who gave the address.
    fn failed(&self, error: &reqwest::Error) -> ToolError {
        match (failed(error), self.reach.as_ref()) {
            (
                ToolError::ExecutionError {
                    message,
                    cause: Cause::Transport { code },
                },
                Reach::Public(_),
            ) if code == TransportCode::NotFound.as_str() => ToolError::ExecutionError {
                message: format!("the name can not be looked up: {message}"),
                cause: Cause::NoSuchAddress { code },
            },
            (other, _) => other,
        }
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

async fn page(mut answer: Response, time: &Time) -> Result<Page, ToolError> {
    let status = answer.status();
    if !status.is_success() {
        let retry_after_ms = retry_after_ms(answer.headers(), time);
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

/// The wait that an answer asks for, if it does: `Retry-After` in seconds, or until a date.
pub(crate) fn retry_after_ms(headers: &HeaderMap, time: &Time) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    parse_retry_after(text, time.0.now_ms())
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
    let io = reason.downcast_ref::<io::Error>().map(io::Error::kind);
    ToolError::transport(code_of(error, io).as_str(), reason.to_string())
}

/// The code by which the retry layer knows a failure. One that came while connecting gets a code that
/// says so: nothing was sent, and another attempt is safe for every tool.
fn code_of(error: &reqwest::Error, io: Option<io::ErrorKind>) -> TransportCode {
    let known = io.and_then(TransportCode::from_io_kind);
    if error.is_timeout() {
        return TransportCode::TimedOut;
    }
    if error.is_connect() {
        return match (io, known) {
            // Look-ups fail with errors of no particular kind.
            (Some(_), None) => TransportCode::NotFound,
            (_, Some(TransportCode::AddrNotAvail)) => TransportCode::AddrNotAvail,
            _ => TransportCode::ConnRefused,
        };
    }
    // Closed before the answer was whole, or cut off in a way that leaves no sense: the answer is lost,
    // whatever the library calls it.
    known.unwrap_or(TransportCode::ConnReset)
}
