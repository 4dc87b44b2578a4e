//! What can be typed after `holdfast memory`.

use clap::{Args, Subcommand, ValueEnum};
use holdfast_contract::{MemoryType, Trust};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast memory store --type preference 'Ada wants her reports as tables.'\n  \
    holdfast memory search 'how does Ada like reports'\n  \
    holdfast memory export memories.ndjson && holdfast memory import memories.ndjson\n\n\
    Agents reach the same records with the tools memory_search and memory_store.")]
pub(crate) enum MemoryCommand {
    /// Remember something.
    Store(StoreArgs),
    /// Find what is remembered, by words and by meaning.
    Search(SearchArgs),
    /// List records, newest first.
    List {
        /// At most this many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Only of this type.
        #[arg(long = "type", value_enum, value_name = "TYPE")]
        memory_type: Option<Type>,
        /// Show texts as they are, secrets included.
        #[arg(long)]
        reveal: bool,
    },
    /// Forget records.
    Delete {
        /// Their ids, as `search` and `list` show them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Write all records to a file, one JSON object a line.
    #[command(
        after_help = "The file holds every text as it is, secrets included, and is readable \
        by its owner only.\nTwo exports of the same records differ in the time on the first line, and in \
        nothing else.\n\nExample:\n  holdfast memory export memories-$(date +%F).ndjson"
    )]
    Export {
        /// The file, replaced in one step when it is whole; or `-` for standard output.
        #[arg(value_name = "FILE|-")]
        file: String,
        /// The agent whose memory this is, for the first line.
        #[arg(long, default_value = "cli", value_name = "NAME")]
        agent: String,
    },
    /// Read records from a file that `export` wrote, this version's or any older one's.
    #[command(
        after_help = "Records that are there already stay as they are, so an import can be \
        repeated.\nA file can not raise the trust of its own records: --trust is the most they get.\n\
        Exit codes: 0 all is in, 1 something is not, 2 bad usage.\n\nExamples:\n  \
        holdfast memory import memories-2026-11-15.ndjson\n  \
        holdfast memory import --trust untrusted from-somebody-else.ndjson"
    )]
    Import {
        /// The file, or `-` for standard input.
        #[arg(value_name = "FILE|-")]
        file: String,
        /// The most that any of its records is trusted, whatever the file says.
        #[arg(long, value_enum, default_value = "user", value_name = "TRUST")]
        trust: TrustArg,
    },
    /// Ask the embedding model for vectors that are missing, or of another model or size.
    #[command(
        after_help = "Records are stored without a vector while the model is away, and keep \
        their old vector when another model is configured, or when the model gives vectors of another \
        size. This makes up for all of it; it can be interrupted and started again."
    )]
    Reindex {
        /// All records, also those that have a vector.
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast memory store --type decision 'We ship on Tuesdays, because Mondays are for planning.'\n  \
    echo 'The staging server is in Frankfurt.' | holdfast memory store --type fact -\n  \
    holdfast memory store --type fact --metadata '{\"project\": \"holdfast\"}' 'It is written in Rust.'\n\n\
    What is known word for word is not stored twice.")]
pub(crate) struct StoreArgs {
    /// The text, or `-` for standard input.
    #[arg(value_name = "TEXT|-")]
    pub(crate) content: String,
    /// What kind of thing it is.
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) memory_type: Type,
    /// Whatever else belongs to it, as a JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// The session that stores it.
    #[arg(long, default_value = "cli", value_name = "KEY")]
    pub(crate) session: String,
    /// How far the text is trusted, now and whenever it is found.
    #[arg(long, value_enum, default_value = "user", value_name = "TRUST")]
    pub(crate) trust: TrustArg,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast memory search where is the staging server\n  \
    holdfast memory search --type decision --limit 3 'ship*' --json\n\n\
    A word finds all its forms and accents (deploy, deployed; Zoe, Zoë).\n\
    A star behind it finds all words that begin like it.")]
pub(crate) struct SearchArgs {
    /// What to look for: a question or a few words.
    #[arg(required = true, value_name = "WORDS")]
    pub(crate) query: Vec<String>,
    /// At most this many.
    #[arg(long, default_value_t = holdfast_contract::memory::MEMORY_HITS_DEFAULT)]
    pub(crate) limit: usize,
    /// Only of this type.
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) memory_type: Option<Type>,
    /// Show texts as they are, secrets included.
    #[arg(long)]
    pub(crate) reveal: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Type {
    /// Something that was decided.
    Decision,
    /// Something that is so.
    Fact,
    /// Who somebody is.
    Identity,
    /// What somebody likes or wants.
    Preference,
}

impl From<Type> for MemoryType {
    fn from(typed: Type) -> Self {
        match typed {
            Type::Decision => Self::Decision,
            Type::Fact => Self::Fact,
            Type::Identity => Self::Identity,
            Type::Preference => Self::Preference,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TrustArg {
    /// From anywhere.
    Untrusted,
    /// A tool's words, or a model's.
    Tool,
    /// Your own words.
    User,
}

impl From<TrustArg> for Trust {
    fn from(typed: TrustArg) -> Self {
        match typed {
            TrustArg::Untrusted => Self::Untrusted,
            TrustArg::Tool => Self::Tool,
            TrustArg::User => Self::User,
        }
    }
}
