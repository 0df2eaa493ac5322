//! The table of technologies holds together.

use std::collections::BTreeSet;

use super::table::{glob, table, technologies};

#[test]
fn every_line_of_the_table_is_read_and_every_id_is_one() {
    assert_eq!(table().faults(), (Vec::new(), &[][..]));
    let ids: BTreeSet<&str> = technologies().map(|found| found.id).collect();
    assert_eq!(ids.len(), technologies().count());
    assert!(ids.len() >= 250, "{} technologies", ids.len());
    let plain = |id: &&str| {
        let words = id.split('-').all(|word| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        !words
    };
    assert_eq!(
        ids.iter().copied().filter(plain).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn ids_that_others_rely_on_are_there() {
    for id in [
        "react",
        "nextjs",
        "typescript",
        "javascript",
        "nodejs",
        "python",
        "fastapi",
        "django",
        "rust",
        "axum",
        "go",
        "gin",
        "java",
        "kotlin",
        "spring-boot",
        "php",
        "laravel",
        "ruby",
        "rails",
        "csharp",
        "dotnet",
        "aspnet-core",
        "postgresql",
        "docker",
        "kubernetes",
        "terraform",
        "github-actions",
        "jest",
        "pytest",
    ] {
        assert!(table().get(id).is_some(), "{id}");
    }
}

#[test]
fn the_most_particular_pattern_decides_for_each_technology() {
    let ids = |location, name| -> Vec<(&str, bool)> {
        let shown = table().dependency(location, name);
        shown
            .into_iter()
            .map(|found| (found.technology.id, found.itself))
            .collect()
    };
    assert_eq!(ids("npm", "@angular/core"), [("angular", true)]);
    assert_eq!(ids("npm", "@angular/router"), [("angular", false)]);
    assert_eq!(ids("npm", "reactive"), []);
    assert_eq!(
        ids("go", "github.com/jackc/pgx/v5"),
        [("postgresql", false)]
    );
    assert_eq!(ids("go", "github.com/jackc/pgxpool"), []);
    assert_eq!(
        ids("maven", "org.springframework.boot:spring-boot-starter-web"),
        [("spring-boot", true)]
    );
    assert_eq!(
        ids("maven", "org.springframework:spring-core"),
        [("spring-framework", true)]
    );
    assert_eq!(
        ids("pypi", "flask-sqlalchemy"),
        [("sqlalchemy", false), ("flask", false)]
    );
}

#[test]
fn paths_show_what_reads_them() {
    let ids = |path| -> Vec<&str> {
        table()
            .file(path)
            .into_iter()
            .map(|found| found.id)
            .collect()
    };
    assert_eq!(ids("a/Dockerfile"), ["docker"]);
    assert_eq!(ids(".github/workflows/ci.yml"), ["github-actions"]);
    assert_eq!(ids("workflows/ci.yml"), Vec::<&str>::new());
    assert_eq!(ids("web/.eslintrc.cjs"), ["eslint"]);
    assert_eq!(ids("k8s/app.yaml"), ["kubernetes"]);
    assert_eq!(ids("infra/main.tf"), ["terraform"]);
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text, fits) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*a", "a", false),
        ("*.test.*", "x.test.ts", true),
        ("*.test.*", "x.testts", false),
        ("a*b*c", "aXbXbXc", true),
        ("*", "", true),
        ("a", "ab", false),
    ] {
        assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
    }
}
