//! The tokens: made once, kept in owner-only files, compared in constant time.
//!
//! A [`Token`] can neither be printed nor compared with `==`. The only question it answers is
//! [`Token::matches`], and the time that takes does not depend on how much of a guess is right.

use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use holdfast_contract::redact::Redactor;
use holdfast_reliability::canonical::Digest;
use subtle::ConstantTimeEq;

/// The file in the state directory with the token for tool calls.
pub const TOKEN_FILE: &str = "server-token";
/// The file in the state directory with the token for admin actions.
pub const ADMIN_TOKEN_FILE: &str = "admin-token";
/// The file in the state directory with the token of whoever answers for people.
pub const APPROVER_TOKEN_FILE: &str = "approver-token";
/// The shortest token that may be configured.
pub const TOKEN_BYTES_MIN: usize = 32;
/// The longest.
pub const TOKEN_BYTES_MAX: usize = 512;
/// What our tokens begin with, so that one is recognised where it has no business.
const PREFIX: &str = "hf_";
/// Random bytes in a token.
const RANDOM_BYTES: usize = 32;
/// How much of a token's hash names it in logs.
const FINGERPRINT_DIGITS: usize = 12;

/// Tokens that are read from one file.
pub const TOKENS_PER_FILE_MAX: usize = 1024;

fn read_private(path: &Path, bytes_max: usize) -> Result<String, TokenError> {
    let failed = |error| TokenError::File {
        path: path.to_owned(),
        error,
    };
    let file = fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(TokenError::Exposed {
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    let limited = &mut file.take(bytes_max as u64);
    limited.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// A secret that lets its bearer in.
///
/// There is no `==` on it, so nobody can compare it the fast way by accident:
///
/// ```compile_fail
/// # fn main() -> Result<(), holdfast_toolbox::token::TokenError> {
/// let (one, other) = (holdfast_toolbox::Token::generate()?, holdfast_toolbox::Token::generate()?);
/// assert!(one != other);
/// # Ok(()) }
/// ```
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([redacted])")
    }
}

/// Why a token can not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file can not be read or written.
    #[error("the token file {path} can not be used: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Others can read the file.
    #[error("the token file {path} can be read by others; `chmod 600` it, and make a new token")]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The token is too weak or can not be sent.
    #[error(
        "a token has to be {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} letters, digits or signs without blanks"
    )]
    Unfit,
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

impl Token {
    /// A new token: 256 random bits.
    pub fn generate() -> Result<Self, TokenError> {
        let mut bytes = [0_u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(TokenError::NoRandomness)?;
        // Hashed only for its hexadecimal digits.
        Ok(Self(format!("{PREFIX}{}", Digest::of(&bytes))))
    }

    /// Hexadecimal digits that only who has the token can find, for one purpose.
    pub fn derived(&self, purpose: &str) -> String {
        Digest::of(format!("{}\n{purpose}", self.0).as_bytes()).to_string()
    }

    /// The redactor, which knows this token from now on.
    pub fn known_to(&self, redactor: Redactor) -> Redactor {
        redactor.knowing([self.0.clone()])
    }

    /// A token that somebody chose.
    pub fn chosen(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let fits = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TokenError::Unfit)
        }
    }

    /// Reads a token from a file that nobody else can read.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        // One byte more than fits, and the line end.
        Self::chosen(&read_private(path, TOKEN_BYTES_MAX + 2)?)
    }

    /// Reads tokens from a file that nobody else can read, one a line. Lines that are empty or begin
    /// with `#` are none; of more than [`TOKENS_PER_FILE_MAX`] bytes' worth the rest is not read.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, TokenError> {
        let text = read_private(path, TOKENS_PER_FILE_MAX * (TOKEN_BYTES_MAX + 2))?;
        let is_token = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines = text.lines().map(str::trim).filter(is_token);
        lines.take(TOKENS_PER_FILE_MAX).map(Self::chosen).collect()
    }

    /// Reads the token from `path`, or makes one there. One that others could read is no secret any
    /// more, so another takes its place. Servers that start at once on one state
    /// directory get the same one: the file appears whole or not at all.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(TokenError::Exposed { .. }) => return Self::replace(path),
            other => return other,
        }
        let failed = |error| TokenError::File {
            path: path.to_owned(),
            error,
        };
        let token = Self::generate()?;
        let unique = path.with_extension(format!("{}.new", Self::generate()?.fingerprint()));
        let written = write_private(&unique, &token.0).and_then(|()| fs::hard_link(&unique, path));
        let _ = fs::remove_file(&unique);
        match written {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            _ => Self::read(path),
        }
    }

    /// Puts a new token in the place of one that others could read.
    fn replace(path: &Path) -> Result<Self, TokenError> {
        let token = Self::generate()?;
        let unique = path.with_extension(format!("{}.new", Self::generate()?.fingerprint()));
        let written = write_private(&unique, &token.0).and_then(|()| fs::rename(&unique, path));
        if let Err(error) = written {
            let _ = fs::remove_file(&unique);
            return Err(TokenError::File {
                path: path.to_owned(),
                error,
            });
        }
        // Of several that did so at once the last one counts.
        Self::read(path)
    }

    /// Whether this is the token, in a time that does not tell how much of it is right. The
    /// length is no secret.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }

    /// The header value that presents it.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Names the token without giving it away.
    pub fn fingerprint(&self) -> String {
        let mut digest = Digest::of(self.0.as_bytes()).to_string();
        digest.truncate(FINGERPRINT_DIGITS);
        digest
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Whatever the umask made of it.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn a_token_is_made_once_and_belongs_to_its_owner() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(TOKEN_FILE);
        let first = Token::read_or_make(&path).expect("makes one");
        let second = Token::read_or_make(&path).expect("reads it");
        assert!(first.matches(second.0.as_bytes()));
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
        assert_eq!(first.0.len(), PREFIX.len() + 2 * RANDOM_BYTES);
    }

    #[test]
    fn servers_that_start_at_once_agree() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(TOKEN_FILE);
        let tokens: Vec<Token> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| Token::read_or_make(&path)))
                .collect();
            starts
                .into_iter()
                .map(|start| start.join().expect("no panic").expect("a token"))
                .collect()
        });
        for token in &tokens {
            assert!(token.matches(tokens[0].0.as_bytes()));
        }
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
    }

    #[test]
    fn a_token_that_others_could_read_is_refused_and_made_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(TOKEN_FILE);
        let old = Token::read_or_make(&path).expect("makes one");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("changes");
        assert!(matches!(
            Token::read(&path),
            Err(TokenError::Exposed { .. })
        ));
        let new = Token::read_or_make(&path).expect("makes another");
        assert!(!old.matches(new.0.as_bytes()));
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
    }

    #[test]
    fn weak_and_unsendable_tokens_are_refused() {
        for text in [
            "",
            "short",
            &"x".repeat(TOKEN_BYTES_MAX + 1),
            &"a b".repeat(20),
            &"ü".repeat(40),
        ] {
            assert!(Token::chosen(text).is_err(), "{text:?}");
        }
        assert!(Token::chosen(&format!(" {}\n", "x".repeat(TOKEN_BYTES_MIN))).is_ok());
    }

    #[test]
    fn only_the_whole_token_matches_and_it_is_never_shown() {
        let token = Token::generate().expect("randomness");
        let text = token.0.clone();
        assert!(token.matches(text.as_bytes()));
        for wrong in [
            &text[1..],
            &text[..text.len() - 1],
            "",
            &text.to_uppercase(),
        ] {
            assert!(!token.matches(wrong.as_bytes()));
        }
        assert!(!format!("{token:?}").contains(&text[3..12]));
        assert!(!text.contains(&token.fingerprint()));
    }
}
