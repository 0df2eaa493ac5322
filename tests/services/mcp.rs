//! Skills as MCP knows them, where it matters how many and how odd they are. What
//! other people's clients see is in `tests/interop`.

use std::collections::BTreeSet;

use gateway::Gateway;
use mcp::McpServer;
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, GetPromptRequestParams, ReadResourceRequestParams,
    Reference, ResourceContents,
};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServiceError, ServiceExt as _};
use serde_json::{Value as Json, json};

use crate::support::{self, file, skill};

/// The services, and a client of their MCP.
struct World {
    client: RunningService<RoleClient, ()>,
    services: support::World,
}

impl World {
    async fn new() -> Self {
        let services = support::World::new().await;
        let transport = services.transport.clone();
        let contract = contract::load().expect("the contract");
        let face = McpServer::new(Gateway::new(contract, transport.clone()), transport);
        let handler = face.handlers(Some("skills")).expect("a toolset")();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move { handler.serve(ours).await.expect("a server").waiting().await });
        Self {
            client: ().serve(theirs).await.expect("a client"),
            services,
        }
    }

    async fn publish(&mut self, id: &str, files: &[(&str, &[u8])]) {
        let mut request = skill(id, "levels: [1, two]\n", "\nDo it.");
        let more = files
            .iter()
            .map(|(path, content)| file(path, content.to_vec()));
        request.files.extend(more);
        self.services.publish(request).await;
    }

    async fn end(self) {
        self.client.cancel().await.expect("the client ends");
        self.services.domain.close().await;
    }

    async fn read(&self, uri: &str) -> Result<ResourceContents, ServiceError> {
        let request = ReadResourceRequestParams::new(uri);
        let read = self.client.read_resource(request).await?;
        Ok(read.contents.into_iter().next().expect("contents"))
    }
}

fn code(error: &ServiceError) -> (i32, Json) {
    match error {
        ServiceError::McpError(error) => {
            let data = error.data.clone().unwrap_or_default();
            (error.code.0, data["code"].clone())
        }
        other => panic!("an error of the protocol, not {other}"),
    }
}

#[tokio::test]
async fn every_page_of_a_long_catalog_is_listed_once_as_resources_and_as_prompts() {
    let mut world = World::new().await;
    for number in 0..230 {
        let name = format!("skill-{number:03}");
        world.publish(&format!("acme/team/{name}"), &[]).await;
    }
    let resources = world.client.list_all_resources().await.expect("resources");
    let uris: BTreeSet<_> = resources.iter().map(|one| one.uri.clone()).collect();
    assert_eq!((resources.len(), uris.len()), (236, 236));
    assert!(uris.contains("skill://acme/team/skill-229/SKILL.md"));
    let prompts = world.client.list_all_prompts().await.expect("prompts");
    let names: BTreeSet<_> = prompts.iter().map(|one| one.name.clone()).collect();
    assert_eq!((prompts.len(), names.len()), (236, 236));

    // The description of `skill` names some and says how many more there are, in what all
    // hosts take.
    let tools = world.client.list_all_tools().await.expect("tools");
    let skill = tools
        .iter()
        .find(|tool| tool.name == "skill")
        .expect("a tool");
    let description = skill.description.as_deref().expect("a description");
    assert!(description.len() <= 1024, "{} bytes", description.len());
    assert!(
        description.ends_with(" more skills are left out; search finds them."),
        "{description}"
    );
    world.end().await;
}

#[tokio::test]
async fn a_skill_that_is_hidden_by_another_is_a_prompt_by_its_whole_id() {
    let mut world = World::new().await;
    world.publish("local/project/refunds", &[]).await;
    world.publish("github/acme/refunds", &[]).await;
    let prompts = world.client.list_all_prompts().await.expect("prompts");
    let mut names: Vec<_> = prompts.into_iter().map(|one| one.name).collect();
    names.retain(|name| name.contains("refunds"));
    assert_eq!(names, ["github/acme/refunds", "refunds"]);
    for (name, id) in [
        ("refunds", "local/project/refunds 1.0.0"),
        ("github/acme/refunds", "github/acme/refunds 1.0.0"),
    ] {
        let request = GetPromptRequestParams::new(name);
        let prompt = world.client.get_prompt(request).await.expect("a prompt");
        assert_eq!(prompt.description.as_deref(), Some(id));
    }
    let request = GetPromptRequestParams::new("no-such-skill");
    let refused = world
        .client
        .get_prompt(request)
        .await
        .expect_err("a refusal");
    assert_eq!(code(&refused), (-32602, json!("SKILL_NOT_FOUND")));
    world.end().await;
}

#[tokio::test]
async fn files_are_resources_as_text_or_as_bytes_at_any_address_that_leads_to_them() {
    let mut world = World::new().await;
    let binary = b"\x00\xffnot text";
    let files: &[(&str, &[u8])] = &[("docs/a b.md", b"deep"), ("logo.png", binary)];
    world.publish("acme/team/with-files", files).await;
    for uri in [
        "skill://acme/team/with-files/docs/a%20b.md",
        "skill://acme/team/@1.0.0/with-files/docs/a%20b.md",
        "skill://acme/team/@1/with-files/docs/a%20b.md",
    ] {
        let expected = ResourceContents::text("deep", uri).with_mime_type("text/markdown");
        assert_eq!(world.read(uri).await.expect("a file"), expected, "{uri}");
    }
    for uri in [
        "skill://acme/team/with-files/logo.png",
        "skill://acme/team/@1/with-files/logo.png",
    ] {
        let expected = ResourceContents::blob("AP9ub3QgdGV4dA==", uri).with_mime_type("image/png");
        assert_eq!(world.read(uri).await.expect("a file"), expected, "{uri}");
    }
    for (uri, reason) in [
        ("skill://acme/team/with-files/nothing.md", "FILE_NOT_FOUND"),
        ("skill://acme/team/nobody/SKILL.md", "SKILL_NOT_FOUND"),
        (
            "skill://acme/team/@9/with-files/SKILL.md",
            "VERSION_NOT_FOUND",
        ),
        ("https://example.com/SKILL.md", "INVALID_PARAMETER"),
        ("", "MISSING_PARAMETER"),
    ] {
        let refused = world.read(uri).await.expect_err("a refusal");
        assert_eq!(code(&refused), (-32002, json!(reason)), "{uri}");
    }
    world.end().await;
}

#[tokio::test]
async fn names_and_paths_of_an_address_are_completed_step_by_step() {
    let mut world = World::new().await;
    let files: &[(&str, &[u8])] = &[("docs/one.md", b"1"), ("docs/two.md", b"2")];
    world.publish("acme/team/alpha", files).await;
    world.publish("acme/tools/alpine", &[]).await;
    let by_id = "skill://{source}/{author}/{name}/{+path}";
    let by_name = "skill://{name}";
    let known = [("source", "acme"), ("author", "team"), ("name", "alpha")];
    for (template, argument, typed, expected) in [
        (by_id, "source", "ac", json!(["acme"])),
        (by_id, "author", "t", json!(["team", "tools"])),
        (by_id, "name", "al", json!(["alpha"])),
        (
            by_id,
            "path",
            "docs/",
            json!(["docs/one.md", "docs/two.md"]),
        ),
        (by_name, "name", "ALP", json!(["alpha", "alpine"])),
        (by_id, "path", "docs/t", json!(["docs/two.md"])),
        (by_name, "nothing", "a", json!([])),
        ("skill://other/{x}", "x", "a", json!([])),
    ] {
        let mut request = CompleteRequestParams::new(
            Reference::for_resource(template),
            ArgumentInfo::new(argument, typed),
        );
        let known = known.iter().filter(|(name, _)| *name != argument);
        let known = known.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        request.context = Some(rmcp::model::CompletionContext::with_arguments(
            known.collect(),
        ));
        let completed = world.client.complete(request).await.expect("values");
        assert_eq!(
            json!(completed.completion.values),
            expected,
            "{template} {argument}"
        );
    }
    world.end().await;
}
