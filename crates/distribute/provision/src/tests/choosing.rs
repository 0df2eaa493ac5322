//! Which versions are to be there, beside those that are.

use super::*;

fn locked(all: &[(&str, u32, &str, bool)]) -> Vec<(String, u32, String, bool)> {
    let all = all.iter().map(|(slug, number, targets, requested)| {
        ((*slug).into(), *number, (*targets).into(), *requested)
    });
    all.collect()
}

#[tokio::test]
async fn what_others_require_comes_along_and_stays_asked_for_where_it_was() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    machine.needs("pdf", &["tables"]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    let both = [("pdf", 1, "claude", true), ("tables", 1, "claude", false)];
    assert_eq!(machine.locked(), locked(&both));
    machine.install(&["tables"], &how).await.expect("installed");
    let asked = [("pdf", 1, "claude", true), ("tables", 1, "claude", true)];
    assert_eq!(machine.locked(), locked(&asked));
    machine.install(&["pdf"], &how).await.expect("installed");
    assert_eq!(machine.locked(), locked(&asked));
}

#[tokio::test]
async fn new_skills_go_together_with_those_that_stay_or_are_not_installed() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    machine.refuse("permit", Some(Code::ConflictDetected));
    machine.asked();
    let refused = machine.install(&["tables"], &how).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::ConflictDetected);
    let asked = [
        "resolve tables",
        "permit github/acme/tables@1 github/acme/pdf@1",
    ];
    assert_eq!(machine.asked(), asked);
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
    assert_eq!(machine.lock().len(), 1);
    machine.install(&["pdf"], &how).await.expect("alone");
    assert_eq!(machine.asked(), ["resolve pdf"]);
    let forced = How { force: true, ..how };
    let done = machine.install(&["tables"], &forced).await;
    assert_eq!(done.expect("installed").installed.len(), 1);
    assert_eq!(machine.lock().len(), 2);
}

/// Whether a server is asked if one more skill goes together with this many.
async fn is_asked_beside(many: usize) -> bool {
    let machine = Machine::new();
    let digest = machine.publish("pdf", 1, &[]);
    let mut lock = SkillsLock::default();
    for at in 0..many {
        lock.put(Locked {
            id: id(&format!("other-{at}")),
            semantic: semver::Version::new(1, 1, 0),
            number: number(1),
            digest,
            verdict: "passed".to_owned(),
            server: String::new(),
            targets: vec!["claude".to_owned()],
            requested: true,
        });
    }
    let path = machine.project().join("skills.lock");
    lock.write(&path).expect("a lock");
    let done = machine.install(&["pdf"], &How::default()).await;
    done.expect("installed");
    let asked = machine.asked();
    asked.iter().any(|question| question.starts_with("permit "))
}

#[tokio::test]
async fn a_server_is_asked_about_256_skills_and_not_about_more() {
    assert!(is_asked_beside(255).await);
    assert!(!is_asked_beside(256).await);
}

#[tokio::test]
async fn folders_of_the_same_version_add_up_and_those_of_another_do_not() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let cursor = How {
        agents: &["cursor"],
        ..How::default()
    };
    let claude = How {
        agents: &["claude"],
        ..How::default()
    };
    machine.install(&["pdf"], &claude).await.expect("installed");
    machine.install(&["pdf"], &cursor).await.expect("installed");
    assert_eq!(
        machine.locked(),
        locked(&[("pdf", 1, "claude cursor", true)])
    );
    machine.publish("pdf", 2, &[]);
    machine.install(&["pdf"], &cursor).await.expect("installed");
    assert_eq!(machine.locked(), locked(&[("pdf", 2, "cursor", true)]));
}

#[tokio::test]
async fn an_update_for_one_agent_keeps_the_folders_of_the_others_where_nothing_changed() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let both = How {
        agents: &["claude", "cursor"],
        ..How::default()
    };
    machine.install(&["pdf"], &both).await.expect("installed");
    let claude = How {
        agents: &["claude"],
        ..How::default()
    };
    machine.update(&[], &claude).await.expect("updated");
    assert_eq!(
        machine.locked(),
        locked(&[("pdf", 1, "claude cursor", true)])
    );
}

/// A machine with two skills, of which one requires a third, that all have version 2 by now.
async fn outdated() -> Machine {
    let machine = Machine::new();
    for name in ["forms", "pdf", "tables"] {
        machine.publish(name, 1, &[]);
    }
    machine.needs("pdf", &["tables"]);
    let cursor = How {
        agents: &["cursor"],
        method: Method::Symlink,
        ..How::default()
    };
    let claude = How {
        agents: &["claude"],
        ..How::default()
    };
    machine.install(&["pdf"], &cursor).await.expect("installed");
    machine
        .install(&["forms"], &claude)
        .await
        .expect("installed");
    for name in ["forms", "pdf", "tables"] {
        machine.publish(name, 2, &[]);
    }
    machine.asked();
    machine
}

#[tokio::test]
async fn an_update_chooses_all_anew_where_and_as_they_are() {
    let machine = outdated().await;
    let done = machine.update(&[], &How::default()).await.expect("updated");
    let installed = |slug| (slug, 2, Outcome::Installed);
    let expected = ["forms", "pdf", "tables"].map(installed);
    assert_eq!(outcomes(&done), expected);
    assert_eq!(
        machine.locked(),
        locked(&[
            ("forms", 2, "claude", true),
            ("pdf", 2, "cursor", true),
            ("tables", 2, "cursor", false),
        ])
    );
    let there = [
        (".claude/skills", "forms", 2),
        (".cursor/skills", "pdf", 2),
        (".cursor/skills", "tables", 2),
    ];
    assert_eq!(machine.there(), trees(&there));
    let methods = machine.installed().into_iter();
    let methods: Vec<Method> = methods.map(|placed| placed.record.method).collect();
    let expected = [Method::Copy, Method::Symlink, Method::Symlink];
    assert_eq!(methods, expected);
}

#[tokio::test]
async fn an_update_of_one_skill_leaves_the_others_as_they_are() {
    let machine = outdated().await;
    machine
        .update(&["PDF"], &How::default())
        .await
        .expect("updated");
    assert_eq!(
        machine.asked()[0],
        "resolve github/acme/forms@1 github/acme/pdf"
    );
    assert_eq!(
        machine.locked(),
        locked(&[
            ("forms", 1, "claude", true),
            ("pdf", 2, "cursor", true),
            ("tables", 2, "cursor", false),
        ])
    );
}

#[tokio::test]
async fn whoever_updates_what_others_require_does_not_ask_for_it() {
    let machine = outdated().await;
    let how = How::default();
    machine.update(&["tables"], &how).await.expect("updated");
    assert_eq!(
        machine.locked(),
        locked(&[
            ("forms", 1, "claude", true),
            ("pdf", 1, "cursor", true),
            ("tables", 2, "cursor", false),
        ])
    );
}

#[tokio::test]
async fn an_update_of_what_the_lock_does_not_have_changes_nothing() {
    let machine = outdated().await;
    let (before, lock) = (machine.there(), machine.lock());
    let refused = machine.update(&["pdf", "form"], &How::default()).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillNotInstalled);
    assert_eq!(refused.suggestions, ["Did you mean github/acme/forms?"]);
    assert_eq!(machine.asked(), [""; 0]);
    assert_eq!((machine.there(), machine.lock()), (before, lock));
    let none = Machine::new().update(&[], &How::default()).await;
    assert_eq!(none.expect_err("a refusal").code, Code::LocalFileFailed);
}

#[tokio::test]
async fn what_nothing_requires_any_more_goes_unless_somebody_changed_it() {
    let machine = outdated().await;
    machine.needs("pdf", &[]);
    let changed = ".cursor/skills/tables/SKILL.md";
    let (lock, link) = (
        machine.lock(),
        machine.project().join(".cursor/skills/tables"),
    );
    fs::remove_file(&link).expect("removed");
    machine.write(changed, "Changed.");
    let refused = machine.update(&[], &How::default()).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillInstallFailed);
    assert_eq!(machine.there()[changed], "Changed.");
    assert_eq!(machine.lock(), lock);
    let forced = How {
        force: true,
        ..How::default()
    };
    let done = machine.update(&[], &forced).await.expect("updated");
    assert_eq!(done.removed, [id("tables")]);
    let kept = [("forms", 2, "claude", true), ("pdf", 2, "cursor", true)];
    assert_eq!(machine.locked(), locked(&kept));
    assert!(
        !machine
            .there()
            .contains_key(".cursor/skills/tables/SKILL.md")
    );
}

#[tokio::test]
async fn what_is_gone_already_does_not_keep_an_update_from_forgetting_it() {
    let machine = outdated().await;
    machine.needs("pdf", &[]);
    let targets = machine.targets(&How::default()).expect("targets");
    let lock = fs::read(machine.project().join("skills.lock")).expect("a lock");
    uninstall(&targets, "tables", false, false, NEVER).expect("removed");
    fs::write(machine.project().join("skills.lock"), lock).expect("written");
    let done = machine.update(&[], &How::default()).await.expect("updated");
    assert_eq!(done.removed, [id("tables")]);
    assert_eq!(machine.lock().len(), 2);
}

#[tokio::test]
async fn a_new_requirement_goes_wherever_something_may_require_it() {
    let machine = outdated().await;
    machine.publish("charts", 1, &[]);
    machine.needs("forms", &["charts"]);
    machine.update(&[], &How::default()).await.expect("updated");
    assert_eq!(
        machine.locked()[0],
        ("charts".into(), 1, "claude cursor".into(), false)
    );
}
