//! What was recommended and should not have been, and what was not and should have been.

use super::*;

/// Names of what is recommended to a codebase, those that are essential with a `!`.
async fn told(skills: &[(&str, &str)], files: &[(&str, Option<&str>)]) -> Vec<String> {
    let world = stocked(skills).await;
    let (registry, index) = (&world.registry, &world.index);
    let found = recommend(
        registry,
        index,
        &codebase_of(files),
        &wish(),
        &Stop::never(),
    );
    let skills = found.expect("an answer").skills.into_iter();
    let name = |skill: Recommendation| match skill.priority {
        Priority::Essential => format!("{}!", skill.head.id.slug()),
        _ => skill.head.id.slug().to_owned(),
    };
    skills.map(name).collect()
}

const GO: &[(&str, Option<&str>)] = &[
    (
        "go.mod",
        Some("module example.com/pay\n\ngo 1.22\n\nrequire github.com/jackc/pgx/v5 v5.6.0\n"),
    ),
    ("main.go", None),
    ("main_test.go", None),
    ("migrations/0001_init.sql", None),
];
const PYTHON: &[(&str, Option<&str>)] = &[
    (
        "pyproject.toml",
        Some(
            "[project]\nname = \"orders\"\ndependencies = [\"fastapi\", \"asyncpg\", \"pytest\"]\n",
        ),
    ),
    ("orders/main.py", None),
    ("tests/test_orders.py", None),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_database_brings_no_products_that_only_have_it_in_their_names() {
    let skills = [
        (
            "github/acme/azure-postgresql-python",
            "name: azure-postgresql-python\ndescription: Manages Azure Database for PostgreSQL servers with the Azure SDK for Python.",
        ),
        (
            "github/acme/mysql-to-postgres-migration",
            "name: mysql-to-postgres-migration\ndescription: Migrates a MySQL database to PostgreSQL.",
        ),
        (
            "github/acme/postgres-query-tuning",
            "name: postgres-query-tuning\ndescription: Tunes slow PostgreSQL queries and their indexes.",
        ),
    ];
    assert_eq!(told(&skills, PYTHON).await, ["postgres-query-tuning"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_means_two_things_is_taken_for_what_it_means() {
    let skills = [
        (
            "github/acme/expo-go-preview",
            "name: expo-go-preview\ndescription: Previews an Expo app in Expo Go on a phone.",
        ),
        (
            "github/acme/ab-testing",
            "name: ab-testing\ndescription: Plans A/B tests of landing pages and prices to grow conversion.",
        ),
        (
            "github/acme/go-testing-patterns",
            "name: go-testing-patterns\ndescription: Writes table-driven tests in Go, with fakes and fuzzing.",
        ),
    ];
    assert_eq!(told(&skills, GO).await, ["go-testing-patterns!"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_neighbour_uses_is_for_the_neighbour() {
    let skills = [
        (
            "github/acme/django-testing",
            "name: django-testing\ndescription: Tests Django views and models with pytest.",
        ),
        (
            "github/acme/flask-patterns",
            "name: flask-patterns\ndescription: Builds Flask applications in Python.",
        ),
        (
            "github/acme/fastapi-patterns",
            "name: fastapi-patterns\ndescription: Builds FastAPI services in Python, with dependencies and background tasks.",
        ),
        (
            "github/acme/fastapi-geofencing",
            "name: fastapi-geofencing\ndescription: Draws fences on maps in FastAPI services.",
        ),
        (
            "github/acme/python-testing",
            "name: python-testing\ndescription: Tests Python code with pytest, fixtures and mocks.",
        ),
    ];
    // A corner of the framework is not essential, nor is the language beside it.
    assert_eq!(
        told(&skills, PYTHON).await,
        ["fastapi-patterns!", "fastapi-geofencing", "python-testing"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_practice_is_for_whoever_shows_that_they_need_it() {
    let skills = [
        (
            "github/acme/code-review",
            "name: code-review\ndescription: Reviews a change before it is merged.",
        ),
        (
            "github/acme/security-hardening",
            "name: security-hardening\ndescription: Hardens web applications against the vulnerabilities of the OWASP list.",
        ),
        (
            "github/acme/accessibility-review",
            "name: accessibility-review\ndescription: Reviews pages for accessibility with screen readers.",
        ),
        (
            "github/acme/pitch-decks",
            "name: pitch-decks\ndescription: Writes pitch decks for investors.",
        ),
    ];
    let tool: &[(&str, Option<&str>)] = &[
        (
            "Cargo.toml",
            Some(
                "[package]\nname = \"dedupe\"\nversion = \"0.1.0\"\n[dependencies]\nclap = \"4\"\n",
            ),
        ),
        ("src/main.rs", None),
    ];
    assert_eq!(told(&skills, tool).await, ["code-review"]);
    let mut service = told(&skills, PYTHON).await;
    service.sort();
    assert_eq!(service, ["code-review", "security-hardening"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_texts_are_texts_are_helped_and_pictures_get_nothing() {
    let skills = [
        (
            "github/acme/write-docs",
            "name: write-docs\ndescription: Writes documentation that people read.",
        ),
        (
            "github/acme/python-testing",
            "name: python-testing\ndescription: Tests Python code with pytest, fixtures and mocks.",
        ),
        (
            "github/acme/code-review",
            "name: code-review\ndescription: Reviews a change before it is merged.",
        ),
    ];
    let texts = [
        "handbook/travel.md",
        "handbook/on-call.md",
        "handbook/leave.md",
    ];
    let texts = texts.map(|path| (path, None));
    assert_eq!(told(&skills, &texts).await, ["write-docs"]);
    let pictures = ["2023/one.jpg", "2023/two.jpg", "LICENSE"].map(|path| (path, None));
    assert_eq!(told(&skills, &pictures).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_the_server_comes_after_what_somebody_chose_to_publish() {
    let skills = [
        (
            "builtin/repertoire/python-testing-basics",
            "name: python-testing-basics\ndescription: Tests Python code with pytest, fixtures and mocks.",
        ),
        (
            "github/acme/python-testing",
            "name: python-testing\ndescription: Tests Python code with pytest, fixtures and mocks.",
        ),
    ];
    let script: &[(&str, Option<&str>)] = &[("requirements.txt", Some("pytest\n")), ("a.py", None)];
    let found = told(&skills, script).await;
    assert_eq!(found, ["python-testing!", "python-testing-basics"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_one_skill_leave_room_for_others() {
    let ids: Vec<String> = (0..90)
        .map(|at| format!("github/fork-{at}/python-testing"))
        .collect();
    let copy =
        "name: python-testing\ndescription: Tests Python code with pytest, fixtures and mocks.";
    let mut skills: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), copy)).collect();
    skills.push((
        "github/acme/code-review",
        "name: code-review\ndescription: Reviews a change before it is merged.",
    ));
    assert_eq!(
        told(&skills, PYTHON).await,
        ["python-testing", "code-review"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_author_leaves_to_people_is_recommended_to_nobody() {
    let tuning = "name: postgres-query-tuning\ndescription: Tunes slow PostgreSQL queries and their indexes.";
    let manual = format!("{tuning}\ndisable-model-invocation: true");
    for (front_matter, expected) in [(tuning, vec!["postgres-query-tuning"]), (&manual, vec![])] {
        let skills = [("github/acme/postgres-query-tuning", front_matter)];
        assert_eq!(told(&skills, PYTHON).await, expected);
    }
}
