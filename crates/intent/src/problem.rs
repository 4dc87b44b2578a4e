//! What can be wrong with an intent or a reply. Typed for code, with a message for a model.

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Problem {
    /// The text ended inside the call.
    Truncated,
    /// The arguments were not quite JSON and were repaired.
    Repaired,
    /// No tool has this name or anything close to it.
    UnknownTool {
        /// The name as written.
        name: String,
        /// Tools with names like it, the most similar first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        similar: Vec<String>,
    },
    /// There is such a tool, and only another one may be called now.
    NotNow {
        /// Its name.
        name: String,
        /// The one that may be called.
        only: String,
    },
    /// The name was not exactly a tool's; the closest one was taken.
    NameGuessed {
        /// The name as written.
        written: String,
    },
    /// A required argument is not there.
    MissingArgument {
        /// Its name in the schema.
        argument: String,
    },
    /// The schema does not know this argument.
    UnknownArgument {
        /// Its name as written.
        argument: String,
    },
    /// The value does not have the type that the schema wants, and no lossless way leads there.
    WrongType {
        /// The argument's name.
        argument: String,
        /// The type in the schema.
        expected: String,
    },
    /// The schema lists the argument's values, and this is none of them.
    WrongValue {
        /// The argument's name.
        argument: String,
        /// The values in the schema.
        allowed: Vec<String>,
    },
    /// The value stands for something that is not known yet; wait for earlier results.
    Placeholder {
        /// The argument's name.
        argument: String,
        /// What stands there.
        text: String,
    },
    /// Arguments, or parts of them, were left out with `...`.
    Elided,
    /// The arguments can be read in more than one way: marks that nobody escaped, or one argument
    /// given twice.
    Ambiguous,
    /// The arguments are no JSON object: a list, or a bare value for a tool that changes things.
    NotAnObject,
    /// The arguments could not be read at all.
    UnreadableArguments,
    /// A guess at a tool that changes things: ask back, do not run.
    NeedsConfirmation,
    /// The model only thought of it, and said something else: ask back, do not run.
    OnlyThought,
    /// The reply announces a step and makes no call.
    OnlyAnnounced,
    /// The reply looks like a call that failed to be one.
    LooksLikeFailedCall,
    /// More calls than a reply may hold; the rest was dropped.
    TooManyIntents,
    /// The server returned neither text nor calls.
    EmptyReply,
    /// The server returned an error in the place of a reply.
    ServerError {
        /// What it says.
        message: String,
    },
    /// The same call with the same arguments stands there more than once; it is given once.
    Repeated {
        /// How often it stands there.
        times: usize,
    },
    /// So much of the text led nowhere that the rest of it was not read.
    ReadingGivenUp,
}

impl Problem {
    /// Whether the intent must not run while this stands.
    pub fn is_blocking(&self) -> bool {
        !matches!(
            self,
            Self::Repaired
                | Self::NameGuessed { .. }
                | Self::UnknownArgument { .. }
                | Self::Repeated { .. }
        )
    }

    /// A sentence for a model or a person.
    pub fn message(&self) -> String {
        match self {
            Self::Truncated => "The call was cut off before its end.".to_owned(),
            Self::Repaired => "The arguments were not valid JSON and were repaired.".to_owned(),
            Self::UnknownTool { name, similar } if similar.is_empty() => {
                format!("There is no tool named `{name}`.")
            }
            Self::UnknownTool { name, similar } => format!(
                "There is no tool named `{name}`; did you mean `{}`?",
                similar.join("` or `")
            ),
            Self::NotNow { only, .. } => format!("Only `{only}` may be called now."),
            Self::NameGuessed { written } => {
                format!("`{written}` is not a tool's name; the closest one was taken.")
            }
            Self::MissingArgument { argument } => {
                format!("The required argument `{argument}` is missing.")
            }
            Self::UnknownArgument { argument } => {
                format!("The tool has no argument `{argument}`.")
            }
            Self::WrongType { argument, expected } => {
                format!("The argument `{argument}` has to be of type {expected}.")
            }
            Self::WrongValue { argument, allowed } => format!(
                "The argument `{argument}` has to be one of `{}`.",
                allowed.join("`, `")
            ),
            Self::Placeholder { argument, text } => {
                format!("The argument `{argument}` is still open: {text}.")
            }
            Self::Elided => {
                "Parts of the arguments were left out with `...`; write them out.".to_owned()
            }
            Self::Ambiguous => {
                "The arguments can be read in more than one way; escape the quotation \
                                marks inside of strings and give each argument once."
                    .to_owned()
            }
            Self::NotAnObject => {
                "The arguments have to be one JSON object, with the names of the tool's own arguments."
                    .to_owned()
            }
            Self::UnreadableArguments => "The arguments could not be read.".to_owned(),
            Self::NeedsConfirmation => {
                "This is a guess and would change things; say it as a tool call with the tool's own name."
                    .to_owned()
            }
            Self::OnlyThought => {
                "Write the call in your reply, in this format. If you do not mean it, say your answer again."
                    .to_owned()
            }
            Self::OnlyAnnounced => {
                "Your reply announces a step and makes no call.".to_owned()
            }
            Self::LooksLikeFailedCall => {
                "The reply looks like a tool call but could not be read as one.".to_owned()
            }
            Self::ServerError { message } => {
                format!("The server returned an error: {message}")
            }
            Self::Repeated { times } => {
                format!("The same call was made {times} times; it counts once.")
            }
            Self::EmptyReply => "The reply is empty.".to_owned(),
            Self::ReadingGivenUp => "The reply is so tangled that its end was not read.".to_owned(),
            Self::TooManyIntents => "The reply holds too many calls.".to_owned(),
        }
    }
}
