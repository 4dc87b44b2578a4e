//! The shape of a layer.
//!
//! A layer is a [`Service`] around another. There is no readiness protocol and nothing to clone:
//! a call is answered, whatever happens, with a [`Reply`]. Layers compose as nested types, so the
//! whole stack is one future and costs one allocation.

use std::future::Future;

use crate::call::{Call, Reply};

/// Answers calls.
pub trait Service: Send + Sync {
    /// Answers one call. `call` collects what the layers find out on the way.
    fn call<'a>(&'a self, call: &'a mut Call) -> impl Future<Output = Reply> + Send + 'a;
}

/// Builds a stack from the inside out, so that the list of pushes reads from the tool to the
/// caller and every push names its reason.
///
/// ```
/// use holdfast_reliability::service::{Stack, Service};
/// use holdfast_reliability::call::{Call, Reply};
///
/// struct Counted<S>(S);
/// impl<S: Service> Service for Counted<S> {
///     async fn call(&self, call: &mut Call) -> Reply { self.0.call(call).await }
/// }
/// fn build<S: Service>(innermost: S) -> impl Service {
///     Stack::new(innermost).push(Counted).build()
/// }
/// ```
pub struct Stack<S> {
    service: S,
}

impl<S: Service> Stack<S> {
    /// Starts with the innermost service.
    pub fn new(service: S) -> Self {
        Self { service }
    }

    /// Wraps what is there in one more layer.
    pub fn push<T: Service>(self, wrap: impl FnOnce(S) -> T) -> Stack<T> {
        Stack {
            service: wrap(self.service),
        }
    }

    /// The finished stack.
    pub fn build(self) -> S {
        self.service
    }
}
