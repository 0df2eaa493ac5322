//! The output of commands, for a program and for a person.

use serde_json::{Value, json};

use super::{Changes, Concern, Finding, Newer, Outcome, Targets, worst};
use install::{Locked, NPX_LOCK_FILE, Placed, Removed, Status};
use model::{SkillId, shown};
use trust::Verdict;

/// The tone of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// To be reviewed.
    Warn,
    /// Not to be used.
    Bad,
    /// A detail.
    Faint,
}

/// A line for a person: a word with a tone, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The tone of the word.
    pub tone: Tone,
    /// The word, behind its indent.
    pub word: String,
    /// What follows it.
    pub text: String,
}

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandReport {
    /// For a program.
    pub json: Value,
    /// For a person.
    pub lines: Vec<Line>,
    /// For either, on top of what was asked for.
    pub notes: Vec<String>,
    /// The most severe concern.
    pub concern: Concern,
}

impl CommandReport {
    fn new() -> Self {
        Self {
            json: Value::Null,
            lines: Vec::new(),
            notes: Vec::new(),
            concern: Concern::None,
        }
    }

    fn paths(&mut self, paths: &[String]) {
        for path in paths {
            self.line(Tone::Faint, &format!("  {path}"), "");
        }
    }

    fn line(&mut self, tone: Tone, word: &str, text: impl Into<String>) {
        self.lines.push(Line {
            tone,
            word: word.to_owned(),
            text: text.into(),
        });
    }
}

/// The entry of a skill in the lock, and more; values of null are left out.
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

/// Reports an install or an update.
#[must_use]
pub fn of_changes(changes: &Changes, targets: &Targets) -> CommandReport {
    let word = |outcome| match outcome {
        Outcome::Installed => "installed",
        Outcome::Unchanged => "unchanged",
    };
    let (mut report, mut skills) = (CommandReport::new(), Vec::new());
    for one in &changes.installed {
        let paths = paths(one.paths.iter());
        let more = json!({"outcome": word(one.outcome), "paths": paths});
        skills.push(json_of(&one.locked, more));
        let Locked { id, semantic, .. } = &one.locked;
        let why = if one.locked.requested {
            ""
        } else {
            ", which others require"
        };
        let text = format!("{id} {semantic}{why}");
        report.line(Tone::Good, word(one.outcome), text);
        report.paths(&paths);
        if one.locked.verdict == Verdict::Warning.name() {
            let text = "see `repertoire scan`";
            report.line(Tone::Warn, "  review:", text);
        }
    }
    for id in &changes.removed {
        let text = format!("{id}, which nothing requires any more");
        report.line(Tone::Warn, "removed", text);
    }
    for id in &changes.replaced {
        let note = format!("the locked version of {id} is not on the server any more");
        report.notes.push(note);
    }
    for name in &changes.missing {
        let name = shown(name, 100);
        let note = format!("'{name}' of {NPX_LOCK_FILE} is not on the server");
        report.notes.push(note);
    }
    report.json = json!({
        "skills": skills, "removed": changes.removed, "missing": changes.missing,
        "lock": targets.lock_file().display().to_string(),
    });
    report
}

/// Reports an uninstall: the removed skills, each with those that require it.
#[must_use]
pub fn of_removed(all: &[(Vec<Removed>, Vec<SkillId>)]) -> CommandReport {
    let (mut report, mut skills) = (CommandReport::new(), Vec::new());
    for (removed, dependents) in all {
        let id = removed.first().map(|one| one.record.id.to_string());
        let kept: usize = removed.iter().map(|one| one.kept).sum();
        let paths = paths(removed.iter().map(|one| &one.path));
        report.line(Tone::Good, "removed", id.clone().unwrap_or_default());
        report.paths(&paths);
        if kept > 0 {
            let text = format!("{kept} added by others stay; --remove-data removes them");
            report.line(Tone::Warn, "  other files:", text);
        }
        for other in dependents {
            report.line(Tone::Warn, "  warning:", format!("{other} requires it"));
        }
        skills.push(json!({
            "skill_id": id, "removed_paths": paths, "files_kept": kept,
            "dependent_skills_affected": dependents,
        }));
    }
    report.json = json!({"skills": skills});
    report
}

/// Reports installed skills and their health.
#[must_use]
pub fn of_installed(all: &[Placed]) -> CommandReport {
    let (mut report, mut skills) = (CommandReport::new(), Vec::new());
    for placed in all {
        let (record, health) = (&placed.record, placed.health());
        let path = placed.path().display().to_string();
        let (tone, word) = match health.status() {
            Status::Healthy => (Tone::Good, "healthy"),
            status => (Tone::Warn, status.name()),
        };
        report.line(tone, word, format!("{} {}", record.id, record.semantic));
        report.line(Tone::Faint, &format!("  {path}"), "");
        if let Some(details) = health.details() {
            report.line(Tone::Warn, "  it is", details);
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
    report.json = json!({"skills": skills});
    report
}

/// Reports skills whose latest version is not the locked one.
#[must_use]
pub fn of_newer(all: &[Newer]) -> CommandReport {
    let behind = all
        .iter()
        .filter(|one| one.latest.as_ref() != Some(&one.locked.semantic));
    let (mut report, mut skills) = (CommandReport::new(), Vec::new());
    for one in behind {
        report.concern = Concern::Look;
        let Locked { id, semantic, .. } = &one.locked;
        let latest = one.latest.as_ref().map(ToString::to_string);
        let text = latest.as_ref().unwrap_or(&one.why);
        report.line(Tone::Warn, "outdated", format!("{id} {semantic}: {text}"));
        let more = json!({"latest_version": latest, "reason": one.why});
        skills.push(json_of(&one.locked, more));
    }
    if report.lines.is_empty() {
        report.line(Tone::Good, "up to date", "");
    }
    report.json = json!({"skills": skills});
    report
}

/// Reports the findings of an audit.
#[must_use]
pub fn of_audit(all: &[Finding]) -> CommandReport {
    let (mut report, mut skills) = (CommandReport::new(), Vec::new());
    for one in all {
        let (tone, word, concern) = match one.concern {
            Concern::None => (Tone::Good, "healthy", "none"),
            Concern::Look => (Tone::Warn, "review", "look"),
            Concern::Refuse => (Tone::Bad, "blocked", "refuse"),
        };
        let newer = one.newer.as_ref().map(ToString::to_string);
        let Locked { id, semantic, .. } = &one.locked;
        let is_there = newer.as_ref().map(|newer| format!(" ({newer} is there)"));
        let text = format!("{id} {semantic}{}", is_there.unwrap_or_default());
        report.line(tone, word, text);
        for message in &one.messages {
            report.line(Tone::Faint, " ", shown(message, 400));
        }
        let more = json!({"concern": concern, "findings": one.messages, "latest_version": newer});
        skills.push(json_of(&one.locked, more));
    }
    report.concern = worst(all);
    report.json = json!({"skills": skills});
    report
}
