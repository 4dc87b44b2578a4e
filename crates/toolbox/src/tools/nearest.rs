//! Lines that come close to a text that was not found.
//!
//! A model that misremembers a line repeats the same edit or reads the whole file again. Two or
//! three near misses in the answer are usually all it needs.

/// Lines that are compared.
pub(super) const NEAREST_LINES_SEARCHED_MAX: usize = 20_000;
/// Near misses that are shown.
pub(super) const NEAREST_LINES_SHOWN_MAX: usize = 3;
/// Characters of a line that are compared and shown.
pub(super) const NEAREST_LINE_CHARS_MAX: usize = 200;
/// Below this share of common letter pairs a line is no near miss.
const SIMILARITY_MIN: f64 = 0.5;

/// A line that comes close.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Near {
    /// Its number, from 1.
    pub(super) line: usize,
    /// Its beginning.
    pub(super) text: String,
    /// It differs in white space only.
    pub(super) only_space: bool,
}

/// The lines of `content` nearest to the longest line of `wanted`, best first.
///
/// The longest line is the one that says most about the place; comparing all of them would cost
/// more and, with a line missing in between, find less.
pub(super) fn nearest(content: &str, wanted: &str) -> Vec<Near> {
    let Some(anchor) = wanted.lines().max_by_key(|line| line.trim().len()) else {
        return Vec::new();
    };
    let anchor_clipped = clip(anchor.trim());
    let anchor_bare = bare(anchor_clipped);
    if anchor_bare.is_empty() {
        return Vec::new();
    }
    let mut best: Vec<(f64, Near)> = Vec::new();
    let lines = content.lines().enumerate().take(NEAREST_LINES_SEARCHED_MAX);
    for (index, line) in lines {
        let clipped = clip(line.trim());
        let only_space = bare(clipped) == anchor_bare;
        let similarity = if only_space {
            1.0
        } else {
            strsim::sorensen_dice(clipped, anchor_clipped)
        };
        if similarity < SIMILARITY_MIN {
            continue;
        }
        // Among equals the first line stays in front.
        let place = best.partition_point(|(other, _)| *other >= similarity);
        if place < NEAREST_LINES_SHOWN_MAX {
            let near = Near {
                line: index + 1,
                text: clip(line).to_owned(),
                only_space,
            };
            best.insert(place, (similarity, near));
            best.truncate(NEAREST_LINES_SHOWN_MAX);
        }
    }
    best.into_iter().map(|(_, near)| near).collect()
}

fn clip(line: &str) -> &str {
    line.char_indices()
        .nth(NEAREST_LINE_CHARS_MAX)
        .map_or(line, |(end, _)| &line[..end])
}

fn bare(line: &str) -> String {
    line.chars().filter(|char| !char.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misremembered_line_is_found() {
        let content = "fn main() {\n    let total_count = items.len();\n    print(total);\n}\n";
        let near = nearest(content, "{\n    let total = items.len();");
        assert_eq!(near[0].line, 2);
        assert!(!near[0].only_space);
    }

    #[test]
    fn white_space_is_told_apart() {
        let near = nearest("a\n\tif x  {\n", "    if x {");
        assert_eq!((near[0].line, near[0].only_space), (2, true));
    }

    #[test]
    fn strangers_are_not_shown_and_the_list_is_short() {
        assert_eq!(nearest("alpha\nbeta\n", "zzzzzzzz"), []);
        assert_eq!(nearest("alpha\n", "   \n"), []);
        let many = "same line\n".repeat(100);
        let near = nearest(&many, "same line!");
        let lines: Vec<usize> = near.iter().map(|near| near.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }
}
