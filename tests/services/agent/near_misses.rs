//! Calls that are nearly right, and what an agent is told of them.

use rmcp::model::CallToolRequestParams;
use serde_json::{Value as Json, json};

use super::{Agent, client, searchable, text, tokens};
use crate::support::{file, skill};

#[tokio::test(flavor = "multi_thread")]
async fn a_near_miss_is_read_as_what_was_meant_or_answered_with_it() {
    let mut world = searchable().await;
    let mut request = skill("acme/tools/code-review", "", "Read examples.md.");
    request.files.push(file("examples.md", "So."));
    world.publish(request).await;
    let mut agent = Agent::new(&world).await;
    for name in [
        "write-sql",
        "/write_sql",
        "Write SQL",
        "`write_sql`",
        "WRITE_SQL",
    ] {
        let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
        assert!(loaded.contains("sql_query"), "{name}: {loaded}");
    }
    let refused = agent
        .refused("load_skill", json!({"skill_id": "wirte_sql"}))
        .await;
    assert!(
        refused.contains("Did you mean `write_sql` (Write and execute SQL queries"),
        "{refused}"
    );
    let refused = agent
        .refused("load_skill", json!({"skill_id": "acme/tools/code-reviews"}))
        .await;
    assert!(refused.contains("Did you mean `code-review`"), "{refused}");
    let read = json!({"skill_id": "code-review", "path": "example.md"});
    let refused = agent.refused("read_file", read).await;
    assert!(refused.contains("Did you mean examples.md?"), "{refused}");
    // A tool's name, its arguments as text, and what a host sends for nothing.
    let call = json!({
        "name": "sql-list-tables", "arguments": null, "arguments_json": "{}", "session_id": "",
    });
    assert!(agent.call("call_tool", call).await.contains("customers"));
    let wrong = json!({"name": "sql_query", "arguments": {"sql": "SELECT 1"}});
    let refused = agent.refused("call_tool", wrong).await;
    assert!(
        refused.contains("It is called as sql_query(query: string)"),
        "{refused}"
    );
    assert!(tokens(&refused) < 150, "{refused}");
    for name in [
        "skill://write_sql",
        "skill://builtin/repertoire/write_sql/SKILL.md",
    ] {
        let loaded = agent.call("load_skill", json!({"skill_id": name})).await;
        assert!(loaded.contains("sql_query"), "{name}: {loaded}");
    }
    for read in [
        json!({"path": "skill://acme/tools/code-review/examples.md"}),
        json!({"path": "skill://code-review/examples.md"}),
        json!({"skill_id": "code-review", "path": "skill://code-review/examples.md"}),
    ] {
        let text = agent.call("read_file", read.clone()).await;
        assert!(text.contains("\nSo.\nEnd "), "{read}: {text}");
    }
    let unknown = json!({"name": "sql_querry", "arguments": {"query": "SELECT 1"}});
    let mut told = vec![agent.refused("call_tool", unknown).await];
    assert!(
        told[0].contains("Did you mean `sql_query` (a tool of `write_sql`)"),
        "{}",
        told[0]
    );
    for (tool, arguments) in [
        ("load_skill", json!({"skill_id": "zzzqqq"})),
        ("load_skill", json!({"skill_id": "  "})),
        (
            "read_file",
            json!({"skill_id": "code-review", "path": "zzz.bin"}),
        ),
        ("read_file", json!({"path": "examples.md"})),
        ("read_file", json!({"path": "skill://a?b"})),
        ("call_tool", json!({"name": "zzz"})),
        (
            "call_tool",
            json!({"name": "sql_query", "session_id": "zzz"}),
        ),
    ] {
        told.push(agent.refused(tool, arguments).await);
    }
    // What to do next can be done with these four tools.
    for told in told {
        let steps: Vec<_> = told
            .lines()
            .filter(|line| line.starts_with("Next: "))
            .collect();
        assert!(!steps.is_empty(), "{told}");
        assert!(
            !told.contains("List the") && !told.contains("Search "),
            "{told}"
        );
    }
    let nothing = agent.call("find_skills", json!({"task": "zzzzqqqq"})).await;
    assert_eq!(
        nothing,
        "No skill fits. Try other words, or go on without one."
    );
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_miss_is_helped_by_every_tool() {
    let world = searchable().await;
    let client = client(&world, None).await;
    let call = async |tool: &'static str, arguments: Json| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = client.call_tool(request).await.expect("a result");
        (text(&result), result.is_error == Some(true))
    };
    for (tool, arguments, sentence) in [
        (
            "compose_skills",
            json!({"skills": ["wirte_sql"]}),
            "there is no skill 'wirte_sql'; did you mean `write_sql`?",
        ),
        (
            "get_version",
            json!({"skill_id": "write_sql", "version_number": 9}),
            "Next: It has version 1 alone, 2.0.0",
        ),
        (
            "get_skill",
            json!({}),
            "one form: skill_id, include_readme, include_versions, include_security; or uri",
        ),
        (
            "get_skill",
            json!({"uri": "skill://write_sql", "skill_id": "write_sql"}),
            "one form: skill_id, include_readme, include_versions, include_security; or uri",
        ),
        (
            "skill",
            json!({"command": "  "}),
            "Skill name cannot be empty",
        ),
        (
            "list_skills",
            json!({"first": 1, "second": 2}),
            "Unrecognized key(s) in object: 'first', 'second'\nField first\nField second\n",
        ),
    ] {
        let (told, is_error) = call(tool, arguments).await;
        assert!(is_error && told.contains(sentence), "{tool}: {told}");
    }
    for (tool, arguments, sentence) in [
        (
            "compose_skills",
            json!({"skills": "write_sql"}),
            "\"sql_query\"",
        ),
        (
            "compose_skills",
            json!({"skills": "[\"write_sql\"]"}),
            "\"sql_query\"",
        ),
        (
            "get_skill",
            json!({"uri": "write_sql/examples.md"}),
            "# SQL Query",
        ),
        (
            "get_skill",
            json!({"uri": "skill://write_sql/examples.md"}),
            "# SQL Query",
        ),
    ] {
        let (told, is_error) = call(tool, arguments).await;
        assert!(!is_error && told.contains(sentence), "{tool}: {told}");
    }
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_loaded_skill_forbids_is_forbidden_in_every_spelling() {
    for denial in ["sql_query", "SQL-query", "sql-*"] {
        let mut world = searchable().await;
        let front = format!("forbidden_tools: ['{denial}']\n");
        let careful = skill("acme/tools/careful", &front, "Forbids.");
        world.publish(careful).await;
        let mut agent = Agent::new(&world).await;
        for name in ["write_sql", "careful"] {
            agent.call("load_skill", json!({"skill_id": name})).await;
        }
        for spelled in [
            "sql_query",
            "sql-query",
            "SQL-Query",
            "SQL_QUERY",
            " sql_query",
            "sql query ",
        ] {
            let call = json!({"name": spelled, "arguments": {"query": "SELECT 1"}});
            let refused = agent.refused("call_tool", call).await;
            assert!(
                refused.contains("'careful'"),
                "{denial} {spelled}: {refused}"
            );
            assert!(
                refused.contains("'sql_query'"),
                "{denial} {spelled}: {refused}"
            );
        }
        world.domain.close().await;
    }
}
