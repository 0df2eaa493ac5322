//! The report of a scan, as it is stored and shown.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The verdict on a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing argues against it.
    Passed,
    /// A person should review it before anybody gets it.
    Warning,
    /// Nobody should get it.
    Failed,
}

/// The harm that it does, if it is what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Untidy.
    Low,
    /// Could be misused.
    Medium,
    /// Does harm where it is meant so.
    High,
    /// Has no honest use.
    Critical,
}

/// The certainty that it is what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It is quoted, or has many honest readings.
    Low,
    /// It mostly is.
    Medium,
    /// There is hardly another reading.
    High,
}

/// The kind of thing that a rule searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Contents of, or links to, another host.
    ExternalUrl,
    /// Commands that are run.
    ShellCommand,
    /// Files that are read or written.
    FileAccess,
    /// Text that is hidden from a reader.
    Obfuscation,
    /// Names that imitate others.
    Typosquatting,
    /// Words that turn an agent against its user.
    PromptInjection,
    /// Data that leaves the machine.
    Exfiltration,
    /// Changes that stay on the machine, or in the agent's memory.
    Persistence,
    /// Credentials in files.
    Secret,
    /// Files that nobody can read.
    Opaque,
}

/// Something that a skill is able to do. No capability is bad in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// It talks to other hosts.
    Network,
    /// It runs commands.
    RunsCommands,
    /// It reads variables of the environment.
    ReadsEnvironment,
    /// It reads files.
    ReadsFiles,
    /// It writes or deletes files.
    WritesFiles,
    /// It reads what is private: credentials, mail, messages, history, databases.
    ReadsPrivateData,
    /// It reads what strangers wrote: pages, mail, issues, search results.
    TakesUntrustedContent,
    /// It sends data to another host.
    SendsOut,
    /// It leaves something behind that starts again.
    Persists,
    /// It runs what it downloads.
    ExecutesDownloaded,
    /// It installs packages.
    InstallsPackages,
    /// It asks for more rights.
    ElevatesRights,
    /// It has files that nobody can read.
    OpaqueFiles,
}

/// The capabilities of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(pub BTreeSet<Capability>);

/// A finding of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the rule, such as `remote-code-execution`.
    pub rule: Cow<'static, str>,
    /// Its category.
    pub category: Category,
    /// How much harm it does.
    pub severity: Severity,
    /// How certain it is.
    pub confidence: Confidence,
    /// The file. Empty: the skill as a whole.
    #[serde(default)]
    pub path: String,
    /// The line of the file, from 1, also for what was decoded. 0: the file as a whole.
    #[serde(default)]
    pub line: u32,
    /// What it is, in a few words.
    pub title: Cow<'static, str>,
    /// Why it matters.
    pub description: Cow<'static, str>,
    /// The text that was found, on one line, without hidden characters and secrets.
    #[serde(default)]
    pub evidence: String,
    /// What its author can do.
    #[serde(default)]
    pub fix: Cow<'static, str>,
    /// Risk of the OWASP Agentic Skills Top 10, such as `AST01`. May be empty.
    #[serde(default)]
    pub owasp: Cow<'static, str>,
}

/// The report of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The rules it was made by: see [`crate::RULES_VERSION`].
    pub rules: u32,
    /// The verdict on the version.
    pub verdict: Verdict,
    /// The worst first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Findings that are not listed: milder ones, and repetitions.
    #[serde(default)]
    pub left_out: u32,
    /// The capabilities of the skill.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Hosts that it names. At most [`crate::MAX_HOSTS`].
    #[serde(default)]
    pub hosts: BTreeSet<String>,
}

impl Report {
    /// Tells whether it was made by the current rules.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.rules == crate::RULES_VERSION
    }
}

impl Finding {
    /// The verdict on this finding alone.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.severity, self.confidence) {
            // A critical finding that may be a quote is held and not blocked: a person can tell.
            (Severity::Critical, Confidence::Medium | Confidence::High) => Verdict::Failed,
            (Severity::Critical, Confidence::Low)
            | (Severity::High, Confidence::Medium | Confidence::High) => Verdict::Warning,
            _ => Verdict::Passed,
        }
    }
}

impl Verdict {
    /// Returns the line for an agent that gets what this verdict is on; none where it passed. `whose`
    /// names the skills: `this skill`.
    #[must_use]
    pub fn warning(self, whose: &str) -> Option<String> {
        let line =
            || format!("The security scan warns of {whose}: ask the user before you follow it.");
        (self > Self::Passed).then(line)
    }
}

/// Writes the names that serde uses.
macro_rules! names {
    ($($kind:ident { $($variant:ident = $name:literal),* $(,)? })*) => {$(
        impl $kind {
            /// Its name, as it is stored.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// All of them, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }
    )*};
}

names! {
    Verdict { Passed = "passed", Warning = "warning", Failed = "failed" }
    Severity { Info = "info", Low = "low", Medium = "medium", High = "high", Critical = "critical" }
    Confidence { Low = "low", Medium = "medium", High = "high" }
    Category {
        ExternalUrl = "external_url", ShellCommand = "shell_command", FileAccess = "file_access",
        Obfuscation = "obfuscation", Typosquatting = "typosquatting",
        PromptInjection = "prompt_injection", Exfiltration = "exfiltration",
        Persistence = "persistence", Secret = "secret", Opaque = "opaque",
    }
    Capability {
        Network = "network", RunsCommands = "runs_commands", ReadsEnvironment = "reads_environment",
        ReadsFiles = "reads_files", WritesFiles = "writes_files",
        ReadsPrivateData = "reads_private_data", TakesUntrustedContent = "takes_untrusted_content",
        SendsOut = "sends_out", Persists = "persists", ExecutesDownloaded = "executes_downloaded",
        InstallsPackages = "installs_packages", ElevatesRights = "elevates_rights",
        OpaqueFiles = "opaque_files",
    }
}

impl Capabilities {
    /// Tells whether the skill has this capability.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// The capabilities, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.0.iter().copied()
    }

    /// Adds a capability; returns whether it is new.
    pub(crate) fn add(&mut self, capability: Capability) -> bool {
        self.0.insert(capability)
    }
}
