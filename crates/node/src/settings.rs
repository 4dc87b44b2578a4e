//! Settings, read so that what is wrong with them names the setting.

use napi::Result;
use serde::de::DeserializeOwned;

use crate::safely::failed;

/// Reads settings from JSON.
pub(crate) fn read<T: DeserializeOwned>(settings: &str) -> Result<T> {
    let mut input = serde_json::Deserializer::from_str(settings);
    serde_path_to_error::deserialize(&mut input).map_err(|error| {
        let setting = error.path().to_string();
        let why = error.into_inner().to_string();
        // Nobody wrote the text that lines and columns would be of.
        let why = why.split(" at line ").next().unwrap_or_default();
        match setting.as_str() {
            "." => failed(why),
            _ => failed(format!("{setting}: {why}")),
        }
    })
}
