//! Skills with nearly the same text.

use super::*;
use crate::SimilarSkills;
use testing::caller;

const FRONT: &str =
    "name: refunds\ndescription: Pays back what was paid, when a customer asks for it.";

fn body(words: std::ops::Range<u32>) -> String {
    let words: Vec<_> = words.map(|word| format!("step{word}")).collect();
    format!("# Refunds\n\nFollow {}.\n", words.join(" "))
}

fn renamed(front: &str) -> String {
    front.replace("name: refunds", "name: paybacks")
}

/// A skill, copies of it, what became of copies, and what has nothing to do with it.
async fn some_skills() -> World {
    let whole = body(0..400);
    let edited = whole.replace("step200", "other");
    World::new()
        .with("github/acme/refunds", FRONT, &whole)
        .await
        .with("github/zeta/refunds", FRONT, &whole)
        .await
        .with("github/zeta/paybacks", &renamed(FRONT), &whole)
        .await
        .with("github/zeta/edited", &renamed(FRONT), &edited)
        .await
        .with("github/zeta/half", FRONT, &body(200..600))
        .await
        .with(
            "github/zeta/other",
            "name: other\ndescription: Else.",
            "Nothing of it.",
        )
        .await
        .with_files(
            "github/zeta/empty",
            &[("SKILL.md", b"---\nname: empty\ndescription: '...'\n---\n")],
        )
        .await
}

impl World {
    async fn similar(&self, of: &str, min: f64, limit: usize) -> SimilarSkills {
        self.index.complete().await;
        let head = self.registry.head(&id(of)).expect("a skill");
        let found = self.index.similar(&head, min, limit, &Stop::never());
        found.expect("an answer")
    }

    /// Ids of what is found, with what is the same.
    async fn copies(&self, of: &str) -> Vec<(String, bool, bool)> {
        let found = self.similar(of, 0.7, 50).await;
        let found = found.skills.iter();
        let copies = found.map(|s| (s.head.id.to_string(), s.same_name, s.same_files));
        copies.collect()
    }
}

fn copy(id: &str, same_name: bool, same_files: bool) -> (String, bool, bool) {
    (id.to_owned(), same_name, same_files)
}

#[tokio::test]
async fn copies_of_a_skill_are_found_and_what_became_of_them() {
    let world = some_skills().await;
    let copies = [
        copy("github/zeta/refunds", true, true),
        copy("github/zeta/paybacks", false, false),
        copy("github/zeta/edited", false, false),
    ];
    assert_eq!(world.copies("github/acme/refunds").await, copies);
    let found = world.similar("github/acme/refunds", 0.7, 1).await;
    assert_eq!(
        (found.skills.len(), found.total, found.is_partial),
        (1, 3, false)
    );
    let all = world.similar("github/acme/refunds", 0.0, 50).await.skills;
    let similarity = |slug: &str| {
        let found = all.iter().find(|similar| similar.head.id.as_str() == slug);
        found.map(|similar| similar.similarity).expect("a skill")
    };
    assert!(similarity("github/zeta/refunds") >= 1.0);
    // Of 416 and as many runs of words 413 are in both.
    assert!((similarity("github/zeta/edited") - 0.986).abs() < 0.03);
    assert!((similarity("github/zeta/half") - 0.34).abs() < 0.13);
    assert!(similarity("github/zeta/other") < 0.05);
    assert!(world.copies("github/zeta/empty").await.is_empty());
    // What is on disk says the same.
    let world = world.restarted().await;
    assert_eq!(world.copies("github/acme/refunds").await, copies);
}

#[tokio::test]
async fn what_a_skill_says_now_is_compared_and_copies_of_one_that_is_blocked_are_found() {
    let world = some_skills().await;
    let blocked = id("github/acme/refunds");
    let added = world.registry.block(&blocked, "It lies.", &caller()).await;
    added.expect("blocked");
    let world = world
        .with(
            "github/zeta/edited",
            &renamed(FRONT),
            "Something else by now.",
        )
        .await;
    let copies = world.copies("github/acme/refunds").await;
    assert_eq!(
        copies,
        [
            copy("github/zeta/refunds", true, true),
            copy("github/zeta/paybacks", false, false),
        ]
    );
    // What is blocked is nowhere found itself.
    assert_eq!(
        world.copies("github/zeta/refunds").await,
        [copy("github/zeta/paybacks", false, false)]
    );
}
