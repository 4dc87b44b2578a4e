//! `confinement:` in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{Network, Signals, UnixSockets};

/// How much is insisted on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// What the kernel has is used.
    #[default]
    BestEffort,
    /// A command is not started unless the kernel can keep it from files and system calls.
    Required,
    /// Commands run with all the rights of the user.
    Off,
}

/// What commands of the `exec` tool are held to by the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConfinementConfig {
    /// Whether commands are confined, and what happens on a kernel that can not.
    pub mode: Mode,
    /// Files and directories that commands may read, besides the workspace and the system's own.
    /// `~/` is the home directory.
    pub read: Vec<String>,
    /// Files and directories that commands may change, besides the workspace.
    pub write: Vec<String>,
    /// Where the temporary files of commands go, each workspace's in a directory of its own. Without
    /// it, a directory of this user in the system's own for temporary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Whether commands reach the network.
    pub network: Network,
    /// Whether commands may talk to local services through Unix sockets.
    pub unix_sockets: UnixSockets,
    /// Whom commands may signal.
    pub signals: Signals,
}

impl ConfinementConfig {
    /// What is wrong with the settings: which, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let lists = [("read", &self.read), ("write", &self.write)];
        let paths = lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |path| (name, path)))
            .chain(self.temporary.iter().map(|path| ("temporary", path)));
        paths
            .filter(|(_, path)| !path.starts_with('/') && !path.starts_with("~/"))
            .map(|(name, path)| (name, format!("{path:?} has to begin with / or ~/")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_refused() {
        let config = ConfinementConfig {
            read: vec!["/a".to_owned(), "~/b".to_owned(), "c".to_owned()],
            write: vec!["../d".to_owned(), "~e".to_owned()],
            ..ConfinementConfig::default()
        };
        let found: Vec<&str> = config.problems().iter().map(|(name, _)| *name).collect();
        assert_eq!(found, ["read", "write", "write"]);
        assert!(ConfinementConfig::default().problems().is_empty());
    }
}
