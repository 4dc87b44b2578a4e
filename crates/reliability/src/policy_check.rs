//! Checking of configured numbers, shared by the policies of the layers.
//!
//! A policy is parsed raw and then checked into a type that can not be wrong. Whoever wrote the
//! configuration gets every problem at once, each with the field as it is spelt in the file.

use std::fmt;
use std::ops::RangeInclusive;

/// One thing wrong with one field of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field as it is spelt in the configuration, for example `openCooldownMs`.
    pub field: &'static str,
    /// What is wrong with it, for a person to read.
    pub reason: String,
}

/// A policy that was refused, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPolicy {
    problems: Vec<FieldProblem>,
}

impl InvalidPolicy {
    /// The problems, in the order of the fields; never empty.
    pub fn problems(&self) -> &[FieldProblem] {
        &self.problems
    }
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", problem.field, problem.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPolicy {}

/// Collects problems while a policy is checked.
#[derive(Debug, Default)]
pub(crate) struct PolicyCheck {
    problems: Vec<FieldProblem>,
}

impl PolicyCheck {
    /// Notes a problem unless `value` lies within `allowed`.
    pub(crate) fn within<T>(&mut self, field: &'static str, value: T, allowed: RangeInclusive<T>)
    where
        T: Copy + PartialOrd + fmt::Display,
    {
        let (low, high) = allowed.into_inner();
        // Written as "not inside" so that a NaN, which compares as false, is refused too.
        let inside = low <= value && value <= high;
        if !inside {
            self.problem(field, format!("must be from {low} to {high}, is {value}"));
        }
    }

    /// Notes a problem that is not a plain range.
    pub(crate) fn problem(&mut self, field: &'static str, reason: String) {
        self.problems.push(FieldProblem { field, reason });
    }

    /// Hands the policy out if nothing was wrong with it.
    pub(crate) fn finish<P>(self, policy: P) -> Result<P, InvalidPolicy> {
        if self.problems.is_empty() {
            Ok(policy)
        } else {
            Err(InvalidPolicy {
                problems: self.problems,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_reported_with_its_field() {
        let mut check = PolicyCheck::default();
        check.within("aMs", 0_u64, 1..=5);
        check.within("b", f64::NAN, 0.0..=1.0);
        check.within("c", 3_u32, 1..=5);
        let refused = check.finish(()).unwrap_err();
        let fields: Vec<_> = refused
            .problems()
            .iter()
            .map(|problem| problem.field)
            .collect();
        assert_eq!(fields, ["aMs", "b"]);
        assert_eq!(
            refused.to_string(),
            "aMs: must be from 1 to 5, is 0; b: must be from 0 to 1, is NaN"
        );
    }
}
