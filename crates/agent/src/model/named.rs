//! Several models, each by the name that clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Hear, Model, ModelError, ModelReply, ModelRequest};

/// Asks the model that the request names.
pub struct ByName {
    standard: Arc<dyn Model>,
    named: BTreeMap<String, Arc<dyn Model>>,
}

impl ByName {
    /// These; every other name is that of the standard one.
    pub fn new(standard: Arc<dyn Model>, named: BTreeMap<String, Arc<dyn Model>>) -> Self {
        Self { standard, named }
    }

    fn of(&self, request: &ModelRequest) -> &dyn Model {
        let name = request.body["model"].as_str();
        let found = name.and_then(|name| self.named.get(name));
        &**found.unwrap_or(&self.standard)
    }
}

#[async_trait]
impl Model for ByName {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.of(request).complete(request).await
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.of(request).stream(request, hear).await
    }

    /// The standard one speaks for all: it is what the server was set up for.
    async fn reach(&self) -> Result<(), ModelError> {
        self.standard.reach().await
    }
}
