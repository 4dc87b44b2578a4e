//! Several models, each by the name that clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Hear, Model, ModelError, ModelReply, ModelRequest};

/// Asks the model that the request names. A name that is not there is answered by nobody else: a run
/// that was kept may go on after its model is gone.
pub struct ByName {
    standard: Arc<dyn Model>,
    named: BTreeMap<String, Arc<dyn Model>>,
}

impl ByName {
    /// These; the standard one speaks for all when they are asked whether they are there.
    pub fn new(standard: Arc<dyn Model>, named: BTreeMap<String, Arc<dyn Model>>) -> Self {
        Self { standard, named }
    }

    fn of(&self, request: &ModelRequest) -> Result<&dyn Model, ModelError> {
        let name = request.body["model"].as_str().unwrap_or_default();
        let found = self.named.get(name).map(|model| &**model);
        found.ok_or_else(|| {
            ModelError::Refused(format!("no model {name:?} is configured here any more"))
        })
    }
}

#[async_trait]
impl Model for ByName {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.of(request)?.complete(request).await
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.of(request)?.stream(request, hear).await
    }

    /// The standard one: it is what the server was set up for.
    async fn reach(&self) -> Result<(), ModelError> {
        self.standard.reach().await
    }

    async fn reach_each(&self) -> Vec<(String, Result<(), ModelError>)> {
        self.standard.reach_each().await
    }
}
