//! The forms of single vendors whose tags are tokens of their own.

use std::fmt::Write as _;

use serde_json::Value;

use super::data::Call;
use super::pen::Pen;
use super::writers::each;

const M3: &str = "]<]minimax[>[";

pub(crate) fn minimax_m3(calls: &[Call], pen: &Pen<'_>) -> String {
    let calls = each(calls, "\n", |call, last| {
        let mut out = format!("{M3}<invoke name=\"{}\">", call.name);
        for (key, value) in &call.arguments {
            m3_element(&mut out, key, value, pen);
        }
        let closer = "]<]minimax[>[</invoke>";
        out + if last { pen.closer(closer) } else { closer }
    });
    format!("{M3}<tool_call>\n{calls}\n{M3}</tool_call>")
}

fn m3_element(out: &mut String, key: &str, value: &Value, pen: &Pen<'_>) {
    let _ = write!(out, "{M3}<{key}>");
    match value {
        Value::Array(items) => {
            for item in items {
                m3_element(out, "item", item, pen);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                m3_element(out, key, member, pen);
            }
        }
        other => out.push_str(&pen.text(other)),
    }
    let _ = write!(out, "{M3}</{key}>");
}

pub(crate) fn kimi_k3(calls: &[Call], pen: &Pen<'_>) -> String {
    let calls = each(calls, "", |call, last| {
        let mut out = format!("<|open|>call tool=\"{}\" index=\"1\"<|sep|>", call.name);
        for (key, value) in &call.arguments {
            let kind = match value {
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "boolean",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                Value::Null => "null",
            };
            let _ = write!(
                out,
                "<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{}<|close|>argument<|sep|>",
                pen.text(value)
            );
        }
        let closer = "<|close|>call<|sep|>";
        out + if last { pen.closer(closer) } else { closer }
    });
    format!("<|open|>tools<|sep|>{calls}<|close|>tools<|sep|><|close|>message<|sep|>")
}

pub(crate) fn hunyuan(calls: &[Call], pen: &Pen<'_>) -> String {
    let calls = each(calls, "\n", |call, last| {
        let mut out = format!("<tool_call>{}<tool_sep>\n", call.name);
        for (key, value) in &call.arguments {
            let _ = writeln!(
                out,
                "<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>",
                pen.text(value)
            );
        }
        let closer = "</tool_call>";
        out + if last { pen.closer(closer) } else { closer }
    });
    format!("<tool_calls>\n{calls}\n</tool_calls>")
}

pub(crate) fn muse(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "<|eom|>", |call, last| {
        let mut out = format!(
            "<|start|>assistant to={0}.{0}<|message|><atem:function_calls>\n<atem:invoke name=\"{0}.{0}\">\n",
            call.name
        );
        for (key, value) in &call.arguments {
            let _ = writeln!(
                out,
                "<atem:parameter name=\"{key}\">{}</atem:parameter>",
                pen.text(value)
            );
        }
        let closer = "</atem:invoke>\n";
        let closer = if last { pen.closer(closer) } else { closer };
        out + closer + "</atem:function_calls>"
    })
}

pub(crate) fn minicpm5(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| {
        let mut out = format!("<function name=\"{}\">", call.name);
        for (key, value) in &call.arguments {
            let text = pen.text(value);
            let text = if text.contains(['<', '&']) {
                format!("<![CDATA[{text}]]>")
            } else {
                text
            };
            let _ = write!(out, "<param name=\"{key}\">{text}</param>");
        }
        let closer = "</function>";
        out + if last { pen.closer(closer) } else { closer }
    })
}
