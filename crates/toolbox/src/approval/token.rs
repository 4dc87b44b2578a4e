//! The secret that lets somebody answer who is not at this terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdfast_reliability::canonical::Digest;

/// Its name in the state directory, which no tool may enter.
pub const APPROVER_TOKEN_FILE: &str = "approver-token";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// A token file is read up to this size.
const TOKEN_FILE_BYTES_MAX: u64 = 1024;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file can not be read or made.
    #[error("the approver token {path} can not be used: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Others can read it, or it is not ours.
    #[error("the approver token {path} is not its owner's alone: {problem}")]
    NotPrivate {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The approver's token.
pub struct ApproverToken(String);

impl ApproverToken {
    /// Reads the token of this state directory, making it (for its owner alone) the first time.
    pub fn load_or_create(state_dir: &Path) -> Result<Self, TokenError> {
        let path = state_dir.join(APPROVER_TOKEN_FILE);
        let failed = |error| TokenError::File {
            path: path.clone(),
            error,
        };
        match Self::create(&path) {
            Ok(token) => return Ok(token),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let file = File::open(&path).map_err(failed)?;
        let seen = file.metadata().map_err(failed)?;
        let problem = if seen.mode() & 0o077 != 0 {
            Some(format!("its mode is {:o}", seen.mode() & 0o777))
        } else if seen.uid() != rustix::process::geteuid().as_raw() {
            Some(format!("it belongs to user {}", seen.uid()))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(TokenError::NotPrivate { path, problem });
        }
        let mut text = String::new();
        file.take(TOKEN_FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let text = text.trim();
        if text.len() < TOKEN_BYTES {
            let problem = "it is too short to be a token; remove it to get a new one".to_owned();
            return Err(TokenError::NotPrivate { path, problem });
        }
        Ok(Self(text.to_owned()))
    }

    /// Writes a new token under another name first, so that nobody ever reads half of one.
    fn create(path: &Path) -> std::io::Result<Self> {
        if path.exists() {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        let mut random = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        // As text, and whole: a digest of random bytes is as good as the bytes.
        let token = Digest::of(&random).to_string();
        let draft = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        let written = file
            .write_all(format!("{token}\n").as_bytes())
            .and_then(|()| file.sync_all())
            // A link does not replace a token that another process has made meanwhile.
            .and_then(|()| std::fs::hard_link(&draft, path));
        std::fs::remove_file(&draft)?;
        written.map(|()| Self(token))
    }

    /// The token, for whoever has to hand it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the token. Takes equally long for every wrong one of its length.
    pub fn is(&self, given: &str) -> bool {
        let differing = self
            .0
            .bytes()
            .zip(given.bytes())
            .fold(0, |differing, (a, b)| differing | (a ^ b));
        self.0.len() == given.len() && std::hint::black_box(differing) == 0
    }
}

impl std::fmt::Debug for ApproverToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ApproverToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = ApproverToken::load_or_create(dir.path()).expect("made");
        let second = ApproverToken::load_or_create(dir.path()).expect("read");
        assert_eq!(first.reveal(), second.reveal());
        assert_eq!(first.reveal().len(), 2 * TOKEN_BYTES);
        assert!(first.is(second.reveal()));
        for wrong in [
            "",
            "x",
            &first.reveal()[1..],
            &first.reveal().replace(['0', '1', '2', '3'], "z"),
        ] {
            assert!(!first.is(wrong));
        }
        assert!(!format!("{first:?}").contains(first.reveal()));
        let path = dir.path().join(APPROVER_TOKEN_FILE);
        assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        let refused = ApproverToken::load_or_create(dir.path()).expect_err("others can read it");
        assert!(refused.to_string().contains("644"), "{refused}");
    }
}
