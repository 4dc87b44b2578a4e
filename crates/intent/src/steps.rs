//! How many bytes were looked at, counted in this crate's own tests and free everywhere else.
//! Every walk and every search tells here how far it went, so that a test can hold the sum
//! against the length of the text.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// So many bytes are looked at.
#[cfg(test)]
pub(crate) fn visit(bytes: usize) {
    STEPS.with(|steps| steps.set(steps.get() + bytes as u64));
}

/// So many bytes are looked at.
#[cfg(not(test))]
#[inline]
pub(crate) fn visit(_bytes: usize) {}

#[cfg(test)]
#[path = "../tests/it/adversary/mod.rs"]
mod adversary;

#[cfg(test)]
mod tests {
    use super::{STEPS, adversary};
    use crate::{FinishReason, Parser, Strategy};

    /// No text of 10 KB or more may cost more steps for each byte than this.
    const STEPS_PER_BYTE_MAX: f64 = 600.0;
    /// A byte of a longer text may cost this much more than one of a shorter text.
    const GROWTH_MAX: f64 = 1.5;
    /// Below this the fixed costs of a reply hide the slope.
    const FLAT_MIN: f64 = 8.0;

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    fn steps_per_byte(parser: &Parser, text: &str) -> f64 {
        STEPS.with(|steps| steps.set(0));
        parser.parse(text, FinishReason::Unknown);
        let steps = STEPS.with(std::cell::Cell::get) as f64;
        steps / text.len() as f64
    }

    fn check(strategies: &[Strategy], sizes: &[usize]) {
        let mut steep = Vec::new();
        for (name, piece) in adversary::REPEATED {
            for strategy in strategies {
                let parser = Parser::default().with_strategies(*strategy, None);
                let costs: Vec<f64> = sizes
                    .iter()
                    .map(|bytes| steps_per_byte(&parser, &adversary::repeated(piece, *bytes)))
                    .collect();
                // The shortest text is there for the bound; fixed costs hide its slope.
                let mut most = costs[1].max(FLAT_MIN);
                for cost in &costs[1..] {
                    if *cost > most * GROWTH_MAX || costs[1] > STEPS_PER_BYTE_MAX {
                        steep.push(format!("{} {name}: {costs:.1?}", strategy.name()));
                        break;
                    }
                    most = most.max(*cost);
                }
            }
        }
        assert!(
            steep.is_empty(),
            "steps for each byte grow with the text:\n{}",
            steep.join("\n")
        );
    }

    #[test]
    fn steps_grow_with_the_text_and_not_faster() {
        let sizes = [1_000, 10_000, 100_000, 1_000_000];
        // Without optimisation the last step would take a minute.
        let many = if cfg!(debug_assertions) { 3 } else { 4 };
        check(&[Strategy::Auto], &sizes[..many]);
    }

    #[test]
    fn steps_grow_with_the_text_under_every_strategy() {
        check(&Strategy::ALL[1..], &[1_000, 5_000, 50_000]);
    }

    /// Each of them is looked at before the end of a thought is known to end none, or the last one's.
    #[test]
    fn thoughts_that_are_spoken_of_cost_no_more_than_others() {
        let parser = Parser::default();
        for (begin, piece) in [("", "`<think>"), ("```\n", "<think>"), ("", "```<think>")] {
            let cost = |bytes: usize| {
                let openers = adversary::repeated(piece, bytes);
                steps_per_byte(&parser, &format!("{begin}{openers}</think>"))
            };
            let costs = [10_000, 100_000].map(cost);
            assert!(costs[1] < costs[0] * GROWTH_MAX, "{piece}: {costs:.1?}");
        }
    }

    /// All of them share the fate of the first one, which is an example.
    #[test]
    fn control_tokens_behind_an_example_cost_no_more_than_others() {
        let parser = Parser::default();
        for piece in [
            "[TOOL_CALLS]",
            "<tool_call>",
            "<|tool_call_end|>",
            "<｜tool▁call▁begin｜>",
        ] {
            let cost = |bytes: usize| {
                let tokens = adversary::repeated(piece, bytes);
                steps_per_byte(&parser, &format!("For example: {tokens}"))
            };
            let costs = [10_000, 100_000].map(cost);
            assert!(costs[1] < costs[0] * GROWTH_MAX, "{piece}: {costs:.1?}");
        }
    }

    #[test]
    fn what_a_text_begins_with_makes_the_rest_cost_no_more() {
        let parser = Parser::default();
        let mut steep = Vec::new();
        for (name, begin, piece) in adversary::BEGUN {
            let cost = |bytes: usize| {
                let rest = adversary::repeated(piece, bytes);
                steps_per_byte(&parser, &format!("{begin}{rest}"))
            };
            let costs = [10_000, 100_000].map(cost);
            if costs[1] > costs[0].max(FLAT_MIN) * GROWTH_MAX || costs[0] > STEPS_PER_BYTE_MAX {
                steep.push(format!("{name}: {costs:.1?}"));
            }
        }
        assert!(steep.is_empty(), "{}", steep.join("\n"));
    }

    #[test]
    fn a_quadratic_walk_would_be_seen() {
        let per_byte = |bytes: usize| {
            STEPS.with(|steps| steps.set(0));
            for at in (0..bytes).step_by(10) {
                super::visit(bytes - at);
            }
            STEPS.with(std::cell::Cell::get) / bytes as u64
        };
        assert!(per_byte(100_000) > 5 * per_byte(10_000));
    }
}
