mod blocklist;
mod catalog;
mod dependents;
mod facets;
mod follow;
mod holds;
mod local;
mod log;
mod repair;
mod repeats;
mod space;
mod storage;
mod submissions;
mod usage;
mod versions;
mod withdrawals;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use executor::Kind;
use model::{Code, EventKind, Failure, FilePath, Principal, SkillId, VersionSelector};
use store::{Options, StoreError};

/// A clock that a test moves.
#[derive(Default)]
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let second = self.0.load(Ordering::Relaxed);
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }
}

struct World {
    directory: TempDir,
    clock: Arc<Hands>,
    registry: Registry,
}

impl World {
    fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let clock = Arc::new(Hands::default());
        let registry = Self::open(&directory, &clock);
        Self {
            directory,
            clock,
            registry,
        }
    }

    fn open(directory: &TempDir, clock: &Arc<Hands>) -> Registry {
        let options = Options {
            reserve_bytes: 0,
            ..Options::default()
        };
        let store = Store::open(&directory.path().join("data"), &options).expect("a store");
        let clock: Arc<dyn Clock> = clock.clone();
        Registry::open(store, clock).expect("a registry")
    }

    /// The same data directory in a new process, as far as a test can have one.
    async fn again(self) -> Self {
        let Self {
            directory,
            clock,
            registry,
        } = self;
        registry.store().close().await;
        drop(registry);
        let registry = Self::open(&directory, &clock);
        Self {
            directory,
            clock,
            registry,
        }
    }

    async fn publish(&self, id: &str, text: &str) -> Result<Published, Error> {
        publish(&self.registry, id, &[("SKILL.md", text)], &caller("")).await
    }

    async fn published(&self, id: &str, text: &str) -> u32 {
        self.publish(id, text)
            .await
            .expect("a published version")
            .version
            .number
            .get()
    }

    /// Withdraws a version of the skill that most tests have.
    async fn withdraw(&self, n: u32, reason: &str) -> Withdrawn {
        let (id, caller) = (skill(ID), caller(""));
        let yanked = self.registry.yank(&id, number(n), reason, &caller).await;
        yanked.expect("withdrawn")
    }

    async fn put_back(&self, n: u32) -> Withdrawn {
        let (id, caller) = (skill(ID), caller(""));
        let back = self.registry.unyank(&id, number(n), &caller).await;
        back.expect("put back")
    }

    fn versions(&self, id: &str) -> Vec<(u32, String, bool, bool)> {
        let page = self
            .registry
            .list_versions(&skill(id), 100, "")
            .expect("versions");
        let versions = page.versions.iter().map(|d| {
            (
                d.version.number.get(),
                d.version.semantic.to_string(),
                d.is_active(),
                d.yank.is_some(),
            )
        });
        versions.collect()
    }

    fn events(&self) -> Vec<(EventKind, String, Option<u32>, Option<u32>)> {
        let events = self.registry.store().events_after(0, 1000);
        let events = events.expect("events").expect("the whole log");
        let number = |number: Option<VersionNumber>| number.map(VersionNumber::get);
        let events = events.into_iter().map(|(_, event)| {
            (
                event.kind,
                event.skill_id.to_string(),
                number(event.version),
                number(event.active),
            )
        });
        events.collect()
    }
}

fn skill(id: &str) -> SkillId {
    id.parse().expect("an id")
}

fn number(number: u32) -> VersionNumber {
    VersionNumber::new(number).expect("a number")
}

fn caller(key: &str) -> Caller {
    named(key, "")
}

/// A caller that names its write, and what the request said.
fn named(key: &str, request: &str) -> Caller {
    let request = || Digest::of(request.as_bytes());
    Caller::named(Principal::anonymous(), key, request)
}

fn bundle(id: &str, files: &[(&str, &str)]) -> Bundle {
    let files: BTreeMap<FilePath, Bytes> = files
        .iter()
        .map(|(path, text)| {
            (
                path.parse().expect("a path"),
                Bytes::from((*text).to_owned()),
            )
        })
        .collect();
    Bundle {
        id: Some(skill(id)),
        files,
        folder: String::new(),
        strict: false,
    }
}

async fn publish(
    registry: &Registry,
    id: &str,
    files: &[(&str, &str)],
    caller: &Caller,
) -> Result<Published, Error> {
    let prepared = registry.prepare(bundle(id, files)).await?;
    registry.publish(prepared, "", true, caller).await
}

/// A SKILL.md with a body; `version` may be empty.
fn text(version: &str, body: &str) -> String {
    let version = if version.is_empty() {
        String::new()
    } else {
        format!("version: \"{version}\"\n")
    };
    format!("---\nname: refunds\ndescription: Handles refunds.\n{version}---\n{body}\n")
}

const ID: &str = "github/acme/refunds";

fn code(error: Error) -> Code {
    Failure::from(error).code
}

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
async fn activating_an_older_version_is_the_rollback() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    let back = world
        .registry
        .activate(&skill(ID), number(1), &caller(""))
        .await
        .expect("activated");
    assert_eq!(
        (
            back.id,
            back.version.number,
            back.version.active,
            back.previous
        ),
        (skill(ID), number(1), true, Some(number(2)))
    );
    let again = world
        .registry
        .activate(&skill(ID), number(1), &caller(""))
        .await
        .expect("activated");
    assert_eq!(again.previous, Some(number(1)));
    let missing = world
        .registry
        .activate(&skill(ID), number(9), &caller(""))
        .await
        .expect_err("no such version");
    assert_eq!(code(missing), Code::VersionNotFound);
    assert_eq!(
        world.events(),
        [
            (EventKind::Published, ID.to_owned(), Some(1), Some(1)),
            (EventKind::Published, ID.to_owned(), Some(2), Some(2)),
            (EventKind::Activated, ID.to_owned(), Some(1), Some(1)),
        ]
    );
}

#[tokio::test]
async fn a_withdrawn_version_answers_only_when_it_is_asked_for() {
    let world = World::new();
    for body in ["one", "two", "three"] {
        world.published(ID, &text("", body)).await;
    }
    let yank = |n| {
        let registry = world.registry.clone();
        async move {
            registry
                .yank(&skill(ID), number(n), "leaks", &caller(""))
                .await
                .expect("withdrawn")
        }
    };
    assert_eq!(yank(3).await.active, Some(number(2)));
    assert_eq!(yank(3).await.active, Some(number(2)));
    let error = world
        .registry
        .activate(&skill(ID), number(3), &caller(""))
        .await
        .expect_err("withdrawn");
    assert_eq!(
        error.to_string(),
        "Version 3 of 'github/acme/refunds' was withdrawn: leaks"
    );
    let exact = world
        .registry
        .describe(&skill(ID), &number(3).into())
        .expect("a version");
    assert_eq!(
        exact.yank.as_ref().map(|yank| yank.reason.as_str()),
        Some("leaks")
    );

    assert_eq!(yank(1).await.active, Some(number(2)));
    assert_eq!(yank(2).await.active, None);
    let error = world
        .registry
        .describe(&skill(ID), &VersionSelector::Active)
        .map(|_| ())
        .expect_err("withdrawn");
    assert_eq!(code(error), Code::SkillYanked);

    let back = world
        .registry
        .unyank(&skill(ID), number(1), &caller(""))
        .await
        .expect("put back");
    assert_eq!(back.active, Some(number(1)));
    let back = world
        .registry
        .unyank(&skill(ID), number(3), &caller(""))
        .await
        .expect("put back");
    assert_eq!(back.active, Some(number(1)));
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
async fn a_named_write_is_done_once_and_its_name_serves_one_request() {
    let world = World::new();
    let named = caller("deploy-1");
    let first = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named,
    )
    .await
    .expect("published");
    world.published(ID, &text("", "two")).await;
    let world = world.again().await;
    let again = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named,
    )
    .await
    .expect("published");
    assert_eq!(again, first);
    assert_eq!(world.versions(ID).len(), 2);
    let other = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "three"))],
        &self::named("deploy-1", "another request"),
    )
    .await;
    assert_eq!(
        code(other.expect_err("a refusal")),
        Code::IdempotencyKeyReused
    );

    let delete = caller("delete-1");
    let first = world
        .registry
        .delete(&skill(ID), &delete)
        .await
        .expect("deleted");
    assert_eq!(
        world
            .registry
            .delete(&skill(ID), &delete)
            .await
            .expect("deleted"),
        first
    );
}

#[tokio::test]
async fn a_named_write_that_was_done_while_it_was_planned_again_gives_its_answer() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let named = caller("delete-1");
    let registry = world.registry.clone();
    let repeated: Result<Deleted, Error> = world
        .registry
        .write(&named, || {
            // The first call, whose caller went away, is done just now.
            let (registry, named) = (registry.clone(), named.clone());
            let first = std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(registry.delete(&skill(ID), &named))
            });
            first.join().expect("a thread").expect("deleted");
            let reference = ID.to_owned();
            let near = Vec::new();
            Err(Error::SkillNotFound {
                reference,
                near,
                refused: None,
            })
        })
        .await;
    let deleted = Deleted {
        id: skill(ID),
        versions: 1,
        dependents: Vec::new(),
    };
    assert_eq!(repeated.expect("its answer"), deleted);
}

#[tokio::test]
async fn the_name_of_a_write_is_forgotten_after_a_day() {
    let world = World::new();
    let named = |n: u32| named(&format!("key-{n}"), &n.to_string());
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named(1),
    )
    .await
    .expect("published");
    world.clock.0.store(25 * 3600, Ordering::Relaxed);
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "two"))],
        &named(2),
    )
    .await
    .expect("published");
    let reused = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "three"))],
        &named(1),
    )
    .await;
    assert_eq!(reused.expect("a new write").version.number, number(3));
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
async fn a_diff_names_every_key_and_every_file_that_differs() {
    let world = World::new();
    let old = text("1.0.0", "Step one.");
    let new = text("2.0.0", "Step two.").replace("name: refunds", "name: refunds\ncategory: money");
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &old), ("a.md", "a"), ("same.md", "s")],
        &caller(""),
    )
    .await
    .expect("published");
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &new), ("b.md", "b\n"), ("same.md", "s")],
        &caller(""),
    )
    .await
    .expect("published");
    let diff = world
        .registry
        .diff(&skill(ID), None, &VersionSelector::Active)
        .await
        .expect("a diff");
    let fields: Vec<_> = diff
        .fields
        .iter()
        .map(|f| (f.field.as_str(), f.change.kind()))
        .collect();
    assert_eq!(
        fields,
        [
            ("category", ChangeKind::Added),
            ("version", ChangeKind::Modified)
        ]
    );
    let files: Vec<_> = diff
        .files
        .iter()
        .map(|f| (f.path.as_str(), f.change.kind()))
        .collect();
    assert_eq!(
        files,
        [
            ("SKILL.md", ChangeKind::Modified),
            ("a.md", ChangeKind::Removed),
            ("b.md", ChangeKind::Added)
        ]
    );
    assert_eq!(
        diff.files[2].lines,
        Lines::Unified("--- a/b.md\n+++ b/b.md\n@@ -0,0 +1 @@\n+b\n".to_owned())
    );
    let Lines::Unified(lines) = &diff.files[0].lines else {
        panic!("no lines: {:?}", diff.files[0].lines);
    };
    assert!(lines.contains("-Step one.\n+Step two.\n"), "{lines}");
    let same = world
        .registry
        .diff(&skill(ID), Some(number(1).into()), &number(1).into())
        .await
        .expect("a diff");
    assert_eq!((same.fields.len(), same.files.len()), (0, 0));
    let first = world
        .registry
        .diff(&skill(ID), None, &number(1).into())
        .await
        .map(|_| ())
        .expect_err("none before");
    assert_eq!(code(first), Code::InvalidParameter);
}

#[tokio::test]
async fn what_a_diff_does_not_compare_it_says_file_by_file() {
    let world = World::new();
    let lines = |count: usize, first: usize| -> String {
        let lines = (first..first + count).map(|at| at.to_string());
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    for version in 1..=2_usize {
        let half = lines::MAX_LINES / 2;
        let (full, over) = (
            lines(half, version * 100_000),
            lines(half + 1, version * 100_000),
        );
        let long = "x".repeat(256 * 1024) + &version.to_string();
        let skill_md = text(&format!("{version}.0.0"), "body");
        let binary = format!("\0{version}");
        let mut files = vec![
            ("SKILL.md", skill_md.as_str()),
            ("a-binary", &binary),
            ("a-lines.md", &over),
            ("a-long.md", &long),
            ("b.md", &full),
            ("c.md", &full),
            ("d.md", &full),
            ("e.md", &full),
        ];
        if version == 2 {
            files.push(("f.md", "small\n"));
        }
        let published = publish(&world.registry, ID, &files, &caller("")).await;
        published.expect("a version");
    }
    let diff = world
        .registry
        .diff(&skill(ID), None, &VersionSelector::Active)
        .await;
    let files = diff.expect("a diff").files;
    let seen: Vec<_> = files
        .iter()
        .map(|file| {
            let lines = match &file.lines {
                Lines::Unified(text) => text.lines().nth(2).unwrap_or_default().to_owned(),
                other => format!("{other:?}"),
            };
            format!("{} {lines}", file.path)
        })
        .collect();
    assert_eq!(
        seen,
        [
            "SKILL.md @@ -1,6 +1,6 @@",
            "a-binary NotText",
            "a-lines.md TooLarge",
            "a-long.md TooLarge",
            "b.md @@ -1,10000 +1,10000 @@",
            "c.md @@ -1,10000 +1,10000 @@",
            "d.md @@ -1,10000 +1,10000 @@",
            "e.md OverBudget",
            "f.md @@ -0,0 +1 @@",
        ]
    );
}

#[tokio::test]
async fn an_archive_of_a_version_is_the_same_bytes_always_and_holds_its_files() {
    let world = World::new();
    let skill_md = text("1.0.0", "body");
    let files = [
        ("SKILL.md", skill_md.as_str()),
        ("references/a.md", "a"),
        ("scripts/x.py", "print()"),
    ];
    publish(&world.registry, ID, &files, &caller(""))
        .await
        .expect("published");
    for format in [ArchiveFormat::TarGz, ArchiveFormat::Zip] {
        let id = skill(ID);
        let query = |info_only| ExportQuery {
            version: VersionSelector::Active,
            format,
            info_only,
        };
        let (bytes, info) = (query(false), query(true));
        let export = || world.registry.export(&id, &bytes);
        let (first, second) = (
            export().await.expect("an archive"),
            export().await.expect("an archive"),
        );
        assert_eq!(first.bytes, second.bytes);
        assert_eq!(first.digest, Digest::of(&second.bytes));
        let told = world.registry.export(&id, &info).await.expect("told");
        assert_eq!((told.bytes.len(), told.size), (0, first.bytes.len() as u64));
        assert_eq!(told.digest, first.digest);
        assert_eq!(
            first.file_name(),
            format!("refunds-1.0.0.{}", format.ending())
        );
        let mut found = Vec::new();
        match format {
            ArchiveFormat::TarGz => {
                let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*first.bytes));
                for entry in archive.entries().expect("entries") {
                    let mut entry = entry.expect("an entry");
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
                    found.push((entry.path().expect("a path").display().to_string(), text));
                }
            }
            ArchiveFormat::Zip => {
                let mut archive =
                    zip::ZipArchive::new(std::io::Cursor::new(first.bytes)).expect("a zip");
                for at in 0..archive.len() {
                    let mut entry = archive.by_index(at).expect("an entry");
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
                    found.push((entry.name().to_owned(), text));
                }
            }
        }
        let expected: Vec<_> = files
            .iter()
            .map(|(p, t)| ((*p).to_owned(), (*t).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_watcher_sees_every_event_once_and_goes_on_where_it_was() {
    let world = World::new();
    world.published(ID, &text("", "before")).await;
    let mut watch = world
        .registry
        .watch("", WatchFilter::default())
        .expect("a watcher");
    let start = watch.resume_token();
    world.published(ID, &text("", "one")).await;
    world.published("github/acme/other", &text("", "two")).await;
    let (_, first) = watch.next().await.expect("an event");
    assert_eq!(
        (first.skill_id, first.version),
        (skill(ID), Some(number(2)))
    );
    let middle = watch.resume_token();
    drop(watch);

    let world = world.again().await;
    let mut resumed = world
        .registry
        .watch(&middle, WatchFilter::default())
        .expect("a watcher");
    let (_, second) = resumed.next().await.expect("an event");
    assert_eq!(second.skill_id, skill("github/acme/other"));
    let filter = WatchFilter::default().skill(&skill("github/acme/other"));
    let mut filtered = world.registry.watch(&start, filter).expect("a watcher");
    assert_eq!(filtered.next().await.expect("an event").1, second);
}

#[tokio::test]
async fn a_watcher_whose_place_is_gone_is_told_to_list_again() {
    let directory = TempDir::new().expect("a folder");
    let options = Options {
        reserve_bytes: 0,
        keep_events: 3,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let registry = Registry::open(store, Arc::new(Hands::default())).expect("a registry");
    let start = registry.resume_token();
    for n in 0..10 {
        publish(
            &registry,
            ID,
            &[("SKILL.md", &text("", &n.to_string()))],
            &caller(""),
        )
        .await
        .expect("published");
    }
    let watch = |token: &str| registry.watch(token, WatchFilter::default()).map(|_| ());
    assert_eq!(
        code(watch(&start).expect_err("too old")),
        Code::ResumeTokenExpired
    );
    assert_eq!(
        code(watch("x").expect_err("no token")),
        Code::ResumeTokenInvalid
    );
    assert!(watch(&registry.resume_token()).is_ok());
    let other = World::new();
    assert_eq!(
        code(watch(&other.registry.resume_token()).expect_err("another log")),
        Code::ResumeTokenExpired
    );
}

#[tokio::test]
async fn pages_of_versions_are_whole_and_their_tokens_serve_one_skill() {
    let world = World::new();
    for n in 0..7 {
        world.published(ID, &text("", &n.to_string())).await;
        world
            .published("github/acme/other", &text("", &n.to_string()))
            .await;
    }
    let mut numbers = Vec::new();
    let mut token = String::new();
    for _ in 0..4 {
        let page = world
            .registry
            .list_versions(&skill(ID), 3, &token)
            .expect("a page");
        numbers.push(
            page.versions
                .iter()
                .map(|d| d.version.number.get())
                .collect::<Vec<_>>(),
        );
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(numbers, [vec![7, 6, 5], vec![4, 3, 2], vec![1]]);
    let other = world
        .registry
        .list_versions(&skill("github/acme/other"), 3, &token)
        .map(|_| ());
    assert_eq!(
        code(other.expect_err("another query")),
        Code::PageTokenInvalid
    );
}

#[tokio::test]
async fn usage_counts_reads_loads_and_distinct_sessions_across_a_restart() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    for session in ["a", "a", "b", ""] {
        world
            .registry
            .count(&head, number(1), UsageKind::Read, session);
    }
    let expected = VersionUsage {
        loads: 0,
        reads: 4,
        sessions: 2,
        last_used_at: Some(Timestamp::UNIX_EPOCH),
    };
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected.clone())]
    );
    world.registry.write_usage().await.expect("written");
    let world = world.again().await;
    // Sessions are remembered until the server stops: the third is `b` again.
    for session in ["b", "c", "b"] {
        world
            .registry
            .count(&head, number(1), UsageKind::Load, session);
    }
    let expected = VersionUsage {
        loads: 3,
        sessions: 4,
        ..expected
    };
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected.clone())]
    );
    world.registry.write_usage().await.expect("written");
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected)]
    );
    world
        .registry
        .delete(&skill(ID), &caller(""))
        .await
        .expect("deleted");
    assert_eq!(world.registry.usage(&head).expect("usage"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn counts_on_their_way_to_the_store_are_counted_once() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    let registry = world.registry.clone();
    let counted = Arc::clone(&head);
    let writer = tokio::spawn(async move {
        for _ in 0..100 {
            registry.count(&counted, number(1), UsageKind::Read, "");
            registry.write_usage().await.expect("written");
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        let usage = world.registry.usage(&head).expect("usage");
        let reads = usage.first().map_or(0, |(_, counts)| counts.reads);
        assert!((last..=last + 100).contains(&reads), "{reads} after {last}");
        last = reads;
        tokio::task::yield_now().await;
    }
    writer.await.expect("a writer");
    let usage = world.registry.usage(&head).expect("usage");
    assert_eq!(usage.first().map(|(_, counts)| counts.reads), Some(100));
}

#[tokio::test]
async fn a_read_that_ends_after_its_skill_was_deleted_is_not_counted_for_the_next_one() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let before = world.registry.head(&skill(ID)).expect("a head");
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    assert_eq!(world.published(ID, &text("", "two")).await, 2);
    for n in [1, 2] {
        let late = UsageKind::Read;
        world.registry.count(&before, number(n), late, "");
    }
    world.registry.write_usage().await.expect("written");
    let head = world.registry.head(&skill(ID)).expect("a head");
    let usage = world.registry.usage(&head).expect("usage");
    let reads: Vec<_> = usage
        .iter()
        .map(|(n, counts)| (n.get(), counts.reads))
        .collect();
    assert_eq!(reads, [(2, 1)]);
}

#[tokio::test]
async fn an_audit_of_what_was_stored_finds_nothing_wrong_and_names_what_is_used() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    world
        .published("github/acme/gone", &text("", "three"))
        .await;
    world
        .registry
        .delete(&skill("github/acme/gone"), &caller(""))
        .await
        .expect("deleted");
    let audit = world.registry.audit().expect("an audit");
    assert_eq!(
        (audit.skills, audit.versions, audit.contents.len()),
        (1, 2, 2)
    );
    assert_eq!(audit.damage, Vec::<String>::new());
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Publish(u8, u8),
    Activate(u8, u8),
    Yank(u8, u8),
    Unyank(u8, u8),
    Delete(u8),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u8, 0..6_u8).prop_map(|(s, b)| Step::Publish(s, b)),
        2 => (0..3_u8, 1..5_u8).prop_map(|(s, n)| Step::Activate(s, n)),
        2 => (0..3_u8, 1..5_u8).prop_map(|(s, n)| Step::Yank(s, n)),
        1 => (0..3_u8, 1..5_u8).prop_map(|(s, n)| Step::Unyank(s, n)),
        1 => (0..3_u8).prop_map(Step::Delete),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What a skill should be, by the rules alone.
#[derive(Debug, Default, Clone, PartialEq)]
struct Model {
    last: u32,
    live: bool,
    bodies: BTreeMap<u32, u8>,
    yanked: std::collections::BTreeSet<u32>,
    active: Option<u32>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_history_gives_what_the_rules_say_and_the_log_tells_all_of_it(history in steps()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            let mut models = vec![Model::default(); 3];
            let mut changes = 0;
            for step in history {
                let id = |s: u8| format!("local/global/skill-{s}");
                match step {
                    Step::Publish(s, b) => {
                        let model = &mut models[usize::from(s)];
                        let known = model.bodies.iter().find(|(_, body)| **body == b);
                        let expected = if let Some(number) = known.map(|(number, _)| *number) {
                            if !model.yanked.contains(&number) && model.active != Some(number) {
                                model.active = Some(number);
                                changes += 1;
                            }
                            number
                        } else {
                            model.last += 1;
                            model.live = true;
                            model.bodies.insert(model.last, b);
                            model.active = Some(model.last);
                            changes += 1;
                            model.last
                        };
                        assert_eq!(world.published(&id(s), &text("", &format!("body {b}"))).await, expected);
                    }
                    Step::Activate(s, n) => {
                        let model = &mut models[usize::from(s)];
                        let n = u32::from(n);
                        let allowed = model.bodies.contains_key(&n) && !model.yanked.contains(&n);
                        let done = world.registry.activate(&skill(&id(s)), number(n), &caller("")).await;
                        assert_eq!(done.is_ok(), allowed);
                        if allowed {
                            changes += usize::from(model.active != Some(n));
                            model.active = Some(n);
                        }
                    }
                    Step::Yank(s, n) => {
                        let model = &mut models[usize::from(s)];
                        let n = u32::from(n);
                        let done = world.registry.yank(&skill(&id(s)), number(n), "", &caller("")).await;
                        assert_eq!(done.is_ok(), model.bodies.contains_key(&n));
                        if done.is_ok() && model.yanked.insert(n) {
                            changes += 1;
                            if model.active == Some(n) {
                                model.active = model.bodies.keys().rev().find(|n| !model.yanked.contains(n)).copied();
                            }
                        }
                    }
                    Step::Unyank(s, n) => {
                        let model = &mut models[usize::from(s)];
                        let n = u32::from(n);
                        let done = world.registry.unyank(&skill(&id(s)), number(n), &caller("")).await;
                        assert_eq!(done.is_ok(), model.bodies.contains_key(&n));
                        if model.yanked.remove(&n) {
                            changes += 1;
                            model.active = model.active.or(Some(n));
                        }
                    }
                    Step::Delete(s) => {
                        let model = &mut models[usize::from(s)];
                        let done = world.registry.delete(&skill(&id(s)), &caller("")).await;
                        assert_eq!(done.is_ok(), model.live);
                        if model.live {
                            changes += 1;
                            *model = Model { last: model.last, ..Model::default() };
                        }
                    }
                    Step::Restart => world = world.again().await,
                }
            }
            for (s, model) in models.iter().enumerate() {
                let id = format!("local/global/skill-{s}");
                let Ok(head) = world.registry.head(&skill(&id)) else {
                    assert!(!model.live);
                    continue;
                };
                let versions = world.versions(&id);
                let found = Model {
                    last: head.last_number.get(),
                    live: true,
                    bodies: model.bodies.clone(),
                    yanked: versions.iter().filter(|v| v.3).map(|v| v.0).collect(),
                    active: head.active.map(VersionNumber::get),
                };
                assert_eq!(&found, model);
                let numbers: Vec<u32> = versions.iter().rev().map(|v| v.0).collect();
                assert_eq!(numbers, model.bodies.keys().copied().collect::<Vec<_>>());
            }
            assert_eq!(world.events().len(), changes);
            assert_eq!(world.registry.audit().expect("an audit").damage, Vec::<String>::new());
        });
    }
}
