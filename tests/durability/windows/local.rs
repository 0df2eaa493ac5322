//! What lies around an agent: skills in the folders of its project and of its user's home.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contract::v1::ListSkillsRequest;
use contract::v1::lookup_client::LookupClient;
use serde_json::{Value as Json, json};

use super::window::{LIMIT, Place, Window, until};
use crate::harness::{Server, run};

/// With every tool.
const ALL: &[&str] = &["mcp", "--toolset", "all"];

/// A SKILL.md with a tool of its own, that says a word.
fn text(name: &str, word: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Knows all about {word}.\ntool_configs:\n  - name: {name}_tool\n    \
         description: Does it.\n    method: do_it\n---\nIt says {word}.\n"
    )
}

/// A skill for whoever works in a folder.
fn write(folder: &Path, agent: &str, name: &str, word: &str) -> PathBuf {
    let folder = folder.join(agent).join("skills").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("SKILL.md"), text(name, word)).expect("a file");
    fs::write(folder.join("notes.md"), format!("Notes of {word}.")).expect("a file");
    folder.join("SKILL.md")
}

/// A window in a project, of a person with a home.
fn window(place: &Place, project: &Path, arguments: &[&str]) -> Window {
    fs::create_dir_all(project).expect("a folder");
    let mut command = place.command(arguments);
    command.current_dir(project);
    let mut window = Window::start(command);
    window.begin();
    window
}

/// The answer to a call, whatever it is.
fn said(window: &mut Window, tool: &str, arguments: &Json) -> String {
    match window.call(tool, arguments) {
        Ok(answer) => answer.to_string(),
        Err(refusal) => refusal.to_string(),
    }
}

fn structured(window: &mut Window, tool: &str, arguments: &Json) -> Json {
    let answer = window.call(tool, arguments);
    let answer = answer.unwrap_or_else(|refusal| panic!("{tool}: {refusal}"));
    answer["structuredContent"].clone()
}

#[test]
fn two_windows_see_what_lies_around_each_and_neither_what_lies_around_the_other() {
    let place = Place::new();
    let (one, two) = (place.beside("one"), place.beside("two"));
    write(&one, ".claude", "kumquat", "kumquats");
    write(&two, ".agents", "medlar", "medlars");
    write(&place.home(), ".claude", "quince", "quinces");
    let mut first = window(&place, &one, ALL);
    let mut second = window(&place, &two, ALL);
    let mut none = window(&place, &one, &[ALL, &["--no-local"]].concat());
    // With the tools that agents have by default.
    let mut agents = [&one, &two].map(|project| window(&place, project, &["mcp"]));
    let mut blind = window(&place, &one, &["mcp", "--no-local"]);
    assert_eq!(place.run(&["status"])["connections"], 7);
    let seen = |window: &mut Window| {
        let listed = window.list();
        [
            "project/kumquat",
            "project/medlar",
            "user/quince",
            "write_sql",
        ]
        .map(|id| listed.contains(id))
    };
    assert_eq!(seen(&mut first), [true, false, true, true]);
    assert_eq!(seen(&mut second), [false, true, true, true]);
    assert_eq!(seen(&mut none), [false, false, false, true]);
    // Found by what they say, under their place.
    let find = |window: &mut Window, word: &str| {
        said(
            window,
            "find_skills",
            &json!({"task": format!("all about {word}")}),
        )
    };
    let [agent, other] = &mut agents;
    let found = find(agent, "kumquats");
    assert!(found.contains("[local/project]"), "{found}");
    let found = find(agent, "quinces");
    assert!(found.contains("[local/user]"), "{found}");
    for other in [other, &mut blind] {
        let found = find(other, "kumquats");
        assert!(!found.contains("kumquat"), "{found}");
    }
    let found = structured(&mut first, "search", &json!({"query": "kumquats"}));
    assert_eq!(
        found["data"]["results"][0]["id"], "local/project/kumquat",
        "{found}"
    );
    // Loaded, and read, by its name.
    let loaded = structured(&mut first, "load_skill", &json!({"skill_id": "kumquat"}));
    assert_eq!(
        json!([
            loaded["skill_id"],
            loaded["version_number"],
            loaded["tools"]
        ]),
        json!(["local/project/kumquat", 1, ["kumquat_tool"]])
    );
    let read = json!({"skill_id": "kumquat", "path": "notes.md"});
    assert!(said(&mut first, "read_file", &read).contains("Notes of kumquats."));
    let shown = said(&mut first, "get_skill", &json!({"skill_id": "kumquat"}));
    assert!(shown.contains("local/project/kumquat"), "{shown}");
    let activated = said(&mut first, "skill", &json!({"command": "kumquat"}));
    assert!(activated.contains("It says kumquats."), "{activated}");
    let versions = structured(&mut first, "list_versions", &json!({"skill_id": "kumquat"}));
    assert_eq!(
        versions["versions"].as_array().map(Vec::len),
        Some(1),
        "{versions}"
    );
    for other in [&mut second, &mut none] {
        let refused = said(
            other,
            "load_skill",
            &json!({"skill_id": "local/project/kumquat"}),
        );
        assert!(refused.contains("SKILL_NOT_FOUND"), "{refused}");
    }
    // Nothing of it is anybody else's, or stays.
    assert!(!place.run(&["list"]).to_string().contains("kumquat"));
    drop((first, second, none, agents, blind));
    place.is_left();
    let listed = place.run(&["list"]).to_string();
    assert!(
        !listed.contains("kumquat") && !listed.contains("quince"),
        "{listed}"
    );
    let verified = place.run(&["verify"]);
    assert_eq!(verified["whole"], true);
    let metrics = place.run(&["metrics", "write_sql"]).to_string();
    assert!(!metrics.contains("kumquat"), "{metrics}");
}

#[test]
fn a_save_is_seen_at_once_and_what_was_loaded_before_is_loaded_again() {
    let place = Place::new();
    let project = place.beside("project");
    let file = write(&project, ".claude", "kumquat", "first");
    let mut window = window(&place, &project, ALL);
    let load = json!({"skill_id": "kumquat"});
    let loaded = structured(&mut window, "load_skill", &load);
    let session = loaded["session_id"].clone();
    let call = json!({"name": "kumquat_tool", "session_id": session, "arguments": {}});
    // Nothing runs it here, which is what the gate says last.
    let before = said(&mut window, "call_tool", &call);
    assert!(before.contains("TOOL_UNAVAILABLE"), "{before}");
    let mut slowest = Duration::ZERO;
    for word in ["second", "third", "fourth", "fifth", "sixth"] {
        window.notices.clear();
        fs::write(&file, text("kumquat", word)).expect("a file");
        let saved = Instant::now();
        until(word, || {
            let activated = said(&mut window, "skill", &json!({"command": "kumquat"}));
            activated
                .contains(&format!("It says {word}."))
                .then_some(())
        });
        slowest = slowest.max(saved.elapsed());
        window.is_told();
    }
    eprintln!("from a save to what an agent reads, at most: {slowest:?}");
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    // It is another skill now than what was loaded.
    let refused = said(&mut window, "call_tool", &call);
    assert!(refused.contains("SKILL_NOT_LOADED"), "{refused}");
    let listed = said(
        &mut window,
        "list_loaded_skills",
        &json!({"session_id": session}),
    );
    assert!(listed.contains("outdated"), "{listed}");
    let again = json!({"skill_id": "kumquat", "session_id": session});
    let again = structured(&mut window, "load_skill", &again);
    assert_eq!(again["already_loaded"], json!(false), "{again}");
    assert!(said(&mut window, "call_tool", &call).contains("TOOL_UNAVAILABLE"));
    // Gone is gone, and nothing else runs instead.
    fs::remove_dir_all(project.join(".claude")).expect("removed");
    until("it is gone", || {
        (!window.list().contains("kumquat")).then_some(())
    });
    let refused = said(&mut window, "call_tool", &call);
    assert!(
        refused.contains("TOOL_NOT_FOUND") || refused.contains("SKILL_NOT_FOUND"),
        "{refused}"
    );
    window.close();
}

#[test]
fn nearer_skills_go_first_and_what_they_hide_is_told() {
    let place = Place::new();
    let project = place.beside("project");
    write(&project, ".claude", "kumquat", "project");
    write(&place.home(), ".claude", "kumquat", "user");
    write(&place.home(), ".claude", "quince", "user");
    // It hides one that comes with the server, on the machine of whoever put it there.
    write(&project, ".agents", "write_sql", "another");
    let mut window = window(&place, &project, ALL);
    window.publish("kumquat").expect("published");
    window.publish("quince").expect("published");
    let mut shadowed = |command: &str| {
        let answer = structured(&mut window, "skill", &json!({"command": command}));
        (answer["skill_id"].clone(), answer["shadowed_ids"].clone())
    };
    assert_eq!(
        shadowed("kumquat"),
        (
            json!("local/project/kumquat"),
            json!(["local/user/kumquat", "local/global/kumquat"])
        )
    );
    assert_eq!(
        shadowed("quince"),
        (json!("local/user/quince"), json!(["local/global/quince"]))
    );
    assert_eq!(
        shadowed("write_sql"),
        (
            json!("local/project/write_sql"),
            json!(["builtin/repertoire/write_sql"])
        )
    );
    // What is published under the id of one in a folder is in the store, and hidden here.
    let content = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        text("kumquat", "stored"),
    );
    let files = json!([{"path": "SKILL.md", "content": content}]);
    let publish = json!({"skill_id": "local/project/kumquat", "files": files});
    structured(&mut window, "publish_skill", &publish);
    let answer = structured(&mut window, "skill", &json!({"command": "kumquat"}));
    assert!(
        answer["content"].to_string().contains("It says project."),
        "{answer}"
    );
    assert_eq!(
        answer["shadowed_ids"][0], "local/project/kumquat",
        "{answer}"
    );
    let stored = run(place.command(&["read", "local/project/kumquat"]), LIMIT).stdout;
    assert!(stored.contains("It says stored."), "{stored}");
    window.close();
    place.is_left();
    assert_eq!(place.run(&["verify"])["whole"], true);
}

#[tokio::test]
async fn nobody_but_a_window_has_folders_looked_at() {
    let place = Place::new();
    let project = place.beside("project");
    write(&project, ".claude", "kumquat", "kumquats");
    let (mut server, url) = Server::start(&place.data);
    // A window on the directory of a server that listens for others sees what is its own.
    let mut window = window(&place, &project, ALL);
    assert!(window.list().contains("local/project/kumquat"));
    // Who comes over the network may say what a window says: it is nothing that is heard.
    let encoded = |text: String| {
        let encoded = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD_NO_PAD,
            text.as_bytes(),
        );
        encoded.parse::<tonic::metadata::AsciiMetadataValue>()
    };
    let mut lookup = LookupClient::connect(url).await.expect("a server");
    let mut request = tonic::Request::new(ListSkillsRequest::default());
    let mut headers = request.metadata().clone().into_headers();
    for name in ["repertoire-folder-bin", "repertoire-around-bin"] {
        let value = encoded(project.display().to_string()).expect("text");
        let value = value.as_bytes().try_into().expect("a header");
        headers.insert(name, value);
    }
    *request.metadata_mut() = tonic::metadata::MetadataMap::from_headers(headers);
    let listed = lookup.list_skills(request).await.expect("a list");
    let mut skills = listed.into_inner().skills.into_iter();
    assert!(skills.all(|skill| skill.id.starts_with("builtin/")));
    window.close();
    server.kill();
}
