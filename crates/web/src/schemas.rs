//! The arguments of the gateway's tools, for models.
//!
//! The gateway tells nobody its schemas over HTTP and checks arguments itself. So these say what a
//! model needs to know, and let pass what another version of the gateway may take.

use serde_json::{Map, Value, json};

/// An argument: its name, its type, and what the model is told.
type Argument = (&'static str, &'static str, &'static str);

const BROWSER: &[Argument] = &[
    (
        "action",
        "string",
        "open, navigate, snapshot, screenshot, act, tabs, focus, close, status, start, stop, \
         profiles, console, requests, errors, text, emulate, pdf, download, upload or dialog.",
    ),
    ("url", "string", "The page to open or to navigate to."),
    (
        "targetId",
        "string",
        "The tab, as an earlier answer named it.",
    ),
    (
        "kind",
        "string",
        "For act: click, type, press, hover, drag, select, fill, resize, wait, evaluate or close.",
    ),
    (
        "ref",
        "string",
        "For act: the element, as a snapshot named it.",
    ),
    ("text", "string", "For act: what is typed."),
    ("key", "string", "For act: the key that is pressed."),
    ("submit", "boolean", "For act: press Enter after typing."),
    ("values", "array", "For act: what is selected."),
    (
        "fields",
        "array",
        "For act: the form fields that are filled.",
    ),
    ("request", "object", "For act: its arguments as one object."),
    ("selector", "string", "A CSS selector."),
    (
        "query",
        "string",
        "For snapshot: keeps the lines that hold these words.",
    ),
    ("fullPage", "boolean", "For screenshot: the whole page."),
    ("type", "string", "For screenshot: png or jpeg."),
    ("limit", "integer", "Entries at most."),
    ("maxChars", "integer", "Characters at most."),
    (
        "profile",
        "string",
        "The browser profile; the gateway's default unless given.",
    ),
    (
        "target",
        "string",
        "Where the browser runs: sandbox, host or node.",
    ),
    ("node", "string", "The node that it runs on."),
    ("paths", "array", "For upload: the files."),
    ("timeoutMs", "integer", "How long the action may take."),
];

const CANVAS: &[Argument] = &[
    (
        "action",
        "string",
        "present, hide or navigate; older gateways also take eval, snapshot, a2ui_push and \
         a2ui_reset.",
    ),
    ("node", "string", "The node whose canvas it is."),
    ("target", "string", "What is shown."),
    ("url", "string", "The page that is shown."),
    ("x", "number", "Where the panel begins."),
    ("y", "number", "Where the panel begins."),
    ("width", "number", "How wide the panel is."),
    ("height", "number", "How high the panel is."),
    ("timeoutMs", "integer", "How long the action may take."),
];

const NODES: &[Argument] = &[
    (
        "action",
        "string",
        "status, describe, pending, approve, reject, notify, camera_snap, camera_list, camera_clip, \
         photos_latest, screen_record, screen_snapshot, location_get, notifications_list, \
         notifications_action, device_status, device_info, device_permissions, device_health, \
         which or invoke.",
    ),
    (
        "node",
        "string",
        "The node's id, name or address; `status` lists them.",
    ),
    ("requestId", "string", "For approve and reject."),
    ("title", "string", "For notify."),
    ("body", "string", "For notify."),
    (
        "priority",
        "string",
        "For notify: passive, active or timeSensitive.",
    ),
    ("delivery", "string", "For notify: system, overlay or auto."),
    ("facing", "string", "For the camera: front, back or both."),
    ("deviceId", "string", "A camera, as camera_list names it."),
    ("maxWidth", "integer", "Of a picture, in pixels."),
    ("durationMs", "integer", "Of a recording."),
    ("includeAudio", "boolean", "For a recording."),
    ("limit", "integer", "Entries at most."),
    ("bins", "array", "For which: names of programs."),
    ("invokeCommand", "string", "For invoke: the node's command."),
    (
        "invokeParamsJson",
        "string",
        "For invoke: its arguments as JSON.",
    ),
    (
        "invokeTimeoutMs",
        "integer",
        "For invoke: how long it may take.",
    ),
];

/// The schema of a gateway's tool. What is not listed passes, for the gateway knows better.
pub(crate) fn of(remote: &str) -> Value {
    let arguments: &[Argument] = match remote {
        "browser" => BROWSER,
        "canvas" => CANVAS,
        "nodes" => NODES,
        _ => &[("action", "string", "For tools that have several actions.")],
    };
    let mut properties: Map<String, Value> = arguments
        .iter()
        .map(|(name, kind, about)| {
            let schema = json!({"type": kind, "description": about});
            ((*name).to_owned(), schema)
        })
        .collect();
    // The form of the first versions.
    properties.insert(
        "args".to_owned(),
        json!({"type": "object", "description": "The arguments, if not given one by one."}),
    );
    // An action may stand in `args`, so nothing is required here: the gateway says what is missing.
    json!({"type": "object", "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_flat_and_others_pass() {
        for tool in ["browser", "canvas", "nodes"] {
            let schema = of(tool);
            // An action may stand in `args`.
            assert_eq!(schema.get("required"), None, "{tool}");
            assert_eq!(schema.get("additionalProperties"), None, "{tool}");
        }
        assert_eq!(of("browser")["properties"]["url"]["type"], "string");
        assert_eq!(of("nodes")["properties"]["node"]["type"], "string");
    }
}
