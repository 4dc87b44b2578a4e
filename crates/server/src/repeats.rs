//! Requests that a client makes again by itself.
//!
//! The official clients of chat completions repeat a request that took longer than they wait, and say
//! how often they have. The run of the first one goes on for a while, and a repetition belongs to it:
//! begun anew, what the run does would be done again.

use std::collections::HashMap;
use std::time::Duration;

use holdfast_reliability::canonical::Digest;
use http::HeaderMap;
use http::header::HeaderName;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::limits::{REPEATS_KNOWN_MS, REPEATS_MAX};

const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Which try of a client that counts them a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    First,
    Again,
}

impl Try {
    /// `None` of a client that does not count.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let count: u32 = headers
            .get(RETRY_COUNT)?
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()?;
        Some(if count == 0 { Self::First } else { Self::Again })
    }
}

/// The runs that requests of such clients began, for as long as one of them may come again. Only so
/// many are remembered; the one that began longest ago goes first.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<HashMap<Digest, (String, Instant)>>);

impl Repeats {
    /// Whose request it is, and what is asked.
    pub(crate) fn request(client: &str, asked: &Value) -> Digest {
        Digest::of(format!("{client}\n{asked}").as_bytes())
    }

    /// The run that the request began.
    pub(crate) fn run_of(&self, request: &Digest) -> Option<String> {
        let known = self.0.lock();
        let (run, began) = known.get(request)?;
        is_known(*began).then(|| run.clone())
    }

    /// The request has begun this run.
    pub(crate) fn began(&self, request: Digest, run: &str) {
        let mut known = self.0.lock();
        if known.len() >= REPEATS_MAX && !known.contains_key(&request) {
            known.retain(|_, (_, began)| is_known(*began));
            if known.len() >= REPEATS_MAX {
                let oldest = known.iter().min_by_key(|(_, (_, began))| *began);
                let oldest = oldest.map(|(request, _)| *request);
                oldest.and_then(|request| known.remove(&request));
            }
        }
        known.insert(request, (run.to_owned(), Instant::now()));
    }

    /// The request had begun this run so long ago, before this process was there. One that is known
    /// already may be a later one.
    pub(crate) fn known_again(&self, request: Digest, run: &str, age: Duration) {
        let Some(began) = Instant::now().checked_sub(age).filter(|at| is_known(*at)) else {
            return;
        };
        let mut known = self.0.lock();
        if known.len() < REPEATS_MAX {
            known
                .entry(request)
                .or_insert_with(|| (run.to_owned(), began));
        }
    }
}

fn is_known(began: Instant) -> bool {
    began.elapsed() < Duration::from_millis(REPEATS_KNOWN_MS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_are_known_for_so_long() {
        let repeats = Repeats::default();
        let request = |number: usize| Repeats::request("ann", &json!({ "n": number }));
        for number in 0..=REPEATS_MAX {
            repeats.began(request(number), &number.to_string());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(repeats.0.lock().len(), REPEATS_MAX);
        assert_eq!(repeats.run_of(&request(0)), None, "the oldest has gone");
        assert_eq!(repeats.run_of(&request(1)).as_deref(), Some("1"));
        assert_eq!(
            repeats.run_of(&Repeats::request("bob", &json!({"n": 1}))),
            None
        );
        tokio::time::advance(Duration::from_millis(REPEATS_KNOWN_MS)).await;
        assert_eq!(repeats.run_of(&request(REPEATS_MAX)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_began_is_known_for_what_is_left_of_its_time() {
        let repeats = Repeats::default();
        let [young, old, later] = ["young", "old", "later"].map(|it| Digest::of(it.as_bytes()));
        let all = Duration::from_millis(REPEATS_KNOWN_MS);
        let second = Duration::from_secs(1);
        repeats.known_again(young, "1", all.saturating_sub(second));
        repeats.known_again(old, "2", all);
        repeats.began(later, "4");
        repeats.known_again(later, "3", second);
        let run = |request: &Digest| repeats.run_of(request);
        assert_eq!(
            (run(&young).as_deref(), run(&old), run(&later).as_deref()),
            (Some("1"), None, Some("4"))
        );
        tokio::time::advance(second).await;
        assert_eq!(run(&young), None, "its time is over");
    }

    #[test]
    fn clients_that_count_are_told_apart() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_COUNT, value.parse().expect("a value"));
            Try::of(&headers)
        };
        assert_eq!(Try::of(&HeaderMap::new()), None);
        assert_eq!(
            (of("0"), of("1"), of("12"), of("x")),
            (Some(Try::First), Some(Try::Again), Some(Try::Again), None)
        );
    }
}
