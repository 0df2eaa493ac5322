//! Names that the table of technologies and the answers are made of.

use std::collections::BTreeSet;

use technologies::{Fact, table};

use super::super::manifest::Ecosystem;
use super::super::report::{PackageManager, ProjectKind, Source};

#[test]
fn languages_of_ecosystems_are_in_the_table() {
    for ecosystem in [
        Ecosystem::Npm,
        Ecosystem::Jvm,
        Ecosystem::Dotnet,
        Ecosystem::Dart,
    ] {
        for id in ecosystem.languages() {
            assert!(table().get(id).is_some(), "{id}");
        }
    }
}

#[test]
fn patterns_name_the_ecosystems() {
    let known = [
        Ecosystem::Npm,
        Ecosystem::Python,
        Ecosystem::Cargo,
        Ecosystem::Go,
        Ecosystem::Jvm,
        Ecosystem::Php,
        Ecosystem::Ruby,
        Ecosystem::Dotnet,
        Ecosystem::Dart,
        Ecosystem::Elixir,
        Ecosystem::Swift,
        Ecosystem::Image,
    ];
    let known: BTreeSet<&str> = known.iter().map(|ecosystem| ecosystem.registry()).collect();
    let used: BTreeSet<&str> = table().ecosystems().collect();
    assert_eq!(used, known);
}

#[test]
fn names_in_answers_are_words_and_differ() {
    fn check(names: &[&str]) {
        let one: BTreeSet<&&str> = names.iter().collect();
        assert_eq!(one.len(), names.len());
        let word = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(names.iter().all(word), "{names:?}");
    }
    check(
        &Source::ALL
            .iter()
            .map(|value| value.name())
            .collect::<Vec<_>>(),
    );
    check(
        &Fact::ALL
            .iter()
            .map(|value| value.name())
            .collect::<Vec<_>>(),
    );
    check(
        &PackageManager::ALL
            .iter()
            .map(|value| value.name())
            .collect::<Vec<_>>(),
    );
    check(
        &ProjectKind::ALL
            .iter()
            .map(|value| value.name())
            .collect::<Vec<_>>(),
    );
}
