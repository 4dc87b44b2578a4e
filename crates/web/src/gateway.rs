//! Tools of the `OpenClaw` gateway behind the same trait: `POST /tools/invoke`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::names::of_gateway;
use holdfast_contract::{
    Cause, Clock, Effect, HandsOn, PermissionTier, Reason, SessionContext, TierVerdict, Tool,
    ToolContext, ToolError, ToolResult,
};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::client::{Time, failed, retry_after_ms};
use crate::config::{GatewayConfig, GatewayToolConfig};
use crate::files;
use crate::hands_on;
use crate::known::KNOWN;
use crate::limits::{GATEWAY_BODY_BYTES_MAX, GATEWAY_TIMEOUT_MS};
use crate::schemas;

/// A client of one gateway.
#[derive(Debug)]
pub struct GatewayClient {
    client: Client,
    url: Url,
    token: Option<HeaderValue>,
    token_env: String,
    session_key: Option<String>,
    agent_id: Option<String>,
    time: Time,
}

impl GatewayClient {
    /// A client with these settings. The token is the value of the variable that they name.
    pub fn new(
        config: &GatewayConfig,
        token: Option<&str>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let url = Url::parse(&format!(
            "{}/tools/invoke",
            config.url.trim_end_matches('/')
        ))
        .map_err(|error| format!("{:?} is no address: {error}", config.url))?;
        let token = token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                    .map_err(|_| "the token holds what no header can hold".to_owned())?;
                value.set_sensitive(true);
                Ok::<_, String>(value)
            })
            .transpose()?;
        let client = holdfast_client::builder()
            // What the model client may speak was not meant for others.
            .http1_only()
            .timeout(Duration::from_millis(GATEWAY_TIMEOUT_MS))
            .no_proxy()
            .build()
            .map_err(|error| format!("the HTTP client can not be built: {error}"))?;
        Ok(Self {
            client,
            url,
            token,
            token_env: config.token_env.clone(),
            session_key: config.session_key.clone(),
            agent_id: config.agent_id.clone(),
            time: Time(clock),
        })
    }

    /// Whether the gateway is there and lets us in; the error says what is wrong. Asks for a tool that
    /// no gateway has, so that nothing is done.
    pub async fn reach(&self) -> Result<(), String> {
        let nothing = ("holdfast_is_anybody_there", Effect::None);
        match self.invoke(nothing, None, &json!({}), None).await {
            Ok(_) => Ok(()),
            Err(error) => match &error {
                ToolError::ExecutionError {
                    cause: Cause::Coded { code },
                    ..
                } if code == "gateway_tool_not_found" => Ok(()),
                _ => Err(error.to_string()),
            },
        }
    }

    /// Calls a tool of the gateway that has this effect; the answer is its `result`, always as an
    /// object.
    pub async fn invoke(
        &self,
        (tool, effect): (&str, Effect),
        action: Option<&str>,
        args: &Value,
        key: Option<&str>,
    ) -> Result<Value, ToolError> {
        let mut body = json!({"tool": tool, "args": args});
        let besides = [
            ("action", action),
            ("idempotencyKey", key),
            ("sessionKey", self.session_key.as_deref()),
            ("agentId", self.agent_id.as_deref()),
        ];
        for (name, value) in besides {
            if let Some(value) = value {
                body[name] = json!(value);
            }
        }
        let mut asked = self.client.post(self.url.clone());
        if let Some(token) = &self.token {
            asked = asked.header(AUTHORIZATION, token.clone());
        }
        let asked = asked
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = asked.send().await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let wait_ms = retry_after_ms(answer.headers(), &self.time);
        let taken = taken(answer).await;
        if !status.is_success() {
            // The status says what it means, also when its reason can not be taken.
            let reason = taken.ok().flatten().unwrap_or_default();
            return Err(self.refusal(tool, status, wait_ms, &reason));
        }
        match taken? {
            Some(bytes) => success(tool, &bytes),
            None => Err(too_large(tool, effect)),
        }
    }

    /// What a refusal means. The gateway has two shapes for it: one of its tools', and one of its
    /// HTTP server's.
    fn refusal(
        &self,
        tool: &str,
        status: StatusCode,
        wait_ms: Option<u64>,
        bytes: &[u8],
    ) -> ToolError {
        let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let error = &body["error"];
        let said = error["message"].as_str().unwrap_or("no reason given");
        let kind = error["type"].as_str().unwrap_or_default();
        let message = format!("the gateway answered {status} for {tool}: {said}");
        match (status, kind) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => ToolError::PermissionDenied {
                tier: PermissionTier::System,
                reason: format!("{message}; look at the token in {}", self.token_env),
            },
            (StatusCode::BAD_REQUEST, "tool_error") => ToolError::invalid(None, message),
            (StatusCode::NOT_FOUND, _) => ToolError::coded("gateway_tool_not_found", message),
            _ => ToolError::http(status.as_u16(), wait_ms, message),
        }
    }
}

/// The body of an answer; nothing if it is too large.
async fn taken(mut answer: Response) -> Result<Option<Vec<u8>>, ToolError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > GATEWAY_BODY_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The gateway says that it worked, and more than can be taken. To the caller of a tool with an effect
/// that must not look like a call that did nothing and may be made again.
fn too_large(tool: &str, effect: Effect) -> ToolError {
    let message =
        format!("the gateway's answer to {tool} is larger than {GATEWAY_BODY_BYTES_MAX} bytes");
    match effect {
        Effect::None => ToolError::coded("too_large", message),
        Effect::Workspace | Effect::External => ToolError::lost_track(message),
    }
}

/// `result` is an object today and was a string in older versions.
fn success(tool: &str, bytes: &[u8]) -> Result<Value, ToolError> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| {
        ToolError::lost_track(format!(
            "the gateway did not answer {tool} with JSON: {error}"
        ))
    })?;
    match (&body["ok"], &body["result"]) {
        (Value::Bool(true), Value::String(text)) => {
            Ok(json!({"content": [{"type": "text", "text": text}]}))
        }
        (Value::Bool(true), result) => Ok(result.clone()),
        _ => Err(ToolError::lost_track(format!(
            "the gateway's answer to {tool} says neither that it worked nor that it did not"
        ))),
    }
}

/// One tool of the gateway.
pub struct GatewayTool {
    client: Arc<GatewayClient>,
    /// Its name there.
    remote: String,
    /// Its name here.
    name: String,
    /// Its other names here.
    aliases: &'static [&'static str],
    description: String,
    tier: PermissionTier,
    effect: Effect,
    /// Whom it may write to unasked.
    recipients: Vec<String>,
}

impl GatewayTool {
    /// The tool as it is known and configured.
    pub fn new(client: Arc<GatewayClient>, remote: &str, config: &GatewayToolConfig) -> Self {
        let known = KNOWN.iter().find(|(name, ..)| *name == remote);
        let (tier, effect, about) = match known {
            Some((_, tier, effect, about)) => (*tier, *effect, *about),
            None => (
                PermissionTier::System,
                Effect::External,
                "A tool of the gateway.",
            ),
        };
        let tier = config.tier.unwrap_or(tier);
        // Whoever offers a tool for more than looking offers all that it does.
        let effect = match tier {
            PermissionTier::ReadOnly => effect,
            _ => Effect::External,
        };
        let description = config
            .description
            .clone()
            .unwrap_or_else(|| about.to_owned());
        let (name, aliases) = of_gateway(remote);
        Self {
            client,
            remote: remote.to_owned(),
            name,
            aliases,
            description,
            tier,
            effect,
            recipients: config.recipients.clone(),
        }
    }

    /// Why a tool that is offered for looking does not do this.
    fn beyond_reading(&self, params: &Value) -> Option<Reason> {
        if self.effect != Effect::None {
            return None;
        }
        let argument = hands_on::beyond_reading(&self.remote, params)?;
        let text = format!(
            "{} is offered for looking, and with {argument:?} it may do more; with \
             gateway.tools.{}.tier: System all of it is offered",
            self.name, self.remote
        );
        Some(Reason::new("beyond_reading", argument, text))
    }

    /// The names of those that are known there. Others can be configured as well.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, ..)| *name)
    }

    /// All that are configured.
    pub fn all(client: &Arc<GatewayClient>, config: &GatewayConfig) -> Vec<Arc<dyn Tool>> {
        let tools = config.tools.iter();
        tools
            .map(|(name, tool)| Arc::new(Self::new(client.clone(), name, tool)) as Arc<dyn Tool>)
            .collect()
    }
}

/// The arguments of a call in one form: the gateway's under `args`, and beside them the `action` of
/// a call that has an `args` of its own. Models write them flat, as the gateway's schemas have them.
fn laid_out(params: &Value) -> Value {
    let Value::Object(members) = params else {
        return json!({"args": {}});
    };
    let Some(Value::Object(within)) = members.get("args") else {
        return json!({ "args": members });
    };
    let mut args = within.clone();
    let mut laid_out = Map::new();
    for (name, value) in members {
        match name.as_str() {
            "args" => {}
            "action" => {
                laid_out.insert(name.clone(), value.clone());
            }
            _ => {
                args.insert(name.clone(), value.clone());
            }
        }
    }
    laid_out.insert("args".to_owned(), Value::Object(args));
    Value::Object(laid_out)
}

#[async_trait]
impl Tool for GatewayTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[&str] {
        self.aliases
    }

    fn namespace(&self) -> &str {
        "openclaw.gateway"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters_schema(&self) -> Value {
        schemas::of(&self.remote)
    }

    fn permission_tier(&self) -> PermissionTier {
        self.tier
    }

    fn tier_for(&self, params: &Value, session: &SessionContext) -> TierVerdict {
        let params = &laid_out(params);
        let mut verdict = TierVerdict::declared(self.tier);
        verdict.forbidden = self.beyond_reading(params);
        hands_on::raise(&self.remote, params, &self.recipients, &mut verdict);
        let root = &session.workspace_root;
        hands_on::sends_files(&self.remote, params, root, &mut verdict);
        files::outside(&self.remote, params, root, &mut verdict);
        verdict
    }

    fn hands_on(&self, params: &Value) -> HandsOn {
        hands_on::handed(&laid_out(params))
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn may_change_workspace(&self) -> bool {
        self.effect != Effect::None && files::may_change(&self.remote)
    }

    fn known_as(&self) -> &str {
        &self.remote
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        self.effect == Effect::None || session.exec.is_some()
    }

    fn forwards_idempotency_key(&self) -> bool {
        true
    }

    fn dependency(&self) -> Option<&str> {
        Some("openclaw-gateway")
    }

    fn default_timeout_ms(&self) -> u64 {
        GATEWAY_TIMEOUT_MS
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        // A session that may change nothing has no handle to change anything with, and the gateway
        // would not know.
        if self.effect != Effect::None {
            ctx.exec_handle()?;
        }
        let params = &laid_out(params);
        if let Some(reason) = self.beyond_reading(params) {
            return Err(ToolError::PermissionDenied {
                tier: PermissionTier::System,
                reason: reason.text,
            });
        }
        let args = &params["args"];
        let key = ctx.call.idempotency_key.as_deref();
        let action = params["action"].as_str();
        let tool = (self.remote.as_str(), self.effect);
        let result = self.client.invoke(tool, action, args, key).await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let display: String = text.chars().take(200).collect();
        Ok(ToolResult::new(result, display))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_arguments_and_those_under_args_mean_the_same() {
        let open = json!({"action": "open", "url": "https://a.example"});
        for (params, expected) in [
            (open.clone(), json!({ "args": open })),
            (
                json!({"action": "open", "args": {"url": "https://a.example"}}),
                json!({"action": "open", "args": {"url": "https://a.example"}}),
            ),
            // What is judged is what is sent: nothing beside `args` is lost.
            (
                json!({"command": "rm x", "args": {"command": "ls"}}),
                json!({"args": {"command": "rm x"}}),
            ),
            (json!({}), json!({"args": {}})),
            (json!(7), json!({"args": {}})),
        ] {
            assert_eq!(laid_out(&params), expected, "{params}");
        }
    }
}
