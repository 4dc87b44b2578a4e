//! A store operation under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::StoreResult;

/// A store operation under way: answered already, as everything in memory is, or still going on.
///
/// A call asks its stores six times. A memory store's answers need no allocation this way.
///
/// ```
/// use futures_util::FutureExt;
/// use holdfast_reliability::store::StoreFuture;
///
/// let known = StoreFuture::ready(Ok(1));
/// let asked = StoreFuture::from(async { Ok(2) }.boxed());
/// assert_eq!(known.now_or_never(), Some(Ok(1)));
/// assert_eq!(asked.now_or_never(), Some(Ok(2)));
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct StoreFuture<'a, T>(State<'a, T>);

enum State<'a, T> {
    Answered(Option<StoreResult<T>>),
    Asked(BoxFuture<'a, StoreResult<T>>),
}

impl<T> StoreFuture<'_, T> {
    /// The answer is there.
    pub fn ready(answer: StoreResult<T>) -> Self {
        Self(State::Answered(Some(answer)))
    }
}

/// The answer is what `asked` finds out.
impl<'a, T> From<BoxFuture<'a, StoreResult<T>>> for StoreFuture<'a, T> {
    fn from(asked: BoxFuture<'a, StoreResult<T>>) -> Self {
        Self(State::Asked(asked))
    }
}

/// An answer is moved out and never pinned, so it does not matter whether it could be.
impl<T> Unpin for StoreFuture<'_, T> {}

impl<T> Future for StoreFuture<'_, T> {
    type Output = StoreResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // Polled again after its answer, a future may be pending forever.
            State::Answered(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            State::Asked(asked) => asked.poll_unpin(cx),
        }
    }
}
