//! Failures, as every face reports them.
//!
//! Each crate has an error enum of its own, with facts. [`Failure`] is the one form
//! in which all of them leave the domain: a stable code, a message about the
//! caller's data, and next steps. Faces only write it down.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::Problem;

/// The sort of a failure, which decides the transport's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is wrong whatever the state. Fix the request.
    Invalid,
    /// The thing is not there.
    NotFound,
    /// The caller does not say who it is, or not in a way that is accepted.
    Unauthenticated,
    /// The caller may not do it.
    Denied,
    /// The state forbids it. Fix the state first.
    State,
    /// Another write came between. Read again and retry.
    Conflict,
    /// A limit is reached. Retry later.
    Exhausted,
    /// The place asked for is outside what is kept.
    OutOfRange,
    /// The deadline passed.
    Timeout,
    /// Not now. Retry the call.
    Unavailable,
    /// Stored data is damaged.
    DataLoss,
    /// The server is broken.
    Fault,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $number:literal, $kind:ident;)*) => {
        /// Stable codes, the same on every face. Numbers below 7000 that end in
        /// 0–9 are those of the tool specification; the others follow them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])* $variant,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it is written, `UPPER_SNAKE`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The code's number, for callers that count.
            #[must_use]
            pub fn number(self) -> u16 {
                match self { $(Self::$variant => $number,)* }
            }

            /// Its meaning, as a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                // A doc comment begins with the space behind its slashes.
                match self { $(Self::$variant => concat!($($doc),*),)* }.trim()
            }

            /// The sort of failure that it is.
            #[must_use]
            pub fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }
        }
    };
}

codes! {
    /// The server is broken; its log says how.
    InternalError = "INTERNAL_ERROR", 1000, Fault;
    /// A value of the request is wrong.
    InvalidParameter = "INVALID_PARAMETER", 1001, Invalid;
    /// A value of the request is missing.
    MissingParameter = "MISSING_PARAMETER", 1002, Invalid;
    /// The deadline passed before the work was done.
    Timeout = "TIMEOUT", 1003, Timeout;
    /// The server is at capacity.
    Overloaded = "OVERLOADED", 1010, Exhausted;
    /// The server is about to stop.
    ShuttingDown = "SHUTTING_DOWN", 1011, Unavailable;
    /// A page token belongs to another query, or is no token.
    PageTokenInvalid = "PAGE_TOKEN_INVALID", 1012, Invalid;
    /// A resume token is older than the log, or of another log.
    ResumeTokenExpired = "RESUME_TOKEN_EXPIRED", 1013, OutOfRange;
    /// A resume token is no token.
    ResumeTokenInvalid = "RESUME_TOKEN_INVALID", 1014, Invalid;
    /// An idempotency key came with another request before.
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", 1015, State;
    /// Other writes kept coming between.
    WriteContention = "WRITE_CONTENTION", 1016, Conflict;
    /// The server on this machine is of another version, which speaks another contract.
    ContractDiffers = "CONTRACT_DIFFERS", 1017, State;
    /// A stored record is damaged.
    DataDamaged = "DATA_DAMAGED", 1020, DataLoss;
    /// The disk or the store refused a write.
    StoreUnavailable = "STORE_UNAVAILABLE", 1021, Unavailable;
    /// No server answers, or not one of this kind.
    ServerUnreachable = "SERVER_UNREACHABLE", 1022, Unavailable;
    /// Another process has the data directory open.
    DataInUse = "DATA_IN_USE", 1023, Unavailable;
    /// There is no data directory, or none that this version can open.
    DataUnusable = "DATA_UNUSABLE", 1024, State;
    /// A setting, or the config file, is wrong.
    ConfigInvalid = "CONFIG_INVALID", 1025, Invalid;
    /// The server cannot listen at the address.
    AddressUnusable = "ADDRESS_UNUSABLE", 1026, State;
    /// A file of the caller's machine cannot be read or written.
    LocalFileFailed = "LOCAL_FILE_FAILED", 1027, State;
    /// What cannot be undone was not confirmed.
    NotConfirmed = "NOT_CONFIRMED", 1028, State;
    /// The search index is being rebuilt; try again in a moment.
    IndexUnavailable = "INDEX_UNAVAILABLE", 1029, Unavailable;

    /// The request came to a name that is not this server's.
    HostRefused = "HOST_REFUSED", 1030, Denied;
    /// A page of another origin may not call this server.
    OriginRefused = "ORIGIN_REFUSED", 1031, Denied;
    /// The server has no such path.
    RouteNotFound = "ROUTE_NOT_FOUND", 1032, NotFound;
    /// The path does not take this HTTP method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 1033, Invalid;
    /// The body of the request is larger than the server takes.
    BodyTooLarge = "BODY_TOO_LARGE", 1034, Invalid;
    /// The body of the request is of a kind that the server does not read.
    MediaTypeRefused = "MEDIA_TYPE_REFUSED", 1035, Invalid;

    /// This build of the program leaves out what the call needs; the message names the feature.
    FeatureNotBuilt = "FEATURE_NOT_BUILT", 1037, State;
    /// Only the operator may do this, where nobody signs in.
    OperatorOnly = "OPERATOR_ONLY", 1036, Denied;
    /// The server wants to know who calls: show a token.
    SignInRequired = "SIGN_IN_REQUIRED", 1038, Unauthenticated;
    /// The token that was shown is not accepted, or is none.
    TokenRefused = "TOKEN_REFUSED", 1039, Unauthenticated;
    /// The caller is known, and may not do this.
    PermissionDenied = "PERMISSION_DENIED", 1040, Denied;
    /// There is no token of this name.
    TokenNotFound = "TOKEN_NOT_FOUND", 1041, NotFound;
    /// There is a token of this name already.
    TokenExists = "TOKEN_EXISTS", 1042, State;
    /// A token of this name was revoked, and a name is given once.
    TokenNameUsed = "TOKEN_NAME_USED", 1058, State;
    /// The namespace belongs to others, or to nobody where owners alone may publish.
    NamespaceNotOwned = "NAMESPACE_NOT_OWNED", 1049, Denied;
    /// The certificate by which a connection signed in holds no longer.
    CertificateRefused = "CERTIFICATE_REFUSED", 1043, Unauthenticated;
    /// The caller has used what its quota allows for now; the message says which, and how much.
    QuotaExceeded = "QUOTA_EXCEEDED", 1045, Exhausted;
    /// The request names a path, an address or a secret that callers on the network may not name.
    ResourceNotPermitted = "RESOURCE_NOT_PERMITTED", 1053, Denied;
    /// The keys of the issuer of a token cannot be fetched at present; try again in a moment.
    IssuerUnavailable = "ISSUER_UNAVAILABLE", 1048, Unavailable;

    /// No skill of this id or name.
    SkillNotFound = "SKILL_NOT_FOUND", 2000, NotFound;
    /// The skill is on the blocklist of this server.
    SkillBlocked = "SKILL_BLOCKED", 2001, Denied;
    /// The skill is installed already.
    SkillAlreadyInstalled = "SKILL_ALREADY_INSTALLED", 2002, State;
    /// The skill is not installed.
    SkillNotInstalled = "SKILL_NOT_INSTALLED", 2003, NotFound;
    /// The skill could not be installed, or removed; the message says why.
    SkillInstallFailed = "SKILL_INSTALL_FAILED", 2004, State;
    /// The short name belongs to another skill.
    NameHeld = "NAME_HELD", 2028, Denied;
    /// The skill must be named by its full id.
    FullIdRequired = "FULL_ID_REQUIRED", 2029, Invalid;
    /// The skill is not on the blocklist.
    SkillNotBlocked = "SKILL_NOT_BLOCKED", 2023, NotFound;
    /// A skill's files do not make a skill.
    SkillInvalid = "SKILL_INVALID", 2010, Invalid;
    /// The skill comes with the server.
    SkillReadOnly = "SKILL_READ_ONLY", 2011, State;
    /// The skill has no such version.
    VersionNotFound = "VERSION_NOT_FOUND", 2012, NotFound;
    /// The semantic version exists with other bytes.
    VersionConflict = "VERSION_CONFLICT", 2013, State;
    /// The version was withdrawn.
    VersionYanked = "VERSION_YANKED", 2014, State;
    /// The version has no such file.
    FileNotFound = "FILE_NOT_FOUND", 2015, NotFound;
    /// The file is not text.
    FileNotText = "FILE_NOT_TEXT", 2016, State;
    /// All versions of the skill were withdrawn.
    SkillYanked = "SKILL_YANKED", 2017, NotFound;
    /// The skill has no such resource.
    ResourceNotFound = "RESOURCE_NOT_FOUND", 2018, NotFound;
    /// A name belongs to the server, or looks like one that does.
    NameReserved = "NAME_RESERVED", 2019, Denied;
    /// The skills cannot be composed; the fields say all that is wrong.
    SkillSetInvalid = "SKILL_SET_INVALID", 2020, State;
    /// The place is of the server's own machine, and the call came over the network.
    LocationNotLocal = "LOCATION_NOT_LOCAL", 2021, Denied;
    /// The skill has versions, and none of them is active.
    SkillNotActive = "SKILL_NOT_ACTIVE", 2022, NotFound;

    /// No session of this id, or it has ended.
    SessionNotFound = "SESSION_NOT_FOUND", 2030, NotFound;
    /// The session has as many skills as one may have.
    SessionFull = "SESSION_FULL", 2031, State;
    /// The skill must be loaded in the session first.
    SkillNotLoaded = "SKILL_NOT_LOADED", 2032, State;
    /// No skill of the session has such a tool.
    ToolNotFound = "TOOL_NOT_FOUND", 2033, NotFound;
    /// Several skills of the session have a tool of this name.
    ToolAmbiguous = "TOOL_AMBIGUOUS", 2034, Invalid;
    /// A loaded skill forbids the tool.
    ToolForbidden = "TOOL_FORBIDDEN", 2035, Denied;
    /// Nothing runs the tool at present.
    ToolUnavailable = "TOOL_UNAVAILABLE", 2036, Unavailable;
    /// The tool does not allow what it was asked for.
    ToolDenied = "TOOL_DENIED", 2037, Denied;
    /// The tool could not do it.
    ToolFailed = "TOOL_FAILED", 2038, State;
    /// The tool's result is larger than results may be.
    ToolResultTooLarge = "TOOL_RESULT_TOO_LARGE", 2039, State;
    /// The session has as many calls of tools in work as one may have.
    ToolQuota = "TOOL_QUOTA", 2040, Exhausted;
    /// A worker is not let in.
    WorkerRefused = "WORKER_REFUSED", 2041, Denied;

    /// The scan found what a person should look at, or what nobody should use.
    SecurityRiskDetected = "SECURITY_RISK_DETECTED", 3001, State;
    /// The skill is less trusted than the operator demands.
    TrustTierInsufficient = "TRUST_TIER_INSUFFICIENT", 3002, State;
    /// The skill is at odds with one that is installed.
    ConflictDetected = "CONFLICT_DETECTED", 4000, State;
    /// The skills would have more characters than all together may have.
    BudgetExceeded = "BUDGET_EXCEEDED", 4001, State;
    /// The version is handed out to nobody until somebody approves it.
    VersionHeld = "VERSION_HELD", 3010, Denied;
    /// The version is not held for review.
    VersionNotHeld = "VERSION_NOT_HELD", 3011, State;

    /// A sync of the source is under way.
    SyncInProgress = "SYNC_IN_PROGRESS", 5000, State;
    /// No source that was to be synced could be; the message says why.
    SyncFailed = "SYNC_FAILED", 5001, State;
    /// What the call needs from elsewhere cannot be had, or is not what it should be.
    SourceUnavailable = "SOURCE_UNAVAILABLE", 5002, State;
    /// No source of this id is set up.
    SourceNotFound = "SOURCE_NOT_FOUND", 5010, NotFound;
    /// A source of this id is set up already, or in the config file.
    SourceExists = "SOURCE_EXISTS", 5011, State;
    /// No sync of this id is remembered.
    SyncNotFound = "SYNC_NOT_FOUND", 5012, NotFound;

    /// No learning path of this id.
    PathNotFound = "PATH_NOT_FOUND", 6000, NotFound;
    /// No exercise of this id.
    ExerciseNotFound = "EXERCISE_NOT_FOUND", 6001, NotFound;
    /// The solution does not pass; the answer says why.
    SolutionInvalid = "SOLUTION_INVALID", 6002, State;
    /// All exercises of the path are completed, and none is due for review.
    NoExercisesRemaining = "NO_EXERCISES_REMAINING", 6003, State;
    /// What the exercise builds on was not learned yet.
    ExerciseLocked = "EXERCISE_LOCKED", 6010, State;
    /// All hints of the exercise are shown.
    NoHintsRemaining = "NO_HINTS_REMAINING", 6011, State;
    /// No submission of this id waits for a review.
    SubmissionNotFound = "SUBMISSION_NOT_FOUND", 6012, NotFound;
    /// The submission was reviewed with another verdict.
    SubmissionReviewed = "SUBMISSION_REVIEWED", 6013, State;
    /// The solution could not be graded, which costs nothing.
    GradingFailed = "GRADING_FAILED", 6014, State;
}

/// A mistake in one field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the field, such as `files[2].path`.
    pub field: String,
    /// The mistake.
    pub message: String,
    /// Rule that it breaks, such as `string.max_len`.
    pub rule: &'static str,
}

impl FieldProblem {
    /// The rule of keys that are not known; the sentence of each names all of them.
    pub const UNKNOWN: &'static str = "unknown";
}

/// A failure on its way out: see the module.
#[derive(Debug)]
pub struct Failure {
    /// Stable code.
    pub code: Code,
    /// The message for the caller.
    pub message: String,
    /// Facts for programs, by name.
    pub details: BTreeMap<String, String>,
    /// Fields of the request that are wrong.
    pub fields: Vec<FieldProblem>,
    /// Findings in a skill's files.
    pub problems: Vec<Problem>,
    /// Next steps, the most useful first.
    pub suggestions: Vec<String>,
    /// The wait before another try.
    pub retry_after: Option<Duration>,
    /// The cause, for the log. Never shown.
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure with nothing but a code and a message.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: BTreeMap::new(),
            fields: Vec::new(),
            problems: Vec::new(),
            suggestions: Vec::new(),
            retry_after: None,
            cause: None,
        }
    }

    /// This build of the program leaves out a feature.
    #[must_use]
    pub fn not_built(feature: &str) -> Self {
        let message = format!("This build leaves out the feature `{feature}`");
        Self::new(Code::FeatureNotBuilt, message)
            .detail("feature", feature)
            .suggest(format!(
                "Use a program that was built with `--features {feature}`, or with all features, which is the default"
            ))
    }

    /// A fault: the cause goes to the log, the caller learns only that it was
    /// not their doing.
    #[must_use]
    pub fn fault(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let mut failure = Self::new(
            Code::InternalError,
            "The server could not do this; its log says why",
        );
        failure.cause = Some(cause.into());
        failure
    }

    /// A request that breaks rules, each of which names its field.
    #[must_use]
    pub fn invalid(fields: Vec<FieldProblem>) -> Self {
        let code = if fields.iter().all(|field| field.rule == "required") {
            Code::MissingParameter
        } else {
            Code::InvalidParameter
        };
        let message = match fields.as_slice() {
            // These sentences are whole without the name of the field.
            [one] if matches!(one.rule, "required" | "json") => one.message.clone(),
            [one, more @ ..]
                if one.rule == FieldProblem::UNKNOWN
                    && more.iter().all(|other| other.message == one.message) =>
            {
                one.message.clone()
            }
            [one] => format!("{}: {}", one.field, one.message),
            all => {
                let names: Vec<_> = all.iter().map(|one| one.field.as_str()).collect();
                // A request can have thousands of wrong fields. The message names some, `fields`
                // has all.
                let (shown, more) = names.split_at(names.len().min(16));
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("{} fields are wrong: {}{more}", all.len(), shown.join(", "))
            }
        };
        let mut failure = Self::new(code, message);
        failure.fields = fields;
        failure
    }

    /// Adds a fact.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.details.insert(name.to_owned(), value.to_string());
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn suggest(mut self, step: impl Into<String>) -> Self {
        self.suggestions.push(step.into());
        self
    }

    /// Adds the step that asks whether one of these was meant, where there are any.
    #[must_use]
    pub fn did_you_mean(self, near: &[impl fmt::Display]) -> Self {
        match one_of(near) {
            Some(names) => self.suggest(format!("Did you mean {names}?")),
            None => self,
        }
    }

    /// Adds a wrong field.
    #[must_use]
    pub fn field(mut self, field: &str, message: impl Into<String>) -> Self {
        self.fields.push(FieldProblem {
            field: field.to_owned(),
            message: message.into(),
            rule: "",
        });
        self
    }
}

/// Names of which one was meant, such as `a, b, or c`. None: there are none.
#[must_use]
pub fn one_of(near: &[impl fmt::Display]) -> Option<String> {
    let near: Vec<_> = near.iter().map(ToString::to_string).collect();
    match near.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [all @ .., last] => Some(format!("{}, or {last}", all.join(", "))),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as _)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_has_a_name_and_a_number_of_its_own() {
        let names: HashSet<_> = Code::ALL.iter().map(|c| c.name()).collect();
        let numbers: HashSet<_> = Code::ALL.iter().map(|c| c.number()).collect();
        assert_eq!(
            (names.len(), numbers.len()),
            (Code::ALL.len(), Code::ALL.len())
        );
        assert!(
            names
                .iter()
                .all(|n| n.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
        );
    }
}
