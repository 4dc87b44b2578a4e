//! Where traces go.

use std::collections::BTreeMap;
use std::fmt;

use holdfast_contract::redact::REDACTED;
use holdfast_reliability::config::ConfigProblem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The longest time limit of one request to the collector.
pub(crate) const OTLP_TIMEOUT_MS_MAX: u64 = 60_000;
/// Where a collector listens unless told otherwise.
const ENDPOINT_DEFAULT: &str = "http://127.0.0.1:4318";
/// The time limit of one request to the collector.
const OTLP_TIMEOUT_MS_DEFAULT: u64 = 5_000;

/// A collector that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct OtlpConfig {
    /// The collector's address, `http://` only; spans are posted to `/v1/traces` below it.
    pub(crate) endpoint: String,
    /// What the traces are filed under: the resource's `service.name`.
    pub(crate) service_name: String,
    /// The time limit of one request to the collector.
    pub(crate) timeout_ms: u64,
    /// Headers of each request, such as a token. Values are never shown again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Secret>,
}

impl Default for OtlpConfig {
    fn default() -> Self {
        Self {
            endpoint: ENDPOINT_DEFAULT.to_owned(),
            service_name: "holdfast".to_owned(),
            timeout_ms: OTLP_TIMEOUT_MS_DEFAULT,
            headers: BTreeMap::new(),
        }
    }
}

/// A text that can be read from the configuration and is not written anywhere.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    /// The text itself, for the one who needs it.
    #[cfg_attr(
        all(not(feature = "otlp"), not(test)),
        expect(dead_code, reason = "only the exporter sends it")
    )]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl OtlpConfig {
    /// Where spans are posted.
    #[cfg_attr(
        all(not(feature = "otlp"), not(test)),
        expect(dead_code, reason = "only the exporter posts")
    )]
    pub(crate) fn traces_url(&self) -> String {
        let base = self.endpoint.trim_end_matches('/');
        if base.ends_with("/v1/traces") {
            base.to_owned()
        } else {
            format!("{base}/v1/traces")
        }
    }

    /// Everything that is wrong with the values. None of the reasons repeats a secret.
    pub(crate) fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut wrong = |field: &str, reason: String| {
            problems.push(ConfigProblem::new(
                format!("observability.otlp.{field}"),
                reason,
            ));
        };
        if !cfg!(feature = "otlp") {
            wrong(
                "endpoint",
                "this build can not send traces; build it with `--features otlp`".to_owned(),
            );
        }
        if let Some(reason) = endpoint_problem(&self.endpoint) {
            wrong("endpoint", reason.to_owned());
        }
        if self.service_name.trim().is_empty() {
            wrong("serviceName", "must not be empty".to_owned());
        }
        if !(1..=OTLP_TIMEOUT_MS_MAX).contains(&self.timeout_ms) {
            wrong(
                "timeoutMs",
                format!("has to be between 1 and {OTLP_TIMEOUT_MS_MAX}"),
            );
        }
        for (name, value) in &self.headers {
            if name.is_empty() || !name.bytes().all(is_token_byte) {
                wrong("headers", format!("{name:?} is not a header's name"));
            } else if !value.0.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
                wrong(
                    &format!("headers.{name}"),
                    "has to be printable ASCII".to_owned(),
                );
            }
        }
        problems
    }
}

fn endpoint_problem(endpoint: &str) -> Option<&'static str> {
    if endpoint.starts_with("https://") {
        return Some(
            "has to begin with http://: TLS is left to a collector beside this process, \
             which sends on from there",
        );
    }
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return Some("has to begin with http://");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Some("must not hold a user or a password; use headers");
    }
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, port)| {
            // The last colon of a bare IPv6 address is not in front of a port.
            if port.parse::<u16>().is_ok() {
                host
            } else {
                authority
            }
        });
    let well_formed = !host.is_empty()
        && (host.starts_with('[') && host.ends_with(']') || !host.contains(':'))
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'));
    (!well_formed).then_some("is not an address such as http://127.0.0.1:4318")
}

/// The bytes of an HTTP token.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> OtlpConfig {
        OtlpConfig {
            endpoint: text.to_owned(),
            ..OtlpConfig::default()
        }
    }

    #[test]
    fn endpoints_are_plain_http_without_credentials() {
        for good in [
            "http://127.0.0.1:4318",
            "http://collector/",
            "http://[::1]:4318/otlp",
        ] {
            assert_eq!(endpoint_problem(good), None, "{good}");
        }
        for bad in [
            "",
            "127.0.0.1:4318",
            "https://collector",
            "http://",
            "http://:4318",
            "http://user:pw@collector",
            "http://a b",
            "http://host:99999",
            "http://host?x=1",
        ] {
            assert!(endpoint_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn spans_go_below_the_endpoint() {
        for (from, to) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c/otlp/", "http://c/otlp/v1/traces"),
            ("http://c/v1/traces", "http://c/v1/traces"),
        ] {
            assert_eq!(endpoint(from).traces_url(), to);
        }
    }

    #[test]
    fn a_header_is_read_and_never_written() {
        let config: OtlpConfig =
            serde_json::from_str(r#"{"headers": {"x-team": "plain words"}}"#).unwrap();
        assert_eq!(config.headers["x-team"].reveal(), "plain words");
        let shown = serde_json::to_string(&config).unwrap() + &format!("{config:?}");
        assert!(!shown.contains("plain words"), "{shown}");
        assert!(shown.contains(REDACTED));
    }

    #[test]
    fn a_build_without_the_exporter_refuses_to_be_asked() {
        let can_send = cfg!(feature = "otlp");
        assert_eq!(OtlpConfig::default().problems().is_empty(), can_send);
    }

    #[test]
    fn problems_name_the_place_and_not_the_secret() {
        let config: OtlpConfig = serde_json::from_str(
            r#"{"headers": {"x-team": "bad\nvalue", "not a name": "x"}, "timeoutMs": 0, "serviceName": " "}"#,
        )
        .unwrap();
        let said: Vec<String> = config.problems().iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        for place in ["headers.x-team", "not a name", "timeoutMs", "serviceName"] {
            assert!(said.contains(place), "{place} in {said}");
        }
        assert!(!said.contains("value\n") && !said.contains("bad"), "{said}");
    }
}
