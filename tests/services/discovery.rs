//! Skills at well-known places, and over `ClawHub`'s protocol.

use std::collections::BTreeMap;
use std::io::Read as _;

use contract::v1;
use model::Digest;
use serde_json::{Value, json};

use crate::support::web::{Answer, ask, get};
use crate::support::{Server, file, skill};

async fn publish(server: &Server, id: &str, version: &str, files: &[(&str, &str)]) {
    let front_matter = format!("version: {version}\n");
    let mut request = skill(id, &front_matter, &format!("Body {version}."));
    let more = files
        .iter()
        .map(|(path, text)| file(path, (*text).to_owned()));
    request.files.extend(more);
    request.change_summary = format!("Made {version}.");
    let mut registry = if id.starts_with("local/project/") {
        server.local_registry().await
    } else {
        server.registry().await
    };
    registry.publish_skill(request).await.expect("published");
}

fn entries(index: &Answer) -> BTreeMap<String, Value> {
    assert_eq!(index.header("content-type"), "application/json");
    let index = index.json();
    let skills = index["skills"].as_array().expect("skills").iter();
    let entries = skills.map(|skill| (text(&skill["name"]), skill.clone()));
    entries.collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entries = archive.entries().expect("a tar").map(|entry| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("bytes");
        (path, bytes)
    });
    entries.collect()
}

const INDEX: &str = "/.well-known/agent-skills/index.json";

#[tokio::test]
async fn the_index_leads_to_bytes_of_the_digest_it_gives() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.0.0", &[]).await;
    let files = [
        ("references/a b.md", "Guide.\n"),
        ("scripts/run.sh", "true\n"),
    ];
    publish(&server, "github/acme/billing", "1.0.0", &files).await;
    // Loses its short name to the project's.
    publish(&server, "github/zeta/billing", "1.0.0", &files).await;
    publish(&server, "github/acme/tickets", "1.0.0", &[]).await;
    publish(&server, "local/project/tickets", "2.0.0", &[]).await;
    publish(&server, "github/acme/snake_case", "1.0.0", &[]).await;

    let index = get(&server.url, INDEX).await;
    assert_eq!(
        index.json()["$schema"],
        "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    );
    let skills = entries(&index);
    assert!(!skills.contains_key("write_sql") && !skills.contains_key("snake_case"));
    assert_eq!(
        index.json()["skills"].as_array().map(Vec::len),
        Some(skills.len())
    );
    let kinds: BTreeMap<_, _> = skills
        .iter()
        .map(|(n, s)| (n.as_str(), text(&s["type"])))
        .collect();
    assert_eq!(
        (kinds["refunds"].as_str(), kinds["billing"].as_str()),
        ("skill-md", "archive")
    );
    assert_eq!(
        skills["tickets"]["url"],
        "/.well-known/agent-skills/local/project/tickets/@1/SKILL.md"
    );
    for (name, skill) in &skills {
        let answer = get(&server.url, &text(&skill["url"])).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(
            skill["digest"],
            Digest::of(&answer.body).to_string(),
            "{name}"
        );
        assert_eq!(
            answer.header("etag"),
            format!("\"{}\"", text(&skill["digest"]))
        );
        assert!(
            answer.header("cache-control").contains("immutable"),
            "{name}"
        );
        assert!(
            answer
                .header("content-security-policy")
                .starts_with("sandbox")
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let archive = get(&server.url, &text(&skills["billing"]["url"])).await;
    let unpacked = unpack(&archive.body);
    let paths: Vec<_> = unpacked.keys().map(String::as_str).collect();
    assert_eq!(paths, ["SKILL.md", "references/a b.md", "scripts/run.sh"]);
    assert_eq!(unpacked["references/a b.md"], b"Guide.\n");
}

#[tokio::test]
async fn what_an_index_led_to_stays_when_the_skill_goes_on() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.0.0", &[]).await;
    let old = entries(&get(&server.url, INDEX).await)["refunds"].clone();
    publish(&server, "github/acme/refunds", "1.1.0", &[("a.md", "a\n")]).await;
    let new = entries(&get(&server.url, INDEX).await)["refunds"].clone();
    assert_eq!(
        (&old["type"], &new["type"]),
        (&json!("skill-md"), &json!("archive"))
    );
    for skill in [&old, &new] {
        let answer = get(&server.url, &text(&skill["url"])).await;
        assert_eq!(skill["digest"], Digest::of(&answer.body).to_string());
    }
    // By the name it is what is active now, and need not be kept.
    let now = get(&server.url, "/.well-known/agent-skills/refunds.tar.gz").await;
    assert_eq!(new["digest"], Digest::of(&now.body).to_string());
    assert_eq!(now.header("cache-control"), "no-cache");
    assert_eq!(
        now.header("content-disposition"),
        "attachment; filename=\"refunds-1.1.0.tar.gz\""
    );
    let now = get(&server.url, "/.well-known/agent-skills/refunds/a.md").await;
    assert_eq!(
        (now.text().as_str(), now.header("content-type")),
        ("a\n", "text/markdown; charset=utf-8")
    );
}

#[tokio::test]
async fn the_older_index_lists_files_that_are_there() {
    let server = Server::start();
    let files = [("references/a b.md", "Guide.\n"), ("assets/ä.txt", "ä\n")];
    publish(&server, "github/acme/refunds", "1.0.0", &files).await;
    let index = get(&server.url, "/.well-known/skills/index.json").await;
    let skill = entries(&index)["refunds"].clone();
    assert_eq!(skill["description"], "Does refunds.");
    assert_eq!(
        skill["files"],
        json!(["SKILL.md", "assets/ä.txt", "references/a b.md"])
    );
    for (path, expected) in [
        ("references/a%20b.md", "Guide.\n"),
        ("assets/%C3%A4.txt", "ä\n"),
    ] {
        let path = format!("/.well-known/skills/refunds/{path}");
        assert_eq!(get(&server.url, &path).await.text(), expected);
    }
}

#[tokio::test]
async fn an_index_of_many_pages_is_whole_and_the_same_each_time() {
    let server = Server::start();
    for n in 0..450 {
        let id = format!("github/acme/s{n:03}");
        let files: &[_] = if n % 90 == 0 { &[("a.md", "a\n")] } else { &[] };
        publish(&server, &id, "1.0.0", files).await;
    }
    let index = get(&server.url, INDEX).await;
    let names: Vec<_> = entries(&index)
        .into_keys()
        .filter(|n| n.len() == 4 && n.starts_with('s'))
        .collect();
    let expected: Vec<_> = (0..450).map(|n| format!("s{n:03}")).collect();
    assert_eq!(names, expected);
    let again = get(&server.url, INDEX).await;
    assert_eq!(index.body, again.body);

    let tag = index.header("etag").to_owned();
    let known = ask(&server.url, "GET", INDEX).header("if-none-match", &tag);
    assert_eq!(known.send().await.status, 304);
    publish(&server, "github/acme/more", "1.0.0", &[]).await;
    let known = ask(&server.url, "GET", INDEX).header("if-none-match", &tag);
    assert_eq!(known.send().await.status, 200);
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.0.0", &[]).await;
    for (path, code) in [
        ("/.well-known/agent-skills/", "ROUTE_NOT_FOUND"),
        ("/.well-known/agent-skills/refunds", "ROUTE_NOT_FOUND"),
        (
            "/.well-known/agent-skills/Refunds/SKILL.md",
            "ROUTE_NOT_FOUND",
        ),
        (
            "/.well-known/agent-skills/write_sql.tar.gz",
            "ROUTE_NOT_FOUND",
        ),
        ("/.well-known/agent-skills/nope/SKILL.md", "SKILL_NOT_FOUND"),
        ("/.well-known/agent-skills/nope.tar.gz", "SKILL_NOT_FOUND"),
        (
            "/.well-known/agent-skills/refunds/nope.md",
            "FILE_NOT_FOUND",
        ),
        (
            "/.well-known/agent-skills/refunds/..%2f..%2fx",
            "FILE_NOT_FOUND",
        ),
        (
            "/.well-known/agent-skills/github/acme/refunds/@0/SKILL.md",
            "ROUTE_NOT_FOUND",
        ),
        (
            "/.well-known/agent-skills/github/acme/refunds/@x/SKILL.md",
            "ROUTE_NOT_FOUND",
        ),
        (
            "/.well-known/agent-skills/github/acme/refunds/@9/SKILL.md",
            "VERSION_NOT_FOUND",
        ),
        ("/clawhub/api/v1/skills/nope", "SKILL_NOT_FOUND"),
        (
            "/clawhub/api/v1/skills/refunds/versions/9.9.9",
            "VERSION_NOT_FOUND",
        ),
        (
            "/clawhub/api/v1/skills/refunds/file?path=nope",
            "FILE_NOT_FOUND",
        ),
        (
            "/clawhub/api/v1/download?slug=refunds&tag=beta",
            "VERSION_NOT_FOUND",
        ),
        ("/clawhub/api/v1/nope", "ROUTE_NOT_FOUND"),
    ] {
        let answer = get(&server.url, path).await;
        assert_eq!(answer.refusal(), (404, code.to_owned()), "{path}");
    }
    for path in [
        "search",
        "resolve",
        "resolve?slug=refunds",
        "download",
        "skills/refunds/file",
    ] {
        let answer = get(&server.url, &format!("/clawhub/api/v1/{path}")).await;
        assert_eq!(
            answer.refusal(),
            (400, "MISSING_PARAMETER".to_owned()),
            "{path}"
        );
    }
    let posted = ask(&server.url, "POST", "/clawhub/api/v1/skills")
        .send()
        .await;
    assert_eq!(posted.refusal(), (405, "METHOD_NOT_ALLOWED".to_owned()));
}

/// A page of the protocol.
async fn api(server: &Server, path: &str) -> Answer {
    let answer = get(&server.url, &format!("/clawhub/api/v1/{path}")).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer
}

/// A server with skills for a client of the protocol.
async fn hub() -> Server {
    let server = Server::start();
    publish(
        &server,
        "github/acme/refunds",
        "1.0.0",
        &[("Zoo.md", "z\n"), ("apex.md", "a\n")],
    )
    .await;
    publish(&server, "github/acme/refunds", "1.1.0", &[]).await;
    publish(&server, "github/acme/refunds-desk", "1.0.0", &[]).await;
    server
}

#[tokio::test]
async fn a_clawhub_client_is_led_to_the_protocol() {
    let server = Server::start();
    let base = get(&server.url, "/.well-known/clawhub.json").await.json();
    assert_eq!(base["apiBase"], format!("{}/clawhub", server.url));
    let behind = ask(&server.url, "GET", "/.well-known/clawhub.json");
    let behind = behind
        .header("x-forwarded-proto", "https")
        .send()
        .await
        .json();
    assert_eq!(
        base["apiBase"],
        text(&behind["apiBase"]).replace("https:", "http:")
    );
}

#[tokio::test]
async fn a_clawhub_client_finds_skills() {
    let server = hub().await;
    // What was just published is found within a second.
    let mut found = Vec::new();
    for _ in 0..10_000 {
        let answer = api(&server, "search?q=Refunds&limit=5&highlightedOnly=true").await;
        let answer = answer.json();
        found.clone_from(answer["results"].as_array().expect("results"));
        if found
            .get(1)
            .is_some_and(|second| second["slug"] == "refunds-desk")
        {
            break;
        }
    }
    assert_eq!(
        (&found[0]["slug"], &found[0]["score"]),
        (&json!("refunds"), &json!(1.0))
    );
    assert_eq!(found[1]["slug"], "refunds-desk");
    let score = found[1]["score"].as_f64().expect("a score");
    assert!(
        (0.75..1.0).contains(&score),
        "every word in the name: {score}"
    );
    assert_eq!(
        (&found[0]["version"], &found[0]["summary"]),
        (&json!("1.1.0"), &json!("Does refunds."))
    );
    assert!(found[0]["updatedAt"].as_i64() > Some(1_700_000_000_000));
}

#[tokio::test]
async fn a_clawhub_client_pages_through_the_skills() {
    let server = hub().await;
    let mut slugs = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api(&server, &format!("skills?limit=3&cursor={cursor}"))
            .await
            .json();
        let items = page["items"].as_array().expect("items");
        assert!(items.len() == 3 || page["nextCursor"].is_null(), "{page}");
        slugs.extend(items.iter().map(|item| text(&item["slug"])));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let listed = get(&server.url, "/api/v1/skills").await.json();
    let names: Vec<_> = listed["skills"]
        .as_array()
        .expect("skills")
        .iter()
        .map(|s| text(&s["short_name"]))
        .collect();
    assert_eq!(slugs, names);
}

#[tokio::test]
async fn a_clawhub_client_gets_skills_versions_and_files() {
    let server = hub().await;
    let skill = api(&server, "skills/refunds").await.json();
    assert_eq!(skill["skill"]["tags"], json!({"latest": "1.1.0"}));
    assert_eq!(skill["latestVersion"]["changelog"], "Made 1.1.0.");
    let versions = api(&server, "skills/refunds/versions?limit=1").await.json();
    assert_eq!(versions["items"][0]["version"], "1.1.0");
    let cursor = text(&versions["nextCursor"]);
    let versions = api(
        &server,
        &format!("skills/refunds/versions?limit=1&cursor={cursor}"),
    )
    .await
    .json();
    assert_eq!(
        (&versions["items"][0]["version"], &versions["nextCursor"]),
        (&json!("1.0.0"), &Value::Null)
    );
    let version = api(&server, "skills/refunds/versions/1.0.0").await.json();
    let files = version["version"]["files"]
        .as_array()
        .expect("files")
        .clone();
    let paths: Vec<_> = files.iter().map(|file| text(&file["path"])).collect();
    assert_eq!(paths, ["SKILL.md", "Zoo.md", "apex.md"]);
    for file in &files {
        let path = text(&file["path"]);
        let bytes = api(
            &server,
            &format!("skills/refunds/file?path={path}&version=1.0.0"),
        )
        .await
        .body;
        assert_eq!(file["sha256"], Digest::of(&bytes).hex(), "{path}");
        assert_eq!(file["size"], bytes.len());
    }
}

#[tokio::test]
async fn a_clawhub_client_names_a_version_by_its_fingerprint() {
    let server = hub().await;
    let version = api(&server, "skills/refunds/versions/1.0.0").await.json();
    let files = version["version"]["files"]
        .as_array()
        .expect("files")
        .clone();
    // As the client reckons: in the order of JavaScript, in which case counts last.
    let hex = |path: &str| {
        let file = files
            .iter()
            .find(|file| file["path"] == path)
            .expect("a file");
        format!("{path}:{}", text(&file["sha256"]))
    };
    let lines = [hex("apex.md"), hex("SKILL.md"), hex("Zoo.md")].join("\n");
    let hash = Digest::of(lines.as_bytes()).hex();
    let resolved = api(&server, &format!("resolve?slug=refunds&hash={hash}"))
        .await
        .json();
    assert_eq!(resolved["match"], json!({"version": "1.0.0"}));
    assert_eq!(resolved["latestVersion"], json!({"version": "1.1.0"}));
    let none = api(
        &server,
        &format!("resolve?slug=refunds&hash={}", "0".repeat(64)),
    )
    .await
    .json();
    assert_eq!(none["match"], Value::Null);
}

#[tokio::test]
async fn a_clawhub_client_downloads_a_zip() {
    let server = hub().await;
    for (query, count) in [
        ("slug=refunds&version=1.0.0", 3),
        ("slug=refunds&tag=latest", 1),
    ] {
        let archive = api(&server, &format!("download?{query}")).await;
        assert_eq!(archive.header("content-type"), "application/zip");
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(&archive.body)).expect("a zip");
        assert_eq!(zip.len(), count);
        let mut text = String::new();
        zip.by_name("SKILL.md")
            .expect("SKILL.md")
            .read_to_string(&mut text)
            .expect("text");
        assert!(text.starts_with("---\nname: refunds"));
    }
}

#[tokio::test]
async fn a_file_is_the_same_bytes_by_every_route() {
    let server = Server::start();
    let text = "\u{feff}Guide\r\nwith \u{1f980}\n";
    publish(&server, "github/acme/refunds", "1.0.0", &[("g.md", text)]).await;
    let digest = Digest::of(text.as_bytes()).to_string();
    let request = v1::ReadFileRequest {
        skill_id: "refunds".to_owned(),
        path: "g.md".to_owned(),
        ..Default::default()
    };
    let grpc = server
        .lookup()
        .await
        .read_file(request)
        .await
        .expect("a file")
        .into_inner();
    assert_eq!(Digest::of(&grpc.content).to_string(), digest);
    for path in [
        "/.well-known/agent-skills/refunds/g.md",
        "/.well-known/agent-skills/github/acme/refunds/@1/g.md",
        "/.well-known/skills/refunds/g.md",
        "/clawhub/api/v1/skills/refunds/file?path=g.md",
    ] {
        let answer = get(&server.url, path).await;
        assert_eq!(Digest::of(&answer.body).to_string(), digest, "{path}");
        assert_eq!(answer.header("etag"), format!("\"{digest}\""));
    }
    let archive = get(&server.url, "/api/v1/skills/refunds/export").await;
    assert_eq!(unpack(&archive.body)["g.md"], text.as_bytes());
}
