//! What a compaction keeps, and what readers are told of what it did not.

use super::*;
use crate::{ArchiveFormat, ExportQuery};
use executor::Stop;
use store::{Batch, Table, TableId};

const MORE: &str = "more bytes than one version needs\n";

fn with_more(body: &str) -> Bundle {
    bundle(ID, &[("SKILL.md", &text("", body)), ("more.md", MORE)])
}

impl World {
    async fn compact(&self) -> bool {
        let registry = self.registry.clone();
        let done = tokio::task::spawn_blocking(move || registry.compact(&Stop::never(), |_| ()));
        done.await.expect("a task").expect("compaction").replaced
    }

    async fn with_more(&self, body: &str) -> Arc<Version> {
        let prepared = self
            .registry
            .prepare(with_more(body))
            .await
            .expect("a skill");
        let caller = caller("");
        let published = self.registry.publish(prepared, "", true, &caller);
        published.await.expect("published");
        self.active().version
    }

    fn active(&self) -> Described {
        let active = self.registry.describe(&skill(ID), &VersionSelector::Active);
        active.expect("a version")
    }

    async fn delete(&self) {
        let (id, caller) = (skill(ID), caller(""));
        let deleted = self.registry.delete(&id, &caller);
        deleted.await.expect("deleted");
    }

    fn has_more(&self) -> bool {
        let digest = Digest::of(MORE.as_bytes());
        self.registry.store().has_content(&digest).expect("a store")
    }
}

#[tokio::test]
async fn a_version_has_the_contents_that_were_unused_when_it_was_packed() {
    let world = World::new();
    world.with_more("first").await;
    world.delete().await;
    // It packs what is not stored, and leaves out what nothing uses at this moment.
    let prepared = world.registry.prepare(with_more("second")).await;
    assert!(world.compact().await);
    let prepared = prepared.expect("a skill");
    let published = world
        .registry
        .publish(prepared, "", true, &caller(""))
        .await;
    published.expect("published");
    let version = world.active().version;
    let file = world.registry.file(&skill(ID), &version, "more.md").await;
    assert_eq!(file.expect("a file"), MORE);
    let audit = world.registry.audit().expect("an audit");
    assert_eq!(audit.damage, Vec::<String>::new());
    // It is used from here on, and unused once more after a delete.
    world.compact().await;
    assert!(world.has_more());
    world.delete().await;
    assert!(world.compact().await);
    assert!(!world.has_more());
}

#[tokio::test]
async fn who_reads_a_version_that_was_deleted_and_compacted_is_told_that_it_is_gone() {
    let world = World::new();
    let version = world.with_more("first").await;
    world.delete().await;
    assert!(world.compact().await);
    let error = world.registry.file(&skill(ID), &version, "more.md").await;
    assert_eq!(code(error.expect_err("gone")), Code::VersionNotFound);
    let query = ExportQuery {
        version: VersionSelector::Number(version.number),
        format: ArchiveFormat::Zip,
        info_only: false,
    };
    let error = world.registry.export(&skill(ID), &query).await;
    assert_eq!(code(error.expect_err("gone")), Code::SkillNotFound);
}

/// The version that is active, and one without it, compared while their contents go.
#[tokio::test]
async fn a_diff_of_a_version_that_lacks_a_content_says_so() {
    let world = World::new();
    world.with_more("first").await;
    world.published(ID, &text("", "second")).await;
    let digest = Digest::of(MORE.as_bytes());
    let contents: Table<(Digest, u16), ()> = Table::new(TableId::Contents);
    let mut batch = Batch::new();
    batch.delete(&contents, &(digest, 0));
    let committed = world.registry.store().commit(batch).await;
    committed.expect("a commit");
    for (from, to) in [(1, 2), (2, 1)] {
        let (from, to) = (Some(number(from).into()), number(to).into());
        let error = world.registry.diff(&skill(ID), from, &to).await;
        assert_eq!(code(error.expect_err("damage")), Code::DataDamaged);
    }
    // And where a version is gone by then, that is what is said.
    let error = Error::missing(&digest);
    world.delete().await;
    let error = world.registry.gone(&skill(ID), number(2), error);
    assert_eq!(code(error), Code::VersionNotFound);
}

#[tokio::test]
async fn one_compaction_at_a_time_and_none_of_a_version_that_lacks_a_content() {
    let world = World::new();
    world.with_more("first").await;
    let begun = store::Compaction::begin(world.registry.store()).expect("begun");
    let refused = |registry: &Registry| {
        code(
            registry
                .compact(&Stop::never(), |_| ())
                .expect_err("refused"),
        )
    };
    assert_eq!(refused(&world.registry), Code::Overloaded);
    let done = tokio::task::spawn_blocking(move || begun.run(|_| false, |_| Ok(())));
    assert!(done.await.expect("a task").expect("compaction").replaced);
    assert_eq!(refused(&world.registry), Code::DataDamaged);
    let passed = Stop::at(tokio::time::Instant::now());
    let stopped = world.registry.compact(&passed, |_| ());
    assert_eq!(code(stopped.expect_err("late")), Code::Timeout);
}

/// What a running server and a stopped one look at is the same.
#[tokio::test]
async fn a_directory_that_does_not_fit_together_is_not_compacted() {
    let world = World::new();
    let version = world.with_more("first").await;
    let key = skill(ID).key();
    let mut batch = Batch::new();
    batch.delete(&DIGESTS, &(key.clone(), version.digest));
    let committed = world.registry.store().commit(batch).await;
    committed.expect("a commit");
    let refused = |registry: &Registry| {
        let error = registry.compact(&Stop::never(), |_| ());
        error.expect_err("refused").to_string()
    };
    assert_eq!(
        refused(&world.registry),
        "the data directory is damaged: version 1 of 'github/acme/refunds' is not found by its digest"
    );
    let mut batch = Batch::new();
    batch.put(&DIGESTS, &(key.clone(), version.digest), &version.number);
    batch.delete(&HEADS, &key);
    let committed = world.registry.store().commit(batch).await;
    committed.expect("a commit");
    let world = world.again().await;
    assert_eq!(
        refused(&world.registry),
        "the data directory is damaged: versions of 'github/acme/refunds' belong to no skill"
    );
    assert!(world.has_more(), "they keep their contents");
}

/// Some skill changes at every moment; none of that is damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_beside_writes_finds_no_damage() {
    let world = World::new();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (registry, stop) = (world.registry.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let id = format!("a/b/skill-{writer}");
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    let body = text("", &format!("round {round}"));
                    let files = [("SKILL.md", &*body)];
                    let published = publish(&registry, &id, &files, &caller("")).await;
                    published.expect("published");
                    if round % 5 == 4 {
                        let deleted = registry.delete(&skill(&id), &caller("")).await;
                        deleted.expect("deleted");
                    }
                    round += 1;
                }
            })
        })
        .collect();
    let registry = world.registry.clone();
    let audits = tokio::task::spawn_blocking(move || {
        let audits = (0..300).map(|_| registry.audit().expect("an audit").damage);
        audits.flatten().collect::<Vec<_>>()
    });
    let damage = audits.await.expect("a task");
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer");
    }
    assert_eq!(damage, Vec::<String>::new());
}

#[test]
fn a_compaction_that_may_not_be_durable_says_that_its_store_is_in_use() {
    let error = StoreError::NotDurable {
        path: "store".into(),
        cause: std::io::Error::other("no"),
    };
    let failure = Failure::from(Error::from(error));
    assert_eq!(failure.code, Code::StoreUnavailable);
    assert!(
        failure.suggestions[0].starts_with("Check the disk: the new store is in use"),
        "{failure:?}"
    );
}
