//! Answers of REST that are streams: events, and downloads.

use bytes::Bytes;
use contract::v1;
use serde_json::json;

use super::publish;
use crate::support::Server;
use crate::support::web::{ask, get};

#[tokio::test]
async fn events_stream_and_go_on_where_a_client_lost_them() {
    let server = Server::start();
    let mut watching = ask(&server.url, "GET", "/api/v1/events").start().await;
    assert_eq!(watching.headers["content-type"], "text/event-stream");
    let start = watching.event().await.expect("a first answer");
    assert_eq!(start.data["resume_token"], start.id);
    publish(&server, "a/b/one", "1.0.0").await;
    let one = watching.event().await.expect("an event");
    assert_eq!(one.data["event"]["skill_id"], "a/b/one");
    assert_eq!(
        (one.name.as_str(), &one.data["event"]["type"]),
        ("", &json!("published"))
    );
    drop(watching);

    publish(&server, "a/b/two", "1.0.0").await;
    publish(&server, "a/b/three", "1.0.0").await;
    let again = ask(&server.url, "GET", "/api/v1/events?max_events=2");
    let mut again = again.header("last-event-id", &one.id).start().await;
    let mut seen = Vec::new();
    while let Some(event) = again.event().await {
        seen.extend(event.data["event"]["skill_id"].as_str().map(str::to_owned));
    }
    assert_eq!(seen, ["a/b/two", "a/b/three"]);

    // What the URL says goes before what a reconnecting client remembers.
    let path = format!("/api/v1/events?max_events=1&resume_token={}", start.id);
    let mut first = ask(&server.url, "GET", &path);
    first = first.header("last-event-id", &one.id);
    let mut first = first.start().await;
    let mut seen = Vec::new();
    while let Some(event) = first.event().await {
        seen.extend(event.data["event"]["skill_id"].as_str().map(str::to_owned));
    }
    assert_eq!(seen, ["a/b/one"]);
}

#[tokio::test]
async fn a_stream_that_is_refused_on_its_way_ends_with_an_event_that_says_so() {
    let server = Server::start();
    let watching = ask(&server.url, "GET", "/api/v1/events").header("grpc-timeout", "200m");
    let mut watching = watching.start().await;
    assert_eq!(watching.status, 200);
    watching.event().await.expect("a first answer");
    let last = watching.event().await.expect("an end");
    assert_eq!(
        (last.name.as_str(), &last.data["code"]),
        ("error", &json!("TIMEOUT"))
    );
    assert_eq!(last.data["status"], 504);
    assert_eq!(watching.event().await, None);
}

#[tokio::test]
async fn a_download_is_what_grpc_exports_byte_for_byte() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.2.0").await;
    for (format, number, media, name) in [
        (
            "tar_gz",
            v1::ArchiveFormat::TarGz,
            "application/gzip",
            "refunds-1.2.0.tar.gz",
        ),
        (
            "zip",
            v1::ArchiveFormat::Zip,
            "application/zip",
            "refunds-1.2.0.zip",
        ),
    ] {
        let request = v1::ExportSkillRequest {
            skill_id: "refunds".to_owned(),
            format: number.into(),
            ..Default::default()
        };
        let mut pieces = server
            .registry()
            .await
            .export_skill(request)
            .await
            .expect("an export")
            .into_inner();
        let mut exported = Vec::new();
        while let Some(piece) = pieces.message().await.expect("a piece") {
            exported.extend_from_slice(&piece.chunk);
        }
        let path = format!("/api/v1/skills/refunds/export?format={format}&info_only=true");
        let told = get(&server.url, &path).await;
        let digest = format!("\"{}\"", model::Digest::of(&exported));
        assert_eq!((told.status.as_u16(), told.body.len()), (200, 0));
        assert_eq!(told.header("etag"), digest);
        let path = format!("/api/v1/skills/refunds/export?format={format}");
        let answer = get(&server.url, &path).await;
        assert_eq!(answer.body, Bytes::from(exported));
        assert_eq!(answer.header("content-type"), media);
        assert_eq!(
            answer.header("content-disposition"),
            format!("attachment; filename=\"{name}\"")
        );
        assert_eq!(
            answer.header("content-length"),
            answer.body.len().to_string()
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(
            answer
                .header("content-security-policy")
                .starts_with("sandbox")
        );

        let tag = answer.header("etag").to_owned();
        let again = ask(&server.url, "GET", &path).header("if-none-match", &tag);
        let again = again.send().await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));

        let events = ask(&server.url, "GET", &path).header("accept", "text/event-stream");
        let mut events = events.start().await;
        let first = events.event().await.expect("a message");
        assert_eq!(first.data["info"]["file_name"], name);
    }
    let refused = get(&server.url, "/api/v1/skills/nope/export").await;
    assert_eq!(refused.refusal(), (404, "SKILL_NOT_FOUND".to_owned()));
    let refused = get(&server.url, "/api/v1/skills/refunds/export?format=rar").await;
    assert_eq!(refused.refusal(), (400, "INVALID_PARAMETER".to_owned()));
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_permit_back() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let mut first = ask(&server.url, "GET", "/api/v1/events").start().await;
    first.event().await.expect("a permit");
    drop(first);
    let mut status = 0;
    for _ in 0..1000 {
        let again = ask(&server.url, "GET", "/api/v1/events?max_wait_seconds=1");
        status = again.start().await.status.as_u16();
        if status == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(
        status, 200,
        "the permit of a client that left was not given back"
    );
}
