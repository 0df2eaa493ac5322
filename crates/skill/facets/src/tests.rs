//! What is about what, rule by rule.

use std::collections::BTreeSet;

use model::{FilePath, Skill};
use serde_json::Map;

use super::rules::rules;
use super::{
    Facets, category_id, infer, known_categories, nearest_categories, nearest_technologies,
    technologies_named, technology_id,
};

/// A skill of this name and description, and these instructions.
fn skill(name: &str, description: &str, body: &str) -> Skill {
    let value = serde_json::json!({
        "name": name, "description": description, "excerpt": body,
        "front_matter": Map::new(),
    });
    serde_json::from_value(value).expect("a skill")
}

fn facets(name: &str, description: &str) -> Facets {
    infer(&skill(name, description, ""), &[])
}

fn technologies(name: &str, description: &str) -> Vec<String> {
    let found = facets(name, description).technologies.into_iter();
    found.map(|found| found.id.into_owned()).collect()
}

fn categories(name: &str, description: &str) -> Vec<String> {
    let found = facets(name, description).categories.into_iter();
    found.map(|found| found.id.into_owned()).collect()
}

#[test]
fn every_line_of_the_rules_is_read_and_names_what_is_there() {
    assert_eq!(rules().unread, Vec::<&str>::new());
    let ids: BTreeSet<&str> = known_categories().collect();
    assert_eq!(ids.len(), 37);
    for line in include_str!("technologies.txt").lines() {
        let column = line.split('|').nth(2).unwrap_or_default();
        for id in column.split_whitespace().filter(|_| !line.starts_with('#')) {
            assert!(ids.contains(id), "{line}");
        }
    }
}

#[test]
fn a_skill_is_about_what_its_name_or_its_first_sentence_names() {
    assert_eq!(
        technologies("axum-handlers", "Extractors and state."),
        ["axum"]
    );
    let prose = "Tests React components with Jest. Use when a component changes.";
    assert_eq!(technologies("component-tests", prose), ["react", "jest"]);
    assert_eq!(
        technologies("azure-queue-py", "Send messages to Azure queues."),
        ["azure", "python"]
    );
}

#[test]
fn what_is_only_mentioned_is_not_what_it_is_about() {
    for description in [
        "Looks up documentation of a library (e.g. React, Next.js, Prisma).",
        "Chooses names for tables, such as those of PostgreSQL.",
        "Writes release notes. Use when a Docker image is published.",
    ] {
        assert_eq!(
            technologies("helper", description),
            Vec::<String>::new(),
            "{description}"
        );
    }
}

#[test]
fn what_is_excluded_or_left_behind_is_not_what_it_is_about() {
    for (description, about) in [
        (
            "Runs containers on one machine. Not for Kubernetes or AKS.",
            vec![],
        ),
        ("Plans capacity. DO NOT USE FOR: Terraform, Azure.", vec![]),
        (
            "Uses MySQL instead of PostgreSQL, for small sites.",
            vec!["mysql"],
        ),
        (
            "Migrate applications from Django to FastAPI.",
            vec!["fastapi"],
        ),
    ] {
        assert_eq!(technologies("helper", description), about, "{description}");
    }
}

#[test]
fn in_a_name_what_comes_before_to_is_left_behind() {
    let prose = "Migrate a service from Django to FastAPI.";
    assert_eq!(technologies("django-to-fastapi", prose), ["fastapi"]);
}

#[test]
fn ordinary_words_are_names_only_in_company() {
    for (name, description, about) in [
        (
            "steps",
            "Go to the next step and express what you see.",
            vec![],
        ),
        (
            "checks",
            "A sanity check before you ship. Sanity matters.",
            vec![],
        ),
        (
            "routes",
            "Master Go services with clean routes.",
            vec!["go"],
        ),
        (
            "rust-async",
            "Futures in Rust, and how to cancel them.",
            vec!["rust"],
        ),
        ("try-it", "Opens the app in Expo Go.", vec![]),
    ] {
        assert_eq!(technologies(name, description), about, "{description}");
    }
}

#[test]
fn the_longest_name_counts_and_not_what_is_in_it() {
    assert_eq!(
        technologies("lists", "Fast lists in React Native."),
        ["react-native"]
    );
    assert_eq!(technologies("pages", "Pages with Next.js."), ["nextjs"]);
    assert_eq!(
        technologies_named("React Native and SQLite"),
        ["react-native", "sqlite"]
    );
}

#[test]
fn instructions_support_what_the_description_says_and_say_nothing_alone() {
    let body = "# Queues\n\nCelery runs the tasks. Configure Celery with care; Celery retries.";
    let of = |description| -> Vec<String> {
        let found = infer(&skill("jobs", description, body), &[]).technologies;
        found
            .into_iter()
            .map(|found| found.id.into_owned())
            .collect()
    };
    assert_eq!(
        of("Background work. Use when a Celery task hangs in Celery workers."),
        ["celery"]
    );
    assert_eq!(of("Background work."), Vec::<String>::new());
}

#[test]
fn names_of_files_support_a_language_that_is_named() {
    let entry = |path: &str| model::FileEntry {
        path: path.parse::<FilePath>().expect("a path"),
        digest: model::Digest::of(b""),
        size: 0,
    };
    let said = skill("plots", "Charts. Use when a Python script should draw.", "");
    let files: Vec<_> = (0..3).map(|n| entry(&format!("scripts/{n}.py"))).collect();
    assert_eq!(infer(&said, &[]).technologies, []);
    let found = infer(&said, &files).technologies;
    assert_eq!(
        found.iter().map(|found| &*found.id).collect::<Vec<_>>(),
        ["python"]
    );
}

#[test]
fn the_main_category_is_what_is_done_before_what_it_is_done_to() {
    let found = categories(
        "flutter-widget-tests",
        "Unit tests of Flutter widgets with mocks.",
    );
    assert_eq!(found.first().map(String::as_str), Some("testing"));
    assert!(found.contains(&"mobile".to_owned()), "{found:?}");
    assert_eq!(
        categories(
            "month-end-close",
            "Journal entries and reconciliation at month end."
        ),
        ["finance"]
    );
    assert_eq!(categories("zzz", "Qux."), Vec::<String>::new());
}

#[test]
fn languages_without_blanks_are_read_too() {
    let found = categories("helper", "使用 Docker 部署服务,并监控性能");
    assert!(found.contains(&"deployment".to_owned()), "{found:?}");
    assert_eq!(
        technologies("ui", "Playwrightを使用して録画する。"),
        ["playwright"]
    );
}

#[test]
fn confidence_is_in_hundredths_and_the_most_certain_come_first() {
    let found = facets(
        "jest-react",
        "React components, tested with Jest and TypeScript.",
    );
    let confidences: Vec<f64> = found
        .technologies
        .iter()
        .map(super::Inferred::confidence)
        .collect();
    assert!(confidences.is_sorted_by(|a, b| a >= b), "{confidences:?}");
    assert!(
        confidences.iter().all(|c| (0.5..=0.95).contains(c)),
        "{confidences:?}"
    );
    let stored = serde_json::to_string(&found).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Facets>(&stored).expect("facets"),
        found
    );
    assert!(found.is_current());
    assert!(!Facets::default().is_current());
}

#[test]
fn words_of_authors_mean_ids() {
    for (word, id) in [
        ("Testing", Some("testing")),
        ("TDD", Some("testing")),
        ("UI/UX", Some("design")),
        ("ui", Some("design")),
        ("machine learning", Some("machine-learning")),
        ("project_management", Some("project-management")),
        ("gardening", None),
        ("", None),
    ] {
        assert_eq!(category_id(word), id, "{word}");
    }
    for (word, id) in [
        ("Next.js", Some("nextjs")),
        ("NEXTJS", Some("nextjs")),
        ("postgres", Some("postgresql")),
        ("k8s", Some("kubernetes")),
        ("C++", Some("cpp")),
        ("C#", Some("csharp")),
        ("go", Some("go")),
        ("React Native", Some("react-native")),
        ("sourdough", None),
        ("", None),
    ] {
        assert_eq!(technology_id(word), id, "{word}");
    }
}

#[test]
fn the_nearest_ids_are_offered_for_words_that_nobody_knows() {
    assert_eq!(nearest_categories("tesing").first(), Some(&"testing"));
    assert_eq!(
        nearest_technologies("postgress").first(),
        Some(&"postgresql")
    );
    assert_eq!(nearest_technologies("qqqqqq"), Vec::<&str>::new());
}

#[test]
fn no_text_is_too_odd() {
    for text in [
        "",
        "\u{0}",
        "....",
        "```",
        "c++c#.net",
        "(e.g. ",
        "not for ",
        "İİİ not for ẞ (e.g. ﬁ)",
        "🦀🦀",
        "instead of instead of ",
    ] {
        let found = infer(&skill(text, text, &text.repeat(100)), &[]);
        assert_eq!(found, infer(&skill(text, text, &text.repeat(100)), &[]));
    }
}
