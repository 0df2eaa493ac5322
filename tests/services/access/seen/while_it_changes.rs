//! What is seen while owners change who sees it.

use contract::v1;
use contract::v1::lookup_client::LookupClient;

use super::super::{AccessClient, CONFIG, RegistryClient, reason, role_token, token, transport};
use super::{hide, public, publish, secret};
use crate::support::{Server, skill};
use access::Role;

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_of_what_its_caller_sees_when_it_happens() {
    let server = Server::with(&[], CONFIG);
    let agent = token(
        &server,
        &["agent", "--role", "agent", "--sees", "local/aaa/*"],
    );
    let mut watches = Vec::new();
    for token in [agent.as_str(), ""] {
        let mut registry = RegistryClient::new(transport(&server, token).await);
        let watch = registry
            .watch(v1::WatchRequest::default())
            .await
            .expect("a watch");
        watches.push(watch.into_inner());
    }
    // While they watch.
    hide(&server, "local/aaa");
    hide(&server, "local/secret");
    publish(&server, secret()).await;
    publish(&server, public()).await;
    let mut told = Vec::new();
    for watch in &mut watches {
        let mut ids = Vec::new();
        while ids.last().is_none_or(|last| last != "local/open/quick") {
            let answer = watch.message().await.expect("an answer").expect("an event");
            ids.extend(answer.event.map(|event| event.skill_id));
        }
        told.push(ids);
    }
    let open = ["local/open/deploy", "local/open/notes", "local/open/quick"];
    let aaa = ["local/aaa/deploy", "local/aaa/quokka-notes"];
    assert_eq!(told, [[&aaa[..], &open].concat(), open.to_vec()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_publish_and_hide_what_is_theirs_and_nobody_else_does() {
    let config = format!("{CONFIG}namespaces: {{first_publish: claims}}\n");
    let server = Server::with(&[], &config);
    let [ada, eve] = ["ada", "eve"].map(|name| token(&server, &[name, "--role", "publisher"]));
    let publish = async |token: &str, id: &str| {
        let mut registry = RegistryClient::new(transport(&server, token).await);
        let published = registry.publish_skill(skill(id, "", "Body.")).await;
        published.map_or_else(|status| reason(&status), |_| "published".to_owned())
    };
    assert_eq!(publish(&ada, "local/ada/one").await, "published");
    assert_eq!(publish(&eve, "local/ada/two").await, "NAMESPACE_NOT_OWNED");
    assert_eq!(publish(&eve, "local/Ada/two").await, "NAMESPACE_NOT_OWNED");
    let set = async |token: &str, request: v1::SetNamespaceRequest| {
        let mut access = AccessClient::new(transport(&server, token).await);
        let set = access.set_namespace(request).await;
        set.map_or_else(
            |status| reason(&status),
            |answer| {
                let info = answer.into_inner().info.expect("a namespace");
                format!(
                    "{} {}",
                    info.visibility().as_str_name(),
                    info.owners.join(" ")
                )
            },
        )
    };
    let change = |visibility: v1::Visibility, add: &[&str]| v1::SetNamespaceRequest {
        namespace: "local/ada".to_owned(),
        visibility: visibility.into(),
        add_owners: add.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    };
    let private = v1::Visibility::Private;
    assert_eq!(set(&eve, change(private, &[])).await, "NAMESPACE_NOT_OWNED");
    assert_eq!(
        set(&ada, change(private, &["token:eve"])).await,
        "VISIBILITY_PRIVATE token:ada token:eve"
    );
    assert_eq!(publish(&eve, "local/ada/two").await, "published");
    let seen = async |token: &str| {
        let mut lookup = LookupClient::new(transport(&server, token).await);
        let request = v1::ListSkillsRequest {
            source: "local".to_owned(),
            author: "ada".to_owned(),
            ..Default::default()
        };
        let listed = lookup.list_skills(request).await.expect("a list");
        listed.into_inner().skills.len()
    };
    let agent = role_token(&server, Role::Agent);
    assert_eq!(
        (seen(&ada).await, seen(&agent).await, seen("").await),
        (2, 0, 0)
    );
}
