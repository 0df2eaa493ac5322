//! What a lock says is installed to the byte.

use super::*;

const FROZEN: How = How {
    agents: &[],
    dir: None,
    method: Method::Copy,
    is_user: false,
    frozen: true,
    force: false,
    is_late: false,
};

/// A machine whose lock says version 1 of a skill that is installed nowhere.
async fn cloned(more: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    machine.publish("pdf", 1, more);
    let forced = How {
        force: true,
        ..How::default()
    };
    machine.install(&["pdf"], &forced).await.expect("installed");
    fs::remove_dir_all(machine.project().join(".claude")).expect("removed");
    machine.asked();
    machine
}

#[tokio::test]
async fn without_a_lock_nothing_is_frozen_and_nothing_is_asked() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.write(
        "skills-lock.json",
        r#"{"skills": {"pdf": {"source": "acme/x", "sourceType": "github"}}}"#,
    );
    for skills in [&[][..], &["pdf"]] {
        let refused = machine.install(skills, &FROZEN).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::LocalFileFailed);
        assert!(refused.message.contains("skills.lock"), "{refused:?}");
    }
    assert_eq!(machine.asked(), [""; 0]);
    assert_eq!(machine.lock(), []);
}

#[tokio::test]
async fn the_lock_decides_though_there_are_newer_versions() {
    let machine = cloned(&[]).await;
    machine.publish("pdf", 2, &[]);
    let path = machine.project().join("skills.lock");
    let lock = fs::read_to_string(&path).expect("a lock") + "\n# A remark.\n";
    fs::write(&path, &lock).expect("written");
    let done = machine.install(&[], &FROZEN).await.expect("installed");
    assert_eq!(outcomes(&done), [("pdf", 1, Outcome::Installed)]);
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
    assert_eq!(fs::read_to_string(&path).expect("a lock"), lock);
    let asked = ["known github/acme/pdf@1", "archive github/acme/pdf@1"];
    assert_eq!(machine.asked(), asked);
}

#[tokio::test]
async fn a_locked_version_that_is_gone_is_chosen_anew_unless_the_lock_is_frozen() {
    let machine = cloned(&[]).await;
    machine.publish("pdf", 2, &[]);
    machine.withdraw("pdf", Some(1));
    let refused = machine.install(&[], &FROZEN).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::VersionNotFound);
    assert_eq!(machine.there(), BTreeMap::new());
    let done = machine.install(&[], &How::default()).await;
    let done = done.expect("installed");
    assert_eq!(outcomes(&done), [("pdf", 2, Outcome::Installed)]);
    assert_eq!(done.replaced, [id("pdf")]);
    assert_eq!(machine.locked(), [("pdf".into(), 2, "claude".into(), true)]);
    machine.withdraw("pdf", None);
    let refused = machine.install(&[], &How::default()).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::SkillNotFound);
}

#[tokio::test]
async fn what_a_replaced_version_requires_stays_as_the_lock_says_and_is_fetched_once() {
    let machine = Machine::new();
    for name in ["pdf", "tables"] {
        machine.publish(name, 1, &[]);
    }
    machine.needs("pdf", &["tables"]);
    let installed = machine.install(&["pdf"], &How::default()).await;
    installed.expect("installed");
    fs::remove_dir_all(machine.project().join(".claude")).expect("removed");
    for name in ["fonts", "pdf", "tables"] {
        machine.publish(name, 2, &[]);
    }
    machine.withdraw("pdf", Some(1));
    machine.needs("pdf", &["fonts", "tables"]);
    machine.asked();
    let done = machine.install(&[], &How::default()).await;
    assert_eq!(done.expect("installed").replaced, [id("pdf")]);
    let asked = machine.asked().into_iter();
    let mut fetched: Vec<_> = asked.filter(|asked| asked.starts_with("archive")).collect();
    fetched.sort();
    let expected = ["fonts@2", "pdf@2", "tables@1"];
    assert_eq!(
        fetched,
        expected.map(|name| format!("archive github/acme/{name}"))
    );
    assert_eq!(
        machine.locked(),
        [
            ("fonts".into(), 2, "claude".into(), false),
            ("pdf".into(), 2, "claude".into(), true),
            ("tables".into(), 1, "claude".into(), false),
        ]
    );
}

#[tokio::test]
async fn other_files_of_a_locked_version_are_refused_before_they_are_fetched() {
    let machine = cloned(&[]).await;
    machine.withdraw("pdf", Some(1));
    machine.publish("pdf", 1, &[("more.md", "More.")]);
    for how in [FROZEN, How::default()] {
        let refused = machine.install(&[], &how).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::SkillInstallFailed);
        assert_eq!(machine.asked(), ["known github/acme/pdf@1"]);
    }
    assert_eq!(machine.there(), BTreeMap::new());
}

#[tokio::test]
async fn a_risk_is_accepted_by_each_person_to_the_byte_and_not_for_the_next_version() {
    let machine = cloned(&[RISKY]).await;
    let done = machine.install(&[], &FROZEN).await.expect("installed");
    assert_eq!(outcomes(&done), [("pdf", 1, Outcome::Installed)]);
    assert_eq!(machine.lock()[0].verdict, "warning");
    // Somebody else has the repository, and has accepted nothing.
    let accepted = machine.folder.path().join("data/accepted.json");
    let own = fs::read(&accepted).expect("a file of the user's own");
    fs::remove_file(&accepted).expect("removed");
    fs::remove_dir_all(machine.project().join(".claude")).expect("removed");
    for how in [FROZEN, How::default()] {
        let refused = machine.install(&[], &how).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::SecurityRiskDetected);
        assert!(refused.suggestions[0].contains("--force"), "{refused:?}");
    }
    assert_eq!(machine.there(), BTreeMap::new());
    // Asked once: by force it is theirs too.
    let forced = How {
        force: true,
        ..FROZEN
    };
    machine.install(&[], &forced).await.expect("installed");
    assert_eq!(fs::read(&accepted).expect("a file"), own);
    fs::remove_dir_all(machine.project().join(".claude")).expect("removed");
    machine.install(&[], &FROZEN).await.expect("installed");
    let before = machine.there();
    machine.publish("pdf", 2, &[RISKY]);
    for refused in [
        machine.install(&["pdf"], &How::default()).await,
        machine.update(&[], &How::default()).await,
    ] {
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::SecurityRiskDetected);
    }
    assert_eq!(machine.there(), before);
    assert_eq!(machine.lock()[0].number, number(1));
}

#[tokio::test]
async fn harm_is_not_installed_though_a_lock_says_that_somebody_looked() {
    let machine = Machine::new();
    let digest = machine.publish("pdf", 1, &[HARMFUL]);
    let mut lock = SkillsLock::default();
    lock.put(Locked {
        id: id("pdf"),
        semantic: semver::Version::new(1, 1, 0),
        number: number(1),
        digest,
        verdict: "warning".to_owned(),
        server: String::new(),
        targets: vec!["claude".to_owned()],
        requested: true,
    });
    let path = machine.project().join("skills.lock");
    lock.write(&path).expect("a lock");
    let refused = machine.install(&[], &FROZEN).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SecurityRiskDetected);
    assert_eq!(machine.there(), BTreeMap::new());
}

#[tokio::test]
async fn the_lock_of_npx_names_skills_and_those_that_are_not_here_are_told() {
    let machine = Machine::new();
    let refused = machine.install(&[], &How::default()).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::LocalFileFailed);
    assert!(refused.message.contains("skills-lock.json"), "{refused:?}");
    machine.publish("pdf", 1, &[]);
    machine.write(
        "skills-lock.json",
        r#"{"skills": {
            "pdf": {"source": "acme/x", "sourceType": "github"},
            "gone": {"source": "acme/x", "sourceType": "github"},
            "mine": {"source": "./here", "sourceType": "local"}
        }}"#,
    );
    machine.refuse("latest", Some(Code::Overloaded));
    let refused = machine.install(&[], &How::default()).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::Overloaded);
    machine.refuse("latest", None);
    let done = machine.install(&[], &How::default()).await;
    let done = done.expect("installed");
    assert_eq!(outcomes(&done), [("pdf", 1, Outcome::Installed)]);
    assert_eq!(done.missing, ["gone", "mine"]);
    assert_eq!(machine.locked(), [("pdf".into(), 1, "claude".into(), true)]);
}
