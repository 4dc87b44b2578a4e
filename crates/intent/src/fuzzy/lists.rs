//! The lists of words in `lists.txt`, one language beside the other.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::cues::WordSet;

static LISTS: LazyLock<HashMap<&'static str, Vec<&'static str>>> =
    LazyLock::new(|| read(include_str!("lists.txt")));

fn read(source: &'static str) -> HashMap<&'static str, Vec<&'static str>> {
    let mut lists: HashMap<_, Vec<_>> = HashMap::new();
    let mut name = "";
    let is_said = |line: &&str| !line.starts_with('#') && !line.is_empty();
    for line in source.lines().filter(is_said) {
        match line
            .strip_prefix('[')
            .and_then(|head| head.strip_suffix(']'))
        {
            Some(head) => name = head,
            None => lists.entry(name).or_default().extend(words(line)),
        }
    }
    lists
}

fn words(line: &'static str) -> impl Iterator<Item = &'static str> {
    let words = line.split('|').map(|word| word.trim().trim_matches('"'));
    words.filter(|word| !word.is_empty())
}

/// The words of a list.
pub(super) fn list(name: &str) -> &'static [&'static str] {
    LISTS.get(name).map_or(&[], Vec::as_slice)
}

/// The words of a list, to look words up in.
pub(super) fn set(name: &str) -> HashSet<&'static str> {
    list(name).iter().copied().collect()
}

/// The words of a list, to be looked for all at once.
pub(super) fn word_set(name: &str) -> WordSet {
    WordSet::new(list(name))
}

#[cfg(test)]
mod tests {
    use super::{LISTS, list};

    #[test]
    fn no_list_is_empty_and_none_says_a_word_twice() {
        for (name, words) in LISTS.iter() {
            let mut apart = words.clone();
            apart.sort_unstable();
            apart.dedup();
            assert_eq!(apart.len(), words.len(), "{name}");
            assert!(!list(name).is_empty(), "{name}");
        }
        assert!(list("no such list").is_empty());
    }
}
