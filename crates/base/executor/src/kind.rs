//! The kinds of work, and how much of each is done at once.

/// A kind of work, with permits and a queue of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reading the contents of files, and prompts.
    Read,
    /// Searching by words and meaning.
    Search,
    /// Composing, solving and selecting sets of skills.
    Compose,
    /// Reading, hashing and packing what one call publishes.
    Publish,
    /// The same for streams, each of which has a bound on what it sends ahead.
    Import,
    /// Comparing versions line by line.
    Diff,
    /// Making archives.
    Export,
    /// Reading codebases, and recommending skills for them.
    Analyze,
    /// Grading solutions by reading them.
    Grade,
    /// Backups and compactions, which the operator asks for.
    Maintain,
}

impl Kind {
    /// Every kind, in order.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Search,
        Self::Compose,
        Self::Publish,
        Self::Import,
        Self::Diff,
        Self::Export,
        Self::Analyze,
        Self::Grade,
        Self::Maintain,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Compose => "compose",
            Self::Publish => "publish",
            Self::Import => "import",
            Self::Diff => "diff",
            Self::Export => "export",
            Self::Analyze => "analyze",
            Self::Grade => "grade",
            Self::Maintain => "maintain",
        }
    }

    /// Its number of permits. The work keeps processors busy, so more would only take
    /// them from each other; at least two of what is short, so that one that is slow
    /// does not stop the others; half of the processors for what is long.
    #[must_use]
    pub fn permits(self, processors: usize) -> usize {
        match self {
            Self::Read | Self::Search | Self::Compose | Self::Publish | Self::Import => {
                processors.max(2)
            }
            Self::Diff | Self::Export | Self::Analyze | Self::Grade => (processors / 2).max(1),
            // Two would work on the same files, and against each other.
            Self::Maintain => 1,
        }
    }

    /// The length of its queue; none: its callers have a bound of their own.
    #[must_use]
    pub fn queue(self) -> Option<usize> {
        match self {
            Self::Read | Self::Search | Self::Publish => Some(512),
            Self::Compose | Self::Grade => Some(128),
            Self::Diff | Self::Export | Self::Analyze => Some(32),
            // A stream has its own bound on what it sends ahead, and is read later instead of
            // refused.
            Self::Import => None,
            Self::Maintain => Some(0),
        }
    }
}
