//! The catalog's indexes against a look at every skill.

use imbl::OrdMap;

use super::*;
use model::{Block, Location, Reference, TrustTier};

/// One skill that changes: its id, its name, and what became of it.
type Step = (&'static str, &'static str, State);

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Live,
    Withdrawn,
    Deleted,
}

const IDS: [&str; 8] = [
    "local/project/a",
    "Local/User/a",
    "local/user/b",
    "local/global/a",
    "github/acme/A",
    "github/acme-labs/b",
    "github/zeta/c",
    "zoo/x/a",
];
const NAMES: [&str; 5] = ["a", "B", "a desk", "A Desk", "desk"];

/// What a skill of a name requires.
fn required(name: &str) -> Vec<String> {
    let texts: &[&str] = match name {
        "a" => &["b", "nowhere"],
        "B" => &["A Desk", "GitHub/acme/a@^1"],
        "a desk" => &["a@1", "b/b/gone"],
        "desk" => &["zoo/x/a", "desk"],
        _ => &[],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn head((id, name, state): Step) -> Head {
    let live = state == State::Live;
    Head {
        id: skill(id),
        deleted: state == State::Deleted,
        has_claims: false,
        claims: OrdMap::new(),
        first_number: VersionNumber::FIRST,
        last_number: VersionNumber::FIRST,
        highest: semver::Version::new(1, 0, 0),
        active: live.then_some(VersionNumber::FIRST),
        summary: live.then(|| Summary {
            entry: FilePath::skill_md(),
            name: name.to_owned(),
            description: "Does.".to_owned(),
            category: if name.contains(' ') { "Desks" } else { "" }.to_owned(),
            semantic: semver::Version::new(1, 0, 0),
            tags: Vec::new(),
            technologies: Vec::new(),
            other_categories: Vec::new(),
            quality: None,
            verdict: None,
            inferred: ::facets::Facets::default(),
            display_name: String::new(),
            disable_model_invocation: false,
            problems: Some(0),
            requires: Some(required(name)),
        }),
        withdrawn: imbl::OrdSet::new(),
        held: imbl::OrdSet::new(),
        tier: TrustTier::Unverified,
        inline: BTreeMap::new(),
        bytes: Some(id.len() as u64),
        blocked: None,
        local: None,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

fn event(head: &Head) -> Event {
    Event {
        kind: if head.deleted {
            EventKind::Deleted
        } else {
            EventKind::Activated
        },
        skill_id: head.id.clone(),
        version: None,
        semantic_version: None,
        digest: None,
        active: head.active,
        held: false,
        time: Timestamp::UNIX_EPOCH,
        actor: Principal::anonymous(),
    }
}

/// A group may hold a withdrawal, a delete and what was published after it: each event
/// comes with the head that there is then.
#[test]
fn a_delete_takes_withdrawals_along_whatever_came_after_it() {
    let published = head(("local/user/b", "b", State::Live));
    let of_kind = |kind, version| Event {
        kind,
        version,
        ..event(&published)
    };
    let first = Some(VersionNumber::FIRST);
    let events = [
        of_kind(EventKind::Published, first),
        of_kind(EventKind::Yanked, first),
        of_kind(EventKind::Deleted, None),
        of_kind(EventKind::Published, first),
    ];
    let mut catalog = Catalog::default();
    for (at, event) in events.iter().enumerate() {
        catalog.apply(event, Some(published.clone()));
        let head = catalog.get(&published.id.key()).expect("a head");
        assert_eq!(
            head.is_withdrawn(VersionNumber::FIRST),
            at == 1,
            "{event:?}"
        );
    }
}

/// The order in which skills win a name.
fn rank(head: &Head) -> (bool, Location, SkillKey) {
    (head.active.is_none(), head.id.location(), head.id.key())
}

fn goes_by(head: &Head, name: &str) -> bool {
    head.id.slug().to_lowercase() == name
        || head
            .summary
            .as_ref()
            .is_some_and(|summary| summary.name.to_lowercase() == name)
}

fn id_of(head: &Arc<Head>) -> String {
    head.id.to_string()
}

fn ids<'a>(heads: impl IntoIterator<Item = &'a Arc<Head>>) -> Vec<String> {
    heads.into_iter().map(id_of).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        3 => Just(State::Live),
        1 => Just(State::Withdrawn),
        1 => Just(State::Deleted),
    ];
    let (id, name) = (
        proptest::sample::select(&IDS[..]),
        proptest::sample::select(&NAMES[..]),
    );
    (id, name, state)
}

proptest! {
    #[test]
    fn every_index_says_what_a_look_at_all_skills_says(steps in proptest::collection::vec(step(), 0..40)) {
        let mut catalog = Catalog::default();
        let mut all: BTreeMap<SkillKey, Arc<Head>> = BTreeMap::new();
        for step in steps {
            let head = head(step);
            catalog.apply(&event(&head), Some(head.clone()));
            if head.deleted {
                all.remove(&head.id.key());
            } else {
                all.insert(head.id.key(), Arc::new(head));
            }
        }
        let mut ranked: Vec<_> = all.values().cloned().collect();
        ranked.sort_by_key(|head| rank(head));
        let live: Vec<_> = ranked.iter().filter(|head| head.active.is_some()).cloned().collect();

        prop_assert_eq!(catalog.len(), all.len());
        prop_assert_eq!(catalog.is_empty(), all.is_empty());
        let desks = live.iter().filter(|head| {
            let summary = head.summary.as_ref();
            summary.is_some_and(|summary| summary.category == "Desks")
        });
        let desks: std::collections::BTreeSet<_> = desks.map(|head| head.id.key()).collect();
        let category = |name: &str| {
            let keys = catalog.with_facet(&Facet::Category(name.to_owned()));
            keys.into_iter().flatten().cloned().collect()
        };
        prop_assert_eq!(&desks, &category("desks"));
        prop_assert_eq!(category("").len(), 0);
        prop_assert_eq!(catalog.live(), live.len());
        prop_assert_eq!(ids(catalog.by_location()), ids(&live));

        let names = ["a", "b", "c", "a desk", "desk", "none"];
        for name in names {
            let expected = ids(ranked.iter().filter(|head| goes_by(head, name)));
            prop_assert_eq!(ids(catalog.named(&name.to_uppercase())), expected);
        }
        for head in &live {
            let winner = ranked.iter().find(|other| goes_by(other, &head.id.slug().to_lowercase()));
            let wins = winner.is_some_and(|winner| winner.id == head.id);
            let expected = if wins { head.id.slug() } else { head.id.as_str() };
            prop_assert_eq!(catalog.short_name(head), expected);
        }
        // What a text means: a skill that there is, else what is not there.
        let meant = |text: &str| {
            let text = text.split('@').next().unwrap_or_default().to_lowercase();
            let found = ranked.iter().find(|head| *head.id.key().as_str() == text || goes_by(head, &text));
            found.map_or(text, id_of)
        };
        for wanted in ["a", "B", "a desk", "desk", "nowhere", "b/b/gone", "github/acme/A", "zoo/x/a"] {
            let expected: Vec<_> = all
                .values()
                .filter(|head| head.active.is_some() && head.id.as_str() != meant(wanted))
                .filter(|head| {
                    let requires = head.summary.iter().flat_map(|summary| summary.requires.iter().flatten());
                    requires.map(|text| meant(text)).any(|meaning| meaning == meant(wanted))
                })
                .map(|head| head.id.key())
                .collect();
            let found: Vec<_> = catalog.dependents(&Reference::parse(wanted)).into_iter().collect();
            prop_assert_eq!(found, expected, "{}", wanted);
        }
        for prefix in ["", "A", "a ", "d", "x"] {
            let found: Vec<_> = catalog.names_with_prefix(prefix).map(|(name, head)| (name, id_of(head))).collect();
            let mut sorted = names;
            sorted.sort_unstable();
            let expected: Vec<_> = sorted
                .into_iter()
                .filter(|name| name.starts_with(&prefix.to_lowercase()))
                .filter_map(|name| Some((name, id_of(live.iter().find(|head| goes_by(head, name))?))))
                .collect();
            prop_assert_eq!(found, expected);
        }
        for from in ["", "github/acme", "github/acme/a", "github/acme/a\0", "github0", "local/user/", "zz"] {
            let from = SkillKey::from_stored(from);
            let expected = all
                .iter()
                .find(|(key, head)| **key >= from && head.active.is_some())
                .map(|(_, head)| id_of(head));
            prop_assert_eq!(catalog.live_from(&from).map(id_of), expected);
        }
        for (prefix, after) in [("", None), ("github/", None), ("", Some("github/acme/a")), ("local/", Some("a")), ("z", None)] {
            let after = after.map(SkillKey::from_stored);
            let expected: Vec<_> = all
                .iter()
                .filter(|(key, head)| {
                    head.active.is_some() && key.as_str().starts_with(prefix) && after.as_ref().is_none_or(|after| *key > after)
                })
                .map(|(_, head)| id_of(head))
                .collect();
            prop_assert_eq!(ids(catalog.live_after(prefix, after.as_ref())), expected);
        }
    }
}

#[test]
fn a_skill_is_standard_where_its_name_is_a_standard_one_and_its_slug() {
    let standard = |id: &str, name: &str, description: String| {
        let mut head = head(("a/b/c", "c", State::Live));
        head.id = skill(id);
        if let Some(summary) = &mut head.summary {
            summary.name = name.to_owned();
            summary.description = description;
        }
        head.is_standard()
    };
    let does = || "Does.".to_owned();
    for (id, name, description, expected) in [
        ("a/b/pdf-forms2", "pdf-forms2", does(), true),
        ("a/b/pdf-forms2", "PDF-Forms2", does(), false),
        ("a/b/PDF", "PDF", does(), false),
        ("a/b/write_sql", "write_sql", does(), false),
        ("a/b/a--b", "a--b", does(), false),
        ("a/b/other", "pdf", does(), false),
        ("a/b/pdf", "pdf", String::new(), false),
        ("a/b/pdf", "pdf", "é".repeat(1024), true),
        ("a/b/pdf", "pdf", "é".repeat(1025), false),
    ] {
        let chars = description.chars().count();
        assert_eq!(
            standard(id, name, description),
            expected,
            "{id} {name} {chars}"
        );
    }
    assert!(!head(("a/b/c", "c", State::Withdrawn)).is_standard());
}

fn live(ids: &[&'static str], is_shared: bool) -> Catalog {
    let heads = ids
        .iter()
        .map(|id| Ok::<_, Error>(head((id, "a", State::Live))));
    let policy = Policy {
        names: Names::reserved([], [], is_shared),
        ..Policy::default()
    };
    Catalog::build(heads, OrdMap::new(), &policy).expect("a catalog")
}

#[test]
fn what_comes_with_the_server_is_before_others_and_before_all_where_many_share_it() {
    let ids = [
        "acme/x/a",
        "builtin/repertoire/a",
        "local/project/a",
        "local/user/a",
    ];
    let order = |is_shared| {
        let catalog = live(&ids, is_shared);
        let named = catalog.named("A").map(|head| head.id.to_string());
        named.collect::<Vec<_>>()
    };
    assert_eq!(order(false), [ids[2], ids[3], ids[1], ids[0]]);
    assert_eq!(order(true), [ids[1], ids[2], ids[3], ids[0]]);
}

#[test]
fn skills_are_taken_of_each_source_and_author_in_turn_after_those_of_the_server() {
    let ids = [
        "a/b/1",
        "a/b/2",
        "a/b/3",
        "a-b/b/1",
        "a/bc/1",
        "a/bc/2",
        "builtin/repertoire/1",
        "builtin/repertoire/2",
        "Zoo/X/1",
        "zoo/x/2",
    ];
    let catalog = live(&ids, false);
    let taken: Vec<_> = catalog.in_turn().map(|head| head.id.as_str()).collect();
    assert_eq!(
        taken,
        [
            "builtin/repertoire/1",
            "builtin/repertoire/2",
            "a-b/b/1",
            "a/b/1",
            "a/bc/1",
            "Zoo/X/1",
            "a/b/2",
            "a/bc/2",
            "zoo/x/2",
            "a/b/3",
        ]
    );
    assert_eq!(live(&[], false).in_turn().count(), 0);
}

/// Sees what is not of `github/acme`, or nothing else.
#[derive(Debug)]
struct Acme {
    is_seen: bool,
}

impl Sees for Acme {
    fn sees(&self, id: &SkillId) -> bool {
        id.namespace().eq_ignore_ascii_case("github/acme") == self.is_seen
    }
}

proptest! {
    #[test]
    fn a_view_is_a_catalog_of_what_is_seen_however_it_came_about(
        steps in proptest::collection::vec((step(), any::<bool>()), 0..40),
        looks in proptest::collection::vec(any::<bool>(), 40),
        is_seen in any::<bool>(),
    ) {
        let sees = Acme { is_seen };
        let view = View::new(Arc::new(Acme { is_seen }));
        let (mut all, mut expected) = (Catalog::default(), Catalog::default());
        for ((step, blocks), looks) in steps.into_iter().zip(looks) {
            let head = head(step);
            let block = blocks.then(|| Block {
                skill: head.id.clone(),
                reason: String::new(),
                time: Timestamp::UNIX_EPOCH,
                actor: Principal::local(),
                from_feed: false,
            });
            let seen = sees.sees(&head.id).then_some(&mut expected);
            for catalog in std::iter::once(&mut all).chain(seen) {
                catalog.set_block(&head.id.key(), block.clone());
                catalog.apply(&event(&head), Some(head.clone()));
            }
            // Looked at now and then: it moves on by what happened since.
            if looks {
                prop_assert_eq!(&*view.of(Arc::new(all.clone())), &expected);
            }
        }
        prop_assert_eq!(&*view.of(Arc::new(all)), &expected);
    }
}

#[tokio::test]
async fn a_watcher_is_told_of_what_it_sees_alone() {
    let world = World::new();
    let filter = WatchFilter {
        sees: Some(Arc::new(Acme { is_seen: false })),
        ..WatchFilter::default()
    };
    let mut watch = world.registry.watch("", filter).expect("a watch");
    for id in ["github/acme/hidden", "local/x/shown"] {
        world.published(id, &text("", "Does.")).await;
    }
    let (_, event) = watch.next().await.expect("an event");
    assert_eq!(event.skill_id.as_str(), "local/x/shown");
}

#[test]
fn a_skill_that_its_author_leaves_to_people_is_live_and_not_offered() {
    let mut heads = ["a/b/c", "a/b/d", "a/b/e"].map(|id| head((id, "a", State::Live)));
    if let Some(summary) = &mut heads[1].summary {
        summary.disable_model_invocation = true;
    }
    let offered = heads.each_ref().map(Head::is_offered);
    assert_eq!(offered, [true, false, true]);
    assert!(!head(("a/b/f", "a", State::Withdrawn)).is_offered());
    let heads = heads.into_iter().map(Ok::<_, Error>);
    let catalog = Catalog::build(heads, OrdMap::new(), &Policy::default()).expect("a catalog");
    assert_eq!((catalog.live(), catalog.offered()), (3, 2));
}

#[test]
fn a_name_that_no_skill_has_is_near_to_a_few_that_they_have() {
    let catalog = live(
        &[
            "a/b/invoices",
            "a/b/invoice-1",
            "a/b/invoice-2",
            "a/b/invoice-3",
            "a/b/mail",
        ],
        false,
    );
    let near = |asked: &str| -> Vec<String> {
        let near = catalog.nearest(asked).into_iter();
        near.map(|near| near.name).collect()
    };
    assert_eq!(near("invoicse"), ["invoices", "invoice-1", "invoice-2"]);
    assert_eq!(near("x/y/mial"), ["mail"]);
    assert_eq!(near("zzzzzz"), Vec::<String>::new());
}
