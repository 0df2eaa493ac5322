//! Spellings of a tool's name: one tool, one verdict, one record.

use super::*;
use registry::{Names, Policy};

impl World {
    /// A server whose own tool has this name.
    async fn reserving(tool: &str) -> Self {
        let (folder, clock) = (TempDir::new().expect("a folder"), Hands::new());
        let names = Names::reserved([], [tool.to_owned()], false);
        let policy = Policy {
            names,
            ..Policy::default()
        };
        let world = Self::with(folder, clock, policy);
        world.publish("a/b/echo", ECHO).await;
        world
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    #[test]
    fn no_spelling_that_is_found_has_another_verdict_than_the_declared_name(
        tool in "[A-Ca-c][_-][a-c][ _-]?[B-Db-d]",
        denial in "[A-Ca-c][_-][a-c][ _-]?[B-Db-d*]",
        spelled in proptest::collection::vec(proptest::prelude::any::<(bool, u8)>(), 8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let world = World::new().await;
            let declared = ECHO.replacen("name: say", &format!("name: '{tool}'"), 1);
            world.publish("a/b/echo", &declared.replacen("1.0.0", "1.1.0", 1)).await;
            let front = format!("name: careful\ndescription: Forbids.\nforbidden_tools: ['{denial}']");
            world.publish("a/b/careful", &testing::skill_md(&front, "Do not.")).await;
            let session = world.session().await;
            world.load("careful", &session).await.expect("loaded");
            // Another case, another blank, and blanks around it.
            let spelling = tool.chars().zip(&spelled).map(|(letter, (upper, blank))| match letter {
                '-' | '_' | ' ' => ['-', '_', ' '][usize::from(blank % 3)],
                letter if *upper => letter.to_ascii_uppercase(),
                letter => letter.to_ascii_lowercase(),
            });
            let spelling = format!(" {} ", spelling.collect::<String>());
            let mut outcomes = Vec::new();
            for name in [&tool, &spelling] {
                let called = world.call(&session, name, json!({"text": "a"})).await;
                outcomes.push(called.map(|called| called.output).map_err(|refused| refused.code));
            }
            assert_eq!(outcomes[0], outcomes[1], "{spelling:?} of {tool:?}, forbidden: {denial:?}");
            let is_denied = model::fold_tool(&denial) == model::fold_tool(&tool);
            assert!(!is_denied || outcomes[0] == Err(Code::ToolForbidden), "{tool:?}");
            // The records name the tool as it is declared.
            let tools: Vec<_> = world.calls().into_iter().map(|(tool, _)| tool).collect();
            assert_eq!(tools, [&*tool, &*tool]);
        });
    }
}

#[tokio::test]
async fn whoever_runs_a_tool_is_told_the_name_that_its_skill_declares() {
    let world = World::new().await;
    let session = world.session().await;
    for spelled in ["say", "SAY", " Say "] {
        let called = world.call(&session, spelled, json!({"text": "a"})).await;
        called.expect("an answer");
        let last = world.echo.last.lock().expect("the last").take();
        let tool = last.expect("a call").tool.map(|tool| tool.to_string());
        assert_eq!(tool.as_deref(), Some("say"), "{spelled:?}");
    }
}

#[tokio::test]
async fn a_tool_that_passes_for_one_of_the_servers_gets_no_call_that_is_meant_for_that() {
    // Published before the name was reserved, as it then was for what only looked like it.
    let world = World::reserving("say_it").await;
    let imitation = ECHO.replacen("name: say", "name: Say-It", 1);
    let imitation = imitation.replacen("1.0.0", "1.1.0", 1);
    world.publish("a/b/echo", &imitation).await;
    let own = ECHO.replacen("name: say", "name: say_it", 1);
    world.publish("builtin/x/echo", &own).await;
    let session = world.load("a/b/echo", "").await.expect("loaded").session;
    for meant in ["say_it", "SAY_IT", "say it"] {
        let (code, message) = refusal(world.call(&session, meant, json!({"text": "a"})).await);
        assert_eq!(code, Code::SkillNotLoaded, "{meant}");
        assert!(
            message.starts_with("The 'say_it' tool requires"),
            "{message}"
        );
    }
    // Its own name means it.
    let called = world.call(&session, "Say-It", json!({"text": "a"})).await;
    assert_eq!(called.expect("an answer").skill, id("a/b/echo"));
}
