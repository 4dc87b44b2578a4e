//! The layer that says what is allowed.

use std::sync::Arc;

use holdfast_contract::{ErrorCode, PermissionTier};
use holdfast_reliability::call::{Call, Failure, Judged, Reply};
use holdfast_reliability::guard::FailureKind;
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `permissions:` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PermissionConfig {
    /// Tools of a higher tier are denied. `Elevated` calls need a person's answer besides, and
    /// without anybody to ask they are denied.
    pub max_tier: PermissionTier,
    /// Tools that are denied whatever their tier.
    pub denied_tools: Vec<String>,
}

impl Default for PermissionConfig {
    fn default() -> Self {
        Self {
            max_tier: PermissionTier::System,
            denied_tools: Vec::new(),
        }
    }
}

/// Refuses what the policy does not allow. Never switched off by the reliability switches.
pub struct Permit<S> {
    inner: S,
    config: Arc<PermissionConfig>,
    runtime: Arc<Runtime>,
}

impl<S: Service> Permit<S> {
    /// Wraps everything that acts.
    pub fn new(inner: S, config: Arc<PermissionConfig>, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            config,
            runtime,
        }
    }

    fn denial(&self, call: &Call) -> Option<String> {
        let tool = call.tool.as_ref()?;
        let (name, tier) = (tool.name(), tool.permission_tier());
        if self.config.denied_tools.iter().any(|denied| denied == name) {
            return Some(format!(
                "the tool {name} is denied by permissions.deniedTools"
            ));
        }
        if tier == PermissionTier::Elevated {
            return Some(format!(
                "{name} is of the Elevated tier and there is nobody to approve it"
            ));
        }
        (tier > self.config.max_tier).then(|| {
            format!(
                "{name} is of the {tier:?} tier, and permissions.maxTier allows {:?} at most",
                self.config.max_tier
            )
        })
    }
}

impl<S: Service> Service for Permit<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let Some(reason) = self.denial(call) else {
            return self.inner.call(call).await;
        };
        let code = ErrorCode::PermissionDenied;
        let (code_text, mode) = (code.as_str(), Mode::Enforce);
        self.runtime.tell(&Event::Blocked {
            call,
            code: code_text,
            why: &reason,
            mode,
        });
        call.explain(reason.clone());
        Failure::before_start(code, reason, Judged::Counts(FailureKind::Permission)).into()
    }
}
