//! Errors and warnings about a set of skills.

use std::sync::Arc;

use model::{Severity, printable};

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $severity:ident;)*) => {
        /// Stable codes of findings. Each has one severity.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode { $($(#[doc = $doc])* $variant,)* }

        impl FindingCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it is written, `UPPER_SNAKE`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// An error makes the set invalid.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means, as a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*),)* }.trim()
            }
        }
    };
}

codes! {
    /// There is no skill of this id or name.
    UnknownSkill = "UNKNOWN_SKILL", Error;
    /// What stands behind the `@` is no version.
    InvalidReference = "INVALID_REFERENCE", Error;
    /// The skill has no version that is asked for, or two are asked for at once.
    VersionUnsatisfied = "VERSION_UNSATISFIED", Error;
    /// A skill requires another one that is not there.
    MissingRequiredSkill = "MISSING_REQUIRED_SKILL", Error;
    /// A skill does not work with another one that is there.
    IncompatibleSkills = "INCOMPATIBLE_SKILLS", Error;
    /// A skill forbids to be composed with another one that is there.
    ForbiddenCombination = "FORBIDDEN_COMBINATION", Error;
    /// No choice of versions meets all requirements.
    RequirementsUnsolvable = "REQUIREMENTS_UNSOLVABLE", Error;
    /// The requirements lead to more skills or versions than are looked at.
    TooManySkills = "TOO_MANY_SKILLS", Error;
    /// The skills name more tools than are put together.
    TooManyTools = "TOO_MANY_TOOLS", Error;
    /// What is there is not what was locked, or the lock was changed.
    LockMismatch = "LOCK_MISMATCH", Error;
    /// A skill is named more than once; it counts once.
    DuplicateSkill = "DUPLICATE_SKILL", Warning;
    /// A short name hides other skills of that name.
    ShadowedSkill = "SHADOWED_SKILL", Warning;
    /// The version was withdrawn, and answers because it was asked for exactly.
    WithdrawnVersion = "WITHDRAWN_VERSION", Warning;
    /// A skill, or the composition, allows no tool.
    EmptyToolset = "EMPTY_TOOLSET", Warning;
    /// A tool is allowed by one skill and forbidden by another; it is forbidden.
    ToolAllowedAndForbidden = "TOOL_ALLOWED_AND_FORBIDDEN", Warning;
    /// Whether one tool pattern covers another cannot be told; calls that both
    /// may cover are not permitted.
    ToolPatternUndecided = "TOOL_PATTERN_UNDECIDED", Warning;
    /// Skills promise outputs that contradict each other.
    OutputContractConflict = "OUTPUT_CONTRACT_CONFLICT", Warning;
    /// The skills together read private data, take in what strangers wrote, and hand
    /// something out: whoever writes what they read may decide what leaves.
    LethalTrifecta = "LETHAL_TRIFECTA", Warning;
    /// There is more of the same than an answer holds.
    MoreFindings = "MORE_FINDINGS", Warning;
}

/// An error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub code: FindingCode,
    /// What it is, in a sentence about the caller's skills.
    pub message: String,
    /// The skills it is about, the one that says so first.
    pub skills: Vec<Arc<str>>,
    /// The shortest way from a skill of the request to the last one.
    pub chain: Vec<String>,
    /// Place in the request of the reference it is about.
    pub position: Option<usize>,
}

/// Names of a chain that are shown; of longer ones the middle is left out.
const MAX_CHAIN_LENGTH: usize = 24;

impl Finding {
    /// A finding of a code, with its message on one line.
    pub(super) fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self {
            code,
            // Names and rules in it are a stranger's: a line break would let them pass for
            // something that the server says.
            message: printable(&message.into()).into_owned(),
            skills: Vec::new(),
            chain: Vec::new(),
            position: None,
        }
    }

    pub(super) fn about<S: Into<Arc<str>>>(mut self, skills: impl IntoIterator<Item = S>) -> Self {
        self.skills = skills.into_iter().map(Into::into).collect();
        self
    }

    pub(super) fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    pub(super) fn through(mut self, chain: &[&str]) -> Self {
        self.chain = shortened(chain);
        self
    }

    /// It makes the set invalid.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }

    /// As one line: the code and the sentence.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}: {}", self.code.name(), self.message)
    }
}

/// A chain with its middle left out where it is long, which the element there
/// says.
pub(super) fn shortened(chain: &[&str]) -> Vec<String> {
    let half = MAX_CHAIN_LENGTH / 2;
    let owned = |part: &[&str]| -> Vec<String> {
        let names = part.iter().map(|name| printable(name).into_owned());
        names.collect()
    };
    match (chain.get(..half), chain.len().checked_sub(MAX_CHAIN_LENGTH)) {
        (Some(begin), Some(left_out)) if left_out > 0 => {
            let mut short = owned(begin);
            short.push(format!("… {left_out} more …"));
            short.extend(owned(chain.get(chain.len() - half..).unwrap_or_default()));
            short
        }
        _ => owned(chain),
    }
}

/// Names as a sentence has them: `'a'`, `'a' and 'b'`, `'a', 'b' and 3 more`.
pub(super) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const MAX_SHOWN_NAMES: usize = 8;
    let more = names.len().saturating_sub(MAX_SHOWN_NAMES);
    let shown = names
        .iter()
        .take(MAX_SHOWN_NAMES)
        .map(|name| name.as_ref().len());
    // Measured first, since each of thousands of findings may list names.
    let length = shown.map(|name| name + "' and '".len()).sum::<usize>();
    let mut text = String::with_capacity(length + 32 * more.min(1));
    for (at, name) in names.iter().take(MAX_SHOWN_NAMES).enumerate() {
        let between = match at {
            0 => "",
            at if at + 1 == names.len() => " and ",
            _ => ", ",
        };
        text.extend([between, "'", name.as_ref(), "'"]);
    }
    if more > 0 {
        text.extend([" and ", &more.to_string(), " more"]);
    }
    text
}
