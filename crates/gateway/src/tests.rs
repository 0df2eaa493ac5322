//! What the gateway promises, on the contract in `proto`.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use prost_reflect::{DynamicMessage, ReflectMessage as _, Value as Any};
use serde_json::{Map, Value as Json, json};

use super::*;

mod fuzz;
mod query;
mod write;

/// The contract as the build of the server compiles it.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let entries = fs::read_dir(proto.join("repertoire/v1")).expect("the proto files");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut files: Vec<_> = names
        .map(|name| Path::new("repertoire/v1").join(name))
        .collect();
    files.sort();
    let mut compiler = protox::Compiler::new([proto]).expect("a folder of proto files");
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(files).expect("a contract");
    Contract::read_set(&compiler.encode_file_descriptor_set()).expect("the contract")
});

pub(super) fn contract() -> Contract {
    CONTRACT.clone()
}

/// A message of the contract with these fields.
fn message<const N: usize>(name: &str, fields: [(&str, Any); N]) -> DynamicMessage {
    let descriptor = CONTRACT.inner.pool.get_message_by_name(name);
    let mut message = DynamicMessage::new(descriptor.expect("a message"));
    for (field, value) in fields {
        message.set_field_by_name(field, value);
    }
    message
}

fn text(text: &str) -> Any {
    Any::String(text.to_owned())
}

/// A message with types as one that has none.
fn value(of: &prost_types::Value) -> Any {
    let mut value = message("google.protobuf.Value", []);
    let merged = value.transcode_from(of);
    merged.expect("the same message");
    Any::Message(value)
}

fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(object) => object,
        other => panic!("an object, not {other}"),
    }
}

fn method(contract: &Contract, name: &str) -> Arc<Method> {
    let mut methods = contract.methods().iter();
    let found = methods.find(|method| method.name == name);
    Arc::clone(found.expect("a method"))
}

/// A message as JSON.
fn written(contract: &Contract, message: &DynamicMessage) -> Json {
    let written = contract.write(&message.descriptor(), &message.encode_to_vec());
    written.expect("JSON")
}

/// What is wrong with a request, as places and sentences.
fn wrong(name: &str, request: Json) -> Vec<(String, String)> {
    let contract = contract();
    let method = method(&contract, name);
    match contract.read(&method.input, object(request), None) {
        Ok(_) => Vec::new(),
        Err(wrong) => wrong
            .into_iter()
            .map(|one| (one.field, one.message))
            .collect(),
    }
}

fn one(name: &str, request: Json) -> String {
    match wrong(name, request).as_slice() {
        [(field, sentence)] => format!("{field}: {sentence}"),
        other => panic!("one thing wrong, not {other:?}"),
    }
}

#[test]
fn a_message_is_written_as_the_specifications_write_it() {
    let contract = contract();
    let read = message(
        "repertoire.v1.ReadSkillResponse",
        [
            ("uri", text("skill://c")),
            ("mime_type", text("text/markdown")),
            ("text", text("x")),
        ],
    );
    assert_eq!(
        contract.json("ReadSkillResponse", &read).expect("JSON"),
        json!({"uri": "skill://c", "mimeType": "text/markdown", "text": "x"})
    );
    let modified = CONTRACT
        .inner
        .pool
        .get_enum_by_name("repertoire.v1.ChangeType");
    let modified = modified.and_then(|kinds| kinds.get_value_by_name("CHANGE_TYPE_MODIFIED"));
    let null = prost_types::Value {
        kind: Some(prost_types::value::Kind::NullValue(0)),
    };
    let change = message(
        "repertoire.v1.FieldChange",
        [
            ("field", text("n")),
            ("type", Any::EnumNumber(modified.expect("a name").number())),
            ("old_value", value(&prost_types::Value::from(1.0))),
            ("new_value", value(&null)),
        ],
    );
    assert_eq!(
        contract.json("FieldChange", &change).expect("JSON"),
        json!({"field": "n", "type": "modified", "old_value": 1, "new_value": null})
    );
    let half_a_second = message(
        "google.protobuf.Timestamp",
        [("nanos", Any::I32(500_000_000))],
    );
    let info = message(
        "repertoire.v1.VersionInfo",
        [
            ("created_at", Any::Message(half_a_second)),
            ("size_bytes", Any::I64(1 << 60)),
        ],
    );
    assert_eq!(
        contract.json("VersionInfo", &info).expect("JSON"),
        json!({
            "version_number": 0, "semantic_version": "", "digest": "", "created_at": "1970-01-01T00:00:00.5Z",
            "created_by": "", "change_summary": "", "active": false, "yanked": false, "yank_reason": "",
            "size_bytes": 1_u64 << 60, "file_count": 0,
        })
    );
}

/// JSON of bytes, or why they are no such message.
fn transcribed(name: &str, bytes: &[u8]) -> Result<Json, String> {
    let contract = contract();
    let methods = contract.methods().iter();
    let mut messages = methods.flat_map(|method| [&method.input, &method.output]);
    let pool = messages.next().expect("a message").parent_pool().clone();
    let message = pool.get_message_by_name(name).expect("a message");
    let written = contract.write(&message, bytes);
    let checked = contract.check(&message, bytes);
    assert_eq!(checked.is_ok(), written.is_ok(), "{checked:?}, {written:?}");
    checked.map_err(|error| error.to_string())?;
    Ok(written.expect("JSON"))
}

#[test]
fn bytes_are_read_as_any_encoder_may_write_them() {
    const STREAMED: &str = "repertoire.v1.PublishSkillsResponse";
    // An unknown field of each form that there is, groups with them.
    let unknown = [
        0xf8, 0x07, 1, 0xf9, 0x07, 0, 0, 0, 0, 0, 0, 0, 0, 0xfa, 0x07, 1, 0, 0xfb, 0x07, 0xfc,
        0x07, 0xfd, 0x07, 0, 0, 0, 0,
    ];
    let published = |uri: &str, digest: &str| {
        let version = message("repertoire.v1.VersionInfo", [("digest", text(digest))]);
        let mut published = message("repertoire.v1.PublishSkillResponse", [("uri", text(uri))]);
        if !digest.is_empty() {
            published.set_field_by_name("version", Any::Message(version));
        }
        let fields = [
            ("index", Any::U64(7)),
            ("published", Any::Message(published)),
        ];
        message(STREAMED, fields).encode_to_vec()
    };
    let refused = message("repertoire.v1.Refusal", []);
    let refused = [("index", Any::U64(8)), ("refused", Any::Message(refused))];
    let refused = message(STREAMED, refused).encode_to_vec();
    // Parts of a message one after the other are one message; of fields that
    // exclude each other, the last one counts.
    for parts in [
        vec![published("skill://c", "d"), unknown.to_vec()],
        vec![published("skill://c", ""), published("", "d")],
        vec![refused.clone(), published("skill://c", "d")],
        vec![published("skill://c", "d"), refused],
    ] {
        let bytes = parts.concat();
        let mut message = message(STREAMED, []);
        message.merge(bytes.as_slice()).expect("a message");
        let written = contract().json("PublishSkillsResponse", &message);
        assert_eq!(transcribed(STREAMED, &bytes), Ok(written.expect("JSON")));
    }
    // Several at once, one by one, and one that this contract does not name.
    let types = [0x1a, 2, 1, 2, 0x18, 1, 0x18, 99];
    let written = transcribed("repertoire.v1.WatchRequest", &types).expect("JSON");
    let name = |number: i32| {
        let types = CONTRACT
            .inner
            .pool
            .get_enum_by_name("repertoire.v1.EventType");
        let name = types.and_then(|types| types.get_value(number));
        let name = name.expect("an event");
        let name = name.name().trim_start_matches("EVENT_TYPE_");
        name.to_ascii_lowercase()
    };
    assert_eq!(
        written["types"],
        json!([name(1), name(2), name(1), "99".to_owned()])
    );
}

#[test]
fn json_is_written_out_as_it_writes_itself() {
    for json in [
        json!({"a": [1, -2.5, true, null, "x", [], {}], "b\"": {"c": "é\u{2028}😀"}}),
        json!("tab\t, quote\", back\\, bell\u{7}, delete\u{7f}"),
        json!(["", {"": ""}, u64::MAX, i64::MIN, 1e300]),
        json!(null),
    ] {
        assert_eq!(json::text_of(&json), json.to_string());
    }
}

#[test]
fn bytes_that_are_no_message_are_refused_before_they_are_written() {
    let refused = |bytes: &[u8]| {
        let read = transcribed("repertoire.v1.ReadSkillResponse", bytes);
        read.expect_err("a refusal")
    };
    assert_eq!(refused(&[0x0a, 5, b'x']), "the message ends too early");
    assert_eq!(
        refused(&[0x0a, 1, 0xff]),
        "the message has text that is not UTF-8"
    );
    // A number where text belongs, half a number, a field without a number.
    for bytes in [&[0x08, 1][..], &[0xf8, 0x07, 0x80], &[0x02, 0]] {
        assert!(refused(bytes).starts_with("the message: "), "{bytes:?}");
    }
    let mut deep = prost_types::Value::from(1.0);
    for _ in 0..60 {
        deep = prost_types::Value::from(vec![deep]);
    }
    assert_eq!(
        transcribed("google.protobuf.Value", &deep.encode_to_vec()),
        Err("the message is too deep".to_owned())
    );
}

#[test]
fn what_is_wrong_with_arguments_is_said_in_the_words_of_the_specification() {
    let said = |request| one("ActivateSkill", request);
    assert_eq!(said(json!({})), "command: Required");
    assert_eq!(
        said(json!({"command": 7})),
        "command: Expected string, received number"
    );
    assert_eq!(
        said(json!({"command": null})),
        "command: Expected string, received null"
    );
    assert_eq!(
        said(json!({"command": "x", "extra": 1})),
        "extra: Unrecognized key(s) in object: 'extra'"
    );
    assert_eq!(
        wrong("ActivateSkill", json!({"name": "x"})),
        [
            ("command".to_owned(), "Required".to_owned()),
            (
                "name".to_owned(),
                "Unrecognized key(s) in object: 'name'".to_owned()
            ),
        ]
    );
    let both = "Unrecognized key(s) in object: 'extra', 'more'".to_owned();
    assert_eq!(
        wrong(
            "ActivateSkill",
            json!({"command": "x", "extra": 1, "more": 2})
        ),
        [
            ("extra".to_owned(), both.clone()),
            ("more".to_owned(), both)
        ]
    );
    assert_eq!(
        said(json!({"command": "x", "a\u{202e}\u{7}b": 1})),
        "a\\u{202e}\\u{7}b: Unrecognized key(s) in object: 'a\\u{202e}\\u{7}b'"
    );
}

#[test]
fn every_type_says_what_it_wants() {
    let list = |request| one("ListSkills", request);
    assert_eq!(
        list(json!({"page_size": "5"})),
        "page_size: Expected number, received string"
    );
    assert_eq!(
        list(json!({"page_size": 1.5})),
        "page_size: Expected integer, received float"
    );
    assert_eq!(
        list(json!({"page_size": 3_000_000_000_u64})),
        "page_size: Number must be less than or equal to 2147483647"
    );
    assert_eq!(
        list(json!({"tags": "a"})),
        "tags: Expected array, received string"
    );
    assert_eq!(
        list(json!({"tags": ["a", 1]})),
        "tags[1]: Expected string, received number"
    );
    assert_eq!(
        list(json!({"location": "mars"})),
        "location: Invalid enum value. Expected 'project' | 'user' | 'global', received 'mars'"
    );
    assert_eq!(
        one("GetVersion", json!({"skill_id": "a", "version_number": -1})),
        "version_number: Number must be greater than or equal to 0"
    );
    assert_eq!(
        one(
            "GetSkill",
            json!({"skill_id": "a", "include_readme": "yes"})
        ),
        "include_readme: Expected boolean, received string"
    );
    let publish = |request| one("PublishSkill", request);
    assert_eq!(
        publish(json!({"files": [{"path": "a", "content": "%"}]})),
        "files[0].content: Expected base64, received other text"
    );
    assert_eq!(
        publish(json!({"files": [{"path": "a", "contents": ""}]})),
        "files[0].contents: Unrecognized key(s) in object: 'contents'"
    );
    assert_eq!(
        publish(json!({"files": [3]})),
        "files[0]: Expected object, received number"
    );
}

#[test]
fn what_hosts_and_models_write_for_the_same_value_is_read_as_it() {
    let contract = contract();
    let read = |name: &str, request: Json| {
        let method = method(&contract, name);
        let all = contract.field_names(&method.input, &[]);
        let message = contract.read(&method.input, object(request), Some(&all));
        message.expect("a request")
    };
    for (name, plain, others) in [
        (
            "ListSkills",
            json!({"page_size": 5}),
            vec![
                json!({"page_size": "5"}),
                json!({"page_size": 5, "tags": null, "location": "", "source": null}),
                json!({"page_size": " 5 ", "tags": "", "location": null}),
            ],
        ),
        (
            "GetSkill",
            json!({"skill_id": "a", "include_readme": true}),
            vec![json!({"skill_id": "a", "include_readme": "true", "version_number": null})],
        ),
        (
            "CallTool",
            json!({"name": "a", "arguments": {"b": [1, "2"]}}),
            vec![json!({"name": "a", "arguments": "{\"b\": [1, \"2\"]}", "session_id": null})],
        ),
        (
            "CallTool",
            json!({"name": "a"}),
            vec![
                json!({"name": "a", "arguments": null}),
                json!({"name": "a", "arguments": ""}),
            ],
        ),
    ] {
        for other in others {
            assert_eq!(
                read(name, other.clone()),
                read(name, plain.clone()),
                "{other}"
            );
        }
    }
    let method = method(&contract, "CallTool");
    let all = contract.field_names(&method.input, &[]);
    for text in ["[]", "{\"a\": 1, \"a\": 2}", "{", "3"] {
        let call = object(json!({"name": "a", "arguments": text}));
        let wrong = contract.read(&method.input, call, Some(&all));
        let wrong = wrong.expect_err("no object");
        assert_eq!(
            wrong[0].message, "Expected object, received string",
            "{text}"
        );
    }
    // A program that speaks REST is told.
    assert_eq!(
        one("ListSkills", json!({"page_size": "5"})),
        "page_size: Expected number, received string"
    );
    assert_eq!(
        one("ActivateSkill", json!({"command": 7})),
        "command: Expected string, received number"
    );
}

#[test]
fn what_is_read_is_written_back_the_same() {
    let contract = contract();
    let publish = method(&contract, "PublishSkill");
    let request = json!({
        "skill_id": "a/b/c",
        "files": [{"path": "SKILL.md", "content": "aGk="}],
        "name": "", "description": "", "category": "", "core_content": "",
        "tool_configs": [{
            "name": "t", "description": "", "method": "m",
            "args": [{
                "name": "x", "type": "object", "description": "", "required": true,
                "default": {"a": [1, 2.5, null, true, "s", {}], "b": -3},
            }],
        }],
        "resource_configs": [], "semantic_version": "1.0.0", "author": "", "change_summary": "",
        "strict": false, "activate": false, "idempotency_key": "", "folder": "",
        "dry_run": false,
    });
    let read = contract
        .read(&publish.input, object(request.clone()), None)
        .expect("a request");
    assert_eq!(written(&contract, &read), request);
    // A whole number may be written with a fraction of zero.
    let list = method(&contract, "ListSkills");
    let read = contract
        .read(
            &list.input,
            object(json!({"page_size": 5.0, "location": "user"})),
            None,
        )
        .expect("a request");
    let list = written(&contract, &read);
    assert_eq!(
        (&list["page_size"], &list["location"]),
        (&json!(5), &json!("user"))
    );
}

#[test]
fn a_schema_says_what_a_request_accepts_and_nothing_more() {
    let contract = contract();
    let tools = contract.tools(Some("skills"));
    let skill = tools
        .iter()
        .find(|tool| tool.name == "skill")
        .expect("a tool");
    assert_eq!(
        Json::Object(skill.input.clone()),
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string", "minLength": 1, "maxLength": 400,
                    "description": "The skill name (no arguments). E.g., \"pdf\" or \"xlsx\"",
                },
            },
            "required": ["command"],
        })
    );
    let list = tools
        .iter()
        .find(|tool| tool.name == "list_skills")
        .expect("a tool");
    assert_eq!(
        list.input["properties"]["tags"],
        json!({
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 128},
            "maxItems": 16,
            "description": "Only skills that carry all of these tags.\n\nEmpty: whatever their tags.",
        })
    );
    assert_eq!(
        list.input["properties"]["location"]["enum"],
        json!(["project", "user", "global"])
    );
    let yank = tools
        .iter()
        .find(|tool| tool.name == "yank_version")
        .expect("a tool");
    assert_eq!(yank.input["required"], json!(["skill_id"]));
    assert_eq!(
        yank.input["properties"]["version_number"],
        json!({
            "type": "integer",
            "minimum": 0,
            "format": "int64",
            "description": "The version by number.\n\n0: by `semantic_version`, which is needed then.",
        })
    );
}

#[test]
fn tools_of_one_name_are_one_tool_that_takes_the_arguments_of_either() {
    let contract = contract();
    let both = contract.tools(None);
    let named: Vec<_> = both
        .iter()
        .filter(|tool| tool.name == "get_skill")
        .collect();
    let [get_skill] = named.as_slice() else {
        panic!("one get_skill, not {}", named.len());
    };
    let form = |arguments: Json| {
        let form = get_skill.form(&object(arguments)).expect("a form");
        form.method.name.clone()
    };
    assert_eq!(form(json!({"uri": "skill://a"})), "ReadSkill");
    assert_eq!(form(json!({"skill_id": "a"})), "GetSkill");
    assert_eq!(
        form(json!({"skill_id": "a", "include_readme": true})),
        "GetSkill"
    );
    assert_eq!(get_skill.input.get("required"), None);
    let alone = |set: &str| {
        let tools = contract.tools(Some(set));
        let tool = tools
            .iter()
            .find(|tool| tool.name == "get_skill")
            .expect("a tool");
        tool.input["required"].clone()
    };
    assert_eq!(alone("skills"), json!(["uri"]));
    assert_eq!(alone("discovery-core"), json!(["skill_id"]));
}

#[test]
fn toolsets_keep_to_the_sizes_that_agents_bear() {
    let contract = contract();
    assert!(contract.tools(Some("agent")).len() <= 6);
    assert!(contract.tools(Some("discovery-core")).len() <= 12);
    assert!(contract.tools(Some("no-such-set")).is_empty());
    for tool in contract.tools(None) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            (1..=64).contains(&tool.name.len()) && tool.name.chars().all(fits),
            "{}",
            tool.name
        );
        assert!(
            !tool.description.is_empty(),
            "{} has no description",
            tool.name
        );
        let chars = tool.description.chars().count();
        assert!(chars <= 1024, "{} is described in {chars}", tool.name);
        assert!(
            !(tool.hints.read_only && tool.hints.destructive),
            "{}",
            tool.name
        );
    }
}

#[test]
fn a_url_is_gathered_into_a_request() {
    let contract = contract();
    let get = method(&contract, "GetVersion");
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<Vec<_>>()
    };
    let merge = |path: &[(&str, &str)], query: &[(&str, &str)], body: Option<Json>| {
        let parts = Parts {
            path: pairs(path),
            query: pairs(query),
            body,
        };
        let gathered = contract.merge(&get, &get.routes[0], parts);
        gathered.map(Json::Object).map_err(|refusal| refusal.fields)
    };
    assert_eq!(
        merge(&[("skill_id", "a"), ("version_number", "3")], &[], None),
        Ok(json!({"skill_id": "a", "version_number": 3}))
    );
    // What is no number stays text, and is refused with its place when it is read.
    assert_eq!(
        merge(
            &[("version_number", "x")],
            &[("semantic_version", "1")],
            None
        ),
        Ok(json!({"version_number": "x", "semantic_version": "1"}))
    );
    let wrong = |field: &str, sentence: &str| Err(vec![(field.to_owned(), sentence.to_owned())]);
    assert_eq!(
        merge(
            &[],
            &[("semantic_version", "1"), ("semantic_version", "2")],
            None
        ),
        wrong("semantic_version", "Given twice")
    );
    assert_eq!(
        merge(&[], &[], Some(json!({}))),
        wrong("", "Expected no body")
    );
    let list = method(&contract, "ListSkills");
    let parts = Parts {
        query: pairs(&[("tags", "a"), ("tags", "b"), ("page_size", "7")]),
        ..Default::default()
    };
    assert_eq!(
        contract
            .merge(&list, &list.routes[0], parts)
            .map(Json::Object),
        Ok(json!({"tags": ["a", "b"], "page_size": 7}))
    );
}

#[test]
fn integers_that_a_double_cannot_hold_are_refused_by_name() {
    const NOT_EXACT: &str = "Number is too large to be carried exactly; send it as a string";
    let call = |arguments: Json| {
        let session = "0".repeat(32);
        let call = json!({"session_id": session, "name": "x", "arguments": arguments});
        wrong("CallTool", call)
    };
    let at = |places: &[&str]| -> Vec<(String, String)> {
        let told = |place: &&str| ((*place).to_owned(), NOT_EXACT.to_owned());
        places.iter().map(told).collect()
    };
    assert_eq!(
        call(json!({"id": 9_007_199_254_740_993_i64})),
        at(&["arguments.id"])
    );
    assert_eq!(
        call(json!({"a": [1, {"b": -9_007_199_254_740_992_i64}], "c": u64::MAX})),
        at(&["arguments.a[1].b", "arguments.c"])
    );
    assert_eq!(
        call(json!({"id": 9_007_199_254_740_991_i64, "rate": 1e300, "text": "9007199254740993"})),
        at(&[])
    );
    // What is carried comes back as it was, not as a fraction.
    let contract = contract();
    let call = method(&contract, "CallTool");
    let request = json!({
        "session_id": "0".repeat(32), "name": "x", "arguments": {"id": 9_007_199_254_740_991_i64},
    });
    let read = contract.read(&call.input, object(request), None);
    let written = written(&contract, &read.expect("a request"));
    assert_eq!(
        written["arguments"].to_string(),
        r#"{"id":9007199254740991}"#
    );
}
