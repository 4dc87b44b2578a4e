//! The file and the environment, held against the table.

use std::collections::BTreeMap;

use serde_json::json;

use super::expand::expand;
use super::kind::{Held, Kind};
use super::table::{PREFIX, ROWS, Row};
use super::yaml::{Node, Yaml, line_of, read};
use super::{Environment, Given, OWN_SECTION, Problem};

/// Texts closer than this to a known name are taken for it misspelt.
const CLOSE_ENOUGH: f64 = 0.8;

/// The values by their full paths, and where each was set.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) held: BTreeMap<String, (Held, Option<u64>)>,
}

impl Values {
    /// What was set, for people.
    pub(super) fn given(&self) -> Vec<Given> {
        let given = |(key, (held, line)): (&String, &(Held, Option<u64>))| {
            let is_secret = row_of(key).is_none_or(|row| row.kind == Kind::Secret);
            let value = match held {
                Held::Text(text) if is_secret && !text.is_empty() => json!("[a secret]"),
                Held::Text(text) => json!(text),
                Held::Number(number) => json!(number),
                Held::Decimal(number) => json!(number),
                Held::Texts(texts) => json!(texts),
            };
            Given {
                key: key.clone(),
                value,
                line: *line,
            }
        };
        self.held.iter().map(given).collect()
    }
}

/// Reads all; every problem there is.
pub(super) fn collect(text: &str, environment: &dyn Environment) -> (Values, Vec<Problem>) {
    let mut reader = Reader {
        values: Values::default(),
        problems: Vec::new(),
        environment,
    };
    match read(text) {
        Ok(Some(top)) => reader.section("", &top),
        Ok(None) => {}
        Err(why) => reader.problems.push(Problem::plain(why)),
    }
    reader.variables();
    (reader.values, reader.problems)
}

struct Reader<'a> {
    values: Values,
    problems: Vec<Problem>,
    environment: &'a dyn Environment,
}

impl Reader<'_> {
    fn section(&mut self, path: &str, node: &Node) {
        let members = match &node.value {
            Yaml::Map(members) => members,
            Yaml::Nothing => return,
            other => {
                let reason = format!("has to be a section, and is {}", other.kind());
                let path = if path.is_empty() { "the file" } else { path };
                self.problems.push(Problem::at(line_of(node), path, reason));
                return;
            }
        };
        for (name, value) in members {
            let full = match path {
                "" => name.value.clone(),
                _ => format!("{path}.{}", name.value),
            };
            if full == OWN_SECTION {
                // Read by whoever has settings of that name.
            } else if let Some(row) = row_of(&full) {
                self.value(row, full, value);
            } else if is_section(path, &name.value) {
                self.section(&full, value);
            } else {
                let problem = Problem::at(line_of(name), full.clone(), "is not known");
                self.problems
                    .push(problem.hint(close_to(path, &name.value)));
            }
        }
    }

    fn value(&mut self, row: &Row, path: String, node: &Node) {
        let line = line_of(node);
        let held = match self.expanded(&node.value) {
            Ok(value) => row.kind.hold(&value),
            Err(why) => Err(why),
        };
        match held {
            Ok(held) => {
                self.values.held.insert(path, (held, Some(line)));
            }
            Err(reason) => self.problems.push(Problem::at(line, path, reason)),
        }
    }

    /// The same value with `${…}` replaced in its texts.
    fn expanded(&self, value: &Yaml) -> Result<Yaml, String> {
        let lookup = |name: &str| self.environment.get(name);
        match value {
            Yaml::Text(text) => expand(text, &lookup).map(Yaml::Text),
            Yaml::List(list) => {
                let mut list = list.clone();
                for one in &mut list {
                    one.value = self.expanded(&one.value)?;
                }
                Ok(Yaml::List(list))
            }
            other => Ok(other.clone()),
        }
    }

    /// Variables win over the file. One that sets nothing is a mistake.
    fn variables(&mut self) {
        for (name, value) in self.environment.all() {
            if !name.starts_with(PREFIX) {
                continue;
            }
            let Some((row, path)) = target(&name) else {
                let hint = closest(&name, ROWS.iter().flat_map(Row::variables));
                self.problems
                    .push(Problem::variable(&name, "sets no setting").hint(hint));
                continue;
            };
            match row.kind.hold_text(&value) {
                Ok(held) => {
                    self.values.held.insert(path, (held, None));
                }
                Err(reason) => self.problems.push(Problem::variable(&name, reason)),
            }
        }
    }
}

/// The row of a full path.
pub(super) fn row_of(path: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| is_like(row.path, path))
}

fn is_like(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (pattern.split('.').collect(), split(path, pattern));
    pattern.len() == path.len()
        && pattern
            .iter()
            .zip(&path)
            .all(|(known, found)| *known == "NAME" || known == found)
}

/// Names of models have dots in them (`gpt-4.1`): only as many parts as the pattern has.
fn split<'a>(path: &'a str, pattern: &'a str) -> Vec<&'a str> {
    match (pattern.split_once(".NAME."), path.split_once('.')) {
        (Some((section, _)), Some((first, rest))) if section == first => {
            match rest.rsplit_once('.') {
                Some((name, key)) => vec![first, name, key],
                None => vec![first, rest],
            }
        }
        _ => match (pattern.strip_suffix(".NAME"), path) {
            (Some(section), path)
                if path
                    .strip_prefix(section)
                    .is_some_and(|it| it.starts_with('.')) =>
            {
                let mut parts: Vec<&str> = section.split('.').collect();
                parts.push(&path[section.len() + 1..]);
                parts
            }
            _ => path.split('.').collect(),
        },
    }
}

/// Whether keys are known below this name, which stands in this section.
fn is_section(section: &str, name: &str) -> bool {
    let sections = |row: &'static Row| {
        let mut above = row.path;
        std::iter::from_fn(move || {
            above = above.rsplit_once('.')?.0;
            Some(above)
        })
    };
    let is_here = |known: &str| match known.rsplit_once('.') {
        Some((above, "NAME")) => above == section,
        Some((above, last)) => above == section && last == name,
        None => section.is_empty() && known == name,
    };
    ROWS.iter().flat_map(sections).any(is_here)
}

/// Which setting a variable sets.
fn target(name: &str) -> Option<(&'static Row, String)> {
    let exact = ROWS.iter().find(|row| {
        !row.path.contains("NAME") && row.variables().iter().any(|known| known == name)
    });
    if let Some(row) = exact {
        return Some((row, row.path.to_owned()));
    }
    let limited = name
        .strip_prefix(PREFIX)?
        .strip_prefix("TOOLS_RESULT_LIMITS_")?;
    let path = format!("tools.result_limits.{}", limited.to_lowercase());
    row_of(&path).map(|row| (row, path))
}

/// What other programs call a key of ours.
const CALLED_ELSEWHERE: &[(&str, &str)] = &[
    ("base_url", "upstreams"),
    ("url", "upstreams"),
    ("urls", "upstreams"),
    ("key", "api_key"),
    ("name", "model"),
];

/// The known key beside this one that it may have been meant for.
fn close_to(section: &str, name: &str) -> Option<String> {
    let beside: Vec<&str> = beside(section).collect();
    let called = CALLED_ELSEWHERE.iter().find(|(other, _)| *other == name);
    let called = called.filter(|(_, ours)| beside.contains(ours));
    called
        .map(|(_, ours)| (*ours).to_owned())
        .or_else(|| closest(name, beside.iter().map(|key| (*key).to_owned())))
        // Or it stands in the wrong section.
        .or_else(|| {
            let row = ROWS
                .iter()
                .find(|row| row.path.rsplit('.').next() == Some(name))?;
            Some(row.path.to_owned())
        })
}

/// The keys and sections that are known in a section.
fn beside(section: &str) -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter_map(move |row| {
        let parts: Vec<&'static str> = row.path.split('.').collect();
        let found = match section {
            "" => Vec::new(),
            // A name may have dots in it.
            _ if parts.get(1) == Some(&"NAME") => section.splitn(2, '.').collect(),
            _ => section.split('.').collect(),
        };
        let mut pairs = found.iter().zip(&parts);
        let is_here = pairs.all(|(found, known)| *known == "NAME" || known == found);
        let key = *parts.get(found.len())?;
        (is_here && key != "NAME").then_some(key)
    })
}

fn closest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, &known), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= CLOSE_ENOUGH).then_some(best.1)
}
