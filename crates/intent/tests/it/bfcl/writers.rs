//! How each form writes its calls.

use std::fmt::Write as _;

use serde_json::Value;

use super::data::Call;
use super::pen::{Damage, Node, Pen};

/// The arguments of one call, in a block where this pen does that.
fn block(pen: &Pen<'_>, json: String) -> String {
    if pen.has(Damage::Fences) {
        pen.fenced(&json, &["json", ""])
    } else {
        json
    }
}

fn object<'a>(call: &'a Call, [name, arguments]: [&'a str; 2]) -> Node<'a> {
    Node::Record(vec![
        (name, Node::Text(call.name.clone())),
        (arguments, self::arguments(call)),
    ])
}

fn arguments(call: &Call) -> Node<'_> {
    Node::Record(
        call.arguments
            .iter()
            .map(|(key, value)| (key.as_str(), Node::Value(value)))
            .collect(),
    )
}

/// All calls, each written by `one`; the second argument says whether it is the last.
pub(crate) fn each(calls: &[Call], between: &str, one: impl Fn(&Call, bool) -> String) -> String {
    let last = calls.len().saturating_sub(1);
    let parts: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(place, call)| one(call, place == last))
        .collect();
    parts.join(between)
}

fn json_of(pen: &Pen<'_>, node: &Node<'_>, last: bool) -> String {
    if last {
        pen.json(node)
    } else {
        pen.json_inside(node)
    }
}

fn list_of<'a>(calls: &'a [Call], keys: [&'a str; 2]) -> Node<'a> {
    Node::List(calls.iter().map(|call| object(call, keys)).collect())
}

pub(crate) fn hermes(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        let json = block(pen, pen.json(&object(call, ["name", "arguments"])));
        format!("<tool_call>\n{json}\n</tool_call>")
    })
}

fn elements(call: &Call, pen: &Pen<'_>, open: &str, close: &str, line: &str) -> String {
    let mut out = String::new();
    for (key, value) in &call.arguments {
        let open = open.replace("KEY", key);
        let _ = writeln!(out, "{open}{line}{}{line}{close}", pen.text(value));
    }
    out
}

pub(crate) fn qwen_coder(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| {
        let body = elements(call, pen, "<parameter=KEY>", "</parameter>", "\n");
        let function = if last {
            pen.closer("</function>\n")
        } else {
            "</function>\n"
        };
        format!(
            "<tool_call>\n<function={}>\n{body}{function}</tool_call>",
            call.name
        )
    })
}

pub(crate) fn bare(calls: &[Call], pen: &Pen<'_>, keys: [&str; 2]) -> String {
    each(calls, "\n", |call, last| {
        json_of(pen, &object(call, keys), last)
    })
}

pub(crate) fn python_tag_json(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "; ", |call, last| {
        json_of(pen, &object(call, ["name", "parameters"]), last)
    });
    format!("<|python_tag|>{body}<|eom_id|>")
}

fn python_call(call: &Call, pen: &Pen<'_>, last: bool) -> String {
    let mut parts: Vec<String> = call
        .arguments
        .iter()
        .map(|(key, value)| format!("{key}={}", pen.python(value)))
        .collect();
    if pen.has(Damage::TrailingCommas) && !parts.is_empty() {
        parts.push(String::new());
    }
    let close = if last { pen.closer(")") } else { ")" };
    format!("{}({}{close}", call.name, parts.join(", ").trim_end())
}

pub(crate) fn python_tag_call(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "\n", |call, last| python_call(call, pen, last));
    format!("<|python_tag|>{body}<|eom_id|>")
}

pub(crate) fn mistral_list(calls: &[Call], pen: &Pen<'_>) -> String {
    format!(
        "[TOOL_CALLS]{}",
        pen.json(&list_of(calls, ["name", "arguments"]))
    )
}

pub(crate) fn mistral_args(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "", |call, last| {
        format!(
            "[TOOL_CALLS]{}[ARGS]{}",
            call.name,
            json_of(pen, &arguments(call), last)
        )
    })
}

pub(crate) fn mistral_name(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, ", ", |call, last| {
        format!("{}{}", call.name, json_of(pen, &arguments(call), last))
    });
    format!("[TOOL_CALLS]{body}")
}

pub(crate) fn pythonic(calls: &[Call], pen: &Pen<'_>) -> String {
    let comma = if pen.has(Damage::TrailingCommas) {
        ","
    } else {
        ""
    };
    let body = each(calls, ", ", |call, _| {
        let whole = Pen {
            damage: &without(pen, Damage::MissingClosers),
            dice: pen.dice,
        };
        python_call(call, &whole, false)
    });
    format!("[{body}{comma}{}", pen.closer("]"))
}

fn without(pen: &Pen<'_>, damage: Damage) -> Vec<Damage> {
    pen.damage
        .iter()
        .copied()
        .filter(|own| *own != damage)
        .collect()
}

pub(crate) fn pythonic_lines(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| python_call(call, pen, last))
}

pub(crate) fn lfm(calls: &[Call], pen: &Pen<'_>) -> String {
    format!(
        "<|tool_call_start|>{}<|tool_call_end|>",
        pythonic(calls, pen)
    )
}

pub(crate) fn deepseek_v3(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "\n", |call, _| {
        let args = pen.json(&arguments(call));
        format!(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n{args}\n```<｜tool▁call▁end｜>",
            call.name
        )
    });
    format!("<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>")
}

pub(crate) fn deepseek_v31(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "", |call, _| {
        let args = block(pen, pen.json(&arguments(call)));
        format!(
            "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{args}<｜tool▁call▁end｜>",
            call.name
        )
    });
    format!("<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>")
}

pub(crate) fn deepseek_dsml(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "\n", |call, last| {
        let mut out = format!("<｜DSML｜invoke name=\"{}\">\n", call.name);
        for (key, value) in &call.arguments {
            let _ = writeln!(
                out,
                "<｜DSML｜parameter name=\"{key}\" string=\"{}\">{}</｜DSML｜parameter>",
                value.is_string(),
                pen.text(value)
            );
        }
        out + if last {
            pen.closer("</｜DSML｜invoke>")
        } else {
            "</｜DSML｜invoke>"
        }
    });
    format!("<｜DSML｜function_calls>\n{body}\n</｜DSML｜function_calls>")
}

pub(crate) fn kimi(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "", |call, _| {
        let args = block(pen, pen.json(&arguments(call)));
        format!(
            "<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>{args}<|tool_call_end|>",
            call.name
        )
    });
    format!("<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>")
}

pub(crate) fn minimax_m1(calls: &[Call], pen: &Pen<'_>) -> String {
    let body = each(calls, "\n", |call, last| {
        json_of(pen, &object(call, ["name", "arguments"]), last)
    });
    format!("<tool_calls>\n{body}\n</tool_calls>")
}

fn invokes(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| {
        let body = elements(call, pen, "<parameter name=\"KEY\">", "</parameter>", "");
        let close = if last {
            pen.closer("</invoke>")
        } else {
            "</invoke>"
        };
        format!("<invoke name=\"{}\">\n{body}{close}", call.name)
    })
}

pub(crate) fn minimax_m2(calls: &[Call], pen: &Pen<'_>) -> String {
    format!(
        "<minimax:tool_call>\n{}\n</minimax:tool_call>",
        invokes(calls, pen)
    )
}

pub(crate) fn invoke(calls: &[Call], pen: &Pen<'_>) -> String {
    format!(
        "<function_calls>\n{}\n{}",
        invokes(calls, pen),
        pen.closer("</function_calls>")
    )
}

pub(crate) fn glm(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| {
        let mut out = format!("<tool_call>{}\n", call.name);
        for (key, value) in &call.arguments {
            let _ = writeln!(
                out,
                "<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>",
                pen.text(value)
            );
        }
        out + if last {
            pen.closer("</tool_call>")
        } else {
            "</tool_call>"
        }
    })
}

pub(crate) fn harmony_channel(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "<|start|>assistant", |call, _| {
        let args = block(pen, pen.json(&arguments(call)));
        format!(
            "<|channel|>commentary to=functions.{} <|constrain|>json<|message|>{args}<|call|>",
            call.name
        )
    })
}

pub(crate) fn harmony_role(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "", |call, _| {
        let args = block(pen, pen.json(&arguments(call)));
        format!(
            "<|start|>assistant to=functions.{}<|channel|>commentary json<|message|>{args}<|call|>",
            call.name
        )
    })
}

pub(crate) fn harmony_lost(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, last| {
        format!(
            "assistantcommentary to=functions.{} json{}",
            call.name,
            json_of(pen, &arguments(call), last)
        )
    })
}

pub(crate) fn guided(calls: &[Call], pen: &Pen<'_>) -> String {
    pen.json(&Node::Record(vec![
        (
            "reasoning",
            Node::Text("The question needs a tool.".to_owned()),
        ),
        ("tool_calls", list_of(calls, ["name", "arguments"])),
        ("done", Node::Value(&Value::Bool(false))),
    ]))
}

pub(crate) fn react(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        let args = block(pen, pen.json(&arguments(call)));
        format!(
            "Thought: I need a tool for this.\nAction: {}\nAction Input: {args}",
            call.name
        )
    })
}

pub(crate) fn markers(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        let mut out = format!("[TOOL:{}", call.name);
        for (key, value) in &call.arguments {
            let _ = write!(out, "|{key}={}", pen.text(value));
        }
        out + "]"
    })
}

pub(crate) fn markers_json(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        format!("[TOOL:{}|{}]", call.name, pen.json(&arguments(call)))
    })
}

pub(crate) fn granite(calls: &[Call], pen: &Pen<'_>) -> String {
    let json = pen.json(&list_of(calls, ["name", "arguments"]));
    format!("<|tool_call|>{}", block(pen, json))
}

pub(crate) fn internlm(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        let json = pen.json(&object(call, ["name", "parameters"]));
        format!("<|action_start|><|plugin|>\n{json}<|action_end|>")
    })
}

pub(crate) fn command(calls: &[Call], pen: &Pen<'_>) -> String {
    let json = pen.json(&list_of(calls, ["tool_name", "parameters"]));
    format!("<|START_ACTION|>{json}<|END_ACTION|>")
}

pub(crate) fn functools(calls: &[Call], pen: &Pen<'_>) -> String {
    format!(
        "functools{}",
        pen.json(&list_of(calls, ["name", "arguments"]))
    )
}

/// Keys without marks, texts between tokens.
pub(crate) fn gemma(calls: &[Call], _: &Pen<'_>) -> String {
    each(calls, "", |call, _| {
        format!(
            "<|tool_call>call:{}{}<tool_call|>",
            call.name,
            gemma_value(&Value::Object(call.arguments.clone()))
        )
    })
}

fn gemma_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("<|\"|>{text}<|\"|>"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(gemma_value).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, member)| format!("{key}:{}", gemma_value(member)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

pub(crate) fn fenced_json(calls: &[Call], pen: &Pen<'_>) -> String {
    each(calls, "\n", |call, _| {
        let json = pen.json(&object(call, ["name", "arguments"]));
        format!("```json\n{json}\n```")
    })
}

pub(crate) fn json_list(calls: &[Call], pen: &Pen<'_>) -> String {
    pen.json(&list_of(calls, ["name", "arguments"]))
}

pub(crate) fn json_openai(calls: &[Call], pen: &Pen<'_>) -> String {
    let list = calls.iter().enumerate().map(|(place, call)| {
        let text = Value::Object(call.arguments.clone()).to_string();
        let function = Node::Record(vec![
            ("name", Node::Text(call.name.clone())),
            ("arguments", Node::Text(text)),
        ]);
        Node::Record(vec![
            ("id", Node::Text(format!("call_{place}"))),
            ("type", Node::Text("function".to_owned())),
            ("function", function),
        ])
    });
    pen.json(&Node::Record(vec![(
        "tool_calls",
        Node::List(list.collect()),
    )]))
}
