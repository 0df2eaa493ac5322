//! Why nobody can decide whether a pattern covers a call.

/// The reason of a doubt, as a clause that follows a comma.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uncertainty {
    /// Names of tools differ by spelling alone.
    #[error("since some hosts treat `{pattern}` and `{tool}` as the same tool")]
    ToolSpelling {
        /// The name in the pattern.
        pattern: Box<str>,
        /// The name in the call.
        tool: Box<str>,
    },
    /// The pattern is no pattern.
    #[error("since `{0}` cannot be read as a pattern")]
    Unreadable(Box<str>),
    /// The rule in parentheses is the tool's own.
    #[error("since only the tool itself knows what the rule `{0}` means")]
    OwnRule(Box<str>),
    /// The argument that the rule is about is not there.
    #[error("since the call has no argument `{0}`")]
    NoArgument(&'static str),
    /// The argument that the rule is about is not one text.
    #[error("since the argument `{0}` is not a text")]
    NotText(Box<str>),
    /// Two arguments may mean the same thing and differ.
    #[error("since the arguments `{0}` and `{1}` may mean the same thing and differ")]
    TwoArguments(Box<str>, Box<str>),
    /// Another argument changes what the first one does.
    #[error("since the argument `{0}` may change what the call does")]
    Modifier(Box<str>),
    /// A shell may see other words than those in the text.
    #[error("since a shell may read {0} in the command line in more than one way")]
    Shell(Box<str>),
    /// An assignment before a command may change what runs.
    #[error("since `{0}` may change which program runs")]
    Assignment(Box<str>),
    /// The program may run others.
    #[error("since `{0}` may run other programs")]
    Launcher(Box<str>),
    /// The pattern names its program by a folder.
    #[error("since `{0}` may be the program `{1}`")]
    SameProgram(Box<str>, Box<str>),
    /// Other arguments may mean the same.
    #[error("since other arguments of `{0}` may do what the pattern forbids")]
    OtherArguments(Box<str>),
    /// Hosts read the path differently.
    #[error("since the path has {0}, which hosts read differently")]
    Path(&'static str),
    /// One is absolute, and the other is not.
    #[error("since it is not known where the path `{0}` begins")]
    RelativePath(Box<str>),
    /// The path differs by case or by how letters are composed.
    #[error("since some file systems treat `{0}` as a path that the pattern covers")]
    PathCase(Box<str>),
    /// The pattern of a path mixes stars.
    #[error("since `**` is next to other characters in the pattern `{0}`")]
    PathStars(Box<str>),
    /// Readers of addresses differ.
    #[error("since the address {0}")]
    Address(&'static str),
}

/// Characters of a caller's text that a sentence repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// A caller's text, short and on one line.
pub(super) fn shown(text: &str) -> Box<str> {
    model::shown(text, MAX_SHOWN_CHARS).into()
}
