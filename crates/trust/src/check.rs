//! L2: a call against its tool's manifest.

use holdfast_contract::{HostRule, Trust};
use serde_json::Value;
use url::{Host, Url};

use crate::capability::{Capability, Grant};
use crate::manifest::Manifest;

/// How deep the arguments of a tool may be nested whose manifest names hosts or paths. What is
/// deeper can not be looked at whole, and is refused.
pub const ARGUMENT_DEPTH_MAX: usize = 16;
/// Names of arguments that hold paths.
const PATH_NAMES: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "file",
    "paths",
    "files",
    "dir",
    "directory",
    "cwd",
    "working_dir",
    "workingDir",
    "workdir",
];
/// How the names of arguments end that hold addresses: `url`, `targetUrl`, `base_uri` …
const ADDRESS_NAME_ENDS: &[&str] = &["url", "urls", "uri", "uris", "href"];

/// What is known of a call.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The tool's manifest.
    pub manifest: &'a Manifest,
    /// What is granted.
    pub grants: &'a [Grant],
    /// The arguments.
    pub arguments: &'a Value,
    /// The trust of the session's content.
    pub input_trust: Trust,
    /// Calls of this tool by the session within the last minute, this one not counted.
    pub calls_last_minute: u32,
}

/// What a call may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Its tool names no capability at all.
    #[error("its manifest names no capability, and what is not named is denied")]
    NothingDeclared,
    /// A capability that is not granted.
    #[error("it needs {0}, which is not granted")]
    NotGranted(Capability),
    /// An address elsewhere.
    #[error("its manifest does not allow the host {0:?}")]
    Domain(String),
    /// A path elsewhere.
    #[error("its manifest does not allow the path {0:?}")]
    Path(String),
    /// Something is nested so deep that nobody looks at it.
    #[error(
        "its manifest names hosts or paths, and its arguments are nested deeper than {ARGUMENT_DEPTH_MAX} levels"
    )]
    TooDeep,
    /// Too much.
    #[error("its manifest allows {max} bytes of arguments, and these are {found}")]
    ArgumentBytes {
        /// What there is.
        found: usize,
        /// What may be.
        max: usize,
    },
    /// Too often.
    #[error("its manifest allows {0} calls a minute")]
    TooOften(u32),
    /// The session has read what is trusted too little.
    #[error("it takes content trusted as {needs} at least, and this session has read {has} content", needs = .needs.as_str(), has = .has.as_str())]
    InputTrust {
        /// What it takes.
        needs: Trust,
        /// What there is.
        has: Trust,
    },
}

/// Everything that speaks against a call: first what nobody can lift, the trust of its input last.
pub fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let Facts {
        manifest, grants, ..
    } = *facts;
    let mut found = Vec::new();
    if manifest.capabilities.is_empty() {
        found.push(Violation::NothingDeclared);
    }
    let needs = manifest.capabilities.iter();
    let missing = needs.filter(|need| !grants.iter().any(|grant| grant.covers(need)));
    found.extend(missing.cloned().map(Violation::NotGranted));
    if !manifest.domains.is_empty() || !manifest.paths.is_empty() {
        let seen = walk(facts.arguments, None, 0, &mut |name, text| {
            found.extend(misplaced(manifest, name, text));
        });
        if seen == Seen::InPart {
            found.push(Violation::TooDeep);
        }
    }
    found.extend(beyond_limits(facts));
    let lowest = manifest.lowest_trust();
    if facts.input_trust < lowest {
        found.push(Violation::InputTrust {
            needs: lowest,
            has: facts.input_trust,
        });
    }
    found
}

fn beyond_limits(facts: &Facts<'_>) -> Vec<Violation> {
    let limits = facts.manifest.limits;
    let mut found = Vec::new();
    if let Some(max) = limits.arguments_bytes_max {
        let bytes = facts.arguments.to_string().len();
        if bytes > max {
            found.push(Violation::ArgumentBytes { found: bytes, max });
        }
    }
    if let Some(max) = limits.calls_per_minute_max
        && facts.calls_last_minute >= max
    {
        found.push(Violation::TooOften(max));
    }
    found
}

/// By the argument's name first: how a text is spelled must not choose what it is checked as.
fn misplaced(manifest: &Manifest, name: Option<&str>, text: &str) -> Option<Violation> {
    let name = name.unwrap_or_default();
    let is_path = PATH_NAMES.iter().any(|it| name.eq_ignore_ascii_case(it));
    if is_path && !manifest.paths.is_empty() {
        let allowed = manifest.paths.iter().any(|path| is_beneath(text, path));
        return (!allowed).then(|| Violation::Path(text.to_owned()));
    }
    if manifest.domains.is_empty() {
        return None;
    }
    let named_address = {
        let name = name.to_ascii_lowercase();
        ADDRESS_NAME_ENDS.iter().any(|end| name.ends_with(end))
    };
    let allowed = match address(text) {
        Address::Web(host) | Address::Other(host) if !is_allowed(manifest, &host) => {
            return Some(Violation::Domain(host));
        }
        Address::Web(_) => true,
        Address::Other(_) | Address::None => !named_address,
        Address::Broken => false,
    };
    (!allowed).then(|| Violation::Domain(text.to_owned()))
}

fn is_allowed(manifest: &Manifest, host: &str) -> bool {
    is_among(&manifest.domains, host)
}

fn is_among(domains: &[String], host: &str) -> bool {
    domains.iter().any(|domain| is_at(host, domain))
}

/// The hosts that a manifest allows, for whoever goes where it is sent; nothing when it names none.
pub fn host_rule(manifest: &Manifest) -> Option<HostRule> {
    let domains = manifest.domains.clone();
    (!domains.is_empty()).then(|| HostRule::new(move |host| is_among(&domains, host)))
}

/// How much of the arguments was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Whole,
    InPart,
}

impl Seen {
    fn and(self, other: Self) -> Self {
        if other == Self::InPart { other } else { self }
    }
}

fn walk(
    value: &Value,
    name: Option<&str>,
    depth: usize,
    look: &mut impl FnMut(Option<&str>, &str),
) -> Seen {
    if depth > ARGUMENT_DEPTH_MAX {
        return Seen::InPart;
    }
    match value {
        Value::String(text) => look(name, text),
        Value::Array(items) => {
            let parts = items.iter().map(|item| walk(item, name, depth + 1, look));
            return parts.fold(Seen::Whole, Seen::and);
        }
        Value::Object(fields) => {
            let parts = fields
                .iter()
                .map(|(name, field)| walk(field, Some(name), depth + 1, look));
            return parts.fold(Seen::Whole, Seen::and);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Seen::Whole
}

/// What a text is as an address.
enum Address {
    /// One of http or https, at this host.
    Web(String),
    /// One of another scheme, at this host.
    Other(String),
    /// Written like one, but none that can be read.
    Broken,
    /// None, or one without a host.
    None,
}

/// Reads a text as those who fetch do, who take `https:/host` and `https:\\host` as well. A host is
/// in lower case, without its port and the brackets of IPv6.
fn address(text: &str) -> Address {
    let text = text.trim();
    let Ok(url) = Url::parse(text) else {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return if is_scheme && !scheme.is_empty() {
            Address::Broken
        } else {
            Address::None
        };
    };
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
        return Address::None;
    };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let host = host.to_ascii_lowercase();
    if matches!(url.scheme(), "http" | "https") {
        Address::Web(host)
    } else {
        Address::Other(host)
    }
}

fn is_at(host: &str, domain: &str) -> bool {
    let domain = domain.trim_start_matches("*.");
    // A name beyond ASCII is compared as it is asked for.
    let domain = match Host::parse(domain) {
        Ok(Host::Domain(ascii)) => ascii,
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => domain.to_ascii_lowercase(),
    };
    let above = host.strip_suffix(&domain);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// By name, part by part; a `..` is beneath nothing. What links lead to is confinement's affair.
fn is_beneath(path: &str, allowed: &str) -> bool {
    let parts = |text: &str| -> Option<Vec<String>> {
        let parts = text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".");
        let parts: Vec<String> = parts.map(str::to_owned).collect();
        (!parts.iter().any(|part| part == "..")).then_some(parts)
    };
    let same_root = path.starts_with('/') == allowed.starts_with('/');
    match (parts(path), parts(allowed)) {
        (Some(path), Some(allowed)) => same_root && path.starts_with(&allowed),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all() -> Vec<Grant> {
        crate::capability::Family::ALL.map(Grant::Family).to_vec()
    }

    fn facts<'a>(manifest: &'a Manifest, grants: &'a [Grant], arguments: &'a Value) -> Facts<'a> {
        Facts {
            manifest,
            grants,
            arguments,
            input_trust: Trust::User,
            calls_last_minute: 0,
        }
    }

    #[test]
    fn what_is_not_granted_is_denied() {
        let exec = Manifest::built_in("exec").unwrap();
        let none = json!({});
        assert_eq!(check(&facts(&exec, &all(), &none)), []);
        let files: Vec<Grant> = vec!["fs:*".parse().unwrap()];
        let found = check(&facts(&exec, &files, &none));
        assert_eq!(
            found[0].to_string(),
            "it needs proc:exec, which is not granted"
        );
        let empty = Manifest::default();
        let found = check(&facts(&empty, &all(), &none));
        assert_eq!(found, [Violation::NothingDeclared]);
    }

    #[test]
    fn every_trust_meets_every_lowest_trust() {
        let none = json!({});
        for tool in ["read", "web_fetch", "write", "exec", "message"] {
            let manifest = Manifest::built_in(tool).unwrap();
            for trust in Trust::ALL {
                let grants = all();
                let facts = Facts {
                    input_trust: trust,
                    ..facts(&manifest, &grants, &none)
                };
                let is_refused = !check(&facts).is_empty();
                assert_eq!(
                    is_refused,
                    trust < manifest.lowest_trust(),
                    "{tool} {trust:?}"
                );
            }
        }
    }

    #[test]
    fn hosts_are_compared_whole() {
        let fetch = Manifest {
            domains: vec!["docs.rs".to_owned(), "*.Example.org".to_owned()],
            ..Manifest::built_in("web_fetch").unwrap()
        };
        let grants = all();
        let fits = |url: &str| check(&facts(&fetch, &grants, &json!({"url": url}))).is_empty();
        for good in [
            "https://docs.rs/regex",
            "https://DOCS.rs.:443/x",
            "http://user:pw@docs.rs/",
            "https://a.b.example.org/",
            "https://example.org?x=1",
            " https:/docs.rs/x",
            "https:docs.rs",
        ] {
            assert!(fits(good), "{good}");
        }
        for bad in [
            "https://evildocs.rs/",
            "https://docs.rs.evil.com/",
            "https://evil.com/?u=https://docs.rs/",
            "https://docs.rs@evil.com/",
            "https://evil.com\\@docs.rs/",
            "https://[::1]/",
            "ftp://evil.com/",
            "ftp://docs.rs/",
            "https:/evil.com",
            "https:evil.com",
            "https:\\\\evil.com",
            "https:\\evil.com",
            "ht\ttps://evil.com",
            "https:/\n/evil.com",
            "HTTPS:///evil.com",
            "\u{1}https:evil.com",
            "https://evil.com:99999/",
            "https://docs.rs:x@evil.com/",
            "https://%65vil.com/",
            "//evil.com/",
            "evil.com",
            "file:///etc/passwd",
            "data:text/html,x",
            "",
        ] {
            assert!(!fits(bad), "{bad:?}");
        }
        for (arguments, good) in [
            (json!({"targetUrl": "https:evil.com"}), false),
            (json!({"pages": [{"href": "evil.com"}]}), false),
            (
                json!({"urls": ["https://docs.rs", "https:/evil.com"]}),
                false,
            ),
            (json!({"body": "https:/evil.com"}), false),
            (json!({"path": "https:/evil.com"}), false),
            (json!({"body": "to: evil.com"}), true),
            (json!({"path": "notes/a"}), true),
        ] {
            let found = check(&facts(&fetch, &grants, &arguments));
            assert_eq!(found.is_empty(), good, "{arguments}");
        }
    }

    #[test]
    fn hosts_beyond_ascii_and_addresses_by_number_can_be_named() {
        let domains = ["b\u{fc}cher.example", "::1", "127.0.0.1"];
        let fetch = Manifest {
            domains: domains.map(str::to_owned).to_vec(),
            ..Manifest::built_in("web_fetch").unwrap()
        };
        let grants = all();
        for (url, good) in [
            ("https://B\u{fc}cher.example/", true),
            ("https://xn--bcher-kva.example/", true),
            ("http://[::1]:8080/", true),
            ("http://0x7f.1/", true),
            ("http://[::2]/", false),
            ("http://bucher.example/", false),
        ] {
            let found = check(&facts(&fetch, &grants, &json!({"url": url})));
            assert_eq!(found.is_empty(), good, "{url}");
        }
    }

    #[test]
    fn paths_are_compared_part_by_part() {
        let write = Manifest {
            paths: vec!["notes".to_owned(), "out/report.md".to_owned()],
            ..Manifest::built_in("write").unwrap()
        };
        let grants = all();
        let fits = |path: &str| check(&facts(&write, &grants, &json!({"path": path}))).is_empty();
        for good in ["notes", "notes/a.md", "./notes//b/c", "out/report.md"] {
            assert!(fits(good), "{good}");
        }
        for bad in [
            "notes2/a",
            "notes/../x",
            "../notes/a",
            "/notes/a",
            "out",
            "x",
            "x://f",
            "x://../src/main.rs",
            "https://notes/a",
        ] {
            assert!(!fits(bad), "{bad}");
        }
        for name in ["Path", "cwd", "working_dir", "workingDir", "WORKDIR"] {
            let elsewhere = json!({name: "src/main.rs"});
            assert!(!check(&facts(&write, &grants, &elsewhere)).is_empty());
        }
    }

    #[test]
    fn what_is_nested_too_deep_to_be_looked_at_is_refused() {
        let fetch = Manifest {
            domains: vec!["docs.rs".to_owned()],
            ..Manifest::built_in("web_fetch").unwrap()
        };
        let nested = |levels: usize, leaf: Value| {
            (1..levels).fold(json!({"url": leaf}), |inner, _| json!({"options": inner}))
        };
        let (grants, good) = (all(), json!("https://docs.rs/"));
        let within = nested(ARGUMENT_DEPTH_MAX, good.clone());
        assert_eq!(check(&facts(&fetch, &grants, &within)), []);
        let beyond = nested(ARGUMENT_DEPTH_MAX + 1, json!("https://evil.com/"));
        let found = check(&facts(&fetch, &grants, &beyond));
        assert_eq!(found, [Violation::TooDeep]);
        let in_a_list = json!([good, beyond, good]);
        assert_eq!(
            check(&facts(&fetch, &grants, &in_a_list)),
            [Violation::TooDeep]
        );
        // A tool whose manifest names neither hosts nor paths is not looked into at all.
        let free = Manifest::built_in("web_fetch").unwrap();
        assert_eq!(check(&facts(&free, &grants, &beyond)), []);
    }

    #[test]
    fn limits_are_kept() {
        let limited = Manifest {
            limits: crate::manifest::ManifestLimits {
                arguments_bytes_max: Some(20),
                calls_per_minute_max: Some(2),
            },
            ..Manifest::built_in("read").unwrap()
        };
        let (grants, long) = (all(), json!({"path": "a".repeat(50)}));
        let facts = Facts {
            calls_last_minute: 2,
            ..facts(&limited, &grants, &long)
        };
        let found = check(&facts);
        assert_eq!(
            found,
            [
                Violation::ArgumentBytes { found: 61, max: 20 },
                Violation::TooOften(2)
            ]
        );
    }
}
