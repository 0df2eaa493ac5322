//! Whether a skill can be used as it is, and whether anybody uses it.

use jiff::Timestamp;

use super::budget::{Cost, HEAVY_PERCENT, percent};
use super::links;
use composition::Member;
use facets::Triggers;
use model::{FilePath, Problem, Severity, VersionedReference, shown};

/// Days without a change after which a skill is reported.
const OLD_DAYS: i64 = 180;
/// Days within which a skill should be loaded for the first time.
const NEW_DAYS: i64 = 30;
/// Days without a use after which a skill is reported.
const IDLE_DAYS: i64 = 90;

/// What is wrong with a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueKind {
    /// Its front matter is not as agents read it.
    FrontmatterInvalid,
    /// It names a file that it does not have.
    FileMissing,
    /// Its text is not as agents read it.
    SyntaxError,
    /// It requires a skill that is not there.
    DependencyMissing,
}

/// How much it matters. Ordered from bad to mild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueSeverity {
    /// The skill cannot do what it is for.
    Error,
    /// Some agents will not use it as it is meant.
    Warning,
}

/// One thing that is wrong with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What it is about.
    pub kind: IssueKind,
    /// How much it matters.
    pub severity: IssueSeverity,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it is, with the place.
    pub description: String,
    /// What to do.
    pub fix: Option<String>,
    /// `repertoire validate DIR --fix` does that.
    pub auto_fixable: bool,
}

/// Why a skill is of less use than it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningKind {
    /// There is a newer version, or it was not changed for long.
    Outdated,
    /// It is hardly ever loaded.
    LowActivation,
    /// It takes a large share of the budget.
    BudgetHeavy,
    /// Nothing says when to use it.
    NoTriggers,
}

/// One thing that deserves a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// What it is, in a sentence.
    pub message: String,
    /// What to do, in a sentence that names the skill.
    pub advice: String,
}

/// Whether a skill that is required is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is, in a version that will do.
    There,
    /// It could be had, and is not installed.
    NotInstalled,
    /// Nobody here has it, or not in such a version.
    Unknown,
}

/// The facts that an audit of a skill goes by.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The version.
    pub member: &'a Member,
    /// Its instructions, front matter included.
    pub text: &'a str,
    /// Its cost.
    pub cost: Cost,
    /// When it was installed; none: it is not.
    pub installed_at: Option<Timestamp>,
    /// The semantic version that is active, where that is a higher one.
    pub newer: Option<semver::Version>,
    /// How often it was loaded or read.
    pub uses: u64,
    /// When it was used last.
    pub last_used_at: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
    /// Characters that all skills together may have.
    pub budget: u64,
}

/// All that is wrong with a skill, the worst first, and all that is worth a look.
#[must_use]
pub fn audit(
    facts: &Facts<'_>,
    presence: impl Fn(&VersionedReference) -> Presence,
) -> (Vec<Issue>, Vec<Warning>) {
    let version = &facts.member.version;
    let mut issues: Vec<Issue> = version.problems.iter().filter_map(of_problem).collect();
    issues.extend(missing_files(facts));
    issues.extend(version.skill.requirements().filter_map(|text| {
        let presence = presence(&VersionedReference::parse(text));
        missing_skill(text, presence, facts.installed_at.is_some())
    }));
    issues.sort_by_key(|issue| issue.severity);
    let warnings = [outdated(facts), idle(facts), heavy(facts), silent(facts)];
    (issues, warnings.into_iter().flatten().collect())
}

/// What a finding in the files of a skill means for its users; none: nothing.
#[must_use]
pub fn of_problem(problem: &Problem) -> Option<Issue> {
    let severity = match problem.severity {
        Severity::Error => IssueSeverity::Error,
        Severity::Warning => IssueSeverity::Warning,
        Severity::Info => return None,
    };
    let rule = problem.rule.as_str();
    let begins = |starts: &[&str]| starts.iter().any(|start| rule.starts_with(start));
    let (kind, title) = match () {
        // The scanner reports what does harm.
        () if begins(&["secret-"]) => return None,
        () if rule == "resource-file-missing" => (IssueKind::FileMissing, "Missing resource file"),
        // `links` reports those of the instructions, along with paths that are no links.
        () if rule == "link-dead" && problem.file.eq_ignore_ascii_case(FilePath::SKILL_MD) => {
            return None;
        }
        () if rule == "link-dead" => (IssueKind::FileMissing, "Missing file"),
        () if begins(&["file-", "path-", "too-many-", "skill-too-"]) => {
            (IssueKind::FileMissing, "File that cannot be installed")
        }
        () if begins(&["front-matter-"]) => {
            (IssueKind::FrontmatterInvalid, "Invalid YAML frontmatter")
        }
        () if begins(&["name-"]) => (
            IssueKind::FrontmatterInvalid,
            "Name that agents may not take",
        ),
        () if begins(&["description-"]) => (
            IssueKind::FrontmatterInvalid,
            "Description that agents may not take",
        ),
        () if begins(&[
            "byte-order-mark",
            "not-utf8",
            "nul-",
            "hidden-",
            "zero-width-",
            "body-",
            "skill-md-",
        ]) =>
        {
            (IssueKind::SyntaxError, "Text that agents may misread")
        }
        () => (IssueKind::FrontmatterInvalid, "Invalid front matter field"),
    };
    let place = match (problem.file.as_str(), problem.line) {
        ("", _) => String::new(),
        (file, 0) => format!("{file}: "),
        (file, line) => format!("{file}:{line}: "),
    };
    let auto_fixable = skill_md::is_fixable(rule);
    let fix = match rule {
        "link-dead" => Some("Add the file, or correct the link"),
        _ => auto_fixable.then_some("Run `repertoire validate DIR --fix` and publish it again"),
    };
    Some(Issue {
        kind,
        severity,
        title,
        description: format!("{place}{}", problem.message),
        fix: fix.map(str::to_owned),
        auto_fixable,
    })
}

fn missing_files(facts: &Facts<'_>) -> impl Iterator<Item = Issue> {
    let version = &facts.member.version;
    let entry = version.skill.entry.as_str();
    let dead = links::dead(facts.text, &version.files).into_iter();
    dead.map(move |links::Dead { line, path }| Issue {
        kind: IssueKind::FileMissing,
        severity: IssueSeverity::Warning,
        title: "Missing file",
        description: format!(
            "{entry}:{line} names `{}`, which the skill does not have",
            shown(&path, 200)
        ),
        fix: Some("Add the file, or take its name out".to_owned()),
        auto_fixable: false,
    })
}

fn missing_skill(text: &str, presence: Presence, is_installed: bool) -> Option<Issue> {
    let text = shown(text, 200);
    let (what, fix) = match presence {
        Presence::There => return None,
        // The skill itself is not installed either, so nothing is missing yet.
        Presence::NotInstalled if !is_installed => return None,
        Presence::NotInstalled => ("is not installed", format!("Install {text}")),
        Presence::Unknown => (
            "this server does not have in such a version",
            format!("Publish {text} here, or take the rule out"),
        ),
    };
    Some(Issue {
        kind: IssueKind::DependencyMissing,
        severity: IssueSeverity::Error,
        title: "Missing required skill",
        description: format!("It requires '{text}', which {what}"),
        fix: Some(fix),
        auto_fixable: false,
    })
}

fn days(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_hours() / 24
}

fn outdated(facts: &Facts<'_>) -> Option<Warning> {
    let Facts {
        member, newer, now, ..
    } = facts;
    let (version, slug) = (&member.version, member.id.slug());
    let age = days(version.created_at, *now);
    // A newer version says more than age, so it goes first.
    let (message, advice) = match newer {
        Some(newer) => (
            format!("Version {newer} is active; this is {}", version.semantic),
            format!("Update {slug} to version {newer}"),
        ),
        // What comes with the server changes with it.
        None if age < OLD_DAYS || member.id.is_builtin() => return None,
        None => (
            format!("Skill hasn't been updated in {} months", age / 30),
            format!("Consider replacing {slug} with a maintained alternative"),
        ),
    };
    Some(Warning {
        kind: WarningKind::Outdated,
        message,
        advice,
    })
}

/// Nobody loads it.
fn idle(facts: &Facts<'_>) -> Option<Warning> {
    let version = &facts.member.version;
    let (since, what) = match facts.installed_at {
        Some(time) => (time, "installed"),
        None => (version.created_at, "published"),
    };
    let age = days(since, facts.now);
    let message = match facts.last_used_at {
        None if age >= NEW_DAYS && facts.uses == 0 => format!(
            "Nobody loaded it from this server in the {age} days since it was {what}; what agents \
             read from disk is not counted"
        ),
        Some(used) if days(used, facts.now) >= IDLE_DAYS => format!(
            "Nobody loaded it from this server for {} days; what agents read from disk is not \
             counted",
            days(used, facts.now)
        ),
        _ => return None,
    };
    Some(Warning {
        kind: WarningKind::LowActivation,
        message,
        advice: format!(
            "Uninstall {} if nobody needs it, or state in its description when to use it",
            facts.member.id.slug()
        ),
    })
}

fn heavy(facts: &Facts<'_>) -> Option<Warning> {
    let share = percent(facts.cost.chars, facts.budget);
    (share >= HEAVY_PERCENT).then(|| Warning {
        kind: WarningKind::BudgetHeavy,
        message: format!(
            "Its {} characters are {share}% of the budget of {}",
            facts.cost.chars, facts.budget
        ),
        advice: format!(
            "Move what {} does not always need from SKILL.md into other files",
            facts.member.id.slug()
        ),
    })
}

fn silent(facts: &Facts<'_>) -> Option<Warning> {
    let skill = &facts.member.version.skill;
    let says_when = !Triggers::of(skill).is_empty() || says_when(&skill.description);
    // Those that only people call up need none.
    (!says_when && !skill.disable_model_invocation).then(|| Warning {
        kind: WarningKind::NoTriggers,
        message: "Nothing says when to use it: it has no `triggers`, and its description no `Use \
                  when …`"
            .to_owned(),
        advice: format!(
            "Add triggers to {}: 'triggers: [keyword1, keyword2]'",
            facts.member.id.slug()
        ),
    })
}

/// Words by which descriptions say when to use a skill, where they name no phrase.
const WHEN: &[&str] = &[
    "use when",
    "use this",
    "use it",
    "use for",
    "use before",
    "use after",
    "use to",
    "when ",
    "whenever",
    "trigger",
    "invoke",
    "activate",
    "使用",
    "適用",
    "适用",
    "トリガー",
    "触发",
];

fn says_when(description: &str) -> bool {
    let lower = description.to_lowercase();
    WHEN.iter().any(|words| lower.contains(words))
}

/// The state of the skills of an audit as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Nothing is wrong with any.
    Healthy,
    /// Something is.
    Degraded,
    /// At least half of them have an error.
    Critical,
}

/// The state of the skills of an audit, by what is wrong with each.
#[must_use]
pub fn health(issues: &[Vec<Issue>]) -> Health {
    let has_error = |issues: &&Vec<Issue>| {
        let mut issues = issues.iter();
        issues.any(|issue| issue.severity == IssueSeverity::Error)
    };
    let broken = issues.iter().filter(has_error).count();
    match () {
        () if broken > 0 && broken * 2 >= issues.len() => Health::Critical,
        () if issues.iter().any(|issues| !issues.is_empty()) => Health::Degraded,
        () => Health::Healthy,
    }
}
