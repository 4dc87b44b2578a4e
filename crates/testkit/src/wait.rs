//! Waiting for what happens elsewhere. Bounded, so that a failure ends, and says what never came.

use std::time::Duration;

/// When it is given up. Far beyond what anything takes that is waited for, and far below the lease of
/// a claim.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// How long until it is looked again: at first at once, for what comes at once, and then ever later, so
/// that looking does not keep from its work what is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(200);

fn later(pause: Duration) -> Duration {
    (pause * 2).min(LOOK_AGAIN_MAX)
}

/// What is found, as soon as it is there.
///
/// # Panics
///
/// When it never is.
pub fn eventually<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, found)
}

/// The same for what takes its time.
///
/// # Panics
///
/// When it is not there by then.
pub fn eventually_within<T>(
    limit: Duration,
    what: &str,
    mut found: impl FnMut() -> Option<T>,
) -> T {
    let begun = std::time::Instant::now();
    let mut pause = LOOK_AGAIN;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(begun.elapsed() < limit, "never happened: {what}");
        std::thread::sleep(pause);
        pause = later(pause);
    }
}

/// Ready when it is so, by the time of the runtime.
///
/// # Panics
///
/// When it never is.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = tokio::time::Instant::now();
    let mut pause = LOOK_AGAIN;
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(pause).await;
        pause = later(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_ever_later_but_not_too_late() {
        let pauses = std::iter::successors(Some(LOOK_AGAIN), |pause| Some(later(*pause)));
        let millis: Vec<u128> = pauses.take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(millis, [5, 10, 20, 40, 80, 160, 200, 200]);
    }

    #[test]
    fn what_comes_is_found_and_what_does_not_is_named() {
        let mut looks = 0;
        let found = eventually("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
        let never = std::panic::catch_unwind(|| {
            eventually_within(Duration::ZERO, "the moon", || None::<()>);
        });
        let said = never.expect_err("it gives up");
        let said = said.downcast_ref::<String>().map(String::as_str);
        assert_eq!(said, Some("never happened: the moon"));
    }
}
