//! The `message` tool: a text to the people behind a session's channel.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{
    Cause, Clock, Effect, PermissionTier, SessionContext, Tool, ToolContext, ToolError, ToolResult,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::args;

mod surface;

/// Length of one text.
pub const MESSAGE_CHARS_MAX: usize = 20_000;
/// Pieces that one text may be split into for a channel.
pub const MESSAGE_PARTS_MAX: usize = 20;
/// Pieces that may be sent to a channel at once.
pub const MESSAGE_BURST: u64 = 20;
/// One more piece may be sent to a channel each time this passes.
pub const MESSAGE_EVERY_MS: u64 = 1_000;

/// Sends a text on the session's channel, in the form that its surface can show.
pub struct MessageTool {
    clock: Arc<dyn Clock>,
    /// By channel: what may still be sent, and when that was reckoned.
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: u64,
    at_ms: u64,
}

impl MessageTool {
    /// The tool by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            buckets: Mutex::default(),
        }
    }

    /// Takes the right to send so many pieces, or says when to come back.
    fn take(&self, channel: &str, pieces: u64) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let mut buckets = self.buckets.lock();
        let bucket = buckets.entry(channel.to_owned()).or_insert(Bucket {
            left: MESSAGE_BURST,
            at_ms: now_ms,
        });
        let gained = now_ms.saturating_sub(bucket.at_ms) / MESSAGE_EVERY_MS;
        bucket.left = bucket.left.saturating_add(gained).min(MESSAGE_BURST);
        bucket.at_ms += gained * MESSAGE_EVERY_MS;
        match bucket.left.checked_sub(pieces) {
            Some(left) => {
                bucket.left = left;
                Ok(())
            }
            None => Err((pieces - bucket.left) * MESSAGE_EVERY_MS),
        }
    }
}

#[async_trait]
impl Tool for MessageTool {
    fn name(&self) -> &str {
        "message"
    }

    fn description(&self) -> &str {
        "Sends a message to the people on this session's channel. Markdown is adapted to what the \
         channel can show; a long text is split at paragraphs."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS_MAX,
                         "description": "The message, in Markdown."}
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.channel.is_some()
    }

    fn is_idempotent(&self) -> bool {
        false
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let channel = &ctx.channel_handle()?.channel;
        let text = args::text(params, "text")?;
        let pieces = surface::adapt(text, channel.surface());
        let count = pieces.len();
        if count == 0 {
            return Err(ToolError::invalid(
                Some("/text"),
                "`text` must not be empty",
            ));
        }
        if count > MESSAGE_PARTS_MAX {
            let why = format!(
                "`text` would be {count} messages on this channel; {MESSAGE_PARTS_MAX} are the most"
            );
            return Err(ToolError::invalid(Some("/text"), why));
        }
        if let Err(wait_ms) = self.take(channel.name(), count as u64) {
            return Err(ToolError::ExecutionError {
                message: format!("too many messages on {} at once", channel.name()),
                cause: Cause::Throttled {
                    retry_after_ms: Some(wait_ms),
                },
            });
        }
        for (number, piece) in pieces.iter().enumerate() {
            let key = ctx.call.idempotency_key.as_deref();
            let key = key.map(|key| format!("{key}/{number}"));
            let sent = channel.send(piece, key.as_deref()).await;
            sent.map_err(|error| {
                if number == 0 {
                    error
                } else {
                    let sent = format!("{number} of {count} messages were sent, then: {error}");
                    ToolError::lost_track(sent)
                }
            })?;
        }
        let display = format!("Sent {count} message(s) on {}", channel.name());
        Ok(ToolResult::new(
            json!({"channel": channel.name(), "messages": count}),
            display,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn each_channel_has_its_own_bucket_and_it_fills_with_time() {
        let clock = Arc::new(Hand::default());
        let tool = MessageTool::new(clock.clone());
        assert_eq!(tool.take("a", MESSAGE_BURST), Ok(()));
        assert_eq!(tool.take("a", 2), Err(2 * MESSAGE_EVERY_MS));
        assert_eq!(tool.take("b", 1), Ok(()));
        clock.0.store(MESSAGE_EVERY_MS, Ordering::Relaxed);
        assert_eq!(tool.take("a", 1), Ok(()));
        assert_eq!(tool.take("a", 1), Err(MESSAGE_EVERY_MS));
        clock.0.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(tool.take("a", MESSAGE_BURST + 1), Err(MESSAGE_EVERY_MS));
        assert_eq!(tool.take("a", MESSAGE_BURST), Ok(()));
    }
}
