//! The `read` tool.

use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};

use async_trait::async_trait;
use cap_std::fs::MetadataExt;
use holdfast_contract::{
    Effect, PermissionTier, SessionContext, TierVerdict, Tool, ToolContext, ToolError, ToolResult,
};
use memchr::{memchr, memchr_iter};
use serde_json::{Value, json};

use super::args;
use super::beneath::Beneath;
use super::blocking;
use super::place::{Place, tier_of_path};
use super::tail;
use super::text::{binary_file, binary_kind, counted, from_utf16, not_utf8, utf16_order};

/// Content in one answer.
pub const READ_BYTES_MAX: usize = 256 * 1024;
/// How far into a file lines are looked for and counted.
pub const READ_SCAN_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// A UTF-16 file that is turned into UTF-8 to be read; a larger one is refused.
pub const READ_UTF16_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much of a file is looked at at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// The part of a file that decides whether it is text.
const HEAD_BYTES: usize = 8 * 1024;

/// Reads a text file, whole or a range of its lines.
///
/// The answer is bounded, and `next_offset` says where to go on. Files that are not text are
/// refused with what they seem to be: their bytes would only be noise to a model.
///
/// ```
/// use std::sync::Arc;
/// use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
/// use holdfast_toolbox::tools::ReadTool;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let workspace = tempfile::tempdir().unwrap();
/// std::fs::write(workspace.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
/// let session = SessionContext::main("session", "agent", workspace.path().to_owned());
/// let ctx = ToolContext { session: Arc::new(session), call: CallContext::default() };
/// let params = json!({"path": "a.txt", "offset": 2, "limit": 1});
/// let result = ReadTool.execute(&params, &ctx).await.unwrap();
/// assert_eq!(result.output["content"], "two\n");
/// assert_eq!(result.output["next_offset"], 3);
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadTool;

#[async_trait]
impl Tool for ReadTool {
    fn name(&self) -> &str {
        "read"
    }

    fn aliases(&self) -> &[&str] {
        holdfast_contract::names::READ
    }

    fn description(&self) -> &str {
        "Reads a text file in the workspace. A long file comes in parts: go on with `offset` set \
         to the answer's `next_offset`, and `column` to its `next_column` where there is one."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The file, relative to the workspace."
                },
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "The first line to read, from 1."
                },
                "column": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "The first character of that line to read, from 1; for a line that is too long."
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many lines to read at most."
                },
                "tail": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Read this many lines at the end instead; not with offset or limit."
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn tier_for(&self, params: &Value, session: &SessionContext) -> TierVerdict {
        tier_of_path(self.permission_tier(), params, session)
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.read.is_some()
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let place = Place::to_read(ctx)?;
        let path = args::text(params, "path")?.to_owned();
        let wanted = wanted(params)?;
        blocking::run(move |_| read(&Beneath::new(&place, "path", &path)?, wanted)).await
    }
}

/// Which part of a file.
#[derive(Debug, Clone, Copy)]
enum Part {
    Lines(Wanted),
    /// So many lines at the end.
    Tail(u64),
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    first_line: u64,
    /// The character of the first line to begin with, from 1.
    first_column: u64,
    lines_max: u64,
}

fn wanted(params: &Value) -> Result<Part, ToolError> {
    let offset = args::optional_count(params, "offset")?;
    let column = args::optional_count(params, "column")?;
    let limit = args::optional_count(params, "limit")?;
    let is_range = offset.is_some() || column.is_some() || limit.is_some();
    match args::optional_count(params, "tail")? {
        None => Ok(Part::Lines(Wanted {
            first_line: offset.unwrap_or(1),
            first_column: column.unwrap_or(1),
            lines_max: limit.unwrap_or(u64::MAX),
        })),
        Some(lines) if !is_range => Ok(Part::Tail(lines)),
        Some(_) => Err(ToolError::invalid(
            Some("/tail"),
            "`tail` goes without `offset`, `column` and `limit`".to_owned(),
        )),
    }
}

fn read(target: &Beneath, part: Part) -> Result<ToolResult, ToolError> {
    let (mut file, metadata) = target.open_file()?;
    let size_bytes = metadata.size();
    let failed = |error: std::io::Error| target.fault("read", &error);
    let mut head = Vec::new();
    Read::by_ref(&mut file)
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    file.rewind().map_err(failed)?;
    if let Some(order) = utf16_order(&head) {
        let mut bytes = Vec::new();
        let taken = file.take(READ_UTF16_BYTES_MAX + 1).read_to_end(&mut bytes);
        taken.map_err(failed)?;
        let text = (bytes.len() as u64 <= READ_UTF16_BYTES_MAX)
            .then(|| from_utf16(&bytes, order))
            .flatten();
        let text = text.ok_or_else(|| binary_file(target.asked(), "UTF-16 text", size_bytes))?;
        let mut result = read_from(target, Cursor::new(text), part, size_bytes)?;
        result.output["encoding"] = order.into();
        return Ok(result);
    }
    if let Some(kind) = binary_kind(&head) {
        return Err(binary_file(target.asked(), kind, size_bytes));
    }
    read_from(target, file, part, size_bytes)
}

fn read_from(
    target: &Beneath,
    source: impl Read + Seek,
    part: Part,
    size_bytes: u64,
) -> Result<ToolResult, ToolError> {
    let failed = |error: std::io::Error| target.fault("read", &error);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, source);
    let wanted = match part {
        Part::Lines(wanted) => wanted,
        Part::Tail(lines_max) if size_bytes > READ_SCAN_BYTES_MAX => {
            return end_of(target, &mut reader, lines_max, size_bytes);
        }
        Part::Tail(lines_max) => {
            // Counted first, so that the answer can say which lines they are.
            let none = Wanted {
                first_line: u64::MAX,
                first_column: 1,
                lines_max: 1,
            };
            let counted = collect(&mut reader, none).map_err(failed)?;
            reader.rewind().map_err(failed)?;
            Wanted {
                first_line: counted.lines_seen.saturating_sub(lines_max) + 1,
                first_column: 1,
                lines_max,
            }
        }
    };
    let found = collect(&mut reader, wanted).map_err(failed)?;
    if found.starts_at_byte.is_none() && found.scan_stopped {
        return Err(ToolError::coded(
            "file_too_large",
            format!(
                "{:?} has {size_bytes} bytes and line {} is not within the first \
                 {READ_SCAN_BYTES_MAX}",
                target.asked(),
                wanted.first_line
            ),
        ));
    }
    let content = checked(target, &found, 0, size_bytes)?;
    Ok(answer(target, wanted, &found, content, size_bytes))
}

/// What was found, when it is text. The scan began at this byte of the file.
fn checked<'f>(
    target: &Beneath,
    found: &'f Found,
    began_at_byte: u64,
    size_bytes: u64,
) -> Result<&'f str, ToolError> {
    if found.content.contains(&0) {
        return Err(binary_file(target.asked(), "binary data", size_bytes));
    }
    found.text().map_err(|at| {
        let before = began_at_byte + found.starts_at_byte.unwrap_or(0);
        not_utf8(target.asked(), size_bytes, before + at as u64)
    })
}

/// The last lines of a file that is too large to be counted through.
fn end_of(
    target: &Beneath,
    reader: &mut (impl BufRead + Seek),
    lines_max: u64,
    size_bytes: u64,
) -> Result<ToolResult, ToolError> {
    let failed = |error: std::io::Error| target.fault("read", &error);
    let from = tail::start(reader, lines_max, READ_BYTES_MAX as u64).map_err(failed)?;
    reader.seek(SeekFrom::Start(from)).map_err(failed)?;
    let wanted = Wanted {
        first_line: 1,
        first_column: 1,
        lines_max,
    };
    let found = collect(reader, wanted).map_err(failed)?;
    let content = checked(target, &found, from, size_bytes)?;
    let shown = target.shown();
    let lines = counted(found.lines, "line");
    let output = json!({
        "path": shown,
        "content": content,
        "lines": found.lines,
        "size_bytes": size_bytes,
        "truncated": found.lines < lines_max || found.line_cut,
        "note": format!(
            "the end of a file of more than {READ_SCAN_BYTES_MAX} bytes, whose lines are not counted"
        ),
    });
    Ok(ToolResult::new(
        output,
        format!("Read the last {lines} of {shown}"),
    ))
}

/// The wanted lines and what was learned about the file on the way.
#[derive(Debug, Default)]
struct Found {
    content: Vec<u8>,
    /// Where the first wanted line begins, when it exists.
    starts_at_byte: Option<u64>,
    lines: u64,
    /// Lines in the file as far as it was scanned.
    lines_seen: u64,
    /// There is more of the file behind `content`.
    more: bool,
    /// `content` ends within a line that is too long.
    line_cut: bool,
    /// The scan limit came before the end of the file.
    scan_stopped: bool,
    /// Characters of the first wanted line, when it ends before the wanted column.
    ends_at_column: Option<u64>,
}

/// Goes through the file once. Memory is bounded by the answer, not by the file or its lines.
fn collect(reader: &mut impl BufRead, wanted: Wanted) -> std::io::Result<Found> {
    let mut found = Found::default();
    let mut scanned = 0_u64;
    let mut line = 1_u64;
    let mut at_line_start = true;
    let left = wanted.first_column.checked_sub(1);
    let mut before = Before {
        left: left.filter(|count| *count > 0),
        short_by: None,
    };
    let last_line = wanted.first_line.saturating_add(wanted.lines_max - 1);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        if scanned >= READ_SCAN_BYTES_MAX {
            found.scan_stopped = true;
            found.more |= found.starts_at_byte.is_some();
            break;
        }
        let is_wanted = (wanted.first_line..=last_line).contains(&line) && !found.more;
        let (length, newlines) = if is_wanted {
            let end = memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |at| at + 1);
            let left_out = if line == wanted.first_line {
                before.leave_out(&buffer[..length])
            } else {
                0
            };
            if left_out < length {
                found
                    .starts_at_byte
                    .get_or_insert(scanned + left_out as u64);
                let begins = at_line_start || found.lines == 0;
                take(&mut found, &buffer[left_out..length], begins);
            }
            (length, u64::from(end.is_some()))
        } else if line < wanted.first_line {
            skip(buffer, wanted.first_line - line)
        } else {
            found.more = true;
            skip(buffer, u64::MAX)
        };
        at_line_start = buffer[..length].ends_with(b"\n");
        line += newlines;
        found.lines_seen = line - u64::from(at_line_start);
        reader.consume(length);
        scanned += length as u64;
    }
    let is_last = line == wanted.first_line && !at_line_start && !found.scan_stopped;
    let short_by = before.short_by.or(before.left.filter(|_| is_last));
    found.ends_at_column = short_by.map(|missing| wanted.first_column - 1 - missing);
    Ok(found)
}

/// Characters of the first line that stand before what is wanted.
struct Before {
    /// Those still to be left out; nothing once what is wanted began.
    left: Option<u64>,
    /// Those that were missing when the line ended.
    short_by: Option<u64>,
}

impl Before {
    /// How many bytes of this piece of the line stand before what is wanted. A line's end never does.
    fn leave_out(&mut self, piece: &[u8]) -> usize {
        let Some(left) = &mut self.left else {
            return 0;
        };
        for (at, byte) in piece.iter().enumerate() {
            let begins = byte & 0b1100_0000 != 0b1000_0000;
            if *byte == b'\n' || begins && *left == 0 {
                self.short_by = Some(*left).filter(|missing| *missing > 0);
                self.left = None;
                return at;
            }
            *left -= u64::from(begins);
        }
        piece.len()
    }
}

/// Goes over this many line ends, or all there are: how many bytes and line ends that were.
fn skip(buffer: &[u8], line_ends_max: u64) -> (usize, u64) {
    let mut seen = 0;
    for at in memchr_iter(b'\n', buffer) {
        seen += 1;
        if seen == line_ends_max {
            return (at + 1, seen);
        }
    }
    (buffer.len(), seen)
}

/// Adds a piece of a line, or marks that it did not fit.
fn take(found: &mut Found, piece: &[u8], at_line_start: bool) {
    let room = READ_BYTES_MAX - found.content.len();
    if piece.len() <= room {
        found.lines += u64::from(at_line_start);
        found.content.extend_from_slice(piece);
        return;
    }
    found.more = true;
    // Whole lines are better than a cut one, unless the first line alone is too long.
    if found.lines > 1 || (found.lines == 1 && at_line_start) {
        let kept = found.content.iter().rposition(|byte| *byte == b'\n');
        let whole = kept.map_or(0, |at| at + 1);
        found.lines -= u64::from(whole < found.content.len());
        found.content.truncate(whole);
    } else {
        found.lines = 1;
        found.line_cut = true;
        found.content.extend_from_slice(&piece[..room]);
    }
}

impl Found {
    /// The content as text, or where it stops being text.
    fn text(&self) -> Result<&str, usize> {
        std::str::from_utf8(&self.content).or_else(|error| {
            let valid = error.valid_up_to();
            // Only a cut may end within a character.
            if self.line_cut && error.error_len().is_none() {
                Ok(std::str::from_utf8(&self.content[..valid]).unwrap_or_default())
            } else {
                Err(valid)
            }
        })
    }
}

fn answer(
    target: &Beneath,
    wanted: Wanted,
    found: &Found,
    content: &str,
    size_bytes: u64,
) -> ToolResult {
    let shown = target.shown();
    let first = wanted.first_line;
    let within_line = wanted.first_column + content.chars().count() as u64;
    // Of a line that was cut there is more in itself.
    let next = first + found.lines - u64::from(found.line_cut);
    let mut output = json!({
        "path": shown,
        "content": content,
        "first_line": first,
        "lines": found.lines,
        "size_bytes": size_bytes,
        "truncated": found.more,
    });
    if !found.scan_stopped {
        output["total_lines"] = found.lines_seen.into();
    }
    let note = if found.line_cut {
        Some(format!(
            "line {first} is longer than {READ_BYTES_MAX} bytes and was cut; go on with offset \
             {first} and column {within_line}"
        ))
    } else if found.more {
        Some(format!("there is more; go on with offset {next}"))
    } else if let Some(chars) = found.ends_at_column {
        let chars = counted(chars, "character");
        Some(format!("line {first} has only {chars}"))
    } else if found.starts_at_byte.is_none() && first > 1 {
        let total = counted(found.lines_seen, "line");
        Some(format!("the file has only {total}"))
    } else {
        None
    };
    if found.more {
        output["next_offset"] = next.into();
    }
    if found.line_cut {
        output["next_column"] = within_line.into();
    }
    if wanted.first_column > 1 {
        output["first_column"] = wanted.first_column.into();
    }
    if let Some(note) = note {
        output["note"] = note.into();
    }
    let lines = counted(found.lines, "line");
    let rest = if found.more { ", there is more" } else { "" };
    ToolResult::new(output, format!("Read {lines} of {shown}{rest}"))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
