//! Short names as callers meet them: who holds one, who is told, and what names a skill for later.

use access::Action;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use contract::{FILE_DESCRIPTOR_SET, v1};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, Value};
use serde_json::{Value as Json, json};
use tower::ServiceExt as _;

use crate::support::web::{Answer, ask, get};
use crate::support::{Server, World, reason, skill};

const ACME: &str = "github/acme/refund-desk";
/// Sorts before that of acme.
const GUEST: &str = "aaa/guest/refund-desk";

async fn publish(server: &Server, id: &str, front_matter: &str) -> Json {
    let slug = id.rsplit('/').next().expect("a slug");
    let body = format!("Of {id}.");
    let text = format!("---\nname: {slug}\ndescription: Does {slug}.\n{front_matter}---\n{body}\n");
    let content = BASE64.encode(text);
    let files = json!([{"path": "SKILL.md", "content": content}]);
    let request = json!({"skill_id": id, "files": files});
    let answer = ask(&server.url, "POST", "/api/v1/skills").json(&request);
    answer.send().await.json()
}

async fn give(server: &Server, from: &str, to: &str) -> Answer {
    let request = json!({"holder_id": from, "skill_id": to});
    let moved = ask(&server.url, "PUT", "/api/v1/short_names/refund-desk");
    moved.json(&request).send().await
}

/// The skill to which each way leads that knows short names alone.
async fn led_to(server: &Server) -> Vec<String> {
    let url = &server.url;
    let shown = get(url, "/api/v1/skills/refund-desk").await.json();
    let index = get(url, "/.well-known/agent-skills/index.json")
        .await
        .json();
    let indexed = index["skills"].as_array().expect("skills").iter();
    let mut indexed = indexed.filter(|entry| entry["name"] == "refund-desk");
    let address = indexed.next().expect("an entry")["url"].to_string();
    assert!(indexed.next().is_none(), "one skill has the name");
    let file = get(url, "/.well-known/skills/refund-desk/SKILL.md")
        .await
        .text();
    let path = "/clawhub/api/v1/skills/refund-desk/file?path=SKILL.md";
    let claw = get(url, path).await.text();
    let id_in = |text: &str| {
        let ids = [ACME, GUEST].into_iter();
        let mut found = ids.filter(|id| text.contains(id));
        found.next().expect("an id").to_owned()
    };
    let id = shown["skill"]["id"].as_str().expect("an id").to_owned();
    vec![id, id_in(&address), id_in(&file), id_in(&claw)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_publishes_a_known_name_is_told_so_and_takes_nothing() {
    let server = Server::with(&[], "");
    publish(&server, ACME, "").await;
    let requires = "composability_rules: [{type: requires, skill: refund-desk}]\n";
    publish(&server, "github/acme/helper", requires).await;
    let published = publish(&server, GUEST, "").await;
    let problems = published["problems"].as_array().expect("problems").iter();
    let told: Vec<_> = problems.filter(|it| it["rule"] == "SHADOWED").collect();
    assert_eq!(told.len(), 1, "{published}");
    assert!(told[0].to_string().contains(ACME), "{told:?}");
    assert_eq!(led_to(&server).await, [ACME; 4]);

    let refused = give(&server, GUEST, GUEST).await;
    assert_eq!(refused.refusal(), (403, "NAME_HELD".to_owned()));
    let moved = give(&server, ACME, GUEST).await.json();
    assert_eq!(
        moved,
        json!({"short_name": "refund-desk", "previous_holder_id": ACME, "holder_id": GUEST})
    );
    assert_eq!(led_to(&server).await, [GUEST; 4]);
    let events = get(&server.url, "/api/v1/skills/github/acme/helper").await;
    assert!(events.text().contains(ACME), "what it requires stays");
    let composed = json!({"skills": ["helper"], "resolve": true});
    let composed = ask(&server.url, "POST", "/api/v1/skills:compose").json(&composed);
    let composed = composed.send().await.text();
    assert!(
        composed.contains(ACME) && !composed.contains(GUEST),
        "{composed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_whose_holder_is_withdrawn_or_deleted_leads_to_nobody_else() {
    let server = Server::with(&[], "");
    publish(&server, ACME, "").await;
    publish(&server, GUEST, "").await;
    let yank = format!("/api/v1/skills/{ACME}/versions/1/yank");
    let yanked = ask(&server.url, "POST", &yank)
        .json(&json!({}))
        .send()
        .await;
    assert_eq!(yanked.status, 200);
    let shown = async || {
        get(&server.url, "/api/v1/skills/refund-desk")
            .await
            .refusal()
    };
    assert_eq!(shown().await, (404, "SKILL_YANKED".to_owned()));
    let path = format!("/api/v1/skills/{ACME}");
    let deleted = ask(&server.url, "DELETE", &path).send().await;
    assert_eq!(deleted.status, 200);
    assert_eq!(shown().await, (404, "SKILL_NOT_FOUND".to_owned()));
    assert_eq!(give(&server, ACME, "").await.status, 200);
    let shown = get(&server.url, "/api/v1/skills/refund-desk").await.json();
    assert_eq!(shown["skill"]["id"], GUEST);
}

/// A request that names its skill by a short name.
fn judgement(descriptor: &MessageDescriptor) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for field in descriptor.fields() {
        let value = match (field.name(), field.kind()) {
            ("skill_id" | "holder_id" | "short_name" | "reason", Kind::String) => {
                Value::String("judged".to_owned())
            }
            ("version_number", Kind::Uint32) => Value::U32(1),
            ("action", Kind::Enum(_)) => Value::EnumNumber(1),
            _ => continue,
        };
        message.set_field(&field, value);
    }
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rpc_that_judges_a_skill_wants_its_full_id() {
    let mut world = World::new().await;
    world
        .publish(skill("github/acme/judged", "", "Body."))
        .await;
    let judging = [
        Action::Delete,
        Action::Activate,
        Action::Review,
        Action::Block,
    ];
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the contract");
    let mut tried = Vec::new();
    for (path, action) in contract::actions() {
        if !action.is_some_and(|action| judging.contains(&action)) {
            continue;
        }
        let (service, name) = path
            .trim_start_matches('/')
            .split_once('/')
            .expect("a path");
        let service = pool.get_service_by_name(service).expect("a service");
        let method = service.methods().find(|method| method.name() == name);
        let message = judgement(&method.expect("a method").input()).encode_to_vec();
        let length = u32::try_from(message.len()).expect("a length");
        let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
        let request = http::Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(tonic::body::Body::new(http_body_util::Full::new(
                bytes::Bytes::from(framed),
            )))
            .expect("a request");
        let response = world.transport.clone().oneshot(request).await;
        let response = response.unwrap_or_else(|error| panic!("{name}: {error}"));
        let status = tonic::Status::from_header_map(response.headers());
        let refused = status.map_or_else(|| "done".to_owned(), |status| reason(&status));
        assert_eq!(refused, "FULL_ID_REQUIRED", "{name}");
        tried.push(name);
    }
    assert!(tried.len() >= 8, "{tried:?}");
    let request = v1::DeleteSkillRequest {
        skill_id: "judged".to_owned(),
        ..Default::default()
    };
    let refused = world
        .registry
        .delete_skill(request)
        .await
        .expect_err("no id");
    let steps = tonic_types::StatusExt::get_details_help(&refused).expect("next steps");
    assert_eq!(
        steps.links.first().map(|step| step.description.as_str()),
        Some("Write github/acme/judged, if you mean this skill")
    );
    world.domain.close().await;
}
