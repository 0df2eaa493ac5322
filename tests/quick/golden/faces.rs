//! What REST and MCP say of the contract: the `OpenAPI` document and the tools, with a line for
//! each part that names what it takes and answers, and a digest of all that is served of it.
//!
//! `docs/rpcs.md`, `docs/messages.md` and `docs/mcp-tools.md` have the words.

use std::fmt::Write as _;

use model::Digest;
use serde_json::{Value as Json, json};

use super::check;

/// A line about a part, whose digest is that of its JSON in the order that is served.
fn line(out: &mut String, what: &str, part: &Json) {
    const DIGEST_CHARS: usize = 12;
    let digest = Digest::of(part.to_string().as_bytes()).hex();
    writeln!(out, "{what} sha256:{}", &digest[..DIGEST_CHARS]).expect("text");
}

fn object(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Json) -> &str {
    json.as_str().expect("a text")
}

/// ` what=a,b*`, where what must be there has the mark; nothing where there are no names.
fn named<'a>(what: &str, names: impl Iterator<Item = (&'a str, bool)>) -> String {
    let names = names.map(|(name, must)| format!("{name}{}", if must { "*" } else { "" }));
    let names: Vec<String> = names.collect();
    match names.join(",").as_str() {
        "" => String::new(),
        names => format!(" {what}={names}"),
    }
}

fn members(what: &str, schema: &Json) -> String {
    let must = |name: &str| list(&schema["required"]).any(|it| it == name);
    let names = object(&schema["properties"]).map(|(name, _)| (name.as_str(), must(name)));
    named(what, names)
}

fn operation(verb: &str, path: &str, operation: &Json) -> String {
    let query = list(&operation["parameters"]).filter(|it| it["in"] == "query");
    let query = query.map(|it| (text(&it["name"]), it["required"] == true));
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let answers = object(&operation["responses"]["200"]["content"]);
    let answers = answers.map(|(media, it)| {
        let message = it["schema"]["$ref"].as_str();
        let message = message.and_then(|it| it.rsplit('/').next());
        (message.unwrap_or(media), false)
    });
    format!(
        "{} {path} {}{}{}{}",
        verb.to_uppercase(),
        text(&operation["operationId"]),
        named("query", query),
        members("body", body),
        named("answer", answers)
    )
}

#[test]
fn the_openapi_document_keeps_its_form() {
    let document = contract::load().expect("a contract").openapi();
    let mut out = String::new();
    line(&mut out, "the whole document", &document);
    for (key, value) in object(&document) {
        match key.as_str() {
            "paths" => {
                for (path, operations) in object(value) {
                    for (verb, it) in object(operations) {
                        line(&mut out, &operation(verb, path, it), it);
                    }
                }
            }
            "components" => {
                for (kind, parts) in object(value) {
                    for (name, it) in object(parts) {
                        let members = members("members", it);
                        line(&mut out, &format!("{kind}/{name}{members}"), it);
                    }
                }
            }
            _ => line(&mut out, key, value),
        }
    }
    check("tests/golden/openapi.txt", &out);
}

#[test]
fn tools_keep_their_names_and_schemas() {
    let contract = contract::load().expect("the contract");
    let (mut out, mut whole) = (String::new(), Vec::new());
    for set in contract.toolsets().keys() {
        for tool in contract.tools(Some(set)) {
            let told = json!({
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input,
                "outputSchema": tool.output,
                "readOnly": tool.hints.read_only,
                "destructive": tool.hints.destructive,
                "idempotent": tool.hints.idempotent,
                "openWorld": tool.hints.open_world,
                "catalog": tool.catalog,
            });
            let what = format!(
                "{set}/{}{}{}",
                tool.name,
                members("takes", &told["inputSchema"]),
                members("answers", &told["outputSchema"])
            );
            line(&mut out, &what, &told);
            whole.push(told);
        }
    }
    line(&mut out, "all tools", &whole.into());
    check("tests/golden/tools.txt", &out);
}
