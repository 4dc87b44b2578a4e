//! A stream that does not wait for ever for a client to take its answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes have to get on.
pub(crate) struct Patient<S> {
    stream: S,
    stall_time: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Gives up when nothing at all could be written for `stall_time`.
    pub(crate) fn new(stream: S, stall_time: Duration) -> Self {
        Self {
            stream,
            stall_time,
            stalled: None,
        }
    }

    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stall_time = self.stall_time;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(stall_time)));
        ready!(stalled.as_mut().poll(context));
        // So that whoever asks again is told again.
        stalled.as_mut().reset(Instant::now());
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, mut theirs) = duplex(16);
        let mut patient = Patient::new(ours, Duration::from_secs(5));
        // As long as it takes a little now and then, it may take its time.
        let slow = tokio::spawn(async move {
            let mut buffer = [0; 8];
            for _ in 0..4 {
                sleep(Duration::from_secs(4)).await;
                theirs.read_exact(&mut buffer).await.expect("reads");
            }
            theirs
        });
        patient.write_all(&[7; 48]).await.expect("is taken in time");
        let _theirs = slow.await.expect("no panic");
        let begun = Instant::now();
        let error = patient.write_all(&[7; 48]).await.expect_err("is not taken");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
    }
}
