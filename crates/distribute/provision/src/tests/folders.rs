//! Which folders are meant, what a lock calls them, and whose they are.

use std::os::unix::fs::symlink;

use super::*;

fn names(targets: &Targets) -> Vec<&str> {
    let places = targets.places().iter();
    places.map(|place| place.name.as_str()).collect()
}

#[test]
fn without_a_wish_they_are_those_of_the_agents_of_the_project_else_of_claude() {
    let machine = Machine::new();
    let usual = || machine.targets(&How::default()).expect("targets");
    assert_eq!(names(&usual()), ["claude"]);
    fs::create_dir(machine.project().join(".github")).expect("a folder");
    assert_eq!(names(&usual()), ["claude"], "it says nothing of an agent");
    for own in [".cursor", ".gemini"] {
        fs::create_dir(machine.project().join(own)).expect("a folder");
    }
    assert_eq!(names(&usual()), ["cursor", "gemini"]);
    let person = How {
        is_user: true,
        ..How::default()
    };
    let person = machine.targets(&person).expect("targets");
    let place = TargetFolder {
        name: "claude".to_owned(),
        directory: machine.folder.path().join("person/.claude/skills"),
    };
    assert_eq!(person.places(), [place]);
    let lock = machine.folder.path().join("data/user/skills.lock");
    assert_eq!(person.lock_file(), lock);
    assert_eq!(usual().lock_file(), machine.project().join("skills.lock"));
}

#[test]
fn a_folder_is_never_called_like_an_agent() {
    let machine = Machine::new();
    for (dir, name) in [
        (PathBuf::from("claude"), "./claude"),
        (PathBuf::from("skills/mine"), "skills/mine"),
        (machine.project().join("claude"), "./claude"),
        (PathBuf::from("/elsewhere"), "/elsewhere"),
    ] {
        let how = How {
            dir: Some(dir.clone()),
            ..How::default()
        };
        let targets = machine.targets(&how).expect("targets");
        let place = TargetFolder {
            name: name.to_owned(),
            directory: machine.project().join(name),
        };
        assert_eq!(targets.places(), [place], "{}", dir.display());
    }
    for dir in [PathBuf::new(), machine.project()] {
        let how = How {
            dir: Some(dir),
            ..How::default()
        };
        let refused = machine.targets(&how).expect_err("a refusal");
        assert_eq!(refused.code, Code::InvalidParameter);
    }
}

#[test]
fn agents_that_share_a_folder_have_it_once_and_those_that_are_not_known_are_told() {
    let machine = Machine::new();
    let how = |agents| How {
        agents,
        ..How::default()
    };
    let shared = machine.targets(&how(&["codex", "agents", "claude"]));
    assert_eq!(names(&shared.expect("targets")), ["codex", "claude"]);
    let refused = machine.targets(&how(&["claude", "clod"]));
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::InvalidParameter);
    assert_eq!(refused.message, "No agent is called 'clod'");
    assert!(refused.suggestions[0].contains("claude, agents, cursor"));
}

#[tokio::test]
async fn a_link_of_the_repository_leads_nowhere() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let elsewhere = machine.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    symlink(&elsewhere, machine.project().join(".claude")).expect("a link");
    let refused = machine.install(&["pdf"], &How::default()).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::InvalidParameter);
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
    let cursor = How {
        agents: &["cursor"],
        ..How::default()
    };
    let targets = machine.targets(&cursor).expect("targets");
    assert_eq!(installed(&targets).expect("a list"), []);
    machine.install(&["pdf"], &cursor).await.expect("installed");
    assert_eq!(installed(&targets).expect("a list").len(), 1);
    let all = targets.all(&SkillsLock::default());
    assert_eq!(all, targets.places(), "whoever asks is told of no other");
}

#[tokio::test]
async fn what_a_lock_names_outside_of_the_project_is_named_by_the_user_or_refused() {
    for target in [
        "/ELSEWHERE",
        "../elsewhere",
        "./../elsewhere",
        ".claude/../../elsewhere",
        "out/elsewhere",
        "new/../../elsewhere",
        "copilot",
    ] {
        let machine = Machine::new();
        let elsewhere = machine.folder.path().join("elsewhere");
        let target = target.replace("/ELSEWHERE", &elsewhere.display().to_string());
        symlink(machine.folder.path(), machine.project().join("out")).expect("a link");
        fs::create_dir_all(&elsewhere).expect("a folder");
        symlink(&elsewhere, machine.project().join(".github")).expect("a link");
        let digest = machine.publish("pdf", 1, &[]);
        let mut lock = SkillsLock::default();
        lock.put(Locked {
            id: id("pdf"),
            semantic: semver::Version::new(1, 1, 0),
            number: number(1),
            digest,
            verdict: "passed".to_owned(),
            server: String::new(),
            targets: vec![target.clone()],
            requested: true,
        });
        let path = machine.project().join("skills.lock");
        lock.write(&path).expect("a lock");
        let frozen = How {
            frozen: true,
            ..How::default()
        };
        let usual = How::default();
        for refused in [
            machine.install(&[], &frozen).await,
            machine.install(&[], &usual).await,
            machine.update(&[], &usual).await,
        ] {
            let refused = refused.expect_err("a refusal");
            let lock = path.display();
            let said = format!("The entry of 'github/acme/pdf' in `{lock}`: '{target}' leads to `");
            assert_eq!(refused.code, Code::InvalidParameter, "{target}");
            assert!(refused.message.starts_with(&said), "{}", refused.message);
            assert!(refused.suggestions[0].contains("--dir"), "{refused:?}");
        }
        assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
        assert!(machine.installed().is_empty());
        let named = How {
            dir: Some(elsewhere.clone()),
            ..How::default()
        };
        machine.install(&[], &named).await.expect("installed");
        assert!(elsewhere.join("pdf/SKILL.md").is_file(), "{target}");
    }
}

#[tokio::test]
async fn a_lock_says_where_skills_go_unless_somebody_asks_for_another_place() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let mine = How {
        dir: Some("mine/skills".into()),
        ..How::default()
    };
    machine.install(&["pdf"], &mine).await.expect("installed");
    let of_lock = How::default();
    fs::remove_dir_all(machine.project().join("mine")).expect("removed");
    machine.install(&[], &of_lock).await.expect("installed");
    assert_eq!(machine.there(), trees(&[("mine/skills", "pdf", 1)]));
    let cursor = How {
        agents: &["cursor"],
        ..How::default()
    };
    machine.install(&[], &cursor).await.expect("installed");
    let both = [(".cursor/skills", "pdf", 1), ("mine/skills", "pdf", 1)];
    assert_eq!(machine.there(), trees(&both));
    let targets = "cursor mine/skills".to_owned();
    assert_eq!(machine.locked(), [("pdf".into(), 1, targets, true)]);
    let there = |how: &How| {
        let targets = machine.targets(how).expect("targets");
        let all = installed(&targets).expect("a list").into_iter();
        let all = all.map(|placed| placed.directory);
        all.collect::<Vec<_>>()
    };
    let root = machine.project().canonicalize().expect("a folder");
    let own = machine.project().join("mine/skills");
    let cursors = root.join(".cursor/skills");
    assert_eq!(there(&cursor), std::slice::from_ref(&cursors));
    assert_eq!(there(&mine), std::slice::from_ref(&own));
    let mut all = there(&of_lock);
    all.sort();
    let mut expected = [cursors, own];
    expected.sort();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn skills_of_another_project_are_not_those_of_this_one() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    // A link has its folder remembered for all projects of the machine.
    let elsewhere = How {
        dir: Some(machine.folder.path().join("elsewhere")),
        method: Method::Symlink,
        ..How::default()
    };
    machine
        .install(&["pdf"], &elsewhere)
        .await
        .expect("installed");
    fs::remove_file(machine.project().join("skills.lock")).expect("removed");
    assert!(machine.installed().is_empty());
    let targets = machine.targets(&How::default()).expect("targets");
    let refused = uninstall(&targets, "pdf", false, false, NEVER);
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillNotInstalled);
    assert!(machine.folder.path().join("elsewhere/pdf").is_symlink());
}
