//! Versions that change while they are loaded.

use super::*;

#[tokio::test]
async fn a_version_that_changed_meanwhile_still_runs_is_reported_and_is_replaced_by_loading() {
    let world = World::new().await;
    let session = world.session().await;
    world
        .publish(
            "a/b/echo",
            &ECHO
                .replace("1.0.0", "1.1.0")
                .replace("Say it", "Say it now"),
        )
        .await;
    let statuses = |world: &World| -> Vec<_> {
        let page = world
            .tools
            .session(&session, &Principal::anonymous())
            .expect("a session");
        let skills = page.skills.into_iter();
        skills
            .map(|skill| (skill.loaded.number.get(), skill.status))
            .collect()
    };
    assert_eq!(statuses(&world), [(1, LoadedStatus::Outdated)]);
    let called = world.call(&session, "say", json!({"text": "a"})).await;
    assert_eq!(called.expect("an answer").version.get(), 1);

    let loaded = world.load("echo", &session).await.expect("loaded");
    assert_eq!(
        (loaded.is_again, loaded.replaced, loaded.count),
        (false, VersionNumber::new(1), 2)
    );
    assert!(loaded.content.contains("Say it now."));
    assert_eq!(statuses(&world), [(2, LoadedStatus::Current)]);
    let called = world.call(&session, "say", json!({"text": "a"})).await;
    assert_eq!(called.expect("an answer").version.get(), 2);
}

#[tokio::test]
async fn a_version_that_was_withdrawn_since_is_locked() {
    let world = World::new().await;
    let session = world.session().await;
    let caller = testing::caller();
    let number = VersionNumber::new(1).expect("a number");
    world
        .registry
        .yank(&id("a/b/echo"), number, "bad", &caller)
        .await
        .expect("withdrawn");
    let (code, message) = refusal(world.call(&session, "say", json!({"text": "a"})).await);
    assert_eq!(code, Code::VersionYanked);
    assert!(message.contains("bad"), "{message}");
    assert_eq!(world.echo.calls.load(Ordering::SeqCst), 1, "the load alone");

    world
        .registry
        .delete(&id("a/b/echo"), &caller)
        .await
        .expect("deleted");
    let (code, _) = refusal(world.call(&session, "say", json!({"text": "a"})).await);
    assert_eq!(code, Code::ToolNotFound);
    let page = world
        .tools
        .session(&session, &Principal::anonymous())
        .expect("a session");
    assert_eq!(page.skills[0].status, LoadedStatus::Withdrawn);
    let (_, was_loaded) = world
        .tools
        .unload(
            &session,
            &Principal::anonymous(),
            &Reference::parse("a/b/echo"),
        )
        .expect("unloaded");
    assert!(was_loaded);
}

#[tokio::test]
async fn a_session_shows_that_the_short_name_of_a_loaded_skill_leads_to_another_one() {
    let world = World::new().await;
    let session = world.session().await;
    world.load("a/b/strict", &session).await.expect("loaded");
    for id in ["c/d/echo", "c/d/strict"] {
        let text = format!("---\nname: other\ndescription: D.\n---\nBody of {id}.\n");
        world.publish(id, &text).await;
    }
    let leads_to = || {
        let page = world.tools.session(&session, &Principal::anonymous());
        let skills = page.expect("a session").skills.into_iter();
        skills
            .map(|skill| skill.name_leads_to.map(String::from))
            .collect::<Vec<_>>()
    };
    assert_eq!(leads_to(), [None, None]);
    for name in ["echo", "strict"] {
        let (from, to) = (id(&format!("a/b/{name}")), id(&format!("c/d/{name}")));
        let caller = testing::caller();
        let given = world.registry.give_name(name, &from, Some(&to), &caller);
        given.await.expect("moved");
    }
    // The second was loaded by its id.
    assert_eq!(leads_to(), [Some("c/d/echo".to_owned()), None]);
    let page = world.tools.session(&session, &Principal::anonymous());
    let loaded = page.expect("a session").skills;
    assert_eq!(loaded[0].loaded.skill, id("a/b/echo"), "it stays loaded");
}
