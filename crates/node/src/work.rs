//! Work for a thread of Node's pool: nothing here may hold the event loop up.

use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Result, Task};
use serde_json::Value;

use crate::safely::{failed, run};

/// Work for a thread of Node's pool; what it makes is JSON.
pub struct Work(Option<Box<dyn FnOnce() -> Result<Value> + Send>>);

impl Work {
    pub(crate) fn task(work: impl FnOnce() -> Result<Value> + Send + 'static) -> AsyncTask<Self> {
        AsyncTask::new(Self(Some(Box::new(work))))
    }
}

impl Task for Work {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        match self.0.take() {
            Some(work) => run(|| work().map(|value| value.to_string())),
            None => Err(failed("this work was done already")),
        }
    }

    fn resolve(&mut self, _: Env, output: String) -> Result<String> {
        Ok(output)
    }
}
