//! What a text does to a parser that is longer, or has more of something, than anybody means.

use holdfast_intent::{FinishReason, Parser};

fn parse(text: &str) -> holdfast_intent::Parsed {
    Parser::default().parse(text, FinishReason::Stop)
}

/// The look back for a verb can begin in the verb, whose tail is another one.
#[test]
fn a_verb_far_before_what_it_is_given_is_one_verb() {
    let plans = [
        ("Je vais rechercher", "maintenant."),
        ("Je vais relire", "maintenant."),
        ("Ich besuche", "jetzt."),
        ("Ich möchte das gern recherchieren und suche", "jetzt."),
        ("Ich werde besuche", "jetzt."),
        ("Я сейчас прочитать", "сейчас."),
        ("Я прочитаю", "сейчас."),
        ("Poszukam", "teraz."),
    ];
    let given = [
        ["\"abc def\"", "\"ghi jkl\""],
        ["`a.txt`", "`b.txt`"],
        ["https://a.example/x", "https://b.example/y"],
        ["/tmp/a.txt", "/tmp/b.txt"],
    ];
    for (plan, end) in plans {
        for [first, second] in given {
            for padding in 0..80 {
                for letter in ["x", "é", "x "] {
                    let padding = letter.repeat(padding);
                    parse(&format!("{plan} {first} {padding} {second} {end}"));
                }
            }
        }
    }
}

/// A word that the look back begins in is none of its own.
#[test]
fn the_tail_of_a_word_is_no_verb() {
    for padding in 0..80 {
        let padding = "x".repeat(padding);
        let parsed = parse(&format!(
            "Je vais xxcherche {padding} \"abc def\" maintenant."
        ));
        assert_eq!(parsed.intents, [], "{padding}");
    }
}
