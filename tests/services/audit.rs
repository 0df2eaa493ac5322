//! The audit trail of the real server: who did what, over each face, with its whole record;
//! what cannot push it out, what never enters it, and what shows when it was changed.

mod faces;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use contract::v1;
use contract::v1::audit_client::AuditClient;
use contract::v1::registry_client::RegistryClient;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, Server, file};

/// A command on the server's machine.
fn local(data: &Path, args: &[&str]) -> Output {
    support::command(&[args, &["--data", &data.display().to_string()]].concat())
}

/// The events of a data directory, oldest first, as the command line has them.
fn events(data: &Path, args: &[&str]) -> Vec<Value> {
    let all = ["audit-trail", "--limit", "0", "--format", "json"];
    let listed = local(data, &[&all[..], args].concat());
    assert!(listed.status.success(), "{listed:?}");
    let text = String::from_utf8(listed.stdout).expect("text");
    let mut events: Vec<Value> = text
        .lines()
        .map(|line| line.parse().expect("JSON"))
        .collect();
    events.reverse();
    events
}

fn skill(id: &str) -> v1::PublishSkillRequest {
    let name = id.rsplit('/').next().expect("a name");
    v1::PublishSkillRequest {
        skill_id: id.to_owned(),
        files: vec![file(
            "SKILL.md",
            format!("---\nname: {name}\ndescription: Says hello.\n---\nHello.\n"),
        )],
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_recorded_though_the_server_is_killed() {
    let folder = TempDir::new().expect("a folder");
    let server = Server::over(folder.path(), &[], "");
    let mut registry = RegistryClient::new(server.channel().await);
    for number in 0..20 {
        let published = registry.publish_skill(skill(&format!("github/acme/s{number}")));
        published.await.expect("published");
    }
    let data = server.data.clone();
    // SIGKILL.
    drop(server);
    let publishes = events(&data, &["--rpc", "PublishSkill", "--outcome", "OK"]);
    let names: Vec<_> = publishes
        .iter()
        .map(|event| event["names"][0].as_str().expect("a name").to_owned())
        .collect();
    let expected: Vec<_> = (0..20).map(|it| format!("github/acme/s{it}")).collect();
    assert_eq!(names, expected);
    let listed = local(&data, &["list", "--format", "ids"]);
    let ids = String::from_utf8(listed.stdout).expect("text");
    for id in expected {
        assert!(ids.contains(&id), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_bulk_publish_are_recorded_each() {
    let folder = TempDir::new().expect("a folder");
    let server = Server::over(folder.path(), &[], "");
    let mut registry = server.registry().await;
    let items = ["github/acme/one", "builtin/not/allowed", "github/acme/two"];
    let items = items.map(|id| v1::PublishSkillsRequest {
        skill: Some(skill(id)),
    });
    let stream = tokio_stream::iter(items);
    let mut answers = registry
        .publish_skills(stream)
        .await
        .expect("a stream")
        .into_inner();
    while answers.message().await.expect("an answer").is_some() {}
    let data = server.data.clone();
    server.terminate();
    let found = events(&data, &["--rpc", "PublishSkills"]);
    let ended: Vec<_> = found
        .iter()
        .map(|event| {
            (
                event["names"][0].as_str().unwrap_or(""),
                event["outcome"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(ended[0], ("github/acme/one", "OK"));
    assert_eq!(ended[1], ("github/acme/two", "OK"));
    assert_eq!(ended[2], ("", "OK"), "the stream");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_gets_events_as_they_come_and_goes_on_after_a_number() {
    let server = Server::with(&[], "");
    let mut audit = AuditClient::new(server.channel().await);
    let mut registry = server.registry().await;
    let watch = v1::WatchAuditEventsRequest {
        rpc: "PublishSkill".to_owned(),
        ..Default::default()
    };
    let mut events = audit
        .watch_audit_events(watch.clone())
        .await
        .expect("a stream")
        .into_inner();
    let publish = registry.publish_skill(skill("github/acme/one"));
    publish.await.expect("published");
    let event = events.message().await.expect("an answer").expect("one");
    let event = event.event.expect("an event");
    assert_eq!(
        (&event.names[..], event.outcome.as_str()),
        (&["github/acme/one".to_owned()][..], "OK")
    );
    let publish = registry.publish_skill(skill("github/acme/two"));
    publish.await.expect("published");
    let again = v1::WatchAuditEventsRequest {
        after_number: Some(event.number),
        ..watch
    };
    let mut events = audit
        .watch_audit_events(again)
        .await
        .expect("a stream")
        .into_inner();
    let next = events.message().await.expect("an answer").expect("one");
    let next = next.event.expect("an event");
    assert_eq!(next.names, ["github/acme/two"]);
    // REST has the same, and the newest first.
    let answer = support::web::get(&server.url, "/api/v1/audit?rpc=PublishSkill&page_size=1").await;
    let page = answer.json();
    assert_eq!(
        page["events"][0]["names"],
        json!(["github/acme/two"]),
        "{page}"
    );
    assert_eq!(page["events"][0]["digest"], json!(next.digest));
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_says_where_a_trail_was_changed_behind_the_server() {
    let folder = TempDir::new().expect("a folder");
    let server = Server::over(folder.path(), &[], "");
    let mut registry = server.registry().await;
    for id in ["github/acme/one", "github/acme/two"] {
        registry.publish_skill(skill(id)).await.expect("published");
    }
    let data = server.data.clone();
    server.terminate();
    let whole = local(&data, &["verify"]);
    assert!(whole.status.success(), "{whole:?}");
    {
        // As the server opens it: sled holds a database to its first settings.
        let config = sled::Config::new().path(data.join("store"));
        let store = config.segment_size(4 << 20).open().expect("a database");
        let tree = store.open_tree("records").expect("a tree");
        let mut key = vec![80];
        key.extend(2_u64.to_be_bytes());
        tree.remove(key).expect("removed").expect("it was there");
        store.flush().expect("flushed");
    }
    let broken = local(&data, &["verify"]);
    let said = String::from_utf8_lossy(&broken.stdout).into_owned();
    assert_eq!(broken.status.code(), Some(1), "{said}");
    assert!(said.contains("the audit trail has no record 2"), "{said}");
}

/// Rpcs whose action changes things, and which change nothing themselves.
const READS: [&str; 9] = [
    "Access.ListTokens",
    "Admin.GetStatus",
    "Learning.GetExercise",
    "Learning.GetPath",
    "Learning.GetPaths",
    "Learning.GetProgress",
    "Learning.ListSubmissions",
    "Learning.NextExercise",
    "Learning.WatchProgress",
];

#[test]
fn every_rpc_is_recorded_but_those_that_read() {
    let contract = contract::load().expect("the contract");
    let mut unrecorded = BTreeSet::new();
    for method in contract.methods() {
        let name = format!("{}.{}", method.service, method.name);
        let path = format!("/repertoire.v1.{}/{}", method.service, method.name);
        let reads = matches!(
            method.action.as_str(),
            "anything" | "read" | "load" | "audit"
        );
        let is_recorded = contract::is_recorded(&path);
        assert!(!(reads && is_recorded), "{name}");
        if !reads && !is_recorded {
            unrecorded.insert(name);
        }
    }
    assert_eq!(unrecorded, READS.map(str::to_owned).into());
    assert!(contract::is_recorded("/repertoire.v1.Registry/NewOne"));
}
