//! The schema's say: names, other names, types, what is missing, what is still open.

use serde_json::{Map, Value};

use crate::coerce::{self, Coerced};
use crate::json::Ending;
use crate::limits::ARGUMENTS_MAX;
use crate::model::{FinishReason, Intent, Strategy};
use crate::problem::Problem;
use crate::raw::{Args, Given, RawCall, Shape, Unknown};
use crate::tools::{NameMatch, ToolSet, ToolSpec, clean_name, fold};

/// What a repair costs in confidence.
const REPAIR_COST: f64 = 0.05;
/// What a guessed name costs.
const GUESS_COST: f64 = 0.1;
/// A fuzzy reading of a tool that changes things, or a guess at its name, is never surer than this, which is below
/// [`crate::RUN_MUTATING_MIN`]: it is asked back, not run.
pub const FUZZY_MUTATING_MAX: f64 = 0.4;

/// Names that hosts give to the same argument.
const SAME_ARGUMENT: &[&[&str]] = &[
    &[
        "path",
        "filepath",
        "filename",
        "file",
        "targetfile",
        "absolutepath",
    ],
    &[
        "content",
        "filetext",
        "text",
        "contents",
        "filecontent",
        "data",
        "body",
    ],
    &["oldstring", "oldtext", "oldstr", "old", "search", "find"],
    &[
        "newstring",
        "newtext",
        "newstr",
        "new",
        "replace",
        "replacement",
    ],
    &["command", "cmd", "shellcommand", "script", "commandline"],
    &[
        "query",
        "q",
        "searchquery",
        "searchterm",
        "keywords",
        "search",
        "term",
        "input",
    ],
    &["url", "uri", "link", "href", "address", "page"],
    &["workdir", "cwd", "workingdirectory", "dir", "directory"],
    &[
        "count",
        "numresults",
        "maxresults",
        "n",
        "topk",
        "limit",
        "num",
    ],
    &["timeout", "timeoutseconds", "timeoutsec"],
];

/// Turns a written call into an intent. `Err` when no tool is meant, with what is wrong if that is
/// a mistake.
pub(crate) fn intent_of(
    call: RawCall,
    tools: &ToolSet,
    finish: FinishReason,
    text_len: usize,
) -> Result<Intent, Option<Problem>> {
    let found = tools.find_close(&call.name);
    match (found, call.unknown) {
        (None, Unknown::Mistake) => return Err(Some(unknown_tool(&call.name, tools))),
        (None, Unknown::Nothing) => return Err(None),
        _ => {}
    }
    let mut intent = Intent {
        name: found.map_or_else(
            || clean_name(&call.name).to_owned(),
            |(tool, _)| tool.name.clone(),
        ),
        arguments: Map::new(),
        confidence: call.confidence,
        strategy: call.strategy,
        span: call.span,
        complete: true,
        problems: Vec::new(),
        call_id: call.call_id.clone(),
        mutating: found.is_none_or(|(tool, _)| tool.mutating),
    };
    if intent.name.is_empty() || intent.name.len() > crate::limits::NAME_BYTES_MAX {
        return Err(None);
    }
    let at_end = call.span[1] >= text_len;
    // Arguments that begin and hold nothing were cut off, whatever the server says.
    let is_hollow = call.args == Args::default();
    let cut = call.ending >= Ending::OpenString
        || call.ending == Ending::OpenValue
            && (is_hollow || !(finish == FinishReason::Stop && at_end))
        || call.ending == Ending::MissingClosers && finish == FinishReason::Length;
    if cut {
        intent.complete = false;
        intent.problems.push(Problem::Truncated);
    }
    if call.repaired || call.ending != Ending::Whole {
        say_repaired(&mut intent);
    }
    if call.elided {
        intent.problems.push(Problem::Elided);
    }
    if call.ambiguous {
        say_ambiguous(&mut intent);
    }
    if call.lost {
        say_unreadable(&mut intent);
    }
    match found {
        None => intent.problems.push(unknown_tool(&call.name, tools)),
        Some((_, NameMatch::Close)) => {
            intent.confidence -= GUESS_COST;
            intent.problems.push(Problem::NameGuessed {
                written: call.name.clone(),
            });
        }
        Some((_, NameMatch::Known)) => {}
    }
    say_shape(&mut intent, call.shape);
    let doubtful = call.doubtful;
    fill(&mut intent, call, found.map(|(tool, _)| tool));
    let guessed = doubtful
        || intent.strategy == Strategy::Fuzzy
        || matches!(found, Some((_, NameMatch::Close)));
    if guessed && intent.mutating {
        intent.problems.push(Problem::NeedsConfirmation);
    }
    intent.confidence = (intent.confidence.clamp(0.0, 1.0) * 100.0).round() / 100.0;
    Ok(intent)
}

/// A bare value in the place of an object is a guess at which argument it is, and a list has none.
fn say_shape(intent: &mut Intent, shape: Shape) {
    match shape {
        Shape::Named => return,
        Shape::Bare if !intent.mutating => {
            say_repaired(intent);
            intent.confidence -= GUESS_COST;
            return;
        }
        Shape::Bare | Shape::List => {}
    }
    intent.confidence = intent.confidence.min(FUZZY_MUTATING_MAX);
    intent.problems.push(Problem::NotAnObject);
}

fn unknown_tool(written: &str, tools: &ToolSet) -> Problem {
    let name = clean_name(written).to_owned();
    Problem::UnknownTool {
        similar: tools.similar(&name),
        name,
    }
}

fn fill(intent: &mut Intent, call: RawCall, tool: Option<&ToolSpec>) {
    let mut args = spread(call.args, tool);
    if args.named.len() + args.positional.len() > ARGUMENTS_MAX {
        args.named.truncate(ARGUMENTS_MAX);
        args.positional.truncate(ARGUMENTS_MAX - args.named.len());
        say_unreadable(intent);
    }
    for given in args.positional.drain(..) {
        let free = tool.and_then(|tool| {
            tool.required()
                .chain(tool.properties().map(|(name, _)| name.as_str()))
                .find(|name| !args.named.iter().any(|(taken, _)| taken == name))
        });
        let name = free
            .or_else(|| tool.and_then(ToolSpec::main_argument))
            .unwrap_or("input");
        args.named.push((name.to_owned(), given));
    }
    let names: Vec<String> = args
        .named
        .iter()
        .map(|(name, _)| name.trim().to_owned())
        .collect();
    for (written, given) in args.named {
        let name = match tool {
            Some(tool) => argument_name(tool, written.trim(), &names),
            None => written.trim().to_owned(),
        };
        let schema = tool.and_then(|tool| tool.property(&name));
        if coerce::is_left_out(&given, schema) {
            continue;
        }
        let needed = tool.is_some_and(|tool| tool.required().any(|known| known == name));
        if !needed && coerce::is_null_for(&given, schema) {
            say_repaired(intent);
            continue;
        }
        let value = match coerce::to_schema(given, schema) {
            Coerced::Fits(value) => value,
            Coerced::WrongValue { value, allowed } => {
                intent.problems.push(Problem::WrongValue {
                    argument: name.clone(),
                    allowed,
                });
                value
            }
            Coerced::WrongType { value, expected } => {
                intent.problems.push(Problem::WrongType {
                    argument: name.clone(),
                    expected,
                });
                value
            }
        };
        if let Some(text) = placeholder(&name, &value) {
            let elided = is_ellipsis(&text);
            intent.problems.push(Problem::Placeholder {
                argument: name.clone(),
                text,
            });
            if elided {
                // Nobody means three dots as a value.
                continue;
            }
        }
        if schema.is_none() && tool.is_some_and(ToolSpec::is_closed) {
            intent.problems.push(Problem::UnknownArgument {
                argument: name.clone(),
            });
        }
        match intent.arguments.get(&name) {
            // What came first can not have been written by a later value's text.
            Some(known) if *known != value => say_ambiguous(intent),
            Some(_) => {}
            None => {
                intent.arguments.insert(name, value);
            }
        }
    }
    for (argument, text) in call.open {
        intent
            .problems
            .push(Problem::Placeholder { argument, text });
    }
    let Some(tool) = tool else { return };
    for argument in tool.required() {
        let open = |problem: &Problem| matches!(problem, Problem::Placeholder { argument: open, .. } if open == argument);
        if !intent.arguments.contains_key(argument) && !intent.problems.iter().any(open) {
            intent.problems.push(Problem::MissingArgument {
                argument: argument.to_owned(),
            });
        }
    }
}

/// The arguments were mended, which is said once and costs once.
fn say_repaired(intent: &mut Intent) {
    if !intent.problems.contains(&Problem::Repaired) {
        intent.confidence -= REPAIR_COST;
        intent.problems.push(Problem::Repaired);
    }
}

/// Something that was given is not there.
fn say_unreadable(intent: &mut Intent) {
    if !intent.problems.contains(&Problem::UnreadableArguments) {
        intent.problems.push(Problem::UnreadableArguments);
    }
}

/// Two readings are possible: neither is run.
fn say_ambiguous(intent: &mut Intent) {
    intent.complete = false;
    if !intent.problems.contains(&Problem::Ambiguous) {
        intent.problems.push(Problem::Ambiguous);
    }
}

/// What models put around all arguments once more.
const WRAPPERS: &[&str] = &["arguments", "properties", "parameters", "args", "kwargs"];

/// `read({"path": "a"})`: one object in the place of the arguments is the arguments. So is one under
/// a name that the tool does not know: `{"arguments": {"path": "a"}}`.
fn spread(args: Args, tool: Option<&ToolSpec>) -> Args {
    let Some(tool) = tool else { return args };
    let wrapped = match (args.positional.as_slice(), args.named.as_slice()) {
        ([Given::Json(Value::Object(map))], []) => Some(map.clone()),
        ([], [(name, given)])
            if WRAPPERS.contains(&name.as_str()) && tool.property(name).is_none() =>
        {
            object_of(given).filter(|map| !map.is_empty())
        }
        _ => None,
    };
    let Some(map) = wrapped else { return args };
    let own = |key: &String| {
        tool.property(key).is_some() || tool.properties().any(|(name, _)| same_argument(name, key))
    };
    if map.keys().all(own) {
        return Args::from_map(map);
    }
    args
}

/// The object that a value is, or that a text is written as.
fn object_of(given: &Given) -> Option<Map<String, Value>> {
    let text = match given {
        Given::Json(Value::Object(map)) => return Some(map.clone()),
        Given::Json(Value::String(text)) | Given::Text(text) => text.trim(),
        Given::Json(_) => return None,
    };
    let read = crate::json::read_at(text, 0, text.len())?;
    let is_whole = read.ending == Ending::Whole && read.end == text.len();
    match read.value {
        Value::Object(map) if is_whole && !read.lost && !read.ambiguous => Some(map),
        _ => None,
    }
}

/// The schema's name for an argument: itself, the same in another spelling, or another host's. Of
/// the names that could be meant one that is not given otherwise counts first; a name that only
/// means a given one is that one a second time.
fn argument_name(tool: &ToolSpec, written: &str, given: &[String]) -> String {
    if tool.property(written).is_some() {
        return written.to_owned();
    }
    let folded = fold(written);
    let free = |name: &&String| !given.contains(name);
    let mut taken = None;
    let spelled = tool
        .properties()
        .map(|(name, _)| name)
        .find(|name| fold(name) == folded);
    if let Some(name) = spelled {
        return name.clone();
    }
    for group in SAME_ARGUMENT
        .iter()
        .filter(|group| group.contains(&folded.as_str()))
    {
        let own = || {
            let names = tool.properties().map(|(name, _)| name);
            names.filter(|name| group.contains(&fold(name).as_str()))
        };
        let mut meant = own().filter(free);
        if let (Some(name), None) = (meant.next(), meant.next()) {
            return name.clone();
        }
        if let (Some(name), None) = (own().next(), own().nth(1)) {
            taken = taken.or(Some(name));
        }
    }
    taken.map_or_else(|| written.to_owned(), String::clone)
}

/// The text of a value that stands for something not known yet. File contents are never one.
fn placeholder(name: &str, value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    if is_ellipsis(text) {
        return Some(text.to_owned());
    }
    if text.len() > 120 || SAME_ARGUMENT[1].contains(&fold(name).as_str()) {
        return None;
    }
    let inner = |open: &str, close: &str| text.strip_prefix(open)?.strip_suffix(close);
    let words = |inner: &str| {
        inner.len() >= 2
            && inner.chars().any(char::is_alphabetic)
            && inner.chars().all(|letter| {
                letter.is_alphanumeric()
                    || matches!(letter, ' ' | '_' | '-' | '\'' | '.' | ',' | '#' | ':')
            })
    };
    let found = inner("{{", "}}").is_some_and(|_| true)
        || inner("<", ">").is_some_and(words)
        || inner("${", "}").is_some_and(|inner| inner.contains('.') || inner.contains("result"))
        || inner("[", "]").is_some_and(|inner| {
            words(inner) && inner.contains(' ') && inner.chars().any(char::is_lowercase)
        })
        || [
            "URL_FROM_",
            "RESULT_OF_",
            "OUTPUT_OF_",
            "TO_BE_DETERMINED",
            "PLACEHOLDER",
        ]
        .iter()
        .any(|start| text.starts_with(start));
    found.then(|| text.to_owned())
}

fn is_ellipsis(text: &str) -> bool {
    matches!(text, "..." | "…" | "[...]" | "<...>" | "{...}")
}

/// Whether two names are hosts' names of the same argument.
pub(crate) fn same_argument(one: &str, other: &str) -> bool {
    let (one, other) = (fold(one), fold(other));
    SAME_ARGUMENT
        .iter()
        .any(|group| group.contains(&one.as_str()) && group.contains(&other.as_str()))
}
