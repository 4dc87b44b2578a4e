//! The layer that finds the tool.

use std::sync::Arc;

use holdfast_contract::ErrorCode;
use holdfast_reliability::call::{Call, Failure, Judged, Reply};
use holdfast_reliability::guard::FailureKind;
use holdfast_reliability::service::Service;

use crate::coerce::fitted;
use crate::registry::Registry;
use crate::tools::{has_alias, normalise_arguments};

/// Finds the tool, and gives its arguments their own names and types.
pub struct Resolve<S> {
    inner: S,
    registry: Arc<Registry>,
}

impl<S: Service> Resolve<S> {
    /// Wraps everything that needs to know the tool.
    pub fn new(inner: S, registry: Arc<Registry>) -> Self {
        Self { inner, registry }
    }

    fn not_found(&self, name: &str) -> Failure {
        let alike = self.registry.suggest(name);
        let advice = if alike.is_empty() {
            let known: Vec<&str> = self
                .registry
                .iter()
                .map(|known| known.tool.name())
                .collect();
            format!("Known tools: {}.", known.join(", "))
        } else {
            format!("Did you mean {}?", alike.join(" or "))
        };
        Failure::before_start(
            ErrorCode::ToolNotFound,
            format!("There is no tool named {name:?}. {advice}"),
            Judged::Counts(FailureKind::UnknownTool),
        )
    }
}

impl<S: Service> Service for Resolve<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let Some(found) = self.registry.resolve(&call.envelope.tool_name) else {
            return self.not_found(&call.envelope.tool_name).into();
        };
        call.tool = Some(found.tool.clone());
        // Keys, breakers and metrics are by the tool's own name, not by the model's spelling.
        if call.envelope.tool_name != found.tool.name() {
            found.tool.name().clone_into(&mut call.envelope.tool_name);
        }
        if has_alias(found.tool.name(), &call.envelope.payload.params) {
            normalise_arguments(found.tool.name(), call.params_mut());
        }
        // Before anybody judges by them: what is asked about is what runs.
        if let Some(fitted) = fitted(&call.envelope.payload.params, &found.schema) {
            call.explain("arguments were given the types that the tool's schema wants");
            *call.params_mut() = fitted;
        }
        self.inner.call(call).await
    }
}
