//! What keeps two skills from being used side by side.

use std::cmp::Reverse;

use super::advice;
use super::overlap::{Overlap, overlap};
use composition::{FindingCode, Member, ToolPolicy, alone};
use executor::Stop;
use facets::Triggers;
use model::Skill;

/// Share of stated triggers from which on an agent cannot tell two skills apart, in percent.
const STATED_WARNING_PERCENT: u32 = 50;
/// The same for phrases of descriptions, which are read with their context: more of them
/// must be shared, and at least this many.
const READ_WARNING_PERCENT: u32 = 75;
const MIN_READ_PHRASES: usize = 3;
/// Phrases of descriptions that are shared by chance.
const READ_CHANCE_PERCENT: u32 = 25;

/// The subject of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictKind {
    /// The same words call both skills up.
    TriggerOverlap,
    /// One forbids what the other needs or promises.
    Behavioral,
    /// Both are, or write, the same files.
    FileCollision,
}

/// How bad a conflict is. Ordered from bad to mild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictSeverity {
    /// The two cannot be used side by side.
    Blocking,
    /// They can, and may not do what is expected.
    Warning,
    /// Worth knowing.
    Info,
}

/// One thing in which two skills conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What it is about.
    pub kind: ConflictKind,
    /// How bad it is.
    pub severity: ConflictSeverity,
    /// What it is, in a sentence.
    pub description: String,
    /// What can be done about it, the best first.
    pub resolutions: Vec<&'static str>,
    /// What they share, of a [`ConflictKind::TriggerOverlap`].
    pub overlap: Option<Overlap>,
}

impl Conflict {
    fn new(
        kind: ConflictKind,
        severity: ConflictSeverity,
        description: impl Into<String>,
        resolutions: &[&'static str],
    ) -> Self {
        Self {
            kind,
            severity,
            // Names and phrases in it are their authors', and must not pass for lines of ours.
            description: model::printable(&description.into()).into_owned(),
            resolutions: resolutions.to_vec(),
            overlap: None,
        }
    }
}

/// A skill and its triggers, which are read once for all comparisons.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The version.
    pub member: Member,
    /// What calls it up.
    pub triggers: Triggers,
}

impl From<Member> for Subject {
    fn from(member: Member) -> Self {
        let triggers = Triggers::of(&member.version.skill);
        Self { member, triggers }
    }
}

/// All conflicts of two skills, the worst first. Kinds, severities and overlaps
/// are the same whichever of them comes first. A skill has none with itself.
///
/// # Errors
/// The work is to stop.
pub fn conflicts(
    one: &Subject,
    other: &Subject,
    stop: &Stop,
) -> Result<Vec<Conflict>, composition::Error> {
    // Two versions of a skill share all their triggers; which of them is used is no conflict.
    if one.member.id.key() == other.member.id.key() {
        return Ok(Vec::new());
    }
    let mut found = behavioral(&one.member, &other.member, stop)?;
    found.extend(same_folder(&one.member, &other.member));
    found.extend(same_files(&one.member, &other.member));
    found.extend(same_tools(&one.member, &other.member));
    found.extend(same_triggers(one, other));
    found.sort_by_key(|conflict| (conflict.severity, conflict.kind));
    Ok(found)
}

fn same_triggers(one: &Subject, other: &Subject) -> Option<Conflict> {
    let overlap = overlap(&one.triggers, &other.triggers)?;
    let severity = if one.triggers.stated && other.triggers.stated {
        match () {
            () if overlap.whole => ConflictSeverity::Blocking,
            () if overlap.percent >= STATED_WARNING_PERCENT => ConflictSeverity::Warning,
            () => ConflictSeverity::Info,
        }
    } else {
        match () {
            () if overlap.percent < READ_CHANCE_PERCENT => return None,
            () if overlap.percent >= READ_WARNING_PERCENT && overlap.count >= MIN_READ_PHRASES => {
                ConflictSeverity::Warning
            }
            () => ConflictSeverity::Info,
        }
    };
    let first = overlap.shared.first()?;
    let description = format!(
        "Both skills respond to '{}' triggers",
        model::shown(first, 80)
    );
    let steps = [
        "Uninstall one skill",
        "Set priority order",
        "Use specific trigger phrases",
    ];
    let conflict = Conflict::new(ConflictKind::TriggerOverlap, severity, description, &steps);
    Some(Conflict {
        overlap: Some(overlap),
        ..conflict
    })
}

/// The conflicts of the two by the rules of composition.
fn behavioral(
    one: &Member,
    other: &Member,
    stop: &Stop,
) -> Result<Vec<Conflict>, composition::Error> {
    let members = [one.clone(), other.clone()];
    let set = alone(&members, ToolPolicy::Union, stop)?;
    let conflict = |finding: &composition::Finding| {
        let (severity, steps): (_, &[&'static str]) = match finding.code {
            FindingCode::IncompatibleSkills | FindingCode::ForbiddenCombination => (
                ConflictSeverity::Blocking,
                &["Uninstall one skill", "Use them in different sessions"],
            ),
            FindingCode::VersionUnsatisfied => (
                ConflictSeverity::Blocking,
                &[
                    "Install a version that the rule takes",
                    "Uninstall one skill",
                ],
            ),
            FindingCode::ToolAllowedAndForbidden => (
                ConflictSeverity::Warning,
                &[
                    "Use them in different sessions",
                    "Uninstall one skill",
                    "Narrow the pattern of the tool that is forbidden",
                ],
            ),
            FindingCode::OutputContractConflict => (
                ConflictSeverity::Warning,
                &[
                    "Use them in different sessions",
                    "Let one of them promise the output",
                ],
            ),
            FindingCode::ToolPatternUndecided => (
                ConflictSeverity::Info,
                &["Write patterns whose coverage can be decided"],
            ),
            // The others are about one of the two alone, or about a skill that is not here.
            _ => return None,
        };
        let about_both = members
            .iter()
            .all(|member| finding.skills.iter().any(|name| **name == *member.name));
        let message = uppercase(&finding.message);
        about_both.then(|| Conflict::new(ConflictKind::Behavioral, severity, message, steps))
    };
    Ok(set.findings.iter().filter_map(conflict).collect())
}

/// A sentence begins with a capital, but for a name in quotes.
fn uppercase(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// Two skills of one folder name cannot both be installed.
fn same_folder(one: &Member, other: &Member) -> Option<Conflict> {
    // On macOS and Windows folders that differ in case alone are one.
    let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    let (slug, name) = (one.id.slug(), &one.version.skill.name);
    if same(slug, other.id.slug()) {
        return Some(Conflict::new(
            ConflictKind::FileCollision,
            ConflictSeverity::Blocking,
            format!("Both skills are installed as the folder '{slug}'"),
            &[
                "Uninstall one skill",
                "Install one of them into another directory",
            ],
        ));
    }
    if same(name, &other.version.skill.name) {
        return Some(Conflict::new(
            ConflictKind::FileCollision,
            ConflictSeverity::Warning,
            format!(
                "Both skills call themselves '{}', and many agents know a skill by that alone",
                model::shown(name, 80)
            ),
            &["Uninstall one skill", "Change the name of one of them"],
        ));
    }
    None
}

/// Tools that write files.
const WRITERS: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

/// Paths that a skill asks to write to, outside of its own folder.
fn written(skill: &Skill) -> impl Iterator<Item = &str> {
    skill.allowed_tools.iter().filter_map(|tool| {
        let (name, path) = tool.strip_suffix(')')?.split_once('(')?;
        let path = path.trim();
        // A pattern of nothing but stars is every file, which says nothing of a collision.
        (WRITERS.contains(&name.trim()) && !path.trim_matches(['*', '/', '.']).is_empty())
            .then_some(path)
    })
}

/// Both ask to write the same files.
fn same_files(one: &Member, other: &Member) -> Option<Conflict> {
    let theirs: Vec<&str> = written(&other.version.skill).collect();
    let shared = written(&one.version.skill).filter(|path| theirs.contains(path));
    let path = shared.min()?;
    Some(Conflict::new(
        ConflictKind::FileCollision,
        ConflictSeverity::Info,
        format!("Both skills ask to write `{}`", model::shown(path, 200)),
        &[
            "Use them in different sessions",
            "Have each write to files of its own",
        ],
    ))
}

/// Both unlock a tool of one name, so that a call must say whose it means.
fn same_tools(one: &Member, other: &Member) -> Option<Conflict> {
    let of = |member: &Member| -> Vec<String> {
        let tools = member.version.skill.tool_configs.iter();
        tools.map(|tool| model::fold_tool(&tool.name)).collect()
    };
    let theirs = of(other);
    let shared = of(one).into_iter().filter(|name| theirs.contains(name));
    let name = shared.min()?;
    Some(Conflict::new(
        ConflictKind::Behavioral,
        ConflictSeverity::Info,
        format!("Both skills unlock a tool `{}`", model::shown(&name, 80)),
        &["Name the skill with each call of the tool"],
    ))
}

/// A conflict, and the other skill.
#[derive(Debug, Clone)]
pub struct Opposed {
    /// The other skill.
    pub with: Subject,
    /// What it is.
    pub conflict: Conflict,
}

impl Opposed {
    /// The two cannot be used side by side.
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        self.conflict.severity == ConflictSeverity::Blocking
    }
}

/// The conflicts of a skill with others: the worst first, then by how much they share, then by
/// id.
#[derive(Debug, Clone)]
pub struct ConflictReport {
    /// The skill.
    pub subject: Subject,
    /// All conflicts.
    pub conflicts: Vec<Opposed>,
    /// What to do about them.
    pub recommendations: Vec<String>,
    /// How many skills it was compared with.
    pub compared: usize,
}

/// Compares a skill with each of the others; it is left out where it is among them.
///
/// # Errors
/// The work is to stop.
pub fn compare(
    subject: Subject,
    others: Vec<Subject>,
    stop: &Stop,
) -> Result<ConflictReport, composition::Error> {
    let (mut found, mut compared) = (Vec::new(), 0);
    for other in others {
        stop.check()?;
        compared += usize::from(other.member.id.key() != subject.member.id.key());
        for conflict in conflicts(&subject, &other, stop)? {
            let with = other.clone();
            found.push(Opposed { with, conflict });
        }
    }
    let share = |opposed: &Opposed| {
        let overlap = opposed.conflict.overlap.as_ref();
        overlap.map_or(0, |overlap| overlap.percent)
    };
    found.sort_by_cached_key(|it| {
        let (severity, kind) = (it.conflict.severity, it.conflict.kind);
        (severity, Reverse(share(it)), it.with.member.id.key(), kind)
    });
    Ok(ConflictReport {
        recommendations: advice::recommend(&subject, &found),
        subject,
        conflicts: found,
        compared,
    })
}
