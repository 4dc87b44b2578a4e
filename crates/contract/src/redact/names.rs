//! Which names are those of secrets.

/// A name is secret when it ends with one of these, after lower-casing it and dropping everything
/// but letters and digits. `tokens` is missing on purpose: that is a count in this field.
const SECRET_SUFFIXES: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "apikey",
    "apikeys",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "accountkey",
    "authkey",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "amzsignature",
    "googsignature",
];

/// Names that were configured on top.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldNames(Vec<String>);

impl FieldNames {
    pub(super) fn new(names: &[String]) -> Self {
        let names = names.iter().map(|name| normal(name));
        Self(names.filter(|name| !name.is_empty()).collect())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        !self.is_empty() && self.0.contains(&normal(name))
    }
}

/// Whether a field of this name holds a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = normal(name);
    SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// `PWD` is a password in some places and the working directory in every shell.
pub(super) fn is_working_directory(name: &str, value: &str) -> bool {
    let name = normal(name);
    (name == "pwd" || name == "oldpwd") && value.starts_with(['/', '~'])
}

/// The name without case and separators.
fn normal(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_are_known_in_every_spelling() {
        for name in [
            "password",
            "DB_PASSWORD",
            "apiKey",
            "x-api-key",
            "api key",
            "--token",
            "Set-Cookie",
            "aws_secret_access_key",
            "clientSecret",
            "sessionToken",
            "private.key",
            "PWD",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "max_tokens",
            "total_tokens",
            "tokenizer",
            "sessionKey",
            "idempotencyKey",
            "author",
            "publicKey",
            "secretary",
            "passwordless",
            "key",
            "cookieCount",
            "",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
