//! Time that this thread spent on a core. A neighbour on the same machine does not count.

use rustix::time::{ClockId, clock_gettime};

/// Seconds of this thread so far.
#[expect(
    clippy::cast_precision_loss,
    reason = "seconds and nanoseconds far below 2^53"
)]
fn seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// What the work takes once: the best of `times` batches, each of so many repetitions that it
/// takes `batch_seconds` at least.
pub fn best_seconds(times: usize, batch_seconds: f64, mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let mut many = 1_u32;
    let mut done = 0;
    while done < times {
        let begun = seconds();
        for _ in 0..many {
            work();
        }
        let took = seconds() - begun;
        if took < batch_seconds && many < 1 << 20 {
            many *= 4;
            continue;
        }
        best = best.min(took / f64::from(many));
        done += 1;
    }
    best
}

/// Millions of bytes a second.
#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
pub fn megabytes_per_second(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e6
}
