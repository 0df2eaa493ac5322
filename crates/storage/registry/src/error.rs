//! Errors of skills and versions, and the failure that a caller gets for each.

use super::nearest::nearest_paths;
use super::{Head, Hold, NameError, Near};
use model::{
    Block, Code, Digest, Failure, Problem, Severity, SkillId, SkillIdError, Version, VersionNumber,
    VersionSelector, shown,
};
use store::{CommitError, StoreError};

/// Maximum number of characters of a reason that a message repeats.
const MAX_REASON: usize = 200;
/// Maximum number of characters of the reason why a folder is no skill.
const MAX_REFUSED: usize = 500;

/// A call on the registry failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No skill of this id or name.
    #[error("Skill '{reference}' not found in index")]
    SkillNotFound {
        /// The reference that the caller sent.
        reference: String,
        /// Names that may have been meant.
        near: Vec<Near>,
        /// The reason why a folder of the caller with this name is no skill.
        refused: Option<String>,
    },
    /// A short name belongs to another skill.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Every version of the skill was withdrawn.
    #[error("All versions of '{id}' were withdrawn")]
    AllYanked {
        /// The skill.
        id: SkillId,
    },
    /// No version of the skill was ever activated, or the active one was withdrawn and
    /// others were not.
    #[error("No version of '{id}' is active; version {newest} can be made so")]
    NoneActive {
        /// The skill.
        id: SkillId,
        /// The newest version that was not withdrawn.
        newest: VersionNumber,
    },
    /// The skill has no such version.
    #[error("Skill '{id}' has no version {version}")]
    VersionNotFound {
        /// The skill.
        id: SkillId,
        /// The version asked for.
        version: VersionSelector,
        /// The versions that it has, in a few words; empty: not known any more.
        there: String,
    },
    /// The version was withdrawn.
    #[error("Version {version} of '{id}' was withdrawn{}", because(reason))]
    Yanked {
        /// The skill.
        id: SkillId,
        /// The version.
        version: VersionNumber,
        /// The reason of the withdrawal.
        reason: String,
    },
    /// The version is held for review.
    #[error("Version {version} of '{id}' is held for review{}", because(&shown(reason, MAX_REASON)))]
    Held {
        /// The skill.
        id: SkillId,
        /// The version.
        version: VersionNumber,
        /// The reason of the hold.
        reason: String,
        /// Another version that can be had.
        active: Option<VersionNumber>,
        /// The version is in a folder, and in no store.
        is_local: bool,
    },
    /// The version is not held for review.
    #[error("Version {version} of '{id}' is not held for review")]
    NotHeld {
        /// The skill.
        id: SkillId,
        /// The version.
        version: VersionNumber,
    },
    /// The skill is on the blocklist.
    #[error("Skill '{id}' is blocked on this server{}", because(&shown(reason, MAX_REASON)))]
    Blocked {
        /// The skill.
        id: SkillId,
        /// The reason of the block.
        reason: String,
    },
    /// The skill is not on the blocklist.
    #[error("Skill '{id}' is not on the blocklist")]
    NotBlocked {
        /// The skill.
        id: SkillId,
    },
    /// The feed of blocked skills cannot be taken in.
    #[error("The feed of blocked skills cannot be read: {reason}")]
    Feed {
        /// The reason.
        reason: String,
    },
    /// The version has no such file.
    #[error("Version {version} of '{id}' has no file '{path}'")]
    FileNotFound {
        /// The skill.
        id: SkillId,
        /// The version.
        version: VersionNumber,
        /// The path asked for.
        path: String,
        /// Paths that may have been meant.
        near: Vec<String>,
    },
    /// The skill comes with the server.
    #[error("'{id}' comes with the server and cannot be changed")]
    ReadOnly {
        /// The skill.
        id: SkillId,
    },
    /// A name of the skill is not the caller's to give.
    #[error("'{name}' {whose}")]
    NameReserved {
        /// The skill.
        id: SkillId,
        /// The name.
        name: String,
        /// The owner of the name.
        whose: String,
        /// The next step.
        step: String,
    },
    /// The skill would live on a person's machine, and the caller is not there.
    #[error(
        "'{id}' is a place of the server's own machine, which no call over the network can write to"
    )]
    NotLocal {
        /// The skill.
        id: SkillId,
    },
    /// The semantic version exists with other bytes.
    #[error("Version {semantic} of '{id}' exists with other content, as number {existing}")]
    VersionConflict {
        /// The skill.
        id: SkillId,
        /// The semantic version.
        semantic: semver::Version,
        /// Number of the version that has it.
        existing: VersionNumber,
    },
    /// The files do not make a skill.
    #[error("{}", invalid(problems))]
    Invalid {
        /// All that was found, errors first.
        problems: Vec<Problem>,
    },
    /// A text is not an id.
    #[error(transparent)]
    Id(#[from] SkillIdError),
    /// A value is wrong.
    #[error("{message}")]
    Parameter {
        /// Field of the request.
        field: &'static str,
        /// The mistake in it.
        message: String,
    },
    /// The request is no skill.
    #[error("{}", .0.message)]
    Request(Box<Failure>),
    /// The idempotency key came with another request before.
    #[error("The idempotency key '{key}' was used for another request")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A page token is of another query, or no token.
    #[error("The page token is not one of this query")]
    PageToken,
    /// A resume token is no token.
    #[error("The resume token is not one of this server")]
    ResumeToken,
    /// A resume token is older than the log, or of another log.
    #[error("The log no longer reaches back to the resume token")]
    ResumeTokenExpired,
    /// All numbers of the skill are used.
    #[error("'{id}' has as many versions as there are numbers")]
    OutOfNumbers {
        /// The skill.
        id: SkillId,
    },
    /// The namespace of a skill holds as much as it may.
    #[error("{} may hold {limit} {what}, and '{id}' does not fit", .id.namespace())]
    NamespaceFull {
        /// The skill.
        id: SkillId,
        /// The limited resource: `skills` or `bytes`.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The highest semantic version of the skill cannot be raised.
    #[error("'{id}' has the highest possible semantic version")]
    OutOfVersions {
        /// The skill.
        id: SkillId,
    },
    /// Concurrent writes kept winning.
    #[error("Other writes to the same skill kept interfering")]
    Contention,
    /// The stored records are inconsistent.
    #[error("the data directory is damaged: {damage}")]
    Unfit {
        /// The first inconsistency, as a sentence.
        damage: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
    /// There is no memory for an answer.
    #[error(transparent)]
    Full(#[from] admission::Full),
    /// A fault of the server, in words for its log.
    #[error("a fault of the server: {0}")]
    Internal(String),
}

impl Error {
    /// Returns whether it ends by itself: the store is opened again after a failed write.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Store(StoreError::Reopening))
    }

    /// The skill has no such version.
    pub(super) fn no_version(head: &Head, version: VersionSelector) -> Self {
        Self::VersionNotFound {
            id: head.id.clone(),
            version,
            there: there(head),
        }
    }

    /// The version has no such file.
    #[must_use]
    pub fn no_file(id: &SkillId, version: &Version, path: &str) -> Self {
        let paths = version.files.iter().map(|file| file.path.as_str());
        Self::FileNotFound {
            id: id.clone(),
            version: version.number,
            path: path.to_owned(),
            near: nearest_paths(path, paths),
        }
    }

    /// A version uses a content that is not stored.
    pub(super) fn missing(digest: &Digest) -> Self {
        Self::Store(StoreError::Damaged {
            key: format!("contents/{digest}"),
            reason: "it is missing".to_owned(),
        })
    }

    pub(super) fn blocked(block: &Block) -> Self {
        Self::Blocked {
            id: block.skill.clone(),
            reason: block.reason.clone(),
        }
    }

    pub(super) fn held(head: &Head, version: VersionNumber, hold: Option<Hold>) -> Self {
        Self::Held {
            id: head.id.clone(),
            version,
            reason: hold.map_or_else(String::new, |hold| hold.words()),
            active: head.active,
            is_local: head.is_local(),
        }
    }

    /// The name of a skill leads to no version.
    pub(super) fn none_active(head: &Head) -> Self {
        let id = head.id.clone();
        match head.highest_available() {
            Some(newest) => Self::NoneActive { id, newest },
            None => Self::AllYanked { id },
        }
    }
}

/// Describes the versions of a skill in a few words.
fn there(head: &Head) -> String {
    let (first, last) = (head.first_number, head.last_number);
    let highest = &head.highest;
    if first == last {
        return format!("version {last} alone, {highest}");
    }
    let active = head.active.map_or_else(String::new, |active| {
        format!(", of which {active} is active")
    });
    format!("versions {first} to {last}{active}; the highest is {highest}")
}

fn because(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    }
}

fn invalid(problems: &[Problem]) -> String {
    let refused = "The skill cannot be published";
    let errors = problems.iter().filter(|p| p.severity == Severity::Error);
    match (problems.first(), errors.count()) {
        (Some(first), 0 | 1) => format!("{refused}: {first}"),
        (Some(first), more) => format!("{refused}: {first} (and {} more)", more - 1),
        (None, _) => refused.to_owned(),
    }
}

/// Adds where to publish a skill that cannot be on the server's machine.
fn elsewhere(failure: Failure, id: &SkillId) -> Failure {
    let slug = id.slug();
    failure
        .detail("skill_id", id)
        .suggest(format!("Publish it as `SOURCE/AUTHOR/{slug}` of your own, or as `local/global/{slug}`"))
        .suggest("On the server's machine, `repertoire import DIR --location project` without --server reaches it through its data directory")
}

/// Adds the steps for a version that is held.
fn held(
    failure: Failure,
    id: &SkillId,
    version: VersionNumber,
    reason: &str,
    active: Option<VersionNumber>,
    is_local: bool,
) -> Failure {
    let whose = if is_local {
        "Its author can change what was found (`repertoire scan` names all of it), or a person publish it and hand it out (`repertoire review approve`)".to_owned()
    } else {
        format!(
            "A reviewer can read it (`repertoire review show {id} {version} --diff`, or `--files`) and approve it (`repertoire review approve`)"
        )
    };
    let step = match active {
        Some(active) => format!("Leave the version out for the active one, {active}"),
        None => "Use another skill; search for the task to find one".to_owned(),
    };
    failure
        .detail("skill_id", id)
        .detail("version", version)
        .detail("reason", shown(reason, MAX_REASON))
        .suggest(step)
        .suggest(whose)
}

/// Adds the steps for a name that leads nowhere.
fn not_found(failure: Failure, asked: &str, near: &[Near], refused: Option<&str>) -> Failure {
    let failure = match refused {
        Some(why) => failure.suggest(shown(why, MAX_REFUSED)),
        None => failure,
    };
    failure
        .did_you_mean(near)
        .detail("skill_id", asked)
        .suggest("Verify the skill ID is correct: it is `source/author/slug` or a short name")
        .suggest(FIND)
}

const FIND: &str = "Find a skill by what it is to do: the answer has the names";

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |code| Failure::new(code, message.clone());
        let of_version = |code, id: &SkillId, version: VersionNumber| {
            new(code).detail("skill_id", id).detail("version", version)
        };
        match error {
            Error::SkillNotFound { reference, near, refused } => not_found(new(Code::SkillNotFound), &reference, &near, refused.as_deref()),
            Error::Name(error) => error.into(),
            Error::AllYanked { id } => new(Code::SkillYanked)
                .detail("skill_id", &id)
                .suggest("Choose another skill, or ask its publisher")
                .suggest("Ask for a version by its number if you must have it"),
            Error::NoneActive { id, newest } => of_version(Code::SkillNotActive, &id, newest)
                .suggest(format!("Activate version {newest}, or ask for a version by its number")),
            Error::VersionNotFound { id, version, there } => {
                let failure = new(Code::VersionNotFound)
                    .detail("skill_id", &id)
                    .detail("version", version);
                if there.is_empty() {
                    failure.suggest("Leave the version out for the active one")
                } else {
                    failure.suggest(format!("It has {there}"))
                }
            }
            Error::Yanked { id, version, .. } => of_version(Code::VersionYanked, &id, version)
                .suggest("Unyank the version first, or choose another one"),
            Error::Held { id, version, reason, active, is_local } => held(new(Code::VersionHeld), &id, version, &reason, active, is_local),
            Error::NotHeld { id, version } => of_version(Code::VersionNotHeld, &id, version)
                .suggest("List held versions (`repertoire review`); withdraw a published version with `repertoire yank`"),
            Error::Blocked { id, reason } => new(Code::SkillBlocked)
                .detail("skill_id", &id)
                .detail("reason", shown(&reason, MAX_REASON))
                .suggest("Use another skill; search for the task to find one")
                .suggest(format!("A reviewer can read it (`repertoire review show {id} --files`) and remove it from the blocklist (`repertoire block remove`)")),
            Error::NotBlocked { id } => new(Code::SkillNotBlocked)
                .detail("skill_id", &id)
                .suggest("List what is blocked (`repertoire block list`)"),
            Error::Feed { .. } => new(Code::SourceUnavailable)
                .suggest("Name a file in `trust.blocklist_feed` of the server's config file: {\"blocked\": [{\"skill_id\": \"source/author/slug\", \"reason\": \"why\"}]}"),
            Error::FileNotFound { id, version, path, near } => of_version(Code::FileNotFound, &id, version)
                .did_you_mean(&near)
                .detail("path", path)
                .suggest("Loading the skill names its files; paths are compared with their case"),
            Error::ReadOnly { id } => new(Code::SkillReadOnly)
                .detail("skill_id", &id)
                .suggest("Publish a skill of your own under another name; on the server's machine one of the same name in `local/project/` or `local/user/` hides this one"),
            Error::NameReserved { id, name, step, .. } => new(Code::NameReserved)
                .detail("skill_id", &id)
                .detail("name", name)
                .suggest(step),
            Error::NotLocal { id } => elsewhere(new(Code::LocationNotLocal), &id),
            Error::VersionConflict { id, semantic, existing } => new(Code::VersionConflict)
                .detail("skill_id", &id)
                .detail("semantic_version", &semantic)
                .detail("version_number", existing)
                .suggest("Raise `version` in the front matter, or leave it out to have the patch raised"),
            Error::Invalid { problems } => {
                let mut failure = new(Code::SkillInvalid)
                    .suggest("Fix the listed problems and publish again")
                    .suggest("Validate the skill first, which reports every problem and publishes nothing");
                failure.problems = problems;
                failure
            }
            Error::Id(_) => new(Code::InvalidParameter)
                .field("skill_id", message)
                .suggest("Write the id as `source/author/slug`"),
            Error::Parameter { field, message } => {
                Failure::new(Code::InvalidParameter, message.clone()).field(field, message)
            }
            Error::Request(failure) => *failure,
            Error::KeyReused { .. } => new(Code::IdempotencyKeyReused)
                .suggest("Use a new key for a new request; repeat a request unchanged to repeat its answer"),
            Error::PageToken => new(Code::PageTokenInvalid)
                .field("page_token", message)
                .suggest("Repeat the query with the filters that gave the token, or begin with the first page"),
            Error::ResumeToken => new(Code::ResumeTokenInvalid)
                .field("resume_token", message)
                .suggest("Use the token as it was given, or none to watch from now on"),
            Error::ResumeTokenExpired => new(Code::ResumeTokenExpired)
                .suggest("List the skills again and watch from the token that the list gives"),
            Error::OutOfNumbers { id } => new(Code::StoreUnavailable).detail("skill_id", &id),
            Error::NamespaceFull { id, what, limit } => new(Code::QuotaExceeded)
                .detail("namespace", id.namespace())
                .detail("quota", what)
                .detail("limit", limit)
                .suggest("Delete unused skills of it: the bytes of all their versions count")
                .suggest("The operator sets it: `limits.quotas.skills_per_namespace` and `mib_per_namespace`, or for one namespace `limits.quotas.namespaces`"),
            Error::OutOfVersions { id } => new(Code::VersionConflict)
                .detail("skill_id", &id)
                .suggest("State a `version` in the front matter that the skill has not had"),
            Error::Unfit { .. } => new(Code::DataDamaged)
                .suggest("Check all of it with the server stopped (`repertoire verify`), and restore a backup or recover what is undamaged (`repertoire salvage`)"),
            Error::Contention => new(Code::WriteContention).suggest("Try again"),
            Error::Commit(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Work(error) => error.into(),
            Error::Full(full) => full.into(),
            Error::Internal(cause) => Failure::fault(cause),
        }
    }
}
