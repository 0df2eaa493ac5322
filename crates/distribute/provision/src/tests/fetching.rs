//! What a server hands out is checked before any of it is written.

use super::*;

/// What is refused is not there, and no lock says it.
fn assert_nothing(machine: &Machine) {
    assert_eq!(machine.there(), BTreeMap::new());
    assert_eq!(machine.lock(), []);
    assert!(machine.installed().is_empty());
}

#[tokio::test]
async fn a_version_is_written_with_its_record_and_noted_in_the_lock() {
    let machine = Machine::new();
    let digest = machine.publish("pdf", 3, &[]);
    let how = How::default();
    let changes = machine.install(&["pdf"], &how).await.expect("installed");
    assert_eq!(outcomes(&changes), [("pdf", 3, Outcome::Installed)]);
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 3)]));
    let directory = machine.project().canonicalize().expect("a folder");
    let directory = directory.join(".claude/skills");
    assert_eq!(changes.installed[0].paths, [directory.join("pdf")]);
    let locked = Locked {
        id: id("pdf"),
        semantic: semver::Version::new(1, 3, 0),
        number: number(3),
        digest,
        verdict: "passed".to_owned(),
        server: "https://skills.example".to_owned(),
        targets: vec!["claude".to_owned()],
        requested: true,
    };
    assert_eq!(changes.installed[0].locked, locked);
    assert_eq!(machine.lock(), [locked]);
    let [placed] = &machine.installed()[..] else {
        panic!("one skill is installed");
    };
    let record = &placed.record;
    assert_eq!(placed.health().details(), None);
    assert_eq!(record.installed_at, Noon.now());
    assert_eq!(record.server, "https://skills.example");
    assert_eq!(record.verdict, "passed");
    assert_eq!((record.method, record.forced), (Method::Copy, false));
    assert_eq!(machine.fetched.get(), 1);
}

#[tokio::test]
async fn files_of_another_digest_stop_all_skills_of_the_call() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    machine.twist(|version| {
        let others = [("SKILL.md".to_owned(), text("tables", 2))];
        version.bytes = pack(&others);
    });
    for force in [false, true] {
        let how = How {
            force,
            ..How::default()
        };
        let refused = machine.install(&["pdf", "tables"], &how).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::SkillInstallFailed);
        assert_eq!(refused.details["skill_id"], "github/acme/tables");
        assert_nothing(&machine);
    }
}

#[tokio::test]
async fn an_archive_that_ends_early_is_not_installed() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[("notes.md", &"one two three\n".repeat(500))]);
    machine.twist(|version| version.bytes.truncate(version.bytes.len() / 2));
    let refused = machine.install(&["pdf"], &How::default()).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillInstallFailed);
    assert!(
        refused.message.contains("cannot be unpacked"),
        "{refused:?}"
    );
    assert_nothing(&machine);
}

#[tokio::test]
async fn files_that_make_no_skill_are_not_installed() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.twist(|version| {
        let files = [("README.md".to_owned(), "# No skill\n".to_owned())];
        version.digest = digest(&files);
        version.bytes = pack(&files);
    });
    let refused = machine.install(&["pdf"], &How::default()).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::SkillInvalid);
    assert_nothing(&machine);
}

#[tokio::test]
async fn a_name_that_makes_no_id_is_no_hindrance_since_the_server_knows_the_id() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.twist(|version| {
        let text = text("pdf", 1).replace("name: pdf", "name: \"!!!\"");
        let files = [("SKILL.md".to_owned(), text)];
        version.digest = digest(&files);
        version.bytes = pack(&files);
    });
    let done = machine.install(&["pdf"], &How::default()).await;
    assert_eq!(
        outcomes(&done.expect("installed")),
        [("pdf", 1, Outcome::Installed)]
    );
}

#[tokio::test]
async fn a_warning_is_overruled_by_force_and_a_failed_scan_never_is() {
    let forced = How {
        force: true,
        ..How::default()
    };
    let machine = Machine::new();
    machine.publish("pdf", 1, &[RISKY]);
    let refused = machine.install(&["pdf"], &How::default()).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SecurityRiskDetected);
    assert_eq!(refused.details["verdict"], "warning");
    assert!(refused.suggestions[0].contains("--force"), "{refused:?}");
    assert!(!refused.problems.is_empty());
    assert_nothing(&machine);
    machine.install(&["pdf"], &forced).await.expect("installed");
    let record = &machine.installed()[0].record;
    assert_eq!((record.verdict.as_str(), record.forced), ("warning", true));
    assert_eq!(machine.lock()[0].verdict, "warning");

    let machine = Machine::new();
    machine.publish("pdf", 1, &[HARMFUL]);
    let refused = machine.install(&["pdf"], &forced).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SecurityRiskDetected);
    assert_eq!(refused.details["verdict"], "failed");
    assert!(!refused.suggestions[0].contains("--force"), "{refused:?}");
    assert_nothing(&machine);
}

#[tokio::test]
async fn what_the_server_does_not_have_leaves_nothing() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let refused = machine.install(&["pdf", "tables"], &How::default()).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::SkillNotFound);
    assert_nothing(&machine);
}

#[tokio::test]
async fn an_install_that_fails_half_way_leaves_whole_skills_and_what_others_have() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    machine.write(".claude/skills/tables/mine.md", "Mine.");
    let forced = How {
        force: true,
        ..How::default()
    };
    let mut left = trees(&[(".claude/skills", "pdf", 1)]);
    left.insert(".claude/skills/tables/mine.md".into(), "Mine.".into());
    for how in [How::default(), forced] {
        let refused = machine.install(&["pdf", "tables"], &how).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.code, Code::SkillInstallFailed);
        assert_eq!(machine.there(), left);
        assert_eq!(machine.lock(), []);
    }
    fs::remove_dir_all(machine.project().join(".claude/skills/tables")).expect("removed");
    let done = machine.install(&["pdf", "tables"], &How::default()).await;
    let expected = [
        ("pdf", 1, Outcome::Unchanged),
        ("tables", 1, Outcome::Installed),
    ];
    assert_eq!(outcomes(&done.expect("installed")), expected);
    assert_eq!(machine.lock().len(), 2);
}

#[tokio::test]
async fn what_is_there_is_not_fetched_again_unless_somebody_insists() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    let both = ["pdf", "tables"];
    let how = How::default();
    machine.install(&both, &how).await.expect("installed");
    machine.asked();
    let again = machine.install(&both, &how).await.expect("installed");
    let unchanged = [
        ("pdf", 1, Outcome::Unchanged),
        ("tables", 1, Outcome::Unchanged),
    ];
    assert_eq!(outcomes(&again), unchanged);
    assert_eq!(machine.asked(), ["resolve pdf tables"]);
    assert_eq!(machine.fetched.get(), 4);
    let forced = How { force: true, ..how };
    let again = machine.install(&["pdf"], &forced).await;
    let again = again.expect("installed");
    assert_eq!(outcomes(&again), [("pdf", 1, Outcome::Installed)]);
    assert_eq!(
        machine.asked(),
        ["resolve pdf", "archive github/acme/pdf@1"]
    );
}

#[tokio::test]
async fn a_skill_that_lost_one_of_its_folders_gets_it_back_whatever_else_is_installed() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine.publish("tables", 1, &[]);
    let how = How {
        agents: &["claude", "cursor"],
        ..How::default()
    };
    let both = ["pdf", "tables"];
    machine.install(&both, &how).await.expect("installed");
    let whole = machine.there();
    fs::remove_dir_all(machine.project().join(".cursor/skills/pdf")).expect("removed");
    let again = machine.install(&both, &how).await.expect("installed");
    let expected = [
        ("pdf", 1, Outcome::Installed),
        ("tables", 1, Outcome::Unchanged),
    ];
    assert_eq!(outcomes(&again), expected);
    assert_eq!(machine.there(), whole);
    assert_eq!(again.installed[0].paths.len(), 2);
}

#[tokio::test]
async fn what_somebody_changed_is_given_up_by_force_alone() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    let path = ".claude/skills/pdf/SKILL.md";
    machine.write(path, "Changed.");
    let refused = machine.install(&["pdf"], &how).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillInstallFailed);
    assert_eq!(machine.there()[path], "Changed.");
    let forced = How { force: true, ..how };
    machine.install(&["pdf"], &forced).await.expect("installed");
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
}

#[tokio::test]
async fn a_copy_becomes_a_link_where_somebody_asks_for_links() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    let links = How {
        method: Method::Symlink,
        ..how
    };
    machine.install(&["pdf"], &links).await.expect("installed");
    let path = machine.project().join(".claude/skills/pdf");
    assert!(path.is_symlink());
    assert_eq!(machine.installed()[0].record.method, Method::Symlink);
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
}
