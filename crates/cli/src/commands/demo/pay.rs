//! The demo's tool: it posts a payment to the service and can not be taken back.

use std::net::SocketAddr;

use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Posts a payment.
pub(super) struct PayTool {
    service: SocketAddr,
    time_limit_ms: u64,
}

impl PayTool {
    pub(super) fn new(service: SocketAddr, time_limit_ms: u64) -> Self {
        Self {
            service,
            time_limit_ms,
        }
    }
}

#[async_trait::async_trait]
impl Tool for PayTool {
    fn name(&self) -> &str {
        "pay"
    }

    fn description(&self) -> &str {
        "Pays an order. Can not be taken back."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "required": ["order"],
            "properties": {"order": {"type": "string"}},
            "additionalProperties": false
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    fn default_timeout_ms(&self) -> u64 {
        self.time_limit_ms
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let limit =
            std::time::Duration::from_millis(ctx.call.time_limit_ms.unwrap_or(self.time_limit_ms));
        let order = params["order"].as_str().unwrap_or_default();
        match tokio::time::timeout(limit, post(self.service, order)).await {
            Ok(Ok(200)) => Ok(ToolResult::new(
                json!({"paid": order}),
                format!("Paid {order}."),
            )),
            Ok(Ok(status)) => Err(ToolError::http(
                status,
                None,
                format!("the service answered {status}"),
            )),
            Ok(Err(error)) => Err(transport(&error)),
            Err(_) => Err(ToolError::timed_out(limit)),
        }
    }
}

fn transport(error: &std::io::Error) -> ToolError {
    let code = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        _ => "ECONNRESET",
    };
    ToolError::transport(code, error.to_string())
}

/// Posts a body and gives back the status.
async fn post(service: SocketAddr, body: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(service).await?;
    let head = format!(
        "POST /pay HTTP/1.1\r\nhost: {service}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    answer
        .split_whitespace()
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| std::io::Error::other("the answer is no HTTP"))
}
