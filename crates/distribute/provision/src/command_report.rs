//! What became of skills, for a program and for a person.

use serde_json::{Map, Value, json};

use super::{Changes, Concern, Finding, Newer, Outcome, Targets, worst};
use install::{Locked, NPX_LOCK_FILE, Placed, Removed, Status};
use model::{SkillId, shown};
use trust::Verdict;

/// How a word is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// To be looked at.
    Warn,
    /// Not to be used.
    Bad,
    /// Beside the point.
    Faint,
}

/// A line for a person: a word with a tone, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How the word is meant.
    pub tone: Tone,
    /// The word, behind its indent.
    pub word: String,
    /// What follows it.
    pub text: String,
}

/// What is told of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandReport {
    /// For a program.
    pub json: Value,
    /// For a person.
    pub lines: Vec<Line>,
    /// For either, beside what was asked for.
    pub notes: Vec<String>,
    /// How much what was found matters.
    pub concern: Concern,
}

impl CommandReport {
    fn new(json: Value) -> Self {
        Self {
            json,
            lines: Vec::new(),
            notes: Vec::new(),
            concern: Concern::None,
        }
    }

    fn say(&mut self, tone: Tone, word: &str, text: impl Into<String>) {
        self.lines.push(Line {
            tone,
            word: word.to_owned(),
            text: text.into(),
        });
    }
}

/// What the lock says of a skill, and more; what is null is left out.
fn json_of(locked: &Locked, more: Value) -> Value {
    let mut all = json!({
        "skill_id": locked.id, "version": locked.semantic.to_string(),
        "version_number": locked.number.get(), "digest": locked.digest,
        "verdict": locked.verdict, "requested": locked.requested, "targets": locked.targets,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    all
}

fn paths<'a>(paths: impl Iterator<Item = &'a std::path::PathBuf>) -> Vec<String> {
    paths.map(|path| path.display().to_string()).collect()
}

/// What an install, or an update, came to.
#[must_use]
pub fn of_changes(changes: &Changes, targets: &Targets) -> CommandReport {
    let word = |outcome| match outcome {
        Outcome::Installed => "installed",
        Outcome::Unchanged => "unchanged",
    };
    let skills = changes.installed.iter().map(|one| {
        let paths = paths(one.paths.iter());
        json_of(
            &one.locked,
            json!({"outcome": word(one.outcome), "paths": paths}),
        )
    });
    let mut told = CommandReport::new(json!({
        "skills": skills.collect::<Vec<_>>(), "removed": changes.removed,
        "missing": changes.missing, "lock": targets.lock_file().display().to_string(),
    }));
    for one in &changes.installed {
        let Locked { id, semantic, .. } = &one.locked;
        let why = if one.locked.requested {
            ""
        } else {
            ", which others require"
        };
        told.say(
            Tone::Good,
            word(one.outcome),
            format!("{id} {semantic}{why}"),
        );
        for path in paths(one.paths.iter()) {
            told.say(Tone::Faint, &format!("  {path}"), "");
        }
        if one.locked.verdict == Verdict::Warning.name() {
            let text = "see `repertoire scan`";
            told.say(Tone::Warn, "  review:", text);
        }
    }
    for id in &changes.removed {
        told.say(
            Tone::Warn,
            "removed",
            format!("{id}, which nothing requires any more"),
        );
    }
    let replaced = changes.replaced.iter();
    let gone =
        replaced.map(|id| format!("the locked version of {id} is not on the server any more"));
    let missing = changes.missing.iter();
    let missing = missing.map(|name| {
        format!(
            "'{}' of {NPX_LOCK_FILE} is not on the server",
            shown(name, 100)
        )
    });
    told.notes = gone.chain(missing).collect();
    told
}

/// What was removed, each with those that require it.
#[must_use]
pub fn of_removed(all: &[(Vec<Removed>, Vec<SkillId>)]) -> CommandReport {
    let mut told = CommandReport::new(Value::Null);
    let mut skills = Vec::new();
    for (removed, dependents) in all {
        let id = removed.first().map(|one| one.record.id.to_string());
        let kept: usize = removed.iter().map(|one| one.kept).sum();
        let paths = paths(removed.iter().map(|one| &one.path));
        told.say(Tone::Good, "removed", id.clone().unwrap_or_default());
        for path in &paths {
            told.say(Tone::Faint, &format!("  {path}"), "");
        }
        if kept > 0 {
            let text = format!("{kept} added by others stay; --remove-data removes them");
            told.say(Tone::Warn, "  other files:", text);
        }
        for other in dependents {
            told.say(Tone::Warn, "  warning:", format!("{other} requires it"));
        }
        skills.push(json!({
            "skill_id": id, "removed_paths": paths, "files_kept": kept,
            "dependent_skills_affected": dependents,
        }));
    }
    told.json = json!({"skills": skills});
    told
}

/// What is installed, and whether it is what it was.
#[must_use]
pub fn of_installed(all: &[Placed]) -> CommandReport {
    let mut told = CommandReport::new(Value::Null);
    let mut skills = Vec::new();
    for placed in all {
        let (record, health) = (&placed.record, placed.health());
        let path = placed.path().display().to_string();
        let (tone, word) = match health.status() {
            Status::Healthy => (Tone::Good, "healthy"),
            status => (Tone::Warn, status.name()),
        };
        told.say(tone, word, format!("{} {}", record.id, record.semantic));
        told.say(Tone::Faint, &format!("  {path}"), "");
        if let Some(details) = health.details() {
            told.say(Tone::Warn, "  it is", details);
        }
        skills.push(json!({
            "skill_id": record.id, "version": record.semantic.to_string(),
            "version_number": record.number.get(), "digest": record.digest,
            "verdict": record.verdict, "server": record.server,
            "installed_at": record.installed_at, "install_method": record.method,
            "installation_path": path, "health_status": health.status().name(),
            "health_details": health.details(),
        }));
    }
    told.json = json!({"skills": skills});
    told
}

/// What has another version by now.
#[must_use]
pub fn of_newer(all: &[Newer]) -> CommandReport {
    let behind = all
        .iter()
        .filter(|one| one.latest.as_ref() != Some(&one.locked.semantic));
    let mut told = CommandReport::new(Value::Null);
    let mut skills = Vec::new();
    for one in behind {
        told.concern = Concern::Look;
        let Locked { id, semantic, .. } = &one.locked;
        let latest = one.latest.as_ref().map(ToString::to_string);
        let text = latest.as_ref().unwrap_or(&one.why);
        told.say(Tone::Warn, "outdated", format!("{id} {semantic}: {text}"));
        let more = json!({"latest_version": latest, "reason": one.why});
        skills.push(json_of(&one.locked, more));
    }
    if skills.is_empty() {
        told.say(Tone::Good, "up to date", "");
    }
    told.json = json!({"skills": skills});
    told
}

/// What an audit found.
#[must_use]
pub fn of_audit(all: &[Finding]) -> CommandReport {
    let mut told = CommandReport::new(Value::Null);
    let mut skills = Vec::new();
    for one in all {
        let (tone, word, concern) = match one.concern {
            Concern::None => (Tone::Good, "healthy", "none"),
            Concern::Look => (Tone::Warn, "review", "look"),
            Concern::Refuse => (Tone::Bad, "blocked", "refuse"),
        };
        let newer = one.newer.as_ref().map(ToString::to_string);
        let Locked { id, semantic, .. } = &one.locked;
        let is_there = newer.as_ref().map(|newer| format!(" ({newer} is there)"));
        told.say(
            tone,
            word,
            format!("{id} {semantic}{}", is_there.unwrap_or_default()),
        );
        for message in &one.messages {
            told.say(Tone::Faint, " ", shown(message, 400));
        }
        let mut more = Map::new();
        more.insert("concern".to_owned(), concern.into());
        more.insert("findings".to_owned(), one.messages.clone().into());
        more.insert("latest_version".to_owned(), newer.into());
        skills.push(json_of(&one.locked, Value::Object(more)));
    }
    told.json = json!({"skills": skills});
    told.concern = worst(all);
    told
}
