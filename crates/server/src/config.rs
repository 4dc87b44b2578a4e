//! `server:` in the configuration: read as written, then checked into [`Settings`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use holdfast_reliability::config::ConfigProblem;
use http::{Uri, header::HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::Bounds;
use crate::front::HostRule;
use crate::limits;

/// Where the server listens unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:8001";
/// No time limit is longer than a day.
const MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// No count is larger than this.
const COUNT_MAX: usize = 100_000;

/// `server:` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address and port. Anything but a loopback address needs a token that was configured.
    pub listen: String,
    /// A file with the token for tool calls, instead of the one made in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// A file with the token for admin actions, instead of the one made in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_file: Option<String>,
    /// Names under which clients may address the server, besides loopback ones and its own address.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may talk to the server, such as `https://console.example.org`.
    pub allowed_origins: Vec<String>,
    /// The largest request body.
    pub body_bytes_max: usize,
    /// The largest request head.
    pub head_bytes_max: usize,
    /// Time for a request's head, and idle time before it.
    pub head_ms_max: u64,
    /// Time from the end of an answer to the end of the next request's head, in place of `headMsMax`: for
    /// connections that are kept open between requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms_max: Option<u64>,
    /// Time for a request's body.
    pub body_ms_max: u64,
    /// Time in which a client takes nothing of its answer.
    pub write_stall_ms_max: u64,
    /// Open connections.
    pub connections_max: usize,
    /// Tool calls at once.
    pub calls_max: usize,
    /// Time for calls in flight when the server is told to end.
    pub shutdown_ms_max: u64,
    /// Wrong tokens of one peer within a minute.
    pub wrong_tokens_max: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: LISTEN.to_owned(),
            token_file: None,
            admin_token_file: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_bytes_max: limits::BODY_BYTES_MAX,
            head_bytes_max: limits::HEAD_BYTES_MAX,
            head_ms_max: limits::HEAD_MS_MAX,
            idle_ms_max: None,
            body_ms_max: limits::BODY_MS_MAX,
            write_stall_ms_max: limits::WRITE_STALL_MS_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            calls_max: limits::CALLS_MAX,
            shutdown_ms_max: limits::SHUTDOWN_MS_MAX,
            wrong_tokens_max: limits::WRONG_TOKENS_MAX,
        }
    }
}

/// The settings, checked: what is in here can be used as it is.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Which Host headers are ours.
    pub hosts: HostRule,
    /// Origins that may talk to us.
    pub origins: Vec<HeaderValue>,
    /// The largest request body.
    pub body_bytes_max: usize,
    /// The largest request head.
    pub head_bytes_max: usize,
    /// Time for a request's head.
    pub head_time: Duration,
    /// Time from the end of an answer to the end of the next head, where it is another than that.
    pub idle_time: Option<Duration>,
    /// Time for a request's body.
    pub body_time: Duration,
    /// Time in which a client takes nothing.
    pub write_stall_time: Duration,
    /// Open connections.
    pub connections_max: usize,
    /// Tool calls at once.
    pub calls_max: usize,
    /// Time for calls in flight at the end.
    pub shutdown_time: Duration,
    /// Wrong tokens of one peer within a window.
    pub wrong_tokens_max: u32,
}

impl Settings {
    /// What every body is held to.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            bytes_max: self.body_bytes_max,
            time: self.body_time,
        }
    }

    /// Whether only programs on this machine can reach the server.
    pub fn is_local(&self) -> bool {
        self.listen.ip().is_loopback()
    }
}

impl ServerConfig {
    /// Everything that is wrong with it.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        self.settings().err().unwrap_or_default()
    }

    /// Checks it.
    pub fn settings(&self) -> Result<Settings, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let listen = self.listen.parse::<SocketAddr>().unwrap_or_else(|_| {
            problems.push(ConfigProblem::new(
                "server.listen",
                format!(
                    "has to be an address and a port such as {LISTEN}, not {:?}",
                    self.listen
                ),
            ));
            SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 0)
        });
        let mut origins = Vec::new();
        for origin in &self.allowed_origins {
            match checked_origin(origin) {
                Some(value) => origins.push(value),
                None => problems.push(ConfigProblem::new(
                    "server.allowedOrigins",
                    format!("{origin:?} is no origin; one looks like https://console.example.org"),
                )),
            }
        }
        for host in &self.allowed_hosts {
            if !is_host(host) {
                problems.push(ConfigProblem::new(
                    "server.allowedHosts",
                    format!("{host:?} is no host name or address; leave the port out"),
                ));
            }
        }
        self.check_numbers(&mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Settings {
            listen,
            hosts: HostRule::new(listen.ip(), &self.allowed_hosts),
            origins,
            body_bytes_max: self.body_bytes_max,
            head_bytes_max: self.head_bytes_max,
            head_time: Duration::from_millis(self.head_ms_max),
            idle_time: self.idle_ms_max.map(Duration::from_millis),
            body_time: Duration::from_millis(self.body_ms_max),
            write_stall_time: Duration::from_millis(self.write_stall_ms_max),
            connections_max: self.connections_max,
            calls_max: self.calls_max,
            shutdown_time: Duration::from_millis(self.shutdown_ms_max),
            wrong_tokens_max: self.wrong_tokens_max,
        })
    }

    fn check_numbers(&self, problems: &mut Vec<ConfigProblem>) {
        let mut check = |name: &str, value: u64, min: u64, max: u64| {
            if !(min..=max).contains(&value) {
                problems.push(ConfigProblem::new(
                    format!("server.{name}"),
                    format!("has to be between {min} and {max}"),
                ));
            }
        };
        let (count_max, body_max) = (COUNT_MAX as u64, limits::BODY_BYTES_MAX as u64);
        check("bodyBytesMax", self.body_bytes_max as u64, 1, body_max);
        let head_min = limits::HEAD_BYTES_MIN as u64;
        check(
            "headBytesMax",
            self.head_bytes_max as u64,
            head_min,
            body_max,
        );
        check("headMsMax", self.head_ms_max, 1, MS_MAX);
        check("idleMsMax", self.idle_ms_max.unwrap_or(1), 1, MS_MAX);
        check("bodyMsMax", self.body_ms_max, 1, MS_MAX);
        check("writeStallMsMax", self.write_stall_ms_max, 1, MS_MAX);
        check("connectionsMax", self.connections_max as u64, 1, count_max);
        check("callsMax", self.calls_max as u64, 1, count_max);
        check("shutdownMsMax", self.shutdown_ms_max, 0, MS_MAX);
        check("wrongTokensMax", self.wrong_tokens_max.into(), 1, count_max);
    }
}

/// An origin is a scheme, a host and perhaps a port; nothing may follow.
fn checked_origin(text: &str) -> Option<HeaderValue> {
    let uri = text.parse::<Uri>().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    (text == format!("{scheme}://{authority}")).then(|| HeaderValue::from_str(text).ok())?
}

fn is_host(text: &str) -> bool {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || (!text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_fine_and_local() {
        let settings = ServerConfig::default().settings().expect("no problem");
        assert!(settings.is_local());
    }

    #[test]
    fn what_can_not_be_is_named() {
        let config = ServerConfig {
            listen: "localhost".to_owned(),
            allowed_hosts: vec!["a.example".to_owned(), "b.example:80".to_owned()],
            allowed_origins: vec![
                "https://ok.example:8443".to_owned(),
                "https://bad.example/path".to_owned(),
                "null".to_owned(),
            ],
            head_bytes_max: 100,
            calls_max: 0,
            body_bytes_max: usize::MAX,
            ..ServerConfig::default()
        };
        let problems: Vec<String> = config
            .problems()
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        assert_eq!(
            problems,
            [
                "server.listen",
                "server.allowedOrigins",
                "server.allowedOrigins",
                "server.allowedHosts",
                "server.bodyBytesMax",
                "server.headBytesMax",
                "server.callsMax",
            ]
        );
    }
}
