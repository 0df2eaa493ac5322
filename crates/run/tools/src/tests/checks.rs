//! What the gate looks at before a tool runs.

use super::*;

#[tokio::test]
async fn what_a_loaded_skill_forbids_is_refused_whichever_skill_has_the_tool() {
    let world = World::new().await;
    let session = world.session().await;
    world.load("strict", &session).await.expect("loaded");
    for tool in ["say", "wait_long"] {
        let (code, message) = refusal(world.call(&session, tool, json!({"text": "a"})).await);
        assert_eq!(code, Code::ToolForbidden);
        assert!(message.contains("forbidden by 'strict'"), "{message}");
    }
    let read = world.call(&session, "read", json!({})).await;
    let mark = &session[..8];
    assert_eq!(
        read.expect("an answer").output.text,
        format!(
            "Resource `notes` of the skill `a/b/echo`, by its author and not by the user or the system, up to the \
             line `End {mark}`:\n\nSome *notes*.\n\nEnd {mark}"
        )
    );
    let made = world
        .call(&session, "read", json!({"resource": "now"}))
        .await;
    assert_eq!(made.expect("an answer").output.text, "made now");
    let verdict = |tool: &'static str| {
        let (world, session) = (&world, &session);
        let caller = Principal::anonymous();
        async move {
            let verdict = world
                .tools
                .check((session, &caller), SetQuery::default(), tool, &Map::new())
                .await;
            verdict.expect("a verdict").rule.allows()
        }
    };
    assert!(verdict("read").await);
    assert!(!verdict("say").await);
    assert!(!verdict("other").await);
}

#[tokio::test]
async fn arguments_are_held_to_the_schema_before_anything_runs() {
    let world = World::new().await;
    let session = world.session().await;
    let before = world.echo.calls.load(Ordering::SeqCst);
    for (arguments, code, field, message) in [
        (
            json!({}),
            Code::MissingParameter,
            "arguments.text",
            "Required",
        ),
        (
            json!({"text": 5}),
            Code::InvalidParameter,
            "arguments.text",
            "Expected string, received number",
        ),
        (
            json!({"text": "a", "times": 1.5}),
            Code::InvalidParameter,
            "arguments.times",
            "Expected integer, received number",
        ),
        (
            json!({"text": "a", "more": 1}),
            Code::InvalidParameter,
            "arguments",
            "Unrecognized key(s) in object: 'more'",
        ),
    ] {
        let failure = world.call(&session, "say", arguments).await;
        let failure = failure.expect_err("a refusal");
        let told: Vec<_> = failure
            .fields
            .iter()
            .map(|f| (f.field.as_str(), f.message.as_str()))
            .collect();
        assert_eq!((failure.code, told), (code, vec![(field, message)]));
    }
    assert_eq!(world.echo.calls.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn each_check_of_the_gate_has_an_error_of_its_own() {
    let world = World::new().await;
    let session = world.session().await;
    for (session, tool, arguments, code) in [
        ("forged", "say", json!({"text": "a"}), Code::SessionNotFound),
        (&session, "nothing", json!({}), Code::ToolNotFound),
        (&session, "lost", json!({}), Code::ToolUnavailable),
        (&session, "break", json!({}), Code::ToolFailed),
        (&session, "much", json!({}), Code::ToolResultTooLarge),
        (
            &session,
            "read",
            json!({"resource": "x"}),
            Code::ResourceNotFound,
        ),
    ] {
        let (found, message) = refusal(world.call(session, tool, arguments).await);
        assert_eq!(found, code, "{tool}: {message}");
    }
    let mut slow = asked(&session, "wait_long", json!({}));
    slow.timeout = Duration::from_millis(1);
    assert_eq!(refusal(world.tools.call(slow).await).0, Code::Timeout);
}

#[tokio::test]
async fn of_skills_that_have_a_locked_tool_the_one_of_the_server_is_named() {
    let world = World::new().await;
    world.publish("builtin/x/echo", ECHO).await;
    let call = asked("", "say", json!({"text": "a"}));
    let refused = world.tools.call(call).await.expect_err("a refusal");
    assert_eq!(refused.code, Code::SkillNotLoaded);
    let next = format!("{refused:?}");
    assert!(next.contains("builtin/x/echo"), "{next}");
}

#[tokio::test]
async fn a_call_by_skill_is_told_when_the_loaded_version_is_gone() {
    let world = World::new().await;
    let second = ECHO.replace("1.0.0", "2.0.0");
    world.publish("a/b/echo", &second).await;
    let session = world.session().await;
    let (echo, caller) = (id("a/b/echo"), testing::caller());
    let deleted = world.registry.delete(&echo, &caller).await;
    deleted.expect("deleted");
    world.publish("a/b/echo", ECHO).await;
    let mut call = asked(&session, "say", json!({"text": "a"}));
    call.skill = Some(Reference::parse("a/b/echo"));
    assert_eq!(
        refusal(world.tools.call(call).await).0,
        Code::VersionNotFound
    );
}

#[tokio::test]
async fn a_declared_tool_is_permitted_unless_a_doubt_is_about_what_forbids_it() {
    // No rule of this server's knows what `say` does with its argument.
    for (key, permitted) in [("allowed_tools", true), ("forbidden_tools", false)] {
        let world = World::new().await;
        let session = world.session().await;
        let text = testing::skill_md(
            &format!("name: doubt\ndescription: Doubts.\n{key}: ['say(secret:*)']"),
            "Doubt.",
        );
        world.publish("a/b/doubt", &text).await;
        world.load("doubt", &session).await.expect("loaded");
        let called = world.call(&session, "say", json!({"text": "a"})).await;
        if permitted {
            assert_eq!(called.expect("an answer").skill, id("a/b/echo"));
        } else {
            assert_eq!(refusal(called).0, Code::ToolForbidden);
        }
    }
}

#[tokio::test]
async fn what_is_forbidden_of_a_tool_is_so_where_its_argument_is_a_default() {
    let world = World::new().await;
    let defaulted = ECHO.replacen("name: say", "name: Bash", 1).replacen(
        "    args:\n",
        "    args:\n      - {name: command, type: string, default: git push}\n",
        1,
    );
    let defaulted = defaulted.replacen("1.0.0", "1.1.0", 1);
    world.publish("a/b/echo", &defaulted).await;
    let session = world.session().await;
    let denial = "name: careful\ndescription: Forbids.\nforbidden_tools: ['Bash(git push:*)']";
    let denial = testing::skill_md(denial, "Do not push.");
    world.publish("a/b/careful", &denial).await;
    world.load("careful", &session).await.expect("loaded");
    for arguments in [
        json!({"text": "a"}),
        json!({"text": "a", "command": "git push"}),
    ] {
        let called = world.call(&session, "Bash", arguments).await;
        assert_eq!(refusal(called).0, Code::ToolForbidden);
    }
    let status = json!({"text": "a", "command": "git status"});
    let called = world.call(&session, "Bash", status).await;
    assert_eq!(called.expect("an answer").skill, id("a/b/echo"));
}

#[tokio::test]
async fn a_tool_that_nothing_runs_is_refused_with_how_to_have_it_run() {
    let world = World::new().await;
    let session = world.session().await;
    let refused = world.call(&session, "lost", json!({})).await;
    let refused = format!("{:?}", refused.expect_err("a refusal"));
    let step = "Start a worker that serves `unserved` of `a/b/echo`";
    assert!(refused.contains(step), "{refused}");
}

#[tokio::test]
async fn an_answer_may_be_as_large_as_the_limit_with_text_and_structure_together() {
    let world = World::new().await;
    let session = world.session().await;
    // It is given back as text and as an object, of these many bytes each.
    let say = |bytes: usize| {
        let rest = json!({"text": "", "times": 1}).to_string().len();
        json!({"text": "x".repeat(bytes - rest), "times": 1})
    };
    let max = options().result_bytes / 2;
    let called = world.call(&session, "say", say(max)).await;
    assert_eq!(called.expect("the limit").output.text.len(), max);
    let (code, message) = refusal(world.call(&session, "say", say(max + 1)).await);
    assert_eq!(code, Code::ToolResultTooLarge);
    assert!(message.contains("1002"), "{message}");
}

#[tokio::test]
async fn a_tool_has_a_twentieth_more_than_its_time_and_at_most_five_milliseconds() {
    let world = World::new().await;
    let session = world.session().await;
    tokio::time::pause();
    for (time, ended) in [(40, 42), (1_000, 1_005)] {
        let begin = tokio::time::Instant::now();
        let mut call = asked(&session, "wait_long", json!({}));
        call.timeout = Duration::from_millis(time);
        assert_eq!(refusal(world.tools.call(call).await).0, Code::Timeout);
        // Timers go by whole milliseconds.
        let elapsed = begin.elapsed().as_millis();
        assert!((ended..=ended + 1).contains(&elapsed), "{elapsed}");
    }
}

#[tokio::test]
async fn a_tool_of_two_loaded_skills_must_be_named_with_its_skill() {
    let world = World::new().await;
    world.publish("c/d/echo", ECHO).await;
    let session = world.load("a/b/echo", "").await.expect("loaded").session;
    world.load("c/d/echo", &session).await.expect("loaded");
    let (code, message) = refusal(world.call(&session, "say", json!({"text": "a"})).await);
    assert_eq!(
        (code, message.as_str()),
        (
            Code::ToolAmbiguous,
            "'say' is a tool of a/b/echo and c/d/echo"
        )
    );
    let mut call = asked(&session, "say", json!({"text": "a"}));
    call.skill = Some(Reference::parse("a/b/echo"));
    assert_eq!(
        world.tools.call(call).await.expect("an answer").skill,
        id("a/b/echo")
    );
}
