//! Forms that others rely on, held as files. `UPDATE_GOLDEN=1 cargo test --test quick` writes
//! them anew; read what changed before you commit it.

mod faces;
mod help;
mod reference;
mod rules;

use std::fmt::Write as _;
use std::path::Path;

use contract::FILE_DESCRIPTOR_SET;
use model::Code;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;
use similar::TextDiff;

use crate::support;

fn check(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).expect("a golden file");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let changed = TextDiff::from_lines(expected.as_str(), found);
    assert!(
        expected == found,
        "{file} is not what it was. `UPDATE_GOLDEN=1 cargo test --test quick` renders it again; the difference is\n{}",
        changed.unified_diff().context_radius(0)
    );
}

fn type_of(field: &FieldDescriptor) -> String {
    let name = match field.kind() {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(names) => names.full_name().to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    };
    if field.is_list() {
        format!("repeated {name}")
    } else {
        name
    }
}

fn fields(message: &MessageDescriptor, out: &mut String) {
    writeln!(out, "message {}", message.full_name()).expect("text");
    for field in message.fields() {
        writeln!(
            out,
            "  {} = {} {}",
            field.name(),
            field.number(),
            type_of(&field)
        )
        .expect("text");
    }
}

#[test]
fn the_contract_keeps_its_names_and_numbers() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let ours = |package: &str| package == "repertoire.v1";
    let mut out = String::new();
    for service in pool.services().filter(|s| ours(s.package_name())) {
        writeln!(out, "service {}", service.full_name()).expect("text");
        for method in service.methods() {
            let stream = |streams: bool| if streams { "stream " } else { "" };
            writeln!(
                out,
                "  {} ({}{}) returns ({}{})",
                method.name(),
                stream(method.is_client_streaming()),
                method.input().name(),
                stream(method.is_server_streaming()),
                method.output().name(),
            )
            .expect("text");
        }
    }
    for message in pool.all_messages().filter(|m| ours(m.package_name())) {
        fields(&message, &mut out);
    }
    for names in pool.all_enums().filter(|e| ours(e.package_name())) {
        writeln!(out, "enum {}", names.full_name()).expect("text");
        for value in names.values() {
            writeln!(out, "  {} = {}", value.name(), value.number()).expect("text");
        }
    }
    check("tests/golden/contract.txt", &out);
}

#[test]
fn every_public_part_of_the_contract_says_what_it_is() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let mut silent = Vec::new();
    for file in pool.files().filter(|f| f.package_name() == "repertoire.v1") {
        let proto = file.file_descriptor_proto();
        let commented: std::collections::BTreeSet<Vec<i32>> = proto
            .source_code_info
            .iter()
            .flat_map(|info| &info.location)
            .filter(|place| {
                place
                    .leading_comments
                    .as_deref()
                    .is_some_and(|text| !text.trim().is_empty())
            })
            .map(|place| place.path.clone())
            .collect();
        let mut want = |path: &[i32], name: String| {
            if !commented.contains(path) {
                silent.push(name);
            }
        };
        for (m, message) in (0..).zip(file.messages()) {
            want(&[4, m], message.full_name().to_owned());
            for (f, field) in
                (0..).zip(&proto.message_type[usize::try_from(m).expect("an index")].field)
            {
                want(
                    &[4, m, 2, f],
                    format!("{}.{}", message.full_name(), field.name()),
                );
            }
        }
        for (e, names) in (0..).zip(file.enums()) {
            want(&[5, e], names.full_name().to_owned());
        }
        for (s, service) in (0..).zip(file.services()) {
            want(&[6, s], service.full_name().to_owned());
            for (m, method) in (0..).zip(service.methods()) {
                want(&[6, s, 2, m], method.full_name().to_owned());
            }
        }
    }
    assert_eq!(silent, Vec::<String>::new());
}

#[test]
fn every_unary_rpc_has_a_route_and_every_route_one_rpc() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let http = pool
        .get_extension_by_name("google.api.http")
        .expect("the option");
    let mut routes = std::collections::BTreeMap::<String, String>::new();
    for method in pool
        .services()
        // `Admin` is for the local socket alone.
        .filter(|s| s.package_name() == "repertoire.v1" && s.name() != "Admin")
        .flat_map(|s| s.methods().collect::<Vec<_>>())
    {
        let options = method.options();
        let rule = options.get_extension(&http);
        let rule = rule.as_message().expect("a rule").clone();
        let mut rules = vec![rule.clone()];
        if let Some(more) = rule.get_field_by_name("additional_bindings") {
            rules.extend(
                more.as_list()
                    .expect("a list")
                    .iter()
                    .filter_map(|r| r.as_message().cloned()),
            );
        }
        let mut found = 0;
        for rule in rules {
            for verb in ["get", "put", "post", "delete", "patch"] {
                let path = rule
                    .get_field_by_name(verb)
                    .and_then(|p| p.as_str().map(str::to_owned))
                    .unwrap_or_default();
                if !path.is_empty() {
                    found += 1;
                    let before = routes.insert(format!("{verb} {path}"), method.name().to_owned());
                    assert_eq!(before, None, "{verb} {path} leads to two rpcs");
                }
            }
        }
        assert!(
            found > 0 || method.is_client_streaming(),
            "{} has no route",
            method.name()
        );
    }
}

/// hyper refuses a longer URI with an answer that no document describes.
const MAX_URI_BYTES: u64 = 65_534;

/// Bytes of a query parameter at its longest, `&` and `=` included. Its text is taken to
/// need no percent-encoding; numbers, dates and names of enums are shorter than 40 bytes.
fn longest(parameter: &Value) -> u64 {
    let schema = &parameter["schema"];
    let (items, item) = match schema.get("items") {
        Some(item) => (schema["maxItems"].as_u64().expect("a limit"), item),
        None => (1, schema),
    };
    let open_text = item["type"] == "string" && item["enum"].is_null() && item["format"].is_null();
    let length = match item["maxLength"].as_u64() {
        Some(length) => length,
        None if open_text => panic!("no limit: {parameter}"),
        None => 40,
    };
    let name = parameter["name"].as_str().expect("a name").len() as u64;
    items * (name + 2 + length)
}

#[test]
fn whatever_the_query_of_a_route_may_hold_fits_into_a_uri() {
    let document = contract::load().expect("the contract").openapi();
    let mut too_long = Vec::new();
    let paths = document["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let query = parameters.filter(|parameter| parameter["in"] == "query");
            // Ids in the path may be a thousand bytes long.
            let bytes = 1_000 + query.map(longest).sum::<u64>();
            if bytes > MAX_URI_BYTES {
                too_long.push(format!("{method} {path}: {bytes}"));
            }
        }
    }
    assert_eq!(too_long, Vec::<String>::new());
}

#[test]
fn the_page_of_errors_lists_every_code() {
    let mut out = String::from(
        "# Errors\n\n\
         Every refusal has one of these codes, the same on every face. In gRPC it is `reason` of a `google.rpc.ErrorInfo` with domain\n\
         `repertoire`, whose metadata hold the number and facts such as `skill_id`; `google.rpc.BadRequest` names the fields, or the file\n\
         and line of a skill, that are wrong; `google.rpc.Help` says what to do next; `google.rpc.RetryInfo` when to try again.\n\n\
         Act on the code, never on the message.\n\n\
         | code | number | gRPC status | what it means |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let status = contract::status(model::Failure::new(*code, "x")).code();
        writeln!(
            out,
            "| `{}` | {} | {status:?} | {} |",
            code.name(),
            code.number(),
            code.meaning()
        )
        .expect("text");
    }
    check("docs/errors.md", &out);
}

/// A person writes what is above the table.
#[test]
fn the_page_of_access_lists_what_each_call_needs() {
    const TABLE: &str = "<!-- The table is rendered from the contract. -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/access.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let (mut out, _) = page
        .split_once(TABLE)
        .map(|(above, table)| (format!("{above}{TABLE}"), table))
        .expect("a table");
    out.push_str("| call | action | done to | recorded | tools |\n|---|---|---|---|---|\n");
    let contract = contract::load().expect("the contract");
    for method in contract.methods() {
        let tools = method.tool_names().map(|name| format!("`{name}`"));
        let mut tools: Vec<_> = tools.collect();
        // One of two forms, by what the client can take.
        tools.dedup();
        let skill = match method.skill.as_str() {
            "" => String::new(),
            field => format!("`{field}`"),
        };
        let path = format!("/repertoire.v1.{}/{}", method.service, method.name);
        let recorded = if contract::is_recorded(&path) {
            "yes"
        } else {
            ""
        };
        writeln!(
            out,
            "| `{}.{}` | `{}` | {skill} | {recorded} | {} |",
            method.service,
            method.name,
            method.action,
            tools.join(", ")
        )
        .expect("text");
    }
    check("docs/access.md", &out);
}

/// Every format that was ever released is read by every later version. The file
/// was written by the first version with this format: `repertoire backup` of a
/// directory with two versions of `local/global/kept`, the second one withdrawn.
#[test]
fn a_backup_of_the_first_format_is_read() {
    let directory = tempfile::TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let backup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1.backup");
    let run = |args: &[&str]| {
        let output = support::command(&[args, &["--data", &data, "--json"]].concat());
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    run(&["restore", &backup.display().to_string()]);
    let verified: Value = serde_json::from_slice(&run(&["verify"])).expect("JSON");
    assert_eq!(
        (&verified["whole"], &verified["damage"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
    let versions: Value = serde_json::from_slice(&run(&["versions", "kept"])).expect("JSON");
    let states: Vec<_> = versions["versions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| {
            format!(
                "{} {} {} {}",
                v["version_number"], v["semantic_version"], v["active"], v["yanked"]
            )
        })
        .collect();
    assert_eq!(states, ["2 \"1.1.0\" false true", "1 \"1.0.0\" true false"]);
    assert_eq!(versions["versions"][0]["yank_reason"], "a test");
    assert_eq!(
        String::from_utf8(run(&["read", "kept", "notes.md"])).expect("text"),
        "What is kept, is kept.\n"
    );
}
