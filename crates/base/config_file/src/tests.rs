//! What is read, what is told, and what is not.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    data: Option<std::path::PathBuf>,
    form: Form,
    limits: Limits,
    names: Vec<String>,
    workers: Vec<Worker>,
    sources: BTreeMap<String, Worker>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Text,
    Json,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    percent: u8,
    calls: usize,
    strict: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            percent: 50,
            calls: 512,
            strict: false,
        }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Worker {
    name: String,
    token: Token,
}

#[derive(Debug, PartialEq)]
struct Token(String);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Token;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a secret in quotes")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Token, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Token, E> {
                Ok(Token(text.to_owned()))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Token, A::Error> {
                let entry = map.next_entry::<String, String>()?;
                Ok(Token(entry.map(|(_, value)| value).unwrap_or_default()))
            }
        }
        deserializer.deserialize_newtype_struct(SECRET, Any)
    }
}

fn bounds(key: &str) -> RangeInclusive<u64> {
    u64::from(key == "limits.calls")..=1000
}

fn read(text: &str) -> Result<Config, Vec<String>> {
    let told = |it: Mistake| format!("{}: {}: {}", it.line, it.key, it.message);
    let document = Document::parse(text).map_err(|mistake| vec![told(mistake)])?;
    let read = document.read(bounds);
    read.map(|read| read.value)
        .map_err(|mistakes| mistakes.into_iter().map(told).collect())
}

#[test]
fn what_is_left_out_or_empty_has_its_default() {
    for text in ["", "# nothing\n", "---\n", "limits:\nworkers:\nnames: []\n"] {
        assert_eq!(read(text), Ok(Config::default()), "{text}");
    }
}

#[test]
fn values_are_read_as_yaml_has_them() {
    let text = "\
data: /srv/x
form: json
limits: {percent: 0x10, calls: 7, strict: true}
names: &names [a, '1', 2]
workers:
  - name: w
    token: {env: X}
sources:
  b: {name: *names, token: t}
";
    let wrong = read(text).expect_err("a list is no name");
    assert_eq!(wrong, ["9: sources.b.name: needs a text, not a list"]);
    let config = read(&text.replace("*names", "12")).expect("settings");
    assert_eq!(config.names, ["a", "1", "2"]);
    assert_eq!(
        (config.limits.percent, config.limits.calls, config.form),
        (16, 7, Form::Json)
    );
    assert_eq!(config.sources["b"].name, "12");
    assert_eq!(config.workers[0].token, Token("X".to_owned()));
}

#[test]
fn every_mistake_is_told_once_with_its_line() {
    let text = "\
limits:
  calls: -1
  percent: 300
  strict: maybe
  cals: 7
  calls: 8
form: xml
names: a
workers:
  - name: w
  - {name: [x], token: 12345678901234567}
  - {name: x, token: t, tokn: t}
data: [a]
";
    let expected = [
        "2: limits.calls: needs a whole number from 1 to 1000",
        "3: limits.percent: needs a whole number from 0 to 255",
        "4: limits.strict: needs true or false, not a text",
        "5: limits.cals: there is no such key; here are percent, calls, strict",
        "6: limits.calls: line 2 has this key already",
        "7: form: `xml` is none of text, json",
        "8: names: needs a list, such as `[a, b]`, not a text",
        "10: workers[0]: `token` is missing",
        "11: workers[1].name: needs a text, not a list",
        "11: workers[1].token: needs a secret in quotes, not a number",
        "12: workers[2].tokn: there is no such key; here are name, token",
        "13: data: needs a path, not a list",
    ];
    assert_eq!(read(text), Err(expected.map(str::to_owned).to_vec()));
}

#[test]
fn what_is_no_mapping_or_no_yaml_is_told() {
    for (text, expected) in [
        (
            "- a\n",
            "1: : needs keys with values, such as `listen: 127.0.0.1:50051`, not a list",
        ),
        (
            "[section]\n",
            "1: : needs keys with values, such as `listen: 127.0.0.1:50051`, not a list",
        ),
        (
            "[section]\ndata = \"x\"\n",
            "2: : this is not YAML: settings are lines such as `listen: 127.0.0.1:50051`",
        ),
        (
            "a: 1\n---\nb: 1\n",
            "2: : a second document begins here; settings are one",
        ),
        (
            "data: !env X\n",
            "1: data: `!env` means nothing here; leave it out",
        ),
        ("? [a]\n: 1\n", "1: : a key here is no word"),
    ] {
        assert_eq!(read(text), Err(vec![expected.to_owned()]), "{text}");
    }
    let wrong = read("a: [\n").expect_err("it does not end");
    assert!(wrong[0].contains("this is not YAML: "), "{wrong:?}");
    // Small enough to be read whole: without the limit this ends with another message.
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (before, c) in ('a'..='e').zip('b'..='f') {
        let all = vec![format!("*{before}"); 9].join(", ");
        bomb.push_str(&[&format!("{c}: &{c} ["), all.as_str(), "]\n"].concat());
    }
    let wrong = read(&bomb).expect_err("too much");
    assert!(
        wrong[0].contains("more here than settings need"),
        "{wrong:?}"
    );
}

#[test]
fn settings_are_listed_without_secrets_and_with_lines() {
    let text = "\
names: [a, 'http://me:pw@h/x?y']
workers:
  - name: w
    token: s3cret
  - {name: x, token: {env: X}}
";
    let document = Document::parse(text).expect("YAML");
    let read = document.read::<Config>(bounds).expect("settings");
    let listed = document.settings(&read);
    let listed: Vec<_> = listed
        .iter()
        .map(|it| format!("{} {} = {}", it.line, it.key, it.value))
        .collect();
    assert_eq!(
        listed,
        [
            "1 names = [a, http://(secret)@h/x?y]",
            "3 workers[0].name = w",
            "4 workers[0].token = (secret)",
            "5 workers[1].name = x",
            "5 workers[1].token = {env: X}",
        ]
    );
    let locations = SettingLocations::new(Path::new("a.yaml"), &document, &read);
    for (key, line) in [
        ("workers[0].token", Some(4)),
        ("workers[1].skills[3]", Some(5)),
        ("limits.calls", None),
    ] {
        assert_eq!(locations.line(key), line, "{key}");
    }
    let without: Config = document.read_without("names", bounds).expect("settings");
    assert_eq!((without.names.len(), without.workers.len()), (0, 2));
    assert!(
        document
            .read_without::<Config>("workers[0].name", bounds)
            .is_none()
    );
}

#[test]
fn settings_may_be_as_deep_and_as_many_as_the_limits_say_and_no_more() {
    let deep = |levels: usize| format!("data: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    // The file and the list are two of the values.
    let many = |values: usize| format!("names: [{}]\n", vec!["x"; values - 2].join(","));
    for (text, is_read) in [
        (deep(32), true),
        (deep(33), false),
        (many(100_000), true),
        (many(100_001), false),
    ] {
        let told = Document::parse(&text).err().map(|mistake| mistake.message);
        let expected = (!is_read).then(|| "there is more here than settings need".to_owned());
        assert_eq!(told, expected, "{} bytes", text.len());
    }
}

#[test]
fn a_mistake_is_told_at_the_line_that_has_the_key_or_the_alias() {
    for (text, expected) in [
        ("data:\n  - a\n", "1: data: needs a path, not a list"),
        ("data:\n\n  [a]\n", "1: data: needs a path, not a list"),
        (
            "names: &n\n  - a\nworkers:\n  - *n\n",
            "4: workers[0]: needs keys with values, not a list",
        ),
    ] {
        assert_eq!(read(text), Err(vec![expected.to_owned()]), "{text}");
    }
}

#[test]
fn quotes_make_a_text_of_anything_and_without_them_yaml_decides() {
    let token = |text: &str| {
        let text = format!("workers: [{{name: w, token: {text}}}]\n");
        let read = read(&text).map(|config| config.workers.into_iter().next());
        read.map(|worker| worker.map(|worker| worker.token.0))
    };
    for text in ["'12345'", "'true'", "'~'", "''", "nan", "inf", "-Infinity"] {
        let expected = text.trim_matches('\'').to_owned();
        assert_eq!(token(text), Ok(Some(expected)), "{text}");
    }
    let wrong = |found: &str| {
        let message = format!("1: workers[0].token: needs a secret in quotes, not {found}");
        Err(vec![message])
    };
    assert_eq!(token("12345"), wrong("a number"));
    assert_eq!(token("true"), wrong("true or false"));
    assert_eq!(token("~"), wrong("nothing"));
    let percent = |text: &str| {
        let config = read(&format!("limits: {{percent: {text}}}\n"));
        config.map(|config| config.limits.percent)
    };
    assert_eq!((percent("0o17"), percent("0x1F")), (Ok(15), Ok(31)));
}

#[test]
fn nothing_is_the_default_of_a_choice_and_no_text() {
    for text in ["data:\n", "data: ~\n", "data: null\n"] {
        assert_eq!(read(text), Ok(Config::default()), "{text}");
    }
    let quoted = read("data: ''\n").map(|config| config.data);
    assert_eq!(quoted, Ok(Some(PathBuf::new())));
    let wrong = "1: names[1]: needs a text, not nothing".to_owned();
    assert_eq!(read("names: [a, ~]\n"), Err(vec![wrong]));
}

#[test]
fn a_message_repeats_the_beginning_of_a_long_word_alone() {
    let text = format!("form: {}\n", "x".repeat(61));
    let expected = format!("1: form: `{}` is none of text, json", "x".repeat(60));
    assert_eq!(read(&text), Err(vec![expected]));
}

#[test]
fn an_address_is_shown_without_its_user_and_its_password() {
    for (text, shown) in [
        ("http://me:pw@h/x", "http://(secret)@h/x"),
        ("http://me@h", "http://(secret)@h"),
        ("http://me:p@w@h/x", "http://(secret)@h/x"),
        ("http://me:pw@h?to=a@b", "http://(secret)@h?to=a@b"),
        ("http://h?to=a@b", "http://h?to=a@b"),
        ("http://h#a@b", "http://h#a@b"),
        ("http://h/a@b", "http://h/a@b"),
        ("me@h", "me@h"),
    ] {
        assert_eq!(without_user(text), shown, "{text}");
    }
}

#[test]
fn a_setting_has_its_place_until_it_comes_from_elsewhere() {
    let text = "names: [a, b]\nlimits:\n  calls: 7\n";
    let document = Document::parse(text).expect("YAML");
    let read = document.read::<Config>(bounds).expect("settings");
    let mut places = SettingLocations::new(Path::new("a.yaml"), &document, &read);
    let lines = [
        "names",
        "names[7]",
        "limits.percent",
        "limits.calls",
        "data",
    ];
    let lines = lines.map(|key| places.line(key));
    assert_eq!(lines, [Some(1), Some(1), Some(2), Some(3), None]);
    assert_eq!(places.at("limits.calls"), "a.yaml:3: ");
    assert_eq!(places.at("names"), "a.yaml:1: ");
    places.forget("names");
    assert_eq!(
        (places.at("names"), places.line("names")),
        (String::new(), None)
    );
}

#[test]
fn mistakes_are_told_each_on_a_line_with_its_place() {
    let mistake = |line, key: &str| Mistake {
        line,
        key: key.to_owned(),
        message: "is wrong".to_owned(),
    };
    let mistakes = [mistake(1, ""), mistake(7, "limits.calls")];
    assert_eq!(
        report(Path::new("a.yaml"), &mistakes),
        "a.yaml:1: is wrong\na.yaml:7: limits.calls: is wrong"
    );
}
