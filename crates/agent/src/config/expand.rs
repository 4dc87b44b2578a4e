//! `${NAME}` in the texts of a file.

/// Replaces `${NAME}` and `${NAME:-otherwise}`; `$${` stands for itself. A variable that is not set
/// and has no other text is an error: an empty token where one was meant is found too late.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, behind) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &behind[2..];
            continue;
        }
        out.push_str(before);
        let (inner, after) = behind[2..]
            .split_once('}')
            .ok_or("has a `${` without its `}`")?;
        let (name, otherwise) = match inner.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inner, None),
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(format!("`${{{inner}}}` names no variable"));
        }
        let found = lookup(name).filter(|found| otherwise.is_none() || !found.is_empty());
        let found = found
            .or_else(|| otherwise.map(str::to_owned))
            .ok_or_else(|| {
                format!(
                    "the variable {name} is not set; `${{{name}:-}}` would stand for nothing then"
                )
            })?;
        out.push_str(&found);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Result<String, String> {
        expand(text, &|name| match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOLDS" => Some("${A}".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_put_in() {
        for (text, expanded) in [
            ("plain $5 {x}", "plain $5 {x}"),
            ("<${A}${A}>", "<oneone>"),
            ("${B:-two}", "two"),
            ("${EMPTY:-two}", "two"),
            ("${EMPTY}", ""),
            ("$${A}", "${A}"),
            // What a variable holds is not looked into.
            ("${HOLDS}", "${A}"),
        ] {
            assert_eq!(of(text).unwrap(), expanded, "{text}");
        }
        for (text, says) in [
            ("${B}", "B is not set"),
            ("${A", "without its"),
            ("${a b}", "names no variable"),
            ("${}", "names no variable"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_variables_stays(text in "[^$]{0,40}") {
            prop_assert_eq!(of(&text).unwrap(), text);
        }
    }
}
