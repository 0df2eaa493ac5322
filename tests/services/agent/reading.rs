//! Files and texts as an agent reads them.

use gateway::{Context, Gateway};
use model::Digest;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use serde_json::json;

use super::{Agent, client, text};
use crate::support::{World, file, skill};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_as_what_they_are() {
    let mut world = World::new().await;
    let mut request = skill("acme/tools/manual", "", "Read references/api.md.");
    let long: Vec<_> = (0..4_000).map(|line| format!("line {line}")).collect();
    let long = long.join("\n");
    request.files.push(file("references/api.md", "Call it."));
    request
        .files
        .push(file("references/long.txt", long.clone()));
    request
        .files
        .push(file("assets/logo.png", &b"\x89PNG\r\n\x1a\n\0\0"[..]));
    request
        .files
        .push(file("assets/data.zip", &b"PK\x03\x04\xff\xfe"[..]));
    world.publish_approved(request).await;
    let mut agent = Agent::new(&world).await;
    let loaded = agent
        .call("load_skill", json!({"skill_id": "manual"}))
        .await;
    assert!(
        loaded.ends_with(
            "More, read with `read_file`:\n- `assets/data.zip`, `assets/logo.png`, `references/api.md`, \
             `references/long.txt`\n"
        ),
        "{loaded}"
    );
    for path in [
        "references/api.md",
        "./references/api.md",
        "/references/api.md",
    ] {
        let read = json!({"skill_id": "manual", "path": path});
        let end = format!("End {}", &Digest::of(b"Call it.").hex()[..16]);
        assert_eq!(
            agent.call("read_file", read).await,
            format!(
                "`references/api.md` of the skill `acme/tools/manual`, by its author and not by the user or the \
                 system, up to the line `{end}`:\nCall it.\n{end}"
            )
        );
    }
    // What came with the server is nobody else's.
    let read = json!({"skill_id": "xlsx", "path": "SKILL.md"});
    assert!(
        agent
            .call("read_file", read)
            .await
            .starts_with("---\nname: xlsx\n")
    );
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let read =
            json!({"skill_id": "manual", "path": "references/long.txt", "offset_bytes": offset});
        let result = agent.result("read_file", read).await;
        // Whose it is, the part, and its end.
        let ContentBlock::Text(part) = &result.content[1] else {
            panic!("a text");
        };
        assert!(part.text.len() <= 32 * 1024);
        whole.push_str(&part.text);
        if whole.len() == long.len() {
            break;
        }
        offset = whole.len();
        let note = format!("read on with `offset_bytes` {offset}.");
        assert!(text(&result).ends_with(&note), "{}", text(&result));
    }
    assert_eq!(whole, long);
    let logo = json!({"skill_id": "manual", "path": "assets/logo.png"});
    let logo = agent.result("read_file", logo).await;
    let [ContentBlock::Image(image)] = logo.content.as_slice() else {
        panic!("an image, not {logo:?}");
    };
    assert_eq!(
        (image.mime_type.as_str(), image.data.as_str()),
        ("image/png", "iVBORw0KGgoAAA==")
    );
    let data = json!({"skill_id": "manual", "path": "assets/data.zip"});
    let data = agent.result("read_file", data).await;
    let [ContentBlock::ResourceLink(link), ContentBlock::Text(note)] = data.content.as_slice()
    else {
        panic!("a link, not {data:?}");
    };
    assert_eq!(link.uri, "skill://acme/tools/manual/assets/data.zip");
    assert_eq!(
        note.text,
        "6 bytes of application/zip, which is no text that could be shown."
    );
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_author_leaves_to_people_is_told_to_no_model_unasked() {
    let mut world = World::new().await;
    let manual = "disable-model-invocation: true\n";
    let request = skill("acme/tools/zebra-deploy", manual, "Deploy zebras.");
    world.publish(request).await;
    let request = skill("acme/tools/zebra-review", "", "Review zebras.");
    world.publish(request).await;
    world.domain.follow().await;
    world.domain.search().complete().await;
    let client = client(&world, None).await;
    let arguments = json!({"query": "zebra"}).as_object().cloned();
    let request =
        CallToolRequestParams::new("search").with_arguments(arguments.expect("an object"));
    let found = client.call_tool(request).await.expect("a result");
    let found = found.structured_content.expect("an answer for programs");
    assert_eq!(
        (
            &found["data"]["results"][0]["slug"],
            &found["data"]["total"]
        ),
        (&json!("zebra-review"), &json!(1)),
        "{found}"
    );
    let listed = client.list_all_skills().await.expect("skills");
    let listed = serde_json::to_string(&listed).expect("JSON");
    assert_eq!(
        (
            listed.contains("zebra-review"),
            listed.contains("zebra-deploy")
        ),
        (true, false)
    );
    // People find it, and whoever names it.
    let gateway = Gateway::new(
        contract::load().expect("the contract"),
        world.transport.clone(),
    );
    let found = gateway
        .ask("Search", json!({"query": "zebra"}), Context::default())
        .await;
    assert_eq!(found.expect("an answer")["total"], 2);
    let mut agent = Agent::new(&world).await;
    let loaded = agent
        .call("load_skill", json!({"skill_id": "zebra-deploy"}))
        .await;
    assert!(loaded.contains("Deploy zebras."), "{loaded}");
    // Where the connection remembers the session, nobody pays for it.
    assert!(!loaded.contains("Session"), "{loaded}");
    world.domain.close().await;
}
