//! The versions of the export format.
//!
//! | version | header | record |
//! |---|---|---|
//! | 1 | `schema_version`, `exported_at`, `agent`, `record_types` | `id`, `memory_type`, `content`, `metadata`?, `session_id`, `created_at`, `embedding`? as a list of numbers |
//! | 2 | adds `records`, how many there are | adds `trust`; `embedding` names its model and holds its numbers exactly (base64 of little-endian single-precision floats) |
//!
//! Version 1 is the plain record, easy to write by hand or from another program.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::time::{parse_rfc3339, rfc3339};
use holdfast_contract::{Embedding, MemoryRecord, MemoryType, Trust};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::vector::{from_bytes, to_bytes};

/// The version that is written.
pub const FORMAT_VERSION: u64 = 2;
/// The model of a vector that came without one. Nothing asks for it, so it is kept and never used.
const UNKNOWN_MODEL: &str = "unknown";

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the format.
    pub schema_version: u64,
    /// When it was made.
    pub exported_at: String,
    /// For which agent.
    pub agent: String,
    /// Which types of records follow.
    pub record_types: Vec<MemoryType>,
    /// How many records follow, which tells a whole file from one that was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// Every other line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireRecord {
    id: String,
    memory_type: MemoryType,
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    session_id: String,
    created_at: String,
    trust: Trust,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<WireEmbedding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEmbedding {
    model: String,
    f32le: String,
}

/// Takes a value one version further.
type Step = fn(Value) -> Result<Value, String>;

/// The steps of the header; the first leads from version 1 to version 2.
const HEADER_STEPS: &[Step] = &[Ok];
/// The steps of a record.
const RECORD_STEPS: &[Step] = &[record_1_to_2];

/// A record as it is written.
pub fn to_wire(record: &MemoryRecord) -> WireRecord {
    WireRecord {
        id: record.id.clone(),
        memory_type: record.memory_type,
        content: record.content.clone(),
        metadata: record.metadata.clone(),
        session_id: record.session_id.clone(),
        created_at: rfc3339(record.created_at_ms),
        trust: record.trust,
        embedding: record.embedding.as_ref().map(|embedding| WireEmbedding {
            model: embedding.model.clone(),
            f32le: STANDARD.encode(to_bytes(&embedding.vector)),
        }),
    }
}

/// The header in a first line of any known version, and its version.
pub fn read_header(line: &[u8]) -> Result<(Header, u64), String> {
    let value = object(line)?;
    let version = value
        .get("schema_version")
        .and_then(Value::as_u64)
        .filter(|version| *version > 0)
        .ok_or("the first line has to name a schema_version: is this an export of memories?")?;
    if version > FORMAT_VERSION {
        return Err(format!(
            "it was written by a newer Holdfast (schema version {version}, this one reads up to \
             {FORMAT_VERSION}): upgrade this Holdfast"
        ));
    }
    let value = migrated(value, version, HEADER_STEPS)?;
    let mut header: Header = serde_json::from_value(value).map_err(|error| error.to_string())?;
    header.schema_version = FORMAT_VERSION;
    Ok((header, version))
}

/// The record in a line of this version.
pub fn read_record(line: &[u8], version: u64) -> Result<MemoryRecord, String> {
    let value = migrated(object(line)?, version, RECORD_STEPS)?;
    let wire: WireRecord = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let created_at_ms = parse_rfc3339(&wire.created_at)
        .ok_or_else(|| format!("created_at is not a time: {:?}", wire.created_at))?;
    let embedding = wire.embedding.map(read_embedding).transpose()?;
    Ok(MemoryRecord {
        id: wire.id,
        memory_type: wire.memory_type,
        content: wire.content,
        metadata: wire.metadata,
        session_id: wire.session_id,
        created_at_ms,
        trust: wire.trust,
        embedding,
    })
}

fn read_embedding(wire: WireEmbedding) -> Result<Embedding, String> {
    let vector = STANDARD
        .decode(&wire.f32le)
        .ok()
        .and_then(|bytes| from_bytes(&bytes))
        .ok_or("embedding.f32le is not base64 of whole numbers")?;
    Ok(Embedding {
        model: wire.model,
        vector,
    })
}

fn object(line: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("it is not a JSON object".to_owned())
    }
}

fn migrated(value: Value, version: u64, steps: &[Step]) -> Result<Value, String> {
    let done = usize::try_from(version.saturating_sub(1)).unwrap_or(usize::MAX);
    steps
        .iter()
        .skip(done)
        .try_fold(value, |value, step| step(value))
}

/// Trust was not written down, so nothing is known about it. Vectors came as lists, of a model that
/// was not named. A time could be a number of milliseconds.
fn record_1_to_2(mut value: Value) -> Result<Value, String> {
    let Some(fields) = value.as_object_mut() else {
        return Err("it is not a JSON object".to_owned());
    };
    if fields.contains_key("trust") {
        return Err("a record of version 1 has no trust".to_owned());
    }
    fields.insert("trust".to_owned(), json!(Trust::Untrusted));
    // Other programs write null for what is not there.
    for name in ["metadata", "embedding"] {
        if fields.get(name).is_some_and(Value::is_null) {
            fields.remove(name);
        }
    }
    if let Some(ms) = fields.get("created_at").and_then(Value::as_u64) {
        fields.insert("created_at".to_owned(), json!(rfc3339(ms)));
    }
    if let Some(kind) = fields.get("memory_type").and_then(Value::as_str)
        && let Some(known) = MemoryType::from_name(kind)
    {
        fields.insert("memory_type".to_owned(), json!(known));
    }
    if let Some(list) = fields.remove("embedding") {
        let vector: Vec<f32> = serde_json::from_value(list)
            .map_err(|error| format!("embedding is not a list of numbers: {error}"))?;
        fields.insert(
            "embedding".to_owned(),
            json!({"model": UNKNOWN_MODEL, "f32le": STANDARD.encode(to_bytes(&vector))}),
        );
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_step_to_the_next() {
        let steps = usize::try_from(FORMAT_VERSION).unwrap() - 1;
        assert_eq!(HEADER_STEPS.len(), steps);
        assert_eq!(RECORD_STEPS.len(), steps);
    }

    #[test]
    fn the_plain_record_of_version_1_is_read() {
        let header = br#"{"schema_version":1,"exported_at":"2026-02-20T08:00:00Z","agent":"rem","record_types":["fact"]}"#;
        let (header, version) = read_header(header).unwrap();
        assert_eq!(
            (version, header.records, header.agent.as_str()),
            (1, None, "rem")
        );
        let line = br#"{"id":"a","memory_type":"Fact","content":"The sky is blue.","session_id":"s","created_at":"2026-02-20T08:00:00.000Z","embedding":[0.1,-2],"metadata":null}"#;
        let record = read_record(line, version).unwrap();
        assert_eq!(record.trust, Trust::Untrusted);
        assert_eq!(record.metadata, None);
        assert_eq!(
            record.embedding,
            Some(Embedding {
                model: "unknown".to_owned(),
                vector: vec![0.1, -2.0],
            })
        );
        let in_ms =
            br#"{"id":"a","memory_type":"fact","content":"c","session_id":"s","created_at":1500}"#;
        assert_eq!(read_record(in_ms, 1).unwrap().created_at_ms, 1500);
    }

    #[test]
    fn what_can_not_be_read_says_why() {
        for (line, reason) in [
            ("{}", "schema_version"),
            ("[]", "not a JSON object"),
            (r#"{"schema_version":0}"#, "schema_version"),
            (r#"{"schema_version":99}"#, "newer Holdfast"),
            (r#"{"schema_version":2}"#, "exported_at"),
        ] {
            let said = read_header(line.as_bytes()).unwrap_err();
            assert!(said.contains(reason), "{line}: {said}");
        }
        let good = json!({"id": "a", "memory_type": "fact", "content": "c", "session_id": "s",
            "created_at": "2026-02-20T08:00:00Z", "trust": "user"});
        assert!(read_record(good.to_string().as_bytes(), 2).is_ok());
        for (field, value, reason) in [
            ("memory_type", json!("rumour"), "rumour"),
            ("created_at", json!("soon"), "soon"),
            ("trust", json!("much"), "much"),
            ("extra", json!(1), "extra"),
            ("content", json!(7), "string"),
            ("embedding", json!({"model": "m", "f32le": "AAA="}), "f32le"),
        ] {
            let mut line = good.clone();
            line[field] = value;
            let said = read_record(line.to_string().as_bytes(), 2).unwrap_err();
            assert!(said.contains(reason), "{line}: {said}");
        }
    }
}
