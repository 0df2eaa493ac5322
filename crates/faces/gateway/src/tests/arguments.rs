//! Arguments as hosts and models write them, and what is said of wrong ones.

use super::*;

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
