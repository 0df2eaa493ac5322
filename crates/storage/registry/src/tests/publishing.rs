//! Versions as they are published: their numbers, and what is refused.

use super::*;

#[tokio::test]
async fn versions_are_numbered_and_the_newest_is_active() {
    let world = World::new();
    let first = world
        .publish(ID, &text("", "one"))
        .await
        .expect("published");
    assert_eq!(
        (first.outcome, first.version.number.get()),
        (Outcome::Created, 1)
    );
    let second = world
        .publish(ID, &text("2.1.0", "two"))
        .await
        .expect("published");
    assert_eq!(
        (second.outcome, second.version.number.get()),
        (Outcome::Updated, 2)
    );
    world.published(ID, &text("", "three")).await;
    assert_eq!(
        world.versions(ID),
        [
            (3, "2.1.1".to_owned(), true, false),
            (2, "2.1.0".to_owned(), false, false),
            (1, "1.0.0".to_owned(), false, false),
        ]
    );
    let world = world.again().await;
    assert_eq!(world.versions(ID).len(), 3);
}

#[tokio::test]
async fn identical_bytes_are_the_version_that_has_them_whatever_came_between() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    let again = world
        .publish("GitHub/ACME/Refunds", &text("", "one"))
        .await
        .expect("published");
    assert_eq!(
        (
            again.id,
            again.outcome,
            again.version.number,
            again.version.active
        ),
        (skill(ID), Outcome::Unchanged, number(1), true)
    );
    assert_eq!(world.versions(ID).len(), 2);
    assert_eq!(
        world.events().last(),
        Some(&(EventKind::Activated, ID.to_owned(), Some(1), Some(1)))
    );
}

#[tokio::test]
async fn a_semantic_version_never_comes_to_mean_other_bytes_not_even_after_a_delete() {
    let world = World::new();
    world.published(ID, &text("1.2.0", "one")).await;
    let error = world
        .publish(ID, &text("1.2.0", "other"))
        .await
        .expect_err("a conflict");
    assert_eq!(
        error.to_string(),
        "Version 1.2.0 of 'github/acme/refunds' exists with other content, as number 1"
    );
    assert_eq!(code(error), Code::VersionConflict);
    let conflict = world
        .publish(ID, &text("v1.2", "other"))
        .await
        .expect_err("1.2 is 1.2.0");
    assert_eq!(code(conflict), Code::VersionConflict);

    world
        .registry
        .delete(&skill(ID), &caller(""))
        .await
        .expect("deleted");
    let error = world
        .publish(ID, &text("1.2.0", "other"))
        .await
        .expect_err("a conflict");
    assert_eq!(code(error), Code::VersionConflict);
    assert_eq!(world.published(ID, &text("1.2.0", "one")).await, 2);
    assert_eq!(world.published(ID, &text("", "another")).await, 3);
    assert_eq!(world.versions(ID)[0].1, "1.2.1");
}

#[tokio::test]
async fn numbers_are_not_used_again_after_a_delete_and_a_restart() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    let deleted = world
        .registry
        .delete(&skill(ID), &caller(""))
        .await
        .expect("deleted");
    assert_eq!(
        deleted,
        Deleted {
            id: skill(ID),
            versions: 2,
            dependents: Vec::new()
        }
    );
    assert_eq!(
        code(
            world
                .registry
                .head(&skill(ID))
                .map(|_| ())
                .expect_err("gone")
        ),
        Code::SkillNotFound
    );
    let gone = world
        .registry
        .delete(&skill(ID), &caller(""))
        .await
        .expect_err("gone");
    assert_eq!(code(gone), Code::SkillNotFound);
    let world = world.again().await;
    assert_eq!(world.published(ID, &text("", "two")).await, 3);
    let old = world
        .registry
        .describe(&skill(ID), &number(2).into())
        .map(|_| ())
        .expect_err("gone");
    assert_eq!(code(old), Code::VersionNotFound);
}

#[tokio::test]
async fn a_version_can_be_published_without_becoming_active() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let text = text("", "two");
    let prepared = world
        .registry
        .prepare(bundle(ID, &[("SKILL.md", &text)]))
        .await
        .expect("a skill");
    let published = world
        .registry
        .publish(prepared, "later", false, &caller(""))
        .await
        .expect("published");
    assert_eq!(published.version.number, number(2));
    assert_eq!(
        world.registry.head(&skill(ID)).expect("a head").active,
        Some(number(1))
    );
}

#[tokio::test]
async fn many_publishes_at_once_get_a_number_each_without_a_hole() {
    let world = World::new();
    let writers: Vec<_> = (0..40)
        .map(|n| {
            let registry = world.registry.clone();
            tokio::spawn(async move {
                let text = text("", &format!("body {n}"));
                let published = publish(&registry, ID, &[("SKILL.md", &text)], &caller("")).await;
                published.expect("published").version.number.get()
            })
        })
        .collect();
    let mut numbers = Vec::new();
    for writer in writers {
        numbers.push(writer.await.expect("a writer"));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    assert_eq!(world.versions(ID).len(), 40);
}

#[tokio::test]
async fn what_comes_with_the_server_is_written_by_the_server_alone() {
    let world = World::new();
    let id = "builtin/repertoire/refunds";
    let error = world
        .publish(id, &text("", "one"))
        .await
        .expect_err("read-only");
    assert_eq!(code(error), Code::SkillReadOnly);
    let system = Caller::new(Principal::system());
    publish(
        &world.registry,
        id,
        &[("SKILL.md", &text("", "one"))],
        &system,
    )
    .await
    .expect("published");
    for result in [
        world
            .registry
            .yank(&skill(id), number(1), "", &caller(""))
            .await
            .map(|_| ()),
        world
            .registry
            .delete(&skill(id), &caller(""))
            .await
            .map(|_| ()),
        world
            .registry
            .activate(&skill(id), number(1), &caller(""))
            .await
            .map(|_| ()),
    ] {
        assert_eq!(code(result.expect_err("read-only")), Code::SkillReadOnly);
    }
}

#[tokio::test]
async fn files_that_make_no_skill_are_refused_with_all_that_is_wrong_and_nothing_is_stored() {
    let world = World::new();
    let error = world
        .publish(ID, "# Refunds\n")
        .await
        .expect_err("no front matter");
    let failure = Failure::from(error);
    assert_eq!(failure.code, Code::SkillInvalid);
    assert_eq!(failure.problems[0].rule, "front-matter-missing");
    assert_eq!(
        (failure.problems[0].file.as_str(), failure.problems[0].line),
        ("SKILL.md", 1)
    );
    assert!(world.registry.catalog().is_empty());
    assert_eq!(world.events(), []);
}

#[tokio::test]
async fn a_version_that_was_given_to_other_bytes_is_told_apart_by_what_is_behind_a_plus() {
    let world = World::new();
    world.published(ID, &text("1.2.0", "one")).await;
    let text = text("1.2.0", "two");
    let prepared = world.registry.prepare(bundle(ID, &[("SKILL.md", &text)]));
    let mut prepared = prepared.await.expect("a skill");
    prepared.distinguish_by(semver::BuildMetadata::new("abc").expect("one"));
    let published = world
        .registry
        .publish(prepared, "", true, &caller(""))
        .await;
    published.expect("published");
    let versions = world.versions(ID).into_iter();
    let stated: Vec<String> = versions.map(|version| version.1).collect();
    assert_eq!(stated, ["1.2.0+abc", "1.2.0"]);
}

/// Notes which skills it is asked about; the namespaces become the caller's.
#[derive(Debug, Default)]
struct Asked(std::sync::Mutex<Vec<String>>);

impl Claims for Asked {
    fn claim(
        &self,
        _: &mut Batch,
        skill: &SkillId,
        _: &Principal,
        _: Timestamp,
    ) -> Result<Claim, StoreError> {
        self.0.lock().expect("a list").push(skill.to_string());
        Ok(Claim::Added)
    }

    fn keeps_names(&self, holder: &SkillId, _: &Principal) -> bool {
        holder.author() == "owned"
    }
}

#[tokio::test]
async fn a_namespace_is_claimed_by_the_first_skill_in_it() {
    let (directory, asked) = (
        TempDir::new().expect("a folder"),
        Arc::new(Asked::default()),
    );
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let policy = Policy {
        claims: Some(asked.clone()),
        ..Policy::default()
    };
    let clock = Arc::new(Hands::default());
    let registry = Registry::open_with(store, clock, Executor::default(), policy);
    let registry = registry.expect("a registry");
    for id in [
        "github/acme/one",
        "github/acme/two",
        "github/acme/one",
        "github/acm/three",
    ] {
        let text = text("", id);
        let published = publish(&registry, id, &[("SKILL.md", &text)], &caller("")).await;
        published.expect("published");
    }
    let asked = asked.0.lock().expect("a list");
    assert_eq!(*asked, ["github/acme/one", "github/acm/three"]);
}
