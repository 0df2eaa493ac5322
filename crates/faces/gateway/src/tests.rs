//! What the gateway promises, on the contract in `proto`.

mod arguments;
mod fuzz;
mod query;
mod schemas;
mod write;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use prost_reflect::{DynamicMessage, ReflectMessage as _, Value as Any};
use serde_json::{Map, Value as Json, json};

use super::*;

/// The contract as the build of the server compiles it.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../proto");
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
