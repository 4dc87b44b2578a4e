//! The `edit` tool.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read;

use async_trait::async_trait;
use cap_std::fs::{Metadata, MetadataExt};
use holdfast_contract::{
    Artifact, Effect, PermissionTier, SessionContext, TierVerdict, Tool, ToolContext, ToolError,
    ToolResult,
};
use memchr::memmem::{self, Finder};
use serde_json::{Value, json};

use super::beneath::Beneath;
use super::blocking::{self, Abandoned};
use super::nearest::nearest;
use super::place::{Place, tier_of_path};
use super::text::{
    binary_file, binary_kind, counted, is_utf16, not_utf8, utf16_order, utf16_unmarked,
};
use super::write::{check_writable, replace};
use super::{args, atomic};

/// Size of a file before and after an edit.
pub const EDIT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Matches that are counted before an edit is refused.
pub const EDIT_MATCHES_COUNTED_MAX: usize = 100;
/// Line numbers of matches that are named.
pub const EDIT_MATCH_LINES_SHOWN_MAX: usize = 10;

/// Replaces an exact text in a file.
///
/// The text has to occur exactly once, unless `replace_all` is set. Line ends are kept: in a file
/// with `\r\n` throughout, both texts are read as if they had been written with `\r\n`.
///
/// Not idempotent: an edit whose new text contains the old one (`x` to `x, y`) would apply again,
/// and one that does not would fail the second time. So a lost answer is never retried blindly.
///
/// ```
/// use std::sync::Arc;
/// use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
/// use holdfast_toolbox::tools::EditTool;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let workspace = tempfile::tempdir().unwrap();
/// std::fs::write(workspace.path().join("a.txt"), "one\ntwo\n").unwrap();
/// let session = SessionContext::main("session", "agent", workspace.path().to_owned());
/// let ctx = ToolContext { session: Arc::new(session), call: CallContext::default() };
/// let params = json!({"path": "a.txt", "old_string": "two", "new_string": "2"});
/// let result = EditTool.execute(&params, &ctx).await.unwrap();
/// assert_eq!(result.output["replacements"], 1);
/// assert_eq!(std::fs::read_to_string(workspace.path().join("a.txt")).unwrap(), "one\n2\n");
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EditTool;

#[async_trait]
impl Tool for EditTool {
    fn name(&self) -> &str {
        "edit"
    }

    fn aliases(&self) -> &[&str] {
        holdfast_contract::names::EDIT
    }

    fn description(&self) -> &str {
        "Replaces an exact text in a file of the workspace. `old_string` has to occur exactly \
         once, white space included; add surrounding lines to make it unique, or set \
         `replace_all`."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path", "old_string", "new_string"],
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The file, relative to the workspace."
                },
                "old_string": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The exact text to replace."
                },
                "new_string": {
                    "type": "string",
                    "description": "What to put in its place; empty to remove it."
                },
                "replace_all": {
                    "type": "boolean",
                    "description": "Replace every occurrence. False unless given."
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::Workspace
    }

    fn tier_for(&self, params: &Value, session: &SessionContext) -> TierVerdict {
        tier_of_path(self.permission_tier(), params, session)
    }

    fn effect(&self) -> Effect {
        Effect::Workspace
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.read.is_some() && session.write.is_some()
    }

    fn is_idempotent(&self) -> bool {
        false
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        // The answer to a failed edit shows lines of the file, so the right to read is needed too.
        ctx.read_handle()?;
        let place = Place::to_write(ctx)?;
        let path = args::text(params, "path")?.to_owned();
        let change = Change::new(
            args::text(params, "old_string")?,
            args::text(params, "new_string")?,
            args::optional_flag(params, "replace_all")?,
        )?;
        blocking::run(move |abandoned| {
            edit(&Beneath::new(&place, "path", &path)?, &change, abandoned)
        })
        .await
    }
}

/// What to replace with what.
#[derive(Debug)]
struct Change {
    old: String,
    new: String,
    everywhere: bool,
}

impl Change {
    fn new(old: &str, new: &str, everywhere: bool) -> Result<Self, ToolError> {
        if old.is_empty() {
            return Err(ToolError::invalid(
                Some("/old_string"),
                "`old_string` must not be empty; use write to create a file",
            ));
        }
        if old == new {
            return Err(ToolError::invalid(
                Some("/new_string"),
                "`new_string` is the same as `old_string`, so there is nothing to change",
            ));
        }
        Ok(Self {
            old: old.to_owned(),
            new: new.to_owned(),
            everywhere,
        })
    }
}

fn edit(target: &Beneath, change: &Change, abandoned: &Abandoned) -> Result<ToolResult, ToolError> {
    // Opened before anything is created: an edit of a missing file must not leave directories.
    target.open_file()?;
    let slot = target.slot()?;
    let _lock = atomic::lock(&slot).map_err(|error| target.fault("edit", &error))?;
    let (content, opened) = load(target)?;
    check_writable(target, &opened)?;
    let edited = apply(target.asked(), &content, change)?;
    let parts: Vec<&[u8]> = edited.parts.iter().map(|part| part.as_bytes()).collect();
    replace(target, &slot, Some(&opened), &parts, || {
        abandoned.check()?;
        if atomic::is_unchanged(&slot, &opened) {
            Ok(())
        } else {
            Err(ToolError::coded(
                "changed_meanwhile",
                format!(
                    "{:?} was changed by someone else during the edit; read it again",
                    target.asked()
                ),
            ))
        }
    })?;

    let shown = target.shown();
    let places = counted(edited.replacements as u64, "place");
    let mut result = ToolResult::new(
        json!({
            "path": shown,
            "replacements": edited.replacements,
            "first_line": edited.first_line,
            "bytes": edited.bytes,
        }),
        format!("Edited {shown} ({places})"),
    );
    result.artifacts.push(Artifact::File { path: shown });
    Ok(result)
}

/// The whole file as text.
fn load(target: &Beneath) -> Result<(String, Metadata), ToolError> {
    let (file, opened) = target.open_file()?;
    let size_bytes = opened.size();
    // With room for all of it at once: a buffer that grows is copied again and again.
    let room = usize::try_from(size_bytes).unwrap_or(EDIT_BYTES_MAX);
    let mut bytes = Vec::with_capacity(room.min(EDIT_BYTES_MAX) + 1);
    file.take(EDIT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| target.fault("edit", &error))?;
    if bytes.len() > EDIT_BYTES_MAX {
        return Err(too_large(target.asked()));
    }
    if let Some(order) = utf16_order(&bytes).or_else(|| utf16_unmarked(&bytes)) {
        return Err(is_utf16(target.asked(), order));
    }
    if let Some(kind) = binary_kind(&bytes) {
        return Err(binary_file(target.asked(), kind, size_bytes));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        not_utf8(
            target.asked(),
            size_bytes,
            error.utf8_error().valid_up_to() as u64,
        )
    })?;
    Ok((text, opened))
}

fn too_large(asked: &str) -> ToolError {
    ToolError::coded(
        "file_too_large",
        format!("{asked:?} is or would become larger than {EDIT_BYTES_MAX} bytes"),
    )
}

#[derive(Debug, PartialEq, Eq)]
struct Edited<'a> {
    /// The new content, in parts: what stays as it is need not be copied.
    parts: Vec<Cow<'a, str>>,
    bytes: usize,
    replacements: usize,
    first_line: usize,
}

/// The edit itself, without any file.
fn apply<'a>(asked: &str, content: &'a str, change: &'a Change) -> Result<Edited<'a>, ToolError> {
    let (old, new) = with_line_ends_of(content, change);
    let finder = Finder::new(old.as_bytes());
    let Some(first) = finder.find(content.as_bytes()) else {
        return Err(no_match(asked, content, &change.old));
    };
    // Counted first and found again below: a list of all places can be larger than the file.
    let replacements = if change.everywhere {
        finder.find_iter(content.as_bytes()).count()
    } else {
        refuse_ambiguous(asked, content, &old, first)?;
        1
    };
    // Known before it is built: a short text in many places times a long one can be any size.
    let removed = old.len() * replacements;
    let added = new.len().saturating_mul(replacements);
    let size = (content.len() - removed).saturating_add(added);
    if size > EDIT_BYTES_MAX {
        return Err(too_large(asked));
    }
    let parts = if replacements == 1 {
        let (before, behind) = (&content[..first], &content[first + old.len()..]);
        vec![Cow::Borrowed(before), new, Cow::Borrowed(behind)]
    } else {
        // In one piece, for the same reason.
        let mut edited = String::with_capacity(size);
        let mut from = 0;
        for at in finder.find_iter(content.as_bytes()) {
            edited.push_str(&content[from..at]);
            edited.push_str(&new);
            from = at + old.len();
        }
        edited.push_str(&content[from..]);
        vec![Cow::Owned(edited)]
    };
    Ok(Edited {
        parts,
        bytes: size,
        replacements,
        first_line: line_of(content, first),
    })
}

/// The change with the line ends that the file uses.
///
/// Models write `\n` whatever the file has. A text that can be found as it stands in a file with
/// mixed line ends is taken as it stands.
fn with_line_ends_of<'a>(content: &str, change: &'a Change) -> (Cow<'a, str>, Cow<'a, str>) {
    let bytes = content.as_bytes();
    // Most files have none, and this look at them is the cheapest.
    let carriage_returns = match memchr::memchr(b'\r', bytes) {
        None => 0,
        Some(_) => memmem::find_iter(bytes, "\r\n").count(),
    };
    let as_given = carriage_returns == 0
        || (carriage_returns < memchr::memchr_iter(b'\n', bytes).count()
            && memmem::find(bytes, change.old.as_bytes()).is_some());
    if as_given {
        (Cow::Borrowed(&change.old), Cow::Borrowed(&change.new))
    } else {
        (Cow::Owned(crlf(&change.old)), Cow::Owned(crlf(&change.new)))
    }
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn line_of(content: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &content.as_bytes()[..at]).count() + 1
}

fn refuse_ambiguous(asked: &str, content: &str, old: &str, first: usize) -> Result<(), ToolError> {
    let starts = starts_of(content, old, first);
    if starts.len() <= 1 {
        return Ok(());
    }
    let count = if starts.len() > EDIT_MATCHES_COUNTED_MAX {
        format!("more than {EDIT_MATCHES_COUNTED_MAX}")
    } else {
        starts.len().to_string()
    };
    let shown = starts.iter().take(EDIT_MATCH_LINES_SHOWN_MAX);
    let lines: Vec<String> = shown.map(|at| line_of(content, *at).to_string()).collect();
    let rest = if starts.len() > lines.len() {
        ", …"
    } else {
        ""
    };
    Err(ToolError::coded(
        "ambiguous_match",
        format!(
            "`old_string` occurs {count} times in {asked:?}, at lines {}{rest}; add surrounding \
             text to make it unique, or set `replace_all`",
            lines.join(", ")
        ),
    ))
}

/// Where `old` begins from its first place on, overlaps included: `aa` is not unique in `aaa`. One
/// more than the limit is looked for, so that the limit can be told from its excess.
fn starts_of(content: &str, old: &str, first: usize) -> Vec<usize> {
    let finder = Finder::new(old.as_bytes());
    let mut starts = vec![first];
    let mut from = first + 1;
    // A text begins at a character, and the rest of one is never the beginning of another: so the
    // next place can be looked for among the bytes.
    while starts.len() <= EDIT_MATCHES_COUNTED_MAX
        && let Some(at) = finder.find(&content.as_bytes()[from..])
    {
        starts.push(from + at);
        from += at + 1;
    }
    starts
}

fn no_match(asked: &str, content: &str, old: &str) -> ToolError {
    let mut message = format!("`old_string` does not occur in {asked:?}");
    let near = nearest(content, old);
    if near.iter().any(|near| near.only_space) {
        message.push_str("; a line differs in white space only");
    }
    if near.is_empty() {
        message.push_str("; no line comes close, read the file again");
    } else {
        message.push_str(". Nearest lines:");
        for near in near {
            // Writing to a string can not fail.
            let _ = write!(message, "\n{}: {}", near.line, near.text);
        }
    }
    ToolError::coded("no_match", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_contract::Cause;

    fn edited(content: &str, old: &str, new: &str, everywhere: bool) -> Result<String, ToolError> {
        let change = Change::new(old, new, everywhere)?;
        let edited = apply("file", content, &change)?;
        let whole = edited.parts.concat();
        assert_eq!(whole.len(), edited.bytes);
        Ok(whole)
    }

    fn refused(content: &str, old: &str) -> (String, String) {
        match edited(content, old, "new", false) {
            Err(ToolError::ExecutionError {
                message,
                cause: Cause::Coded { code },
            }) => (code.into_owned(), message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replaces_what_is_unique() {
        for (content, old, new, expected) in [
            ("a b c", "b", "x", "a x c"),
            ("a\nb\n", "b", "", "a\n\n"),
            ("no end", "end", "final newline", "no final newline"),
            ("größer", "ö", "o", "großer"),
            // In a file with CRLF throughout, both texts are read as CRLF.
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            // In a mixed file the text is taken as it stands when it can be found.
            ("a\nb\r\nc\n", "c\n", "x\ny\n", "a\nb\r\nx\ny\n"),
            ("a\nb\r\nc\r\n", "b\nc", "x\ny", "a\nx\r\ny\r\n"),
        ] {
            assert_eq!(
                edited(content, old, new, false).as_deref(),
                Ok(expected),
                "{content:?}"
            );
        }
    }

    #[test]
    fn replaces_everywhere_when_asked() {
        assert_eq!(edited("a a a", "a", "b", true).as_deref(), Ok("b b b"));
        assert_eq!(edited("aaa", "aa", "b", true).as_deref(), Ok("ba"));
    }

    #[test]
    fn refuses_what_is_not_unique() {
        let (code, message) = refused("x = 1\ny\nx = 1\n", "x = 1");
        assert_eq!(code, "ambiguous_match");
        assert!(
            message.contains("2 times") && message.contains("lines 1, 3;"),
            "{message}"
        );
        let (code, message) = refused("aaa", "aa");
        assert_eq!(code, "ambiguous_match", "overlaps count: {message}");
        let (_, message) = refused(&"a\n".repeat(1000), "a");
        assert!(message.contains("more than 100 times"), "{message}");
        assert!(message.contains("9, 10, …"), "{message}");
    }

    #[test]
    fn refuses_what_is_not_there_and_shows_what_is_near() {
        let (code, message) = refused("fn one() {}\n\tfn two(a: u8) {}\n", "fn two(a: u16) {}");
        assert_eq!(code, "no_match");
        assert!(message.contains("2: \tfn two(a: u8) {}"), "{message}");
        let (_, message) = refused("if  x {\n", "if x {");
        assert!(message.contains("white space only"), "{message}");
    }

    #[test]
    fn refuses_empty_and_equal_texts() {
        for (old, new) in [("", "x"), ("x", "x")] {
            let error = edited("x", old, new, false).unwrap_err();
            assert!(
                matches!(error, ToolError::ValidationError { .. }),
                "{error:?}"
            );
        }
    }

    #[test]
    fn refuses_to_grow_a_file_beyond_bounds() {
        let content = "a".repeat(10_000);
        let error = edited(&content, "a", &"b".repeat(10_000), true).unwrap_err();
        assert!(
            matches!(error, ToolError::ExecutionError { cause: Cause::Coded { code }, .. } if code == "file_too_large")
        );
    }
}
