//! The same of pages and of messages of MCP.

use serde_json::{Value, json};

use super::super::role_token;
use super::{in_common, servers};
use crate::support::Server;
use crate::support::web::ask;
use access::Role;

/// Methods of MCP that tell of skills, with what they are asked.
fn mcp_requests() -> Vec<(&'static str, Value)> {
    let complete = |value: &str| {
        json!({
            "ref": {"type": "ref/resource", "uri": "skill://{name}/SKILL.md"},
            "argument": {"name": "name", "value": value},
        })
    };
    vec![
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        (
            "resources/read",
            json!({"uri": "skill://local/aaa/deploy/SKILL.md"}),
        ),
        (
            "resources/read",
            json!({"uri": "skill://quokka-notes/SKILL.md"}),
        ),
        ("prompts/get", json!({"name": "quokka-notes"})),
        ("completion/complete", complete("quo")),
        ("completion/complete", complete("de")),
        (
            "tools/call",
            json!({"name": "search", "arguments": {"query": "quokka"}}),
        ),
        (
            "tools/call",
            json!({"name": "get_skill", "arguments": {"skill_id": "quokka-notes"}}),
        ),
        (
            "tools/call",
            json!({"name": "skill", "arguments": {"command": "quokka-notes"}}),
        ),
    ]
}

/// Pages of REST, of discovery and of a registry protocol, as somebody opens them.
const PAGES: [&str; 13] = [
    "/api/v1/skills",
    "/api/v1/skills/local/aaa/deploy",
    "/api/v1/skills/quokka-notes/files",
    "/api/v1/search?query=quokka",
    "/api/v1/namespaces",
    "/.well-known/agent-skills/index.json",
    "/.well-known/skills/index.json",
    "/.well-known/skills/quokka-notes/SKILL.md",
    "/.well-known/skills/deploy/SKILL.md",
    "/clawhub/api/v1/skills",
    "/clawhub/api/v1/skills/quokka-notes",
    "/clawhub/api/v1/search?q=quokka",
    "/",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_page_and_no_message_of_mcp_does_either() {
    let (with, without) = servers().await;
    let tokens = |server: &Server| [role_token(server, Role::Agent), String::new()];
    for (there, here) in tokens(&with).iter().zip(&tokens(&without)) {
        let of = [(&with, there), (&without, here)];
        let mut told = Vec::new();
        for (server, token) in of {
            let mut all = Vec::new();
            let signed = |verb: &str, path: &str| match token.as_str() {
                "" => ask(&server.url, verb, path),
                token => {
                    ask(&server.url, verb, path).header("authorization", &format!("Bearer {token}"))
                }
            };
            for page in PAGES {
                let answer = signed("GET", page).send().await;
                all.push((page.to_owned(), answer.status, answer.text()));
            }
            for (method, params) in mcp_requests() {
                let asked = signed("POST", "/mcp").mcp(method, params.clone());
                let answer = asked.send().await;
                all.push((format!("{method} {params}"), answer.status, answer.text()));
            }
            told.push(all);
        }
        let words = |told: &str| {
            let mut value: Value = serde_json::from_str(told).unwrap_or(json!(told));
            in_common(&mut value);
            // In some order: facts of a refusal have none.
            let text = value.to_string();
            let between = ['"', ' ', '\\', ',', '{', '}', '[', ']'];
            let mut words: Vec<_> = text.split(between).map(str::to_owned).collect();
            words.sort();
            words
        };
        for ((asked, status, text), (_, expected, plain)) in told[0].iter().zip(&told[1]) {
            assert_eq!((status, words(text)), (expected, words(plain)), "{asked}");
        }
    }
}
