//! What has a source synced, and who hears of it.

use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::watch_sync_response::State;
use serde_json::Value;

use super::{LOOPBACK, Workspace, ended};
use crate::support::Server;
use crate::support::web::ask;

#[test]
fn two_syncs_at_once_are_one_and_whoever_is_second_hears_of_it() {
    let workspace = Workspace::new(150);
    let server = Server::over(workspace.folder.path(), &[], LOOPBACK);
    let at = format!("file://{}", workspace.repository().display());
    let add = ["source", "add", "acme", "git", &at, "--interval", "0"];
    ended(&workspace.run("data", &add));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut registry = server.registry().await;
        let request = v1::RefreshIndexRequest {
            wait_seconds: Some(0),
            ..Default::default()
        };
        let begun = registry.refresh_index(request.clone()).await;
        let begun = begun.expect("begun").into_inner();
        assert_eq!(begun.status(), v1::SyncStart::Started);
        let refused = registry
            .refresh_index(request)
            .await
            .expect_err("one at a time");
        assert!(refused.message().contains(&begun.sync_id), "{refused}");
        // What is installed meanwhile is whole or not there.
        let watched = v1::WatchSyncRequest {
            sync_id: begun.sync_id.clone(),
            ..Default::default()
        };
        let mut steps = registry
            .watch_sync(watched)
            .await
            .expect("steps")
            .into_inner();
        let mut last = None;
        while let Some(step) = steps.message().await.expect("a step") {
            last = step.state;
        }
        let Some(State::Ended(ended)) = last else {
            panic!("{last:?}");
        };
        assert_eq!((ended.sync_id, ended.skills_updated), (begun.sync_id, 150));
    });
}

#[tokio::test]
async fn whoever_waits_for_a_sync_hears_that_there_is_none_and_follows_the_next() {
    let workspace = Workspace::new(5);
    let config = format!(
        "sources:\n  acme: {{kind: git, location: 'file://{}', interval_seconds: 0}}\n",
        workspace.repository().display()
    );
    let server = Server::over(workspace.folder.path(), &[], &config);
    let mut registry = server.registry().await;
    let request = v1::WatchSyncRequest::default();
    let mut steps = registry.watch_sync(request.clone()).await;
    let steps = steps.as_mut().expect("steps").get_mut();
    let first = steps.message().await.expect("a step").expect("a step");
    assert_eq!(first.state, Some(State::Waiting(true)));
    let begun = registry
        .refresh_index(v1::RefreshIndexRequest::default())
        .await
        .expect("synced")
        .into_inner();
    let mut told = Vec::new();
    while let Some(step) = steps.message().await.expect("a step") {
        told.extend(step.state);
    }
    let Some((State::Ended(ended), before)) = told.split_last() else {
        panic!("{told:?}");
    };
    assert_eq!((&ended.sync_id, ended.skills_updated), (&begun.sync_id, 5));
    let is_of_it = |state: &State| matches!(state, State::Current(current) if current.sync_id == begun.sync_id);
    assert!(before.iter().all(is_of_it), "{before:?}");
    // One that nobody begins is not waited for longer than asked.
    let request = v1::WatchSyncRequest {
        max_wait_seconds: 1,
        ..request
    };
    let steps = registry.watch_sync(request).await.expect("steps");
    let mut steps = steps.into_inner();
    let mut count = 0;
    while steps.message().await.expect("a step").is_some() {
        count += 1;
    }
    assert_eq!(count, 1);
}

#[test]
fn a_file_that_is_saved_in_a_watched_folder_is_served_soon_and_never_half() {
    let workspace = Workspace::new(3);
    let config = format!(
        "sources:\n  team:\n    kind: directory\n    location: {}\n    path: skills\n    namespace: team/shared\n    trust: verified\n",
        workspace.repository().display()
    );
    let server = Server::over(workspace.folder.path(), &[], &config);
    let read = |want: &str| {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let read = server.command(&["read", "team/shared/s1"]);
            let text = String::from_utf8_lossy(&read.stdout).into_owned();
            assert!(
                text.is_empty() || text.ends_with(".\n"),
                "half a skill: {text}"
            );
            if text.ends_with(want) {
                return;
            }
            assert!(Instant::now() < until, "{text}");
        }
    };
    read("Words 1.\n");
    // In place, and as editors do it: beside it and renamed.
    workspace.write(1, 2);
    read("Words 2.\n");
    let file = workspace.repository().join("skills/s1/SKILL.md");
    let text = std::fs::read_to_string(&file).expect("a file");
    let beside = file.with_extension("new");
    std::fs::write(&beside, text.replace("Words 2", "Words 3")).expect("a file");
    std::fs::rename(&beside, &file).expect("renamed");
    read("Words 3.\n");
    let shown: Value =
        serde_json::from_slice(&server.command(&["show", "team/shared/s1"]).stdout).expect("JSON");
    assert_eq!(shown["skill"]["trust_tier"], "verified");
}

#[tokio::test]
async fn a_webhook_that_is_signed_has_its_source_synced() {
    let workspace = Workspace::new(2);
    let secret = workspace.path("secret");
    std::fs::write(&secret, "s3cret\n").expect("a file");
    let config = format!(
        "sources:\n  acme:\n    kind: git\n    location: file://{}\n    interval_seconds: 86400\n    webhook_secret: {{file: {}}}\n",
        workspace.repository().display(),
        secret.display()
    );
    let server = Server::over(workspace.folder.path(), &[], &config);
    let status = async |header: (&str, &str)| {
        let hook = ask(&server.url, "POST", "/hooks/acme").header(header.0, header.1);
        hook.body("{}").send().await.status.as_u16()
    };
    let synced = || {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let read = server.command(&["read", "local/acme/s1"]);
            if String::from_utf8_lossy(&read.stdout).ends_with("Words 2.\n") {
                return;
            }
            assert!(Instant::now() < until);
        }
    };
    workspace.write(1, 2);
    workspace.push();
    assert_eq!(status(("x-gitlab-token", "wrong")).await, 404);
    assert_eq!(status(("x-hub-signature-256", "sha256=00")).await, 404);
    assert_eq!(status(("x-gitlab-token", "s3cret")).await, 202);
    synced();
    let other = ask(&server.url, "POST", "/hooks/none").header("x-gitlab-token", "s3cret");
    assert_eq!(other.send().await.status.as_u16(), 404);
    assert!(!server.log().contains("s3cret"));
}
