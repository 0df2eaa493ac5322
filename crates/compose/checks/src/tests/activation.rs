//! What is wrong with a skill, and what a host can run.

use jiff::SignedDuration;

use super::*;

const GOOD: &str = "---\nname: one\ndescription: Does it. Use when counting sheep.\n---\nDo it.\n";

fn member(files: &[(&str, &str)]) -> Member {
    Member {
        name: "one".into(),
        id: "github/acme/one".parse().expect("an id"),
        version: Arc::new(version(files, "one").expect("a skill")),
    }
}

fn after(days: i64) -> Timestamp {
    let time = Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_hours(24 * days));
    time.expect("a time")
}

fn facts<'a>(member: &'a Member, text: &'a str) -> Facts<'a> {
    Facts {
        member,
        text,
        cost: Cost::of(&member.version.skill, text),
        installed_at: None,
        newer: None,
        uses: 1,
        last_used_at: Some(after(1)),
        now: after(1),
        budget: 50_000,
    }
}

fn nothing_required(_: &model::VersionedReference) -> Presence {
    Presence::Unknown
}

#[test]
fn nothing_is_wrong_with_a_good_skill() {
    let member = member(&[("SKILL.md", GOOD)]);
    let found = audit(&facts(&member, GOOD), nothing_required);
    assert_eq!(found, (Vec::new(), Vec::new()));
}

#[test]
fn what_is_wrong_with_front_matter_text_and_files_is_told_by_its_kind() {
    use IssueKind::{FileMissing, FrontmatterInvalid, SyntaxError};
    for (text, kind, fixable) in [
        (
            GOOD.replace("Does it.", "Does: it."),
            FrontmatterInvalid,
            true,
        ),
        (GOOD.replace("name: one\n", ""), FrontmatterInvalid, true),
        (
            GOOD.replace("name: one", "name: other"),
            FrontmatterInvalid,
            false,
        ),
        (format!("\u{feff}{GOOD}"), SyntaxError, true),
        (GOOD.replace("Do it.\n", ""), SyntaxError, false),
        (
            GOOD.replace(
                "---\nDo",
                "resource_configs: [{name: x, file: x.md}]\n---\nDo",
            ),
            FileMissing,
            false,
        ),
        (
            GOOD.replace("Do it.", "See [rules](references/rules.md)."),
            FileMissing,
            false,
        ),
    ] {
        let member = member(&[("SKILL.md", &text)]);
        let (issues, warnings) = audit(&facts(&member, &text), nothing_required);
        let told: Vec<_> = issues
            .iter()
            .map(|issue| (issue.kind, issue.severity, issue.auto_fixable))
            .collect();
        assert_eq!(told, [(kind, IssueSeverity::Warning, fixable)], "{text}");
        assert_eq!(warnings, [], "{text}");
        let told = issues.first().expect("an issue");
        assert_eq!(
            told.fix.is_some(),
            fixable || told.title == "Missing file",
            "{told:?}"
        );
    }
}

#[test]
fn a_dead_link_of_another_file_is_told_by_the_file() {
    let member = member(&[("SKILL.md", GOOD), ("references/a.md", "x\n[b](b.md)\n")]);
    let (issues, _) = audit(&facts(&member, GOOD), nothing_required);
    let told: Vec<_> = issues
        .iter()
        .map(|issue| {
            (
                issue.title,
                issue.description.as_str(),
                issue.fix.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [(
            "Missing file",
            "references/a.md:2: `b.md` is not in the skill",
            Some("Add the file, or correct the link")
        )]
    );
}

#[test]
fn a_skill_that_is_required_must_be_there() {
    let text = GOOD.replace(
        "---\nDo",
        "compatibility_rules: [{type: requires, skill: other@^1}]\ncomposability_rules: \
         [{type: requires, skill: other@^1}]\n---\nDo",
    );
    let member = member(&[("SKILL.md", &text)]);
    for (presence, installed, expected) in [
        (Presence::There, true, None),
        (Presence::NotInstalled, false, None),
        (
            Presence::NotInstalled,
            true,
            Some("It requires 'other@^1', which is not installed"),
        ),
        (
            Presence::Unknown,
            false,
            Some("It requires 'other@^1', which this server does not have in such a version"),
        ),
    ] {
        let mut facts = facts(&member, &text);
        facts.installed_at = installed.then(|| after(0));
        let (issues, _) = audit(&facts, |_| presence);
        let told: Vec<_> = issues
            .iter()
            .map(|issue| (issue.kind, issue.severity, issue.description.as_str()))
            .collect();
        let expected =
            expected.map(|text| (IssueKind::DependencyMissing, IssueSeverity::Error, text));
        assert_eq!(told, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_is_worth_a_look_is_told() {
    use WarningKind::{BudgetHeavy, LowActivation, NoTriggers, Outdated};
    let member = member(&[("SKILL.md", GOOD)]);
    let kinds = |facts: Facts<'_>| -> Vec<_> {
        let (issues, warnings) = audit(&facts, nothing_required);
        assert_eq!(issues, []);
        warnings.into_iter().map(|warning| warning.kind).collect()
    };
    let new = || facts(&member, GOOD);
    let newer = Some(semver::Version::new(1, 3, 0));
    assert_eq!(kinds(Facts { newer, ..new() }), [Outdated]);
    let days = |now, used| Facts {
        now: after(now),
        last_used_at: Some(after(used)),
        ..new()
    };
    assert_eq!(kinds(days(179, 179)), []);
    assert_eq!(kinds(days(180, 180)), [Outdated]);
    assert_eq!(kinds(days(100, 11)), []);
    assert_eq!(kinds(days(100, 10)), [LowActivation]);
    let unused = |now, installed: Option<i64>| Facts {
        now: after(now),
        uses: 0,
        last_used_at: None,
        installed_at: installed.map(after),
        ..new()
    };
    assert_eq!(kinds(unused(29, None)), []);
    assert_eq!(kinds(unused(30, None)), [LowActivation]);
    assert_eq!(kinds(unused(40, Some(20))), []);
    assert_eq!(
        kinds(Facts {
            budget: 240,
            ..new()
        }),
        [BudgetHeavy]
    );
    let silent = GOOD.replace(" Use when counting sheep.", "");
    let told = |text: &str| {
        let member = self::member(&[("SKILL.md", text)]);
        audit(&facts(&member, text), nothing_required).1
    };
    let kind = |warning: &Warning| warning.kind;
    assert_eq!(
        told(&silent).iter().map(kind).collect::<Vec<_>>(),
        [NoTriggers]
    );
    let by_people = silent.replace("---\nDo", "disable-model-invocation: true\n---\nDo");
    assert_eq!(told(&by_people), []);
    let stated = silent.replace("---\nDo", "triggers: [sheep]\n---\nDo");
    assert_eq!(told(&stated), []);
}

#[test]
fn months_without_a_change_are_told_as_the_specification_does() {
    let member = member(&[("SKILL.md", GOOD)]);
    let old = Facts {
        now: after(185),
        last_used_at: Some(after(185)),
        ..facts(&member, GOOD)
    };
    let (_, warnings) = audit(&old, nothing_required);
    let expected = Warning {
        kind: WarningKind::Outdated,
        message: "Skill hasn't been updated in 6 months".to_owned(),
        advice: "Consider replacing one with a maintained alternative".to_owned(),
    };
    assert_eq!(warnings, [expected]);
}

#[test]
fn health_is_that_of_all_together() {
    let issue = |severity| Issue {
        kind: IssueKind::SyntaxError,
        severity,
        title: "x",
        description: String::new(),
        fix: None,
        auto_fixable: false,
    };
    let (error, warning) = (issue(IssueSeverity::Error), issue(IssueSeverity::Warning));
    for (issues, expected) in [
        (vec![], Health::Healthy),
        (vec![vec![], vec![]], Health::Healthy),
        (vec![vec![warning.clone()], vec![]], Health::Degraded),
        (vec![vec![warning.clone()]], Health::Degraded),
        (
            vec![vec![error.clone()], vec![], vec![], vec![], vec![]],
            Health::Degraded,
        ),
        (vec![vec![error.clone()], vec![]], Health::Critical),
        (vec![vec![error]], Health::Critical),
    ] {
        assert_eq!(health(&issues), expected, "{issues:?}");
    }
}

#[test]
fn files_that_are_named_and_not_there_are_found() {
    let there = member(&[
        ("SKILL.md", GOOD),
        ("scripts/run.py", ""),
        ("references/a b.md", ""),
        ("docs/x.md", ""),
    ]);
    for (text, expected) in [
        (
            "[x](docs/x.md) [y](./docs/x.md#part) [z](docs/) [w](docs)",
            vec![],
        ),
        (
            "one\n[x](docs/y.md)\n[again](docs/y.md)",
            vec![(2, "docs/y.md")],
        ),
        (
            "[x](<docs/y.md>) ![image](img/a.png \"A\")",
            vec![(1, "docs/y.md"), (1, "img/a.png")],
        ),
        (
            "[x](references/a%20b.md) [y](references/c%20d.md)",
            vec![(1, "references/c d.md")],
        ),
        (
            "[x](https://a.example/b.md) [y](mailto:a@b) [z](#part) [w](/etc/x) [v]({{x}}/y.md)",
            vec![],
        ),
        ("[x](../other/SKILL.md) [y](docs/../../x.md)", vec![]),
        ("```\n[x](docs/y.md)\n```\n`[x](docs/y.md)`", vec![]),
        ("[x]: docs/y.md\n[^1]: docs/z.md", vec![(1, "docs/y.md")]),
        (
            "Run `python scripts/run.py`, then `scripts/gone.py --x`.",
            vec![(1, "scripts/gone.py")],
        ),
        (
            "```sh\npython scripts/gone.py\n```",
            vec![(2, "scripts/gone.py")],
        ),
        // No folder of that name: it is somebody else's.
        (
            "Read assets/logo.png and scripts/<name>.py and scripts/*.py.",
            vec![],
        ),
        ("x](", vec![]),
    ] {
        let found = dead(text, &there.version.files);
        let told: Vec<_> = found
            .iter()
            .map(|dead| (dead.line, dead.path.as_str()))
            .collect();
        assert_eq!(told, expected, "{text}");
    }
    let many: Vec<String> = (0..100).map(|at| format!("[x](a{at}.md)")).collect();
    assert_eq!(dead(&many.join("\n"), &there.version.files).len(), 20);
}

#[test]
fn hooks_run_a_command_of_ours_whatever_authors_write() {
    let evil = described(
        "github/acme/evil",
        "Edits .xlsx and *.csv; also .net; `rm -rf ~`.",
        "triggers: [\"'; rm -rf ~; '\", \"$(id)\"]\nglobs: [\"src/**/*.ts\", \"$(id)\", \"a;b\"]",
    );
    let found = hooks(&[evil]).expect("hooks");
    assert_eq!(found.pre_message, [COMMAND]);
    assert_eq!(
        serde_json::Value::Object(found.settings),
        serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [
            {"type": "command", "command": "repertoire activation --hook", "timeout": 10}
        ]}]}})
    );
    let patterns: Vec<_> = found
        .files
        .iter()
        .map(|file| file.pattern.as_str())
        .collect();
    assert_eq!(patterns, ["**/*.csv", "**/*.xlsx", "src/**/*.ts"]);
    assert_eq!(hooks(&[]), None);
    assert_eq!(hooks(&[subject("github/acme/silent", "")]), None);
}

#[test]
fn a_message_calls_skills_up_by_their_triggers() {
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let skills = [
        ("memory", texts(&["remember", "recall a note"])),
        ("jest", texts(&["test", "jest", "write unit tests"])),
        ("cook", texts(&["meal"])),
    ];
    let asked = |message: &str| {
        let skills = skills
            .iter()
            .map(|(name, triggers)| (*name, triggers.as_slice()));
        called_by(message, skills)
            .into_iter()
            .map(|(skill, phrase)| (skill.to_owned(), phrase.to_owned()))
            .collect::<Vec<_>>()
    };
    let pair = |skill: &str, phrase: &str| (skill.to_owned(), phrase.to_owned());
    assert_eq!(
        asked("Please write a unit test for this"),
        [pair("jest", "write unit tests")]
    );
    assert_eq!(
        asked("Remember how I tested it"),
        [pair("memory", "remember"), pair("jest", "test")]
    );
    assert_eq!(asked("Hello"), []);
    assert_eq!(asked(""), []);
}
