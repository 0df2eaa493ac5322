//! Skills of folders in sessions.

use std::collections::BTreeMap;

use super::*;
use executor::Stop;
use registry::{Bundle, LocalPast, LocalSkill, LocalSkills};

/// A skill of a project, with notes.
fn skill(world: &World, text: &str, notes: &str) -> Arc<LocalSkill> {
    let files = [("SKILL.md", text), ("notes.md", notes)];
    let files = files.map(|(path, text)| {
        let path = path.parse().expect("a path");
        (path, bytes::Bytes::from(text.to_owned()))
    });
    let bundle = Bundle {
        files: BTreeMap::from(files),
        ..Bundle::default()
    };
    let read = world.registry.read_local(
        &bundle,
        "project",
        None,
        &mut LocalPast::default(),
        &Stop::never(),
    );
    read.expect("a skill")
}

/// The same tools for a caller who has this.
fn seen(world: &World, skills: &[Arc<LocalSkill>]) -> World {
    let local = LocalSkills::new(skills.iter().cloned());
    let registry = world.registry.with_local(Arc::new(local));
    let folder = TempDir::new().expect("a folder");
    let index = SearchIndex::new(registry.clone(), folder.path().join("search"), None);
    let composition = world
        .tools
        .composition()
        .with_skills(registry.clone(), index);
    World {
        tools: world.tools.with_skills(registry.clone(), composition),
        clock: Arc::clone(&world.clock),
        echo: Arc::clone(&world.echo),
        registry,
        folder,
    }
}

async fn notes(world: &World, session: &str) -> Result<String, (Code, String)> {
    let called = world.call(session, "read", json!({})).await;
    let called = called.map_err(|failure| (failure.code, failure.message));
    called.map(|called| called.output.text)
}

fn statuses(world: &World, session: &str) -> Vec<LoadedStatus> {
    let page = world
        .tools
        .session(session, &Principal::anonymous())
        .expect("a session");
    page.skills.iter().map(|skill| skill.status).collect()
}

#[tokio::test]
async fn what_was_loaded_from_a_folder_runs_until_the_folder_changes_and_nothing_else_instead() {
    let world = World::new().await;
    // One of the same id is stored, and has the same tools.
    let text = ECHO.replace("1.0.0", "2.0.0");
    let stored = [
        ("SKILL.md", text.as_bytes()),
        ("notes.md", b"Stored.".as_slice()),
    ];
    testing::publish(&world.registry, "local/project/echo", &stored, true).await;
    let before = seen(&world, &[skill(&world, ECHO, "First.")]);
    let loaded = before.load("local/project/echo", "").await.expect("loaded");
    let session = loaded.session;
    assert!(
        notes(&before, &session)
            .await
            .expect("notes")
            .contains("First.")
    );
    assert_eq!(statuses(&before, &session), [LoadedStatus::Current]);
    // The folder is looked at anew, by a server that counts anew: it is what was loaded.
    let again = seen(&world, &[skill(&world, ECHO, "First.")]);
    assert!(
        notes(&again, &session)
            .await
            .expect("notes")
            .contains("First.")
    );
    // It changes: the session has what is no more.
    let after = seen(&world, &[skill(&world, ECHO, "Second.")]);
    let (code, message) = notes(&after, &session).await.expect_err("a refusal");
    assert_eq!(code, Code::SkillNotLoaded);
    assert!(message.contains("load_skill('echo')"), "{message}");
    assert_eq!(statuses(&after, &session), [LoadedStatus::Outdated]);
    let loaded = after
        .load("local/project/echo", &session)
        .await
        .expect("loaded");
    assert!(!loaded.is_again);
    assert!(
        notes(&after, &session)
            .await
            .expect("notes")
            .contains("Second.")
    );
    // It is gone: the stored one of its id is not run in its place, whatever their numbers.
    let (code, _) = notes(&world, &session).await.expect_err("a refusal");
    assert_eq!(code, Code::SkillNotLoaded);
    // And nothing that is not there is run for whoever has no such folder.
    let session = world
        .load("local/project/echo", "")
        .await
        .expect("loaded")
        .session;
    assert!(
        notes(&world, &session)
            .await
            .expect("notes")
            .contains("Stored.")
    );
    let (code, _) = notes(&after, &session).await.expect_err("a refusal");
    assert_eq!(code, Code::SkillNotLoaded);
}

#[tokio::test]
async fn sets_of_skills_of_two_folders_are_two_sets_though_their_numbers_are_the_same() {
    let world = World::new().await;
    let text = |tool: &str| {
        format!("---\nname: x\ndescription: Allows.\nallowed_tools: [{tool}]\n---\nDo.\n")
    };
    let worlds = ["Read", "Write"].map(|tool| seen(&world, &[skill(&world, &text(tool), "")]));
    let (mut permitted, none) = (Vec::new(), Map::new());
    let caller = Principal::anonymous();
    // Twice, since what was composed is remembered.
    for world in worlds.iter().chain(&worlds) {
        for tool in ["Read", "Write"] {
            let set = SetQuery {
                skills: vec!["x".to_owned()],
                ..SetQuery::default()
            };
            let verdict = world.tools.check(("", &caller), set, tool, &none).await;
            permitted.push(verdict.expect("a verdict").rule.allows());
        }
        let session = world.load("x", "").await.expect("loaded").session;
        for tool in ["Read", "Write"] {
            let verdict = world
                .tools
                .check((&session, &caller), SetQuery::default(), tool, &none);
            permitted.push(verdict.await.expect("a verdict").rule.allows());
        }
    }
    let (first, second) = ([true, false, true, false], [false, true, false, true]);
    assert_eq!(permitted, [first, second, first, second].concat());
}

#[tokio::test]
async fn the_list_of_calls_names_nothing_that_is_of_a_folder() {
    let world = World::new().await;
    let here = seen(&world, &[skill(&world, ECHO, "Mine.")]);
    let loaded = here.load("local/project/echo", "").await.expect("loaded");
    let session = loaded.session;
    notes(&here, &session).await.expect("notes");
    // Its folder changes, and is gone: the refusals name it no more than the answer did.
    let after = seen(&world, &[skill(&world, ECHO, "Else.")]);
    notes(&after, &session).await.expect_err("a refusal");
    notes(&world, &session).await.expect_err("a refusal");
    // In no session, too.
    notes(&here, "").await.expect_err("a refusal");
    let page = world.tools.calls(100, "").expect("a page");
    assert_eq!(page.calls.len(), 4);
    for call in page.calls {
        assert_eq!((call.skill, call.version), (None, None));
        assert!(!call.tool.contains("read"), "{}", call.tool);
    }
    // What is stored is named as before.
    let stored = [("SKILL.md", ECHO.as_bytes()), ("notes.md", b"Stored.")];
    testing::publish(&world.registry, "local/project/echo", &stored, true).await;
    let session = world.load("local/project/echo", "").await.expect("loaded");
    notes(&world, &session.session).await.expect("notes");
    let page = world.tools.calls(1, "").expect("a page");
    let call = page.calls.first().expect("a call");
    assert_eq!(call.tool, "read");
    assert!(call.skill.is_some());
}
