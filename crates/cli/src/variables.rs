//! `${NAME}` in `holdfast.yaml`.

use holdfast_agent::config::expand;

/// Texts shorter than this are no secrets, and would tear a message apart.
const HIDDEN_BYTES_MIN: usize = 4;

/// A file's text with its variables put in, and what was put in.
pub(crate) struct Expanded {
    pub(crate) text: String,
    values: Vec<(String, String)>,
}

impl Expanded {
    /// A message about the text as its author knows it: a variable's value may be a secret.
    pub(crate) fn as_written(&self, message: String) -> String {
        let secrets = self.values.iter();
        let secrets = secrets.filter(|(_, value)| value.len() >= HIDDEN_BYTES_MIN);
        secrets.fold(message, |message, (name, value)| {
            message.replace(value, &format!("${{{name}}}"))
        })
    }
}

/// Where in a line a variable stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Single,
    Double,
    Comment,
}

/// Puts variables in, outside of comments. In quotes a value is escaped, so that it stays one text.
pub(crate) fn put_in(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, String> {
    let mut expanded = Expanded {
        text: String::with_capacity(text.len()),
        values: Vec::new(),
    };
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let put_in = in_line(line, lookup, &mut expanded.values)
            .map_err(|why| format!("line {}: {why}", index + 1))?;
        expanded.text.push_str(&put_in);
    }
    Ok(expanded)
}

fn in_line(
    line: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    values: &mut Vec<(String, String)>,
) -> Result<String, String> {
    if !line.contains("${") {
        return Ok(line.to_owned());
    }
    let mut out = String::with_capacity(line.len());
    let mut place = Place::Plain;
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let is_reference = rest.starts_with("${") || rest.starts_with("$${");
        if is_reference && place != Place::Comment {
            let end = rest.find('}').map_or(rest.len(), |at| at + 1);
            let (reference, behind) = rest.split_at(end);
            let value = expand(reference, lookup)?;
            out.push_str(&fitting(reference, &value, place)?);
            if reference.starts_with("${") {
                let name = reference.trim_start_matches("${").trim_end_matches('}');
                let name = name.split(":-").next().unwrap_or(name);
                values.push((name.to_owned(), value));
            }
            rest = behind;
            continue;
        }
        place = match (place, letter) {
            (Place::Plain, '"') => Place::Double,
            (Place::Plain, '\'') => Place::Single,
            (Place::Plain, '#') if out.is_empty() || out.ends_with([' ', '\t']) => Place::Comment,
            (Place::Double, '"') if !out.ends_with('\\') => Place::Plain,
            (Place::Single, '\'') => Place::Plain,
            (place, _) => place,
        };
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    Ok(out)
}

/// A value as it has to be written where its variable stands.
fn fitting(reference: &str, value: &str, place: Place) -> Result<String, String> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:@%+,=~${}".contains(sign);
    match place {
        Place::Double => {
            let quoted = serde_json::Value::from(value).to_string();
            Ok(quoted[1..quoted.len() - 1].to_owned())
        }
        Place::Single if !value.contains('\n') => Ok(value.replace('\'', "''")),
        Place::Plain if value.chars().all(is_plain) => Ok(value.to_owned()),
        _ => Err(format!(
            "what {reference} stands for has to be in double quotes: \"{reference}\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Expanded, String> {
        put_in(text, &|name| match name {
            "URL" => Some("http://127.0.0.1:8000".to_owned()),
            "ODD" => Some("a: \"b\" # c".to_owned()),
            "SECRET" => Some("hidden-1".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_variable_stays_one_text_wherever_it_stands() {
        for (text, expected) in [
            ("url: ${URL}\n", "url: http://127.0.0.1:8000\n"),
            ("n: ${N:-7}", "n: 7"),
            ("a: \"${ODD}\"", r#"a: "a: \"b\" # c""#),
            ("a: '${ODD}'", "a: 'a: \"b\" # c'"),
            ("a: 1 # ${NOBODY}", "a: 1 # ${NOBODY}"),
            ("a: 'it # is ${URL}'", "a: 'it # is http://127.0.0.1:8000'"),
            ("a: $${URL}", "a: ${URL}"),
        ] {
            let expanded = of(text).map(|expanded| expanded.text);
            assert_eq!(expanded.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_line_and_no_value() {
        let why = of("a: 1\nb: ${NOBODY}").err().unwrap_or_default();
        assert!(
            why.starts_with("line 2: the variable NOBODY is not set"),
            "{why}"
        );
        let why = of("a: ${ODD}").err().unwrap_or_default();
        assert!(
            why.contains("double quotes") && !why.contains("a: \"b\""),
            "{why}"
        );
        let expanded = of("a: ${SECRET}").unwrap();
        let told = expanded.as_written("wrong: hidden-1".to_owned());
        assert_eq!(told, "wrong: ${SECRET}");
    }
}
