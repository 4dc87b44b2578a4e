//! Every structured form that the parser knows, as a way to write calls.

use super::data::Call;
use super::pen::{Damage, Pen};
use super::vendors::{hunyuan, kimi_k3, minicpm5, minimax_m3, muse};
use super::writers::*;

/// What a form is made of, which decides the damage that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Elements,
    Python,
}

/// Where a block may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// Around the arguments or the object.
    Inner,
    /// Around all of it.
    Outer,
    /// There is one already, or none makes sense.
    Never,
}

/// One form.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) fence: Fence,
    write: fn(&[Call], &Pen<'_>) -> String,
}

const fn form(
    name: &'static str,
    kind: Kind,
    fence: Fence,
    write: fn(&[Call], &Pen<'_>) -> String,
) -> Form {
    Form {
        name,
        kind,
        fence,
        write,
    }
}

/// All forms.
pub(crate) const FORMS: &[Form] = &[
    form("hermes", Kind::Json, Fence::Inner, hermes),
    form("qwen3 coder xml", Kind::Elements, Fence::Outer, qwen_coder),
    form("llama3 json", Kind::Json, Fence::Outer, |calls, pen| {
        bare(calls, pen, ["name", "parameters"])
    }),
    form(
        "llama3 python_tag json",
        Kind::Json,
        Fence::Never,
        python_tag_json,
    ),
    form(
        "llama3 python_tag call",
        Kind::Python,
        Fence::Never,
        python_tag_call,
    ),
    form("mistral list", Kind::Json, Fence::Never, mistral_list),
    form("mistral args", Kind::Json, Fence::Never, mistral_args),
    form("mistral name", Kind::Json, Fence::Never, mistral_name),
    form("pythonic", Kind::Python, Fence::Outer, pythonic),
    form("pythonic lines", Kind::Python, Fence::Never, pythonic_lines),
    form("lfm", Kind::Python, Fence::Never, lfm),
    form("deepseek v3", Kind::Json, Fence::Never, deepseek_v3),
    form("deepseek v3.1", Kind::Json, Fence::Inner, deepseek_v31),
    form("deepseek dsml", Kind::Elements, Fence::Never, deepseek_dsml),
    form("kimi k2", Kind::Json, Fence::Inner, kimi),
    form("minimax m1", Kind::Json, Fence::Never, minimax_m1),
    form("minimax m2", Kind::Elements, Fence::Outer, minimax_m2),
    form("minimax m3", Kind::Elements, Fence::Never, minimax_m3),
    form("kimi k3", Kind::Elements, Fence::Never, kimi_k3),
    form("hunyuan", Kind::Elements, Fence::Outer, hunyuan),
    form("muse", Kind::Elements, Fence::Never, muse),
    form("minicpm5", Kind::Elements, Fence::Outer, minicpm5),
    form("glm", Kind::Elements, Fence::Outer, glm),
    form("anthropic invoke", Kind::Elements, Fence::Outer, invoke),
    form("harmony channel", Kind::Json, Fence::Inner, harmony_channel),
    form("harmony role", Kind::Json, Fence::Inner, harmony_role),
    form(
        "harmony tokens lost",
        Kind::Json,
        Fence::Never,
        harmony_lost,
    ),
    form("guided_json", Kind::Json, Fence::Outer, guided),
    form("react", Kind::Json, Fence::Inner, react),
    form("markers", Kind::Elements, Fence::Never, markers),
    form("markers json", Kind::Json, Fence::Never, markers_json),
    form("granite", Kind::Json, Fence::Inner, granite),
    form("internlm", Kind::Json, Fence::Never, internlm),
    form("command", Kind::Json, Fence::Never, command),
    form("functools", Kind::Json, Fence::Never, functools),
    form("gemma", Kind::Json, Fence::Never, gemma),
    form("fenced json", Kind::Json, Fence::Never, fenced_json),
    form(
        "json name/arguments",
        Kind::Json,
        Fence::Outer,
        |calls, pen| bare(calls, pen, ["name", "arguments"]),
    ),
    form(
        "json function/parameters",
        Kind::Json,
        Fence::Outer,
        |calls, pen| bare(calls, pen, ["function", "parameters"]),
    ),
    form("json tool/args", Kind::Json, Fence::Outer, |calls, pen| {
        bare(calls, pen, ["tool", "args"])
    }),
    form(
        "json action/action_input",
        Kind::Json,
        Fence::Outer,
        |calls, pen| bare(calls, pen, ["action", "action_input"]),
    ),
    form(
        "json tool_name/tool_input",
        Kind::Json,
        Fence::Outer,
        |calls, pen| bare(calls, pen, ["tool_name", "tool_input"]),
    ),
    form("json list", Kind::Json, Fence::Outer, json_list),
    form("json openai", Kind::Json, Fence::Outer, json_openai),
];

impl Form {
    /// Whether this damage can happen to this form.
    pub(crate) fn suffers(&self, damage: Damage) -> bool {
        let no_keys = matches!(damage, Damage::UnquotedKeys | Damage::Comments);
        match damage {
            Damage::Fences => self.fence != Fence::Never,
            // An open marker's last value may have been cut anywhere: nobody can tell.
            Damage::MissingClosers if self.name == "markers" => false,
            // Gemma has its own marks around texts, and its keys have none.
            _ if self.name == "gemma" => matches!(
                damage,
                Damage::Surrounded | Damage::RawNewlines | Damage::RawQuotes
            ),
            // The arguments are a string there: damage lies around it.
            Damage::RawNewlines | Damage::RawQuotes if self.name == "json openai" => false,
            _ => self.kind != Kind::Python || !no_keys,
        }
    }

    /// The calls in this form, with the pen's faults.
    pub(crate) fn write(&self, calls: &[Call], pen: &Pen<'_>) -> String {
        let mut text = (self.write)(calls, pen);
        if pen.has(Damage::Fences) && self.fence == Fence::Outer {
            let languages: &[&str] = match self.kind {
                Kind::Json => &["json", "", "tool_call", "json"],
                Kind::Elements => &["xml", ""],
                Kind::Python => &["tool_code", "tool_call"],
            };
            text = pen.fenced(&text, languages);
        }
        if pen.has(Damage::Surrounded) {
            text = pen.surrounded(&text);
        }
        text
    }
}
