//! Long answers in plain English, as models write them.

use holdfast_testkit::SeededEntropy;

/// Sentences of explanations. X and Y are filled in.
const PLAIN: &[&str] = &[
    "The X keeps its state in memory and writes a copy to disk every few seconds.",
    "In most cases the X is the part that decides how the Y behaves under load.",
    "There are three things to consider here: the size of the X, the age of the Y, and the time of day.",
    "This was not always so; the first version of the X had no Y at all.",
    "A typical X holds between ten and twenty entries, although larger ones have been seen.",
    "When the Y is full, the X waits until there is room again, and nothing is lost.",
    "The difference between the two is small, but it matters as soon as several of them run side by side.",
    "According to the report, the X grew by 12.5 % between March and June, while the Y stayed flat.",
    "Some people prefer the X because it is simple, others the Y because it is fast.",
    "It is worth noting that neither of them says anything about the order in which results arrive.",
    "Historically, the Y came first (around 1998), and the X was added to make it usable.",
    "As a result, each X is read twice: once to measure it, and once to change it.",
    "The name \"X\" is misleading, since it has little to do with what is usually called a Y.",
    "However, the numbers differ from one source to the next, so they are best taken with a grain of salt.",
    "Both have the same purpose, namely to keep the Y from growing without bound.",
    "The table in the appendix lists all of them, together with the values that were measured.",
    "For large inputs the cost of the X dominates, and the Y hardly matters any more.",
    "One of the reasons is that the X shares its lock with the Y; another is plain habit.",
    "At the end of the day the choice depends on how much memory is available.",
    "The same holds for the Y, with one exception: an empty one counts as full.",
    "In 2019 the X was moved to a new place, and since then the Y has been easier to keep up to date.",
    "Its author describes it as \"a small X with a large Y\", which is a fair summary.",
    "Many of the complaints about the X are really about the Y behind it.",
    "That is why the second column is empty in about half of the rows.",
];

/// Sentences that begin like a wish and are none.
const ALMOST: &[&str] = &[
    "First, the X is looked at as a whole, and then each Y on its own.",
    "So the X wins in this comparison, and the Y comes second.",
    "We can see that the X and the Y move together, and that neither leads.",
    "Now the question is whether the X can do without the Y, and then what remains.",
    "I would say that the X is the better choice, although the Y has its friends.",
    "Let me think about this for a moment, because the X is not as simple as it looks.",
    "Then the Y takes over, and the X rests, and the whole thing begins again.",
    "Find the balance between the X and the Y, and the rest will follow.",
    "The point is, I should add, that the X was never meant for this.",
    "Next comes the Y, and after that the X, and finally the rest of them.",
];

const WISHES: &[&str] = &[
    "I'll search for \"current X prices\" first.",
    "Let me read the file docs/X.md to be sure.",
    "Then I will fetch https://example.com/Y and compare the two.",
    "We need to look up the release date of the Y.",
];

const NOUNS: &[&str] = &[
    "cache",
    "queue",
    "scheduler",
    "river",
    "engine",
    "garden",
    "compiler",
    "market",
    "index",
    "treaty",
    "bridge",
    "protein",
    "parser",
    "harbour",
    "ledger",
    "orchestra",
];

/// How a text is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prose {
    /// An explanation with a wish now and then.
    Usual,
    /// Every sentence has to be looked at closely, and none is a wish.
    Worst,
}

/// Prose of at least so many bytes, in paragraphs and short lists.
pub fn prose(kind: Prose, bytes: usize, seed: u64) -> String {
    let dice = SeededEntropy::new(seed);
    let pick = |from: &[&'static str]| {
        let bound = u64::try_from(from.len()).unwrap_or(1);
        from[usize::try_from(dice.below(bound)).unwrap_or(0)]
    };
    let mut out = String::with_capacity(bytes + 256);
    let mut number = 0_usize;
    while out.len() < bytes {
        number += 1;
        let template = match kind {
            Prose::Worst => pick(ALMOST),
            Prose::Usual if number.is_multiple_of(97) => pick(WISHES),
            Prose::Usual if dice.chance(8) => pick(ALMOST),
            Prose::Usual => pick(PLAIN),
        };
        let item = kind == Prose::Usual && dice.chance(6);
        if item {
            out.push_str("\n- ");
        }
        out.push_str(&template.replace('X', pick(NOUNS)).replace('Y', pick(NOUNS)));
        out.push_str(if dice.chance(15) { "\n\n" } else { " " });
    }
    out
}
