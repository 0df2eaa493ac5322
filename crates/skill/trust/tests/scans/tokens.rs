//! Tokens in the forms that skills have them in: the scan and the reader of SKILL.md both
//! see every kind in every form.

use std::collections::BTreeMap;

use repertoire_trust::{Input, Scanner};
use skill_md::ReadOptions;

/// Random letters, made where they are needed: this file has no token.
fn letters(count: usize) -> String {
    (0..count)
        .map(|at| char::from(b"q7Zk2mWx9LpR4tVb8NcY"[at % 20]))
        .collect()
}

fn kinds() -> [(&'static str, String); 7] {
    [
        ("a GitHub token", format!("ghp_{}", letters(36))),
        ("an Anthropic key", format!("sk-ant-api03-{}", letters(40))),
        (
            "an AWS access key",
            format!("AKIA{}", letters(16).to_uppercase()),
        ),
        ("a Slack token", format!("xoxb-12345098765-{}", letters(24))),
        ("a Stripe key", format!("sk_live_{}", letters(24))),
        ("an npm token", format!("npm_{}", letters(36))),
        ("a signed token", format!("eyJ{0}.eyJ{0}.{0}", letters(20))),
    ]
}

const FORMS: [&str; 13] = [
    "The token is {}.",
    "Bearer {}",
    "https://api.acme.io/?token={}&page=2",
    "api_key={}",
    "password={}",
    "secret={}",
    "git clone https://{}@git.acme.io/team/app.git",
    "Set it to \"{}\".",
    "{\"token\": \"{}\"}",
    "token: {}",
    "export ACME_TOKEN={}",
    "curl -H \"Authorization: Bearer {}\" https://api.acme.io",
    "```sh\nacme login --token={}\n```",
];

#[test]
fn every_kind_of_token_is_seen_in_every_form_by_both_rules() {
    let mut missed = Vec::new();
    for (what, token) in kinds() {
        for form in FORMS {
            let line = form.replace("{}", &token);
            let text = format!(
                "---\nname: helper\ndescription: Posts to a service. Use when posting.\n---\n\n{line}\n"
            );
            let known: &[&str] = &[];
            let report = Scanner::bundled().scan(&Input {
                files: &[("SKILL.md", text.as_bytes())],
                name: "helper",
                allowed_tools: &[],
                known_names: &known,
            });
            let scanned = report.findings.iter();
            let scanned = scanned.filter(|found| found.rule == "secret");
            let scanned: Vec<String> = scanned.map(|found| found.evidence.clone()).collect();
            let files = BTreeMap::from([(
                "SKILL.md".parse().expect("a path"),
                bytes::Bytes::from(text.clone()),
            )]);
            let read = skill_md::read(&files, &ReadOptions::default()).problems;
            let read = read
                .iter()
                .filter(|problem| problem.rule == "secret-in-text");
            let read: Vec<String> = read.map(|problem| problem.message.clone()).collect();
            let message =
                format!("There is {what} here; take it out, and change it if it was published");
            if (&scanned, &read) != (&vec![what.to_owned()], &vec![message]) {
                missed.push(format!("{what} in {form:?}: {scanned:?} {read:?}"));
            }
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}

/// The exercise *Take the Secrets Out* says that the server warns of both.
#[test]
fn the_skill_of_the_course_on_secrets_holds_the_two_that_it_speaks_of() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(
        "../../../skills/paths/writing-agent-skills/exercises/08-no-secrets-in-skills/starter",
    );
    let files = ["SKILL.md", "certs/report.txt"].map(|path| {
        let content = std::fs::read(folder.join(path)).expect("a file of the exercise");
        (path.parse().expect("a path"), bytes::Bytes::from(content))
    });
    let reading = skill_md::read(&BTreeMap::from(files), &ReadOptions::default());
    let found: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
    let why = "take it out, and change it if it was published";
    assert_eq!(
        found,
        [
            format!("SKILL.md:12: secret-in-text: There is an API key here; {why}"),
            format!("certs/report.txt:1: secret-in-text: There is a private key here; {why}"),
        ]
    );
}
