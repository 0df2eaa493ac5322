//! What is installed, what a server says of it by now, and how it goes.

use super::*;

const NOTES: (&str, &str) = ("notes.md", "Notes.\n");

fn remove(
    machine: &Machine,
    how: &How,
    skill: &str,
) -> Result<(Vec<::install::Removed>, Vec<SkillId>), Failure> {
    let targets = machine.targets(how)?;
    uninstall(&targets, skill, false, how.force, NEVER)
}

async fn audited(machine: &Machine) -> (Concern, Vec<String>) {
    let how = How::default();
    let found = machine.with(&how, async |with| audit(with).await);
    let found = found.await.expect("an answer");
    let [one] = &found[..] else {
        panic!("one skill is in the lock");
    };
    let newer = one.newer.as_ref().map(|newer| format!("newer: {newer}"));
    let told = one.messages.iter().cloned().chain(newer).collect();
    assert_eq!(worst(&found), one.concern);
    (one.concern, told)
}

#[tokio::test]
async fn a_skill_goes_from_all_its_folders_and_from_the_lock() {
    for name in ["pdf", "PDF", "github/acme/pdf"] {
        let machine = Machine::new();
        machine.publish("pdf", 1, &[]);
        machine.publish("tables", 1, &[]);
        let how = How {
            agents: &["claude", "cursor"],
            ..How::default()
        };
        machine
            .install(&["pdf", "tables"], &how)
            .await
            .expect("installed");
        let (removed, dependents) = remove(&machine, &How::default(), name).expect("removed");
        assert_eq!((removed.len(), dependents.len()), (2, 0));
        let kept = [
            (".claude/skills", "tables", 1),
            (".cursor/skills", "tables", 1),
        ];
        assert_eq!(machine.there(), trees(&kept));
        assert_eq!(
            machine.locked(),
            [("tables".into(), 1, "claude cursor".into(), true)]
        );
    }
}

#[tokio::test]
async fn a_skill_that_goes_from_one_folder_keeps_the_others_in_the_lock() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let both = How {
        agents: &["claude", "cursor"],
        ..How::default()
    };
    let cursor = How {
        agents: &["cursor"],
        ..How::default()
    };
    machine.install(&["pdf"], &both).await.expect("installed");
    remove(&machine, &cursor, "pdf").expect("removed");
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
    assert_eq!(machine.locked(), [("pdf".into(), 1, "claude".into(), true)]);
}

#[tokio::test]
async fn whoever_requires_what_goes_is_told_and_what_is_not_there_is_refused() {
    let machine = Machine::new();
    machine.publish("tables", 1, &[]);
    machine.publish("pdf", 1, &[]);
    machine.twist(|version| {
        let rule = "compatibility_rules:\n  - {type: requires, skill: tables, reason: r}\n---\n\n#";
        let files = [(
            "SKILL.md".to_owned(),
            text("pdf", 1).replace("---\n\n#", rule),
        )];
        version.digest = digest(&files);
        version.bytes = pack(&files);
    });
    let how = How {
        agents: &["claude", "cursor"],
        ..How::default()
    };
    machine
        .install(&["pdf", "tables"], &how)
        .await
        .expect("installed");
    let refused = remove(&machine, &how, "table").expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillNotInstalled);
    assert_eq!(refused.suggestions, ["Did you mean github/acme/tables?"]);
    let (_, dependents) = remove(&machine, &how, "tables").expect("removed");
    assert_eq!(dependents, [id("pdf")]);
}

#[tokio::test]
async fn what_somebody_changed_is_removed_by_force_alone() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[NOTES]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    machine.write(".claude/skills/pdf/notes.md", "Changed.");
    let before = machine.there();
    let refused = remove(&machine, &how, "pdf").expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillInstallFailed);
    assert_eq!((machine.there(), machine.lock().len()), (before, 1));
    let forced = How { force: true, ..how };
    remove(&machine, &forced, "pdf").expect("removed");
    assert_eq!((machine.there(), machine.lock()), (BTreeMap::new(), vec![]));
}

#[tokio::test]
async fn a_short_name_of_two_skills_removes_neither() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let how = |agents| How {
        agents,
        ..How::default()
    };
    machine
        .install(&["pdf"], &how(&["claude"]))
        .await
        .expect("installed");
    let other = SkillId::new("github", "other", "pdf").expect("an id");
    let placed = machine.installed().remove(0);
    let directory = machine.project().join(".cursor/skills");
    let record = ::install::Record {
        id: other.clone(),
        ..placed.record
    };
    let files = [("SKILL.md".parse().expect("a path"), text("pdf", 1).into())];
    let home = ::install::Home::new(machine.folder.path().join("data"), vec![directory.clone()]);
    home.install(&directory, record, &files, false, NEVER)
        .expect("installed");
    let before = machine.there();
    let refused = remove(&machine, &How::default(), "pdf").expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillNotInstalled);
    let near = "Did you mean github/acme/pdf, or github/other/pdf?";
    assert_eq!(refused.suggestions, [near]);
    assert_eq!(machine.there(), before);
    remove(&machine, &How::default(), other.as_str()).expect("removed");
    assert_eq!(machine.there(), trees(&[(".claude/skills", "pdf", 1)]));
}

#[tokio::test]
async fn an_audit_says_what_is_wrong_on_the_disk() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[NOTES]);
    let how = How {
        agents: &["claude"],
        ..How::default()
    };
    machine.install(&["pdf"], &how).await.expect("installed");
    assert_eq!(audited(&machine).await, (Concern::None, vec![]));
    machine.write(".claude/skills/pdf/notes.md", "Changed.");
    let (concern, told) = audited(&machine).await;
    assert_eq!((concern, told.len()), (Concern::Look, 1));
    let changed = "pdf: changed since it was installed: notes.md";
    assert!(told[0].ends_with(changed), "{told:?}");
    let lock = fs::read(machine.project().join("skills.lock")).expect("a lock");
    let forced = How { force: true, ..how };
    remove(&machine, &forced, "pdf").expect("removed");
    fs::write(machine.project().join("skills.lock"), &lock).expect("written");
    let missing = vec!["not installed for claude".to_owned()];
    assert_eq!(audited(&machine).await, (Concern::Look, missing));
    machine.publish("pdf", 2, &[]);
    machine
        .install(&["pdf"], &How::default())
        .await
        .expect("installed");
    fs::write(machine.project().join("skills.lock"), &lock).expect("written");
    let other = vec![
        "version 1.2.0 is installed for claude".to_owned(),
        "newer: 1.2.0".to_owned(),
    ];
    assert_eq!(audited(&machine).await, (Concern::Look, other));
}

#[tokio::test]
async fn an_audit_says_whether_the_server_still_stands_by_a_version() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    machine
        .install(&["pdf"], &How::default())
        .await
        .expect("installed");
    machine.twist(|version| version.yanked = Some("wrong sums".to_owned()));
    let withdrawn = vec!["withdrawn: wrong sums".to_owned()];
    assert_eq!(audited(&machine).await, (Concern::Look, withdrawn));
    machine.twist(|version| version.digest = Digest::of(b"others"));
    let both = vec![
        format!("the server's files are others: {}", Digest::of(b"others")),
        "withdrawn: wrong sums".to_owned(),
    ];
    assert_eq!(audited(&machine).await, (Concern::Refuse, both));
    for (code, concern, told) in [
        (Code::SkillBlocked, Concern::Refuse, "blocked on the server"),
        (
            Code::SkillNotFound,
            Concern::Look,
            "not on the server any more",
        ),
        (
            Code::VersionNotFound,
            Concern::Look,
            "its version is not on the server any more",
        ),
        (
            Code::VersionHeld,
            Concern::Refuse,
            "held for review on the server",
        ),
    ] {
        machine.refuse("known", Some(code));
        assert_eq!(audited(&machine).await, (concern, vec![told.to_owned()]));
    }
    machine.refuse("known", Some(Code::Overloaded));
    let how = How::default();
    let refused = machine.with(&how, async |with| audit(with).await);
    let refused = refused.await.expect_err("a refusal");
    assert_eq!(refused.code, Code::Overloaded);
    assert_eq!(worst(&[]), Concern::None);
}

#[tokio::test]
async fn where_a_name_leads_nowhere_it_is_told_why_and_a_silent_server_is_no_answer() {
    let machine = Machine::new();
    let how = How::default();
    let none = machine.with(&how, async |with| newer(with).await).await;
    assert_eq!(none.expect_err("a refusal").code, Code::LocalFileFailed);
    let none = machine.with(&how, async |with| audit(with).await).await;
    assert_eq!(none.expect_err("a refusal").code, Code::LocalFileFailed);
    machine.publish("pdf", 1, &[]);
    machine.install(&["pdf"], &how).await.expect("installed");
    machine.publish("pdf", 2, &[]);
    let latest = async || {
        let found = machine.with(&how, async |with| newer(with).await).await?;
        let one = found.into_iter().next().expect("one");
        assert_eq!(one.locked, machine.lock()[0]);
        Ok::<_, Failure>((one.latest.map(|latest| latest.to_string()), one.why))
    };
    let found = latest().await.expect("an answer");
    assert_eq!(found, (Some("1.2.0".to_owned()), String::new()));
    for (code, why) in [
        (Code::SkillNotFound, "it is not on the server any more"),
        (Code::SkillBlocked, "it is blocked on the server"),
        (Code::SkillYanked, "all its versions were withdrawn"),
        (Code::VersionHeld, "its last version is held for review"),
        (Code::SkillNotActive, "none of its versions is active"),
    ] {
        machine.refuse("latest", Some(code));
        let found = latest().await.expect("an answer");
        assert_eq!(found, (None, why.to_owned()));
    }
    machine.refuse("latest", Some(Code::Overloaded));
    assert_eq!(
        latest().await.expect_err("no answer").code,
        Code::Overloaded
    );
}
