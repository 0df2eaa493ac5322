//! What an agent gets of the `agent` toolset, and what it pays for it in tokens.

mod costs;
mod finding;
mod near_misses;
mod reading;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::v1::PublishSkillRequest;
use gateway::Gateway;
use mcp::McpServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::{Map, Value as Json, json};
use tiktoken_rs::cl100k_base_singleton;

use crate::support::{World, corpus, file, skill};

/// What a hit of a search may cost.
const MAX_HIT: usize = 60;
/// What finding, loading and calling may cost beyond the skill's own text.
const MAX_WAY: usize = 1_500;

fn tokens(text: &str) -> usize {
    cl100k_base_singleton().encode_ordinary(text).len()
}

/// A text with the same digits each time where a mark has a part of the session: these do not
/// cost the same.
fn steady(text: &str) -> String {
    let mut parts = text.split("End ");
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.chars().take_while(char::is_ascii_hexdigit).count();
        steady.push_str("End ");
        steady.push_str(&"0".repeat(digits));
        steady.push_str(&part[digits..]);
    }
    steady
}

/// A client that counts what it is told.
#[derive(Debug, Clone, Default)]
struct Told {
    tools: Arc<AtomicUsize>,
    resources: Arc<AtomicUsize>,
}

impl ClientHandler for Told {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.resources.fetch_add(1, Ordering::SeqCst);
    }
}

type Client = RunningService<RoleClient, Told>;

async fn client(world: &World, toolset: Option<&str>) -> Client {
    let transport = world.transport.clone();
    let contract = contract::load().expect("the contract");
    let face = McpServer::new(Gateway::new(contract, transport.clone()), transport);
    let handler = face.handlers(toolset).expect("a toolset")();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move { handler.serve(ours).await.expect("a server").waiting().await });
    Told::default().serve(theirs).await.expect("a client")
}

/// An agent with one connection, which counts its calls and what they cost it.
struct Agent {
    client: Client,
    calls: usize,
    paid: usize,
}

impl Agent {
    async fn new(world: &World) -> Self {
        Self {
            client: client(world, Some("agent")).await,
            calls: 0,
            paid: 0,
        }
    }

    async fn result(&mut self, tool: &str, arguments: Json) -> CallToolResult {
        let Json::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        self.calls += 1;
        let asked = Json::Object(arguments.clone()).to_string();
        self.paid += tokens(tool) + tokens(&asked);
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.client.call_tool(request).await.expect("a result");
        assert_eq!(
            result.structured_content, None,
            "a model would pay for it twice"
        );
        self.paid += tokens(&steady(&text(&result)));
        result
    }

    async fn call(&mut self, tool: &str, arguments: Json) -> String {
        let result = self.result(tool, arguments).await;
        let text = text(&result);
        assert_ne!(result.is_error, Some(true), "{text}");
        text
    }

    async fn refused(&mut self, tool: &str, arguments: Json) -> String {
        let result = self.result(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Holds what was found to a file of `tests/golden`.
fn golden(name: &str, found: &Json) {
    let test = std::thread::current();
    let is_quick = test.name().is_some_and(|name| name.contains("golden"));
    assert!(
        is_quick,
        "`make quick` runs it where `golden` is in its name"
    );
    let found = serde_json::to_string_pretty(found).expect("JSON") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("a golden file");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        expected, found,
        "`UPDATE_GOLDEN=1 make rendered` writes it again; read the difference"
    );
}

/// The services, with an index that knows the skills.
async fn searchable() -> World {
    let world = World::new().await;
    world.domain.follow().await;
    world.domain.search().complete().await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_task_to_its_tool_it_is_three_calls() {
    let world = searchable().await;
    let mut agent = Agent::new(&world).await;
    let task = "How many customers are in our SQL database?";
    let found = agent.call("find_skills", json!({"task": task})).await;
    assert!(hits(&found)[0].starts_with("- write_sql: "), "{found}");
    not_dear(&hits(&found));
    let loaded = agent
        .call("load_skill", json!({"skill_id": "write_sql"}))
        .await;
    assert!(
        loaded.contains("- `sql_query(query: string)`: "),
        "{loaded}"
    );
    let query = json!({"query": "SELECT COUNT(*) AS customers FROM customers"});
    let answer = agent
        .call(
            "call_tool",
            json!({"name": "sql_query", "arguments": query}),
        )
        .await;
    assert!(answer.contains("42"), "{answer}");
    assert_eq!(agent.calls, 3);
    let (own, _) = loaded
        .split_once("\n---\nTools unlocked")
        .expect("what the server adds");
    let way = agent.paid - tokens(own);
    assert!(way <= MAX_WAY, "{way} tokens beyond the skill's own text");
    world.domain.close().await;
}

/// The lines of skills in an answer of `find_skills`.
fn hits(found: &str) -> Vec<&str> {
    let lines = found.lines();
    lines.filter(|line| line.starts_with("- ")).collect()
}

fn not_dear(hits: &[&str]) {
    for hit in hits {
        assert!(tokens(hit) <= MAX_HIT, "{} tokens: {hit}", tokens(hit));
    }
}

/// What stands between two texts, in the first place where it does.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> &'a str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(behind).map_or(rest, |(found, _)| found)
}

/// Five tasks of an agent that knows its tools and no skill: what it does next follows from
/// what it was answered.
#[tokio::test(flavor = "multi_thread")]
async fn golden_costs_of_five_tasks_are_those_of_the_fewest_calls() {
    let mut world = with_corpus().await;
    let mut request = skill(
        "acme/tools/billing-rules",
        "",
        "Read `references/vat.md` first.",
    );
    request
        .files
        .push(file("references/vat.md", "The rate is 19 %."));
    world.publish(request).await;
    world.domain.search().complete().await;
    let mut taken = Map::new();
    let mut done = |task: &str, fewest: usize, agent: &Agent| {
        assert!(
            agent.calls * 10 <= fewest * 12,
            "{task}: {} calls where {fewest} would do",
            agent.calls
        );
        let cost = json!({"calls": agent.calls, "fewest": fewest, "tokens": agent.paid});
        taken.insert(task.to_owned(), cost);
    };

    // Which skill there is for a task.
    let mut agent = Agent::new(&world).await;
    let task = json!({"task": "my pod keeps restarting and I do not know why"});
    let found = agent.call("find_skills", task).await;
    assert_eq!(between(&found, "- ", " ["), "kubernetes-debugging");
    done("find a skill", 1, &agent);

    // What it says.
    let mut agent = Agent::new(&world).await;
    let task = json!({"task": "turn my scribbled notes of the meeting into minutes"});
    let found = agent.call("find_skills", task).await;
    let name = between(&found, "- ", " [");
    let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
    assert!(loaded.contains("Instructions of the skill `github/beacon__office/meeting-minutes`"));
    done("load a skill", 2, &agent);

    // A question about a database.
    let mut agent = Agent::new(&world).await;
    let task = json!({"task": "How many customers are in our SQL database?"});
    let found = agent.call("find_skills", task).await;
    let name = between(&found, "- ", ": ");
    let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
    let tools = between(
        &loaded,
        "Tools unlocked, called with `call_tool`:\n",
        "\nMore,",
    );
    let tool = tools
        .lines()
        .find(|line| line.contains("(query: string"))
        .expect("a tool");
    let query = json!({"query": "SELECT COUNT(*) AS customers FROM customers"});
    let call = json!({"name": between(tool, "- `", "("), "arguments": query});
    assert!(agent.call("call_tool", call).await.contains("42"));
    done("use SQL", 3, &agent);

    // What a file of a skill says.
    let mut agent = Agent::new(&world).await;
    let found = agent
        .call("find_skills", json!({"task": "billing rules"}))
        .await;
    let name = between(&found, "- ", " [");
    let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
    let path = between(&loaded, "Read `", "` first");
    let read = json!({"skill_id": name, "path": path});
    assert!(
        agent
            .call("read_file", read)
            .await
            .contains("The rate is 19 %.")
    );
    done("read a reference", 3, &agent);

    // A name that is wrong: the refusal has the right one.
    let mut agent = Agent::new(&world).await;
    let refused = agent
        .refused("load_skill", json!({"skill_id": "kubernets-debuging"}))
        .await;
    let name = between(&refused, "Did you mean `", "`");
    let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
    assert!(loaded.contains("kubernetes-debugging"), "{loaded}");
    done("recover from a wrong name", 2, &agent);

    golden("tasks.json", &Json::Object(taken));
    world.domain.close().await;
}

/// The skills of `tests/corpus`, published.
async fn with_corpus() -> World {
    let mut world = searchable().await;
    for folder in corpus::skill_folders(&corpus::ours()) {
        let files = corpus::files(&folder).into_iter().map(|(path, at)| {
            let content = std::fs::read(at).expect("a file");
            file(&path, content)
        });
        let slug = folder.file_name().expect("a name").to_string_lossy();
        let repository = folder.parent().expect("a repository");
        let owner = repository.file_name().expect("a name").to_string_lossy();
        let request = PublishSkillRequest {
            skill_id: format!("github/{owner}/{}", slug.replace(' ', "-")),
            files: files.collect(),
            ..Default::default()
        };
        // Some are there to be refused.
        let _refused = world.registry.publish_skill(request).await;
    }
    world.domain.search().complete().await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_is_announced_where_it_changed() {
    let mut world = World::new().await;
    let agent = client(&world, Some("agent")).await;
    let skills = client(&world, Some("skills")).await;
    for client in [&agent, &skills] {
        client.list_all_tools().await.expect("tools");
    }
    // A skill without tools changes nothing of this set, also for who never asked for it.
    let gated = client(&world, Some("gated")).await;
    world.publish(skill("acme/tools/one", "", "Do it.")).await;
    let told = |client: &Client| {
        let service = client.service();
        (
            service.tools.load(Ordering::SeqCst),
            service.resources.load(Ordering::SeqCst),
        )
    };
    let all = [&agent, &skills, &gated];
    while all.iter().any(|client| told(client).1 == 0) || told(&skills).0 == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told(&agent).0, 0);
    assert_eq!(told(&gated).0, 0);
    assert_eq!(told(&skills).0, 1);
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composition_counts_the_tools_that_a_skill_declares_as_the_gate_does() {
    let world = World::new().await;
    let client = client(&world, None).await;
    let call = async |tool: &'static str, arguments: Json| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = client.call_tool(request).await.expect("a result");
        result.structured_content.expect("an answer for programs")
    };
    let skills = json!(["write_sql", "xlsx"]);
    let composed = call("compose_skills", json!({"skills": skills})).await;
    let allowed = composed["allowed_tools"].to_string();
    assert!(allowed.contains("\"sql_query\""), "{composed}");
    let by_set = call(
        "check_tool",
        json!({"tool": "sql_query", "skills": ["write_sql"]}),
    )
    .await;
    call("load_skill", json!({"skill_id": "write_sql"})).await;
    // The connection knows its session, and a tool that is unlocked is one by name.
    let rows = call(
        "sql_query",
        json!({"query": "SELECT COUNT(*) AS n FROM customers"}),
    )
    .await;
    assert_eq!(rows["rows"], json!([[42]]), "{rows}");
    let session = call("list_loaded_skills", json!({})).await["session_id"].clone();
    let by_session = call(
        "check_tool",
        json!({"tool": "sql_query", "session_id": session}),
    )
    .await;
    assert_eq!(
        (&by_set["allowed"], &by_session["allowed"]),
        (&json!(true), &json!(true))
    );
    world.domain.close().await;
}
