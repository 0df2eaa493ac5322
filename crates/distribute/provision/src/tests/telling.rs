//! What is told of a call to a program and to a person.

use serde_json::{Value, json};

use super::*;

/// Words and what follows them, with their tones.
fn lines(told: &CommandReport) -> Vec<(Tone, &str, &str)> {
    let lines = told.lines.iter();
    let lines = lines.map(|line| (line.tone, line.word.as_str(), line.text.as_str()));
    lines.collect()
}

fn locked(machine: &Machine) -> Locked {
    machine.lock().remove(0)
}

/// A machine with a skill that was installed in spite of a warning.
async fn risky() -> (Machine, Changes) {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[RISKY]);
    let forced = How {
        force: true,
        ..How::default()
    };
    let changes = machine.install(&["pdf"], &forced).await;
    (machine, changes.expect("installed"))
}

#[tokio::test]
async fn an_install_tells_every_folder_risk_and_gap() {
    let (machine, mut changes) = risky().await;
    let path = changes.installed[0].paths[0].display().to_string();
    let mut required = changes.installed[0].clone();
    required.locked.requested = false;
    required.locked.verdict = "passed".to_owned();
    required.outcome = Outcome::Unchanged;
    changes.installed.push(required);
    changes.removed = vec![id("forms")];
    changes.replaced = vec![id("tables")];
    changes.missing = vec!["gone".to_owned()];
    let targets = machine.targets(&How::default()).expect("targets");
    let told = of_changes(&changes, &targets);
    let folder = format!("  {path}");
    let expected = [
        (Tone::Good, "installed", "github/acme/pdf 1.1.0"),
        (Tone::Faint, folder.as_str(), ""),
        (Tone::Warn, "  review:", "see `repertoire scan`"),
        (
            Tone::Good,
            "unchanged",
            "github/acme/pdf 1.1.0, which others require",
        ),
        (Tone::Faint, folder.as_str(), ""),
        (
            Tone::Warn,
            "removed",
            "github/acme/forms, which nothing requires any more",
        ),
    ];
    assert_eq!(lines(&told), expected);
    let notes = [
        "the locked version of github/acme/tables is not on the server any more",
        "'gone' of skills-lock.json is not on the server",
    ];
    assert_eq!(told.notes, notes);
    assert_eq!(told.concern, Concern::None);
    let digest = changes.installed[0].locked.digest;
    let skill = |outcome: &str, verdict: &str, requested: bool| {
        json!({
            "skill_id": "github/acme/pdf", "version": "1.1.0", "version_number": 1,
            "digest": digest, "verdict": verdict, "requested": requested,
            "targets": ["claude"], "outcome": outcome, "paths": [path],
        })
    };
    let skills = [
        skill("installed", "warning", true),
        skill("unchanged", "passed", false),
    ];
    let expected = json!({
        "skills": skills, "removed": ["github/acme/forms"], "missing": ["gone"],
        "lock": machine.project().join("skills.lock").display().to_string(),
    });
    assert_eq!(told.json, expected);
}

#[tokio::test]
async fn a_removal_tells_what_stays_and_who_requires_what_went() {
    let (machine, changes) = risky().await;
    let path = changes.installed[0].paths[0].display().to_string();
    machine.write(".claude/skills/pdf/mine.md", "Mine.");
    let targets = machine.targets(&How::default()).expect("targets");
    let (removed, _) = uninstall(&targets, "pdf", false, false, NEVER).expect("removed");
    let told = of_removed(&[(removed, vec![id("forms")])]);
    let folder = format!("  {path}");
    let expected = [
        (Tone::Good, "removed", "github/acme/pdf"),
        (Tone::Faint, folder.as_str(), ""),
        (
            Tone::Warn,
            "  other files:",
            "1 added by others stay; --remove-data removes them",
        ),
        (Tone::Warn, "  warning:", "github/acme/forms requires it"),
    ];
    assert_eq!(lines(&told), expected);
    let expected = json!({"skills": [{
        "skill_id": "github/acme/pdf", "removed_paths": [path], "files_kept": 1,
        "dependent_skills_affected": ["github/acme/forms"],
    }]});
    assert_eq!(told.json, expected);
}

#[tokio::test]
async fn what_is_installed_is_told_with_its_health() {
    let (machine, changes) = risky().await;
    let path = changes.installed[0].paths[0].display().to_string();
    let folder = format!("  {path}");
    let about = "github/acme/pdf 1.1.0";
    let told = of_installed(&machine.installed());
    let healthy = [
        (Tone::Good, "healthy", about),
        (Tone::Faint, folder.as_str(), ""),
    ];
    assert_eq!(lines(&told), healthy);
    machine.write(".claude/skills/pdf/SKILL.md", "Changed.");
    let told = of_installed(&machine.installed());
    let details = "changed since it was installed: SKILL.md";
    let unlike = [
        (Tone::Warn, "warning", about),
        (Tone::Faint, folder.as_str(), ""),
        (Tone::Warn, "  it is", details),
    ];
    assert_eq!(lines(&told), unlike);
    let expected = json!({"skills": [{
        "skill_id": "github/acme/pdf", "version": "1.1.0", "version_number": 1,
        "digest": changes.installed[0].locked.digest, "verdict": "warning",
        "server": "https://skills.example", "installed_at": Noon.now(),
        "install_method": "copy", "installation_path": path,
        "health_status": "warning", "health_details": details,
    }]});
    assert_eq!(told.json, expected);
}

#[tokio::test]
async fn what_is_behind_is_told_and_what_is_not_is_up_to_date() {
    let (machine, _) = risky().await;
    let newer = |latest: Option<u64>, why: &str| Newer {
        locked: locked(&machine),
        latest: latest.map(|minor| semver::Version::new(1, minor, 0)),
        why: why.to_owned(),
    };
    let told = of_newer(&[newer(Some(1), "")]);
    assert_eq!(lines(&told), [(Tone::Good, "up to date", "")]);
    assert_eq!(told.json, json!({"skills": []}));
    assert_eq!(told.concern, Concern::None);
    let told = of_newer(&[newer(Some(1), ""), newer(Some(2), ""), newer(None, "gone")]);
    let expected = [
        (Tone::Warn, "outdated", "github/acme/pdf 1.1.0: 1.2.0"),
        (Tone::Warn, "outdated", "github/acme/pdf 1.1.0: gone"),
    ];
    assert_eq!(lines(&told), expected);
    assert_eq!(told.concern, Concern::Look);
    assert_eq!(told.json["skills"][0]["latest_version"], "1.2.0");
    // What is null is left out, so that a program asks for nothing that is not there.
    let gone = told.json["skills"][1].as_object().expect("an object");
    assert!(!gone.contains_key("latest_version"));
    assert_eq!(gone["reason"], "gone");
}

#[tokio::test]
async fn an_audit_tells_the_worst_of_what_it_found() {
    let (machine, _) = risky().await;
    let finding = |concern, messages: &[&str], newer: Option<u64>| Finding {
        locked: locked(&machine),
        concern,
        messages: messages.iter().map(|&message| message.to_owned()).collect(),
        newer: newer.map(|minor| semver::Version::new(1, minor, 0)),
    };
    let told = of_audit(&[
        finding(Concern::None, &[], None),
        finding(Concern::Refuse, &["blocked\u{202e}"], Some(2)),
        finding(Concern::Look, &["withdrawn"], None),
    ]);
    let about = "github/acme/pdf 1.1.0";
    let newer = "github/acme/pdf 1.1.0 (1.2.0 is there)";
    let found = lines(&told);
    assert_eq!(
        found[..2],
        [
            (Tone::Good, "healthy", about),
            (Tone::Bad, "blocked", newer),
        ]
    );
    // What a server says does not turn a terminal around.
    assert!(!found[2].2.contains('\u{202e}'), "{found:?}");
    assert_eq!(
        found[3..],
        [
            (Tone::Warn, "review", about),
            (Tone::Faint, " ", "withdrawn"),
        ]
    );
    assert_eq!(told.concern, Concern::Refuse);
    let of = |at: usize, key: &str| told.json["skills"][at][key].clone();
    let concerns: Vec<Value> = (0..3).map(|at| of(at, "concern")).collect();
    assert_eq!(concerns, ["none", "refuse", "look"]);
    assert_eq!(of(1, "latest_version"), "1.2.0");
    assert_eq!(of(2, "findings"), json!(["withdrawn"]));
}
