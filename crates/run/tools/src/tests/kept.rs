//! Sessions and records: whose they are, how long they are kept.

use super::*;

#[tokio::test]
async fn a_session_and_a_key_belong_to_whoever_began_them() {
    let world = World::new().await;
    let (ada, bob) = (Principal::token("ada"), Principal::token("bob"));
    let load = |session: &str, caller: &Principal| {
        let load = Load {
            is_remembered: false,
            skill: Reference::parse("echo"),
            version: VersionSelector::Active,
            session: session.to_owned(),
            context: None,
            caller: caller.clone(),
            timeout: Duration::from_secs(5),
        };
        async { world.tools.load(load).await.map_err(Failure::from) }
    };
    let call = |session: &str, caller: &Principal| ToolCall {
        idempotency_key: "again".to_owned(),
        caller: caller.clone(),
        ..asked(session, "say", json!({"text": "a"}))
    };
    let session = load("", &ada).await.expect("loaded").session;
    let none = |code| assert_eq!(code, Code::SessionNotFound);
    for other in [&bob, &Principal::anonymous(), &Principal::local()] {
        none(refusal(load(&session, other).await).0);
        none(refusal(world.tools.call(call(&session, other)).await).0);
        let nothing = Map::new();
        let asked = (session.as_str(), other);
        let verdict = world
            .tools
            .check(asked, SetQuery::default(), "say", &nothing);
        none(refusal(verdict.await.map(drop).map_err(Failure::from)).0);
        let page = world.tools.session(&session, other).map(drop);
        none(refusal(page.map_err(Failure::from)).0);
        let echo = Reference::parse("echo");
        let unloaded = world.tools.unload(&session, other, &echo);
        none(refusal(unloaded.map_err(Failure::from)).0);
        let time = Duration::from_secs(5);
        let detail = world.tools.detail(&session, &echo, "notes", other, time);
        none(refusal(detail.await.map_err(Failure::from)).0);
        let query = ToolQuery {
            session: session.clone(),
            caller: other.clone(),
            skill: None,
        };
        none(refusal(world.tools.list(&query).map(drop).map_err(Failure::from)).0);
    }
    let of_bob = load("", &bob).await.expect("loaded").session;
    // Callers that nobody asked who they are share what they begin.
    let shared = load("", &Principal::anonymous())
        .await
        .expect("loaded")
        .session;
    for (session, caller, key) in [
        (&session, &ada, "token:ada/again"),
        (&of_bob, &bob, "token:bob/again"),
        (&shared, &Principal::local(), "again"),
    ] {
        world.tools.call(call(session, caller)).await.expect("said");
        let last = world.echo.last.lock().expect("the last").take();
        assert_eq!(last.expect("a call").idempotency_key, key);
    }
}

#[tokio::test]
async fn a_session_has_so_many_calls_in_work_and_no_more() {
    let world = World::new().await;
    let session = world.session().await;
    let wait = || {
        let (tools, call) = (world.tools.clone(), asked(&session, "wait_long", json!({})));
        tokio::spawn(async move { tools.call(call).await })
    };
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(wait());
        world.echo.began.notified().await;
    }
    let third = world.call(&session, "say", json!({"text": "a"})).await;
    assert_eq!(refusal(third).0, Code::ToolQuota);
    let other = world.session().await;
    assert!(
        world
            .call(&other, "say", json!({"text": "a"}))
            .await
            .is_ok()
    );
    for call in &running {
        call.abort();
    }
    for call in running {
        assert!(call.await.is_err());
    }
    assert!(
        world
            .call(&session, "say", json!({"text": "a"}))
            .await
            .is_ok()
    );
    let cancelled = world.calls().into_iter().filter(|(_, e)| e == "CANCELLED");
    assert_eq!(cancelled.count(), 2);
}

#[tokio::test]
async fn every_call_leaves_a_record_that_outlives_a_restart_and_the_oldest_make_room() {
    let world = World::new().await;
    let session = world.session().await;
    assert!(
        world
            .call(&session, "say", json!({"text": "secret"}))
            .await
            .is_ok()
    );
    assert!(world.call(&session, "break", json!({})).await.is_err());
    assert!(world.call(&session, "nothing", json!({})).await.is_err());
    let expected = [
        ("nothing", "TOOL_NOT_FOUND"),
        ("break", "TOOL_FAILED"),
        ("say", ""),
    ]
    .map(|(tool, error)| (tool.to_owned(), error.to_owned()));
    assert_eq!(world.calls(), expected);
    let world = world.restarted().await;
    assert_eq!(world.calls(), expected);
    let session = world.session().await;
    for _ in 0..4 {
        assert!(world.call(&session, "read", json!({})).await.is_ok());
        world.tools.write().await.expect("written");
    }
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let page = world.tools.calls(2, &token).expect("a page");
        all.extend(page.calls.into_iter().map(|call| call.tool));
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(all, ["read", "read", "read", "read", "nothing"]);
}

#[tokio::test]
async fn calls_in_sessions_that_there_are_not_push_no_record_out() {
    let world = World::new().await;
    let session = world.session().await;
    let say = json!({"text": "a"});
    assert!(world.call(&session, "say", say.clone()).await.is_ok());
    // More than are kept, of either kind.
    for session in ["", &"0".repeat(32)].into_iter().cycle().take(20) {
        assert!(
            world
                .call(session, "say\nINFO fake", json!({}))
                .await
                .is_err()
        );
        world.tools.write().await.expect("written");
    }
    assert!(world.call(&session, "say\u{1b}[2J", say).await.is_err());
    let world = world.restarted().await;
    let tools: Vec<_> = world.calls().into_iter().map(|(tool, _)| tool).collect();
    let stray = ["say\\nINFO fake"; 5];
    let expected: Vec<_> = [&["say\\u{1b}[2J"][..], &["say"], &stray].concat();
    assert_eq!(tools, expected);

    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let page = world.tools.calls(2, &token).expect("a page");
        paged.extend(page.calls.into_iter().map(|call| call.tool));
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(paged, tools);
}

#[tokio::test]
async fn a_session_outlives_a_restart_and_ends_when_it_is_not_used() {
    let world = World::new().await;
    let session = world.session().await;
    world.pass(20);
    let world = world.restarted().await;
    assert!(
        world
            .call(&session, "say", json!({"text": "a"}))
            .await
            .is_ok()
    );
    let loaded = world.load("echo", &session).await.expect("loaded");
    assert_eq!((loaded.is_again, loaded.count), (true, 2));
    world.pass(20);
    let world = world.restarted().await;
    assert!(
        world
            .tools
            .session(&session, &Principal::anonymous())
            .is_ok(),
        "its use was kept"
    );
    world.pass(24);
    let ended = world.call(&session, "say", json!({"text": "a"})).await;
    assert_eq!(refusal(ended).0, Code::SessionNotFound);
    world.tools.write().await.expect("written");
    assert!(world.tools.inner.sessions.len() == 0);
    let world = world.restarted().await;
    assert!(world.tools.inner.sessions.len() == 0);
}

#[tokio::test]
async fn the_session_that_was_unused_for_longest_makes_room_for_another() {
    let world = World::new().await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        world.pass(1);
        sessions.push(world.session().await);
    }
    world.pass(1);
    assert!(
        world
            .tools
            .session(&sessions[0], &Principal::anonymous())
            .is_ok(),
        "used again"
    );
    sessions.push(world.session().await);
    let alive: Vec<_> = sessions
        .iter()
        .map(|session| {
            world
                .tools
                .session(session, &Principal::anonymous())
                .is_ok()
        })
        .collect();
    assert_eq!(alive, [true, false, true, true, true]);
}

#[tokio::test]
async fn a_session_has_a_bounded_number_of_skills_and_bytes_of_context() {
    let world = World::new().await;
    let session = world.session().await;
    for n in 1..session::MAX_SKILLS {
        let name = format!("s{n}");
        let text = format!("---\nname: {name}\ndescription: D.\n---\nB.\n");
        world.publish(&format!("a/b/{name}"), &text).await;
        world.load(&name, &session).await.expect("loaded");
    }
    assert_eq!(
        refusal(world.load("strict", &session).await).0,
        Code::SessionFull
    );
    let load = Load {
        is_remembered: false,
        skill: Reference::parse("echo"),
        version: VersionSelector::Active,
        session: session.clone(),
        context: Some(Map::from_iter([(
            "x".to_owned(),
            json!("x".repeat(session::MAX_CONTEXT_BYTES)),
        )])),
        caller: Principal::anonymous(),
        timeout: Duration::from_secs(5),
    };
    let refused = world.tools.load(load).await.map_err(Failure::from);
    assert_eq!(refusal(refused).0, Code::InvalidParameter);
}

#[tokio::test]
async fn whoever_writes_is_told_of_each_change_and_not_woken_without_one() {
    let world = World::new().await;
    let pending = async || {
        let pending = world.tools.pending();
        tokio::time::timeout(Duration::ZERO, pending).await.is_ok()
    };
    assert!(!pending().await);
    let session = world.session().await;
    assert!(pending().await, "a session");
    assert!(!pending().await);
    let called = world.call(&session, "say", json!({"text": "hi"})).await;
    called.expect("an answer");
    assert!(pending().await, "a record");
    assert!(world.call("no-session", "say", json!({})).await.is_err());
    assert!(pending().await, "a record of a call in no session");
    // Its last use is stored, too, where that is older than it may be.
    world.pass(1);
    let used = world.tools.session(&session, &Principal::anonymous());
    used.expect("a session");
    assert!(pending().await, "a use");
    world.tools.write().await.expect("written");
    assert!(!pending().await);
}
