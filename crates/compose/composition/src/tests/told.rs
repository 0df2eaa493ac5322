//! Which versions are taken, and what is told where there are none.

use super::super::missing;
use super::solving::{Books, check};
use super::*;
use executor::Stop;

#[test]
fn the_newest_version_that_will_do_is_taken_and_an_older_one_where_it_must_be() {
    let drafts = |hated: &str| {
        [
            Draft::new("a").requires("b@^1").hates(hated),
            Draft::new("b"),
            Draft::new("b").version(2, "1.1.0"),
            Draft::new("b").version(3, "1.2.0"),
        ]
    };
    let resolved = |hated: &str| Books::of(&drafts(hated)).resolve(&["a"]);
    let of = |b: &str| Ok(vec!["a 1.0.0".to_owned(), format!("b {b}")]);
    assert_eq!(resolved("b@9.0.0"), of("1.2.0"));
    assert_eq!(resolved("b@1.2.0"), of("1.1.0"));
}

#[test]
fn what_cannot_all_hold_is_told_with_every_skill_and_whose_word_it_is() {
    let books = Books::of(&[
        Draft::new("a").requires("c"),
        Draft::new("b").forbids("c", "they both write the bill"),
        Draft::new("c"),
    ]);
    let asked = books.asked(&["a", "b"]);
    let resolution = resolve(&books, &asked, &Stop::never()).expect("a library");
    let finding = resolution.expect_err("no set");
    assert!(
        finding
            .message
            .contains("'b' 1.0.0 forbids to be composed with 'c': they both write the bill"),
        "{}",
        finding.message
    );
    let mut skills: Vec<&str> = finding.skills.iter().map(|skill| &**skill).collect();
    skills.sort_unstable();
    assert_eq!(skills, ["a", "b", "c"]);
}

#[test]
fn what_is_missing_is_told_through_the_version_that_is_required() {
    let second = Draft::new("b").version(2, "2.0.0").requires("c");
    let by_digest = format!("b@{}", second.build().digest);
    for (wish, chains) in [
        (by_digest.as_str(), &["a b", "a b c"][..]),
        ("b@2", &["a b", "a b c"]),
        ("b@2.0.0", &["a b", "a b c"]),
        ("b@^2", &["a b", "a b c"]),
        ("b@1.0.0", &["a b"]),
        ("b@3", &["a b"]),
        ("b", &["a b"]),
    ] {
        let books = Books::of(&[
            Draft::new("b"),
            second.clone(),
            Draft::new("b").version(3, "3.0.0"),
            Draft::new("c"),
        ]);
        let asked = members(&[Draft::new("a").requires(wish)]);
        let verdict = check(&asked, 1);
        let findings = missing::explain(&books, &asked, &verdict, &Stop::never());
        let findings = findings.expect("a library");
        let told: Vec<_> = findings.iter().map(|it| it.chain.join(" ")).collect();
        assert_eq!(told, chains, "{wish}");
    }
}
