use super::*;
use testing::fuzz;

/// The method that the first line names, and the rest.
fn split<'a>(contract: &Contract, input: &'a [u8]) -> (Arc<Method>, &'a [u8]) {
    let line = input.iter().position(|byte| *byte == b'\n');
    let (name, rest) = input.split_at(line.unwrap_or(input.len()));
    let mut methods = contract.methods().iter();
    let found = methods.find(|method| method.name.as_bytes() == name);
    // Any other name is one, too.
    let any = contract
        .methods()
        .get(name.len() % contract.methods().len());
    let method = found.or(any).expect("a method");
    (Arc::clone(method), rest.get(1..).unwrap_or_default())
}

#[test]
fn fuzz_requests_in_json() {
    let contract = contract();
    let words = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "true",
        "1.5",
        "\"skill_id\":",
        "\"a\":",
        "\"arguments\":",
        "\"files\":",
        "\"\\ud800\"",
        "CallTool\n",
        "\"2026-01-31T12:00:00Z\"",
        "9007199254740992",
        "-0",
        "1e-400",
    ];
    fuzz("rest_json", &words, |input| {
        let (method, text) = split(&contract, input);
        let Ok(Json::Object(json)) = strict_json(text) else {
            return;
        };
        match contract.read(&method.input, json, None) {
            Ok(message) => {
                // What was read is a message, which can be written.
                let bytes = message.encode_to_vec();
                assert!(contract.check(&method.input, &bytes).is_ok());
                assert!(contract.write(&method.input, &bytes).is_ok());
            }
            Err(wrong) => assert!(!wrong.is_empty()),
        }
    });
}

#[test]
fn fuzz_answers_in_protobuf() {
    let contract = contract();
    let words = [
        "\n\u{3}abc",
        "\u{8}\u{1}",
        "\u{12}\u{2}\u{8}\u{1}",
        "ListSkills\n",
        "\u{1a}\0",
    ];
    fuzz("protobuf", &words, |input| {
        let (method, bytes) = split(&contract, input);
        let is_whole = contract.check(&method.output, bytes).is_ok();
        let mut text = String::new();
        let as_text = contract.write_text(&method.output, bytes, &mut text);
        let as_json = contract.write(&method.output, bytes);
        assert!(!is_whole || (as_text.is_ok() && as_json.is_ok()));
        if as_text.is_ok() {
            serde_json::from_str::<Json>(&text).expect("JSON");
        }
    });
}
