//! The server's time as it is known here, for commands that can not ask for it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::options::{SERVER_TIME_AGE_MS_MAX, SERVER_TIME_DOUBT_MS_MAX};

/// Measured on one connection, and carried on by a clock that nobody sets.
#[derive(Clone, Copy)]
struct Measured {
    round: u64,
    /// When it was asked for.
    asked: Instant,
    server_ms: u64,
}

/// What was measured last. A server that took over may have another clock, so a measurement counts
/// for its own connection only; a machine that slept has broken its connections, or waits for the
/// next measurement.
#[derive(Default)]
pub(super) struct ServerTime(Mutex<Option<Measured>>);

impl ServerTime {
    /// Takes a measurement, unless the answer was so long on its way that it could mislead.
    pub(super) fn measured(&self, round: u64, asked: Instant, server_ms: u64) {
        if asked.elapsed() <= Duration::from_millis(SERVER_TIME_DOUBT_MS_MAX) {
            *self.0.lock() = Some(Measured {
                round,
                asked,
                // The middle of the way there and back.
                server_ms: server_ms.saturating_sub(half_ms(asked.elapsed())),
            });
        }
    }

    /// The server's time, if it was measured on this connection and not too long ago.
    pub(super) fn now_ms(&self, round: u64) -> Option<u64> {
        let measured = (*self.0.lock()).filter(|measured| measured.round == round)?;
        let elapsed = measured.asked.elapsed();
        if elapsed > Duration::from_millis(SERVER_TIME_AGE_MS_MAX) {
            return None;
        }
        let elapsed_ms = u64::try_from(elapsed.as_millis()).ok()?;
        Some(measured.server_ms.saturating_add(elapsed_ms))
    }
}

fn half_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / 2).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(ms: u64) -> Instant {
        Instant::now()
            .checked_sub(Duration::from_millis(ms))
            .unwrap()
    }

    #[test]
    fn a_measurement_goes_on_and_ends() {
        let time = ServerTime::default();
        assert_eq!(time.now_ms(1), None);
        time.measured(1, Instant::now(), 1_000_000);
        let now_ms = time.now_ms(1).unwrap();
        assert!((1_000_000..1_000_000 + SERVER_TIME_AGE_MS_MAX).contains(&now_ms));
        assert_eq!(
            time.now_ms(2),
            None,
            "another connection, perhaps another server"
        );
        *time.0.lock() = Some(Measured {
            round: 1,
            asked: ago(SERVER_TIME_AGE_MS_MAX + 1),
            server_ms: 1_000_000,
        });
        assert_eq!(time.now_ms(1), None);
    }

    #[test]
    fn an_answer_that_was_long_on_its_way_counts_for_nothing() {
        let time = ServerTime::default();
        time.measured(1, ago(SERVER_TIME_DOUBT_MS_MAX + 1), 1_000_000);
        assert_eq!(time.now_ms(1), None);
        time.measured(1, ago(100), 1_000_000);
        let now_ms = time.now_ms(1).unwrap();
        assert!(
            now_ms >= 1_000_000,
            "asked 100 ms ago, answered in the middle of it: {now_ms}"
        );
    }
}
