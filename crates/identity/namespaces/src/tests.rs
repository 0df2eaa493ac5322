//! Who sees what, whose namespaces are, and who may say so.

mod limits;
mod owners;
mod two;

use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use access::{Access, Action, Actions, Caller, Origin, Rights, Role};
use model::{Failure, Principal, SkillId, SystemClock, TrustTier};
use registry::{Audience as _, Bundle, Policy, Registry, Tiers};
use search::SearchIndex;
use store::Store;
use testing::{options, skill_md};

fn config(text: &str) -> NamespacesConfig {
    serde_yaml::from_str(text).expect("settings")
}

fn id(text: &str) -> SkillId {
    text.parse().expect("an id")
}

fn by(principal: Principal, rights: Rights) -> Access {
    Access {
        caller: Arc::new(Caller::new(principal, rights)),
        signs_in: true,
        limit: None,
        origin: Origin::PROCESS,
    }
}

fn rights(role: Role, skills: &[&str], sees: &[&str]) -> Rights {
    let patterns = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().expect("a pattern"))
            .collect()
    };
    Rights {
        actions: role.actions(),
        skills: patterns(skills),
        sees: patterns(sees),
    }
}

fn token(name: &str, role: Role) -> Access {
    by(Principal::token(name), rights(role, &[], &[]))
}

fn administrator() -> Access {
    token("root", Role::Administrator)
}

/// A registry whose namespaces follow settings.
struct World {
    directory: TempDir,
    store: Store,
    namespaces: Namespaces,
    registry: Registry,
}

impl World {
    fn new(settings: &str) -> Self {
        let directory = TempDir::new().expect("a folder");
        let store = Store::open(&directory.path().join("data"), &options()).expect("a store");
        let namespaces = Namespaces::open(store.clone(), config(settings)).expect("namespaces");
        let policy = Policy {
            audience: Some(namespaces.as_audience()),
            claims: Some(namespaces.as_claims()),
            tiers: Tiers {
                verified: vec!["github".to_owned()],
                ..Tiers::default()
            },
            ..Policy::default()
        };
        let clock = Arc::new(SystemClock);
        let registry = Registry::open_with(store.clone(), clock, Default::default(), policy);
        Self {
            directory,
            store,
            namespaces,
            registry: registry.expect("a registry"),
        }
    }

    async fn set(&self, name: &str, change: Change) {
        let root = administrator();
        let set = self
            .namespaces
            .change(name, change, &root, Timestamp::UNIX_EPOCH);
        set.await.expect("said");
    }

    async fn visibility(&self, name: &str, visibility: Visibility) {
        let change = Change {
            visibility: NewVisibility::Set(visibility),
            ..Change::default()
        };
        self.set(name, change).await;
    }

    async fn owned(&self, name: &str, owners: &[&str]) {
        let change = Change {
            add_owners: texts(owners),
            ..Change::default()
        };
        self.set(name, change).await;
    }

    async fn publish(&self, skill: &str, by: &Principal) -> registry::Published {
        publish(&self.registry, skill, by).await.expect("published")
    }

    fn views(&self) -> Views {
        let search = SearchIndex::new(self.registry.clone(), self.directory.path().join("i"), None);
        Views::new(self.namespaces.clone(), self.registry.clone(), search)
    }

    /// Ids of the skills that a caller sees; none: it sees all.
    async fn seen(views: &Views, access: &Access) -> Option<Vec<String>> {
        let seen = views.seen(access).await?;
        let catalog = seen.registry.catalog();
        Some(
            catalog
                .after("", None)
                .map(|head| head.id.to_string())
                .collect(),
        )
    }

    fn may(&self, access: &Access, action: Action, skill: &str) -> Result<(), Failure> {
        let authorizer = self.namespaces.authorizer(access, action);
        authorizer.map_or(Ok(()), |authorizer| authorizer.allow(action, skill))
    }
}

async fn publish(
    registry: &Registry,
    skill: &str,
    by: &Principal,
) -> Result<registry::Published, registry::Error> {
    let text = skill_md(
        &format!("name: {}\ndescription: Does.", id(skill).slug()),
        "Body.",
    );
    let path = "SKILL.md".parse().expect("a path");
    let bundle = Bundle {
        id: Some(id(skill)),
        files: [(path, text.into())].into(),
        ..Bundle::default()
    };
    let prepared = registry.prepare(bundle).await.expect("a skill");
    let caller = registry::Caller::new(by.clone());
    registry.publish(prepared, "", true, &caller).await
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn anonymous() -> Access {
    by(Principal::anonymous(), rights(Role::Reader, &[], &[]))
}

#[tokio::test]
async fn each_caller_sees_what_is_public_and_what_is_for_it() {
    let world = World::new("{}");
    world.visibility("b/internal", Visibility::Internal).await;
    world.visibility("C/Private", Visibility::Private).await;
    world.owned("c/private", &["token:owner"]).await;
    for skill in ["a/public/x", "b/internal/x", "c/private/x", "c/private/y"] {
        world.publish(skill, &Principal::system()).await;
    }
    let views = world.views();
    let agent = |sees: &[&str]| by(Principal::token("t"), rights(Role::Agent, &[], sees));
    let seen = async |access: &Access| World::seen(&views, access).await;
    let public = ["a/public/x"].as_slice();
    let internal = [public, &["b/internal/x"]].concat();
    let all = [internal.as_slice(), &["c/private/x", "c/private/y"]].concat();
    let one = [internal.as_slice(), &["c/private/x"]].concat();
    let bound = by(
        Principal::token("t"),
        rights(Role::Publisher, &["c/PRIVATE/x"], &[]),
    );
    let sighted = [
        (anonymous(), Some(public)),
        (agent(&[]), Some(&internal)),
        (agent(&["c/private/*"]), Some(&all)),
        (agent(&["C/*"]), Some(&all)),
        (agent(&["c/private/X"]), Some(&one)),
        (token("owner", Role::Agent), Some(&all)),
        (bound, Some(&one)),
    ];
    for (access, expected) in &sighted {
        let expected = expected.map(texts);
        assert_eq!(seen(access).await, expected, "{:?}", access.caller);
    }
    for role in [
        Role::Publisher,
        Role::Reviewer,
        Role::Operator,
        Role::Administrator,
    ] {
        assert_eq!(seen(&token("t", role)).await, None, "{role:?}");
    }
}

#[tokio::test]
async fn the_settings_say_who_sees_namespaces_of_which_nothing_is_said() {
    let world = World::new("visibility: private");
    world.visibility("a/shown", Visibility::Public).await;
    for skill in ["a/shown/x", "a/other/x", "builtin/repertoire/x"] {
        world.publish(skill, &Principal::system()).await;
    }
    let views = world.views();
    let seen = async || World::seen(&views, &anonymous()).await;
    assert_eq!(
        seen().await,
        Some(texts(&["a/shown/x", "builtin/repertoire/x"]))
    );
    let change = Change {
        visibility: NewVisibility::BySettings,
        ..Change::default()
    };
    world.set("a/shown", change).await;
    assert_eq!(seen().await, Some(texts(&["builtin/repertoire/x"])));
    // Nothing is said of it any more.
    assert_eq!(world.namespaces.list(&administrator().caller, "", 9), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_is_made_once_for_all_who_see_the_same_until_that_changes() {
    let world = World::new("{}");
    world.visibility("a/b", Visibility::Private).await;
    let views = world.views();
    let (one, other) = (anonymous(), anonymous());
    let view = async |access: &Access| {
        let seen = views.seen(access).await.expect("a view");
        Arc::clone(seen.registry.view().expect("a view"))
    };
    let (first, second) = tokio::join!(view(&one), view(&other));
    assert!(Arc::ptr_eq(&first, &second), "of two at once");
    // Who owns a namespace that everybody sees changes nothing of it.
    world.owned("x/y", &["token:ada"]).await;
    assert!(Arc::ptr_eq(&first, &view(&one).await));
    world.visibility("x/y", Visibility::Private).await;
    let changed = view(&one).await;
    assert!(!Arc::ptr_eq(&first, &changed));
    assert!(Arc::ptr_eq(&changed, &view(&other).await), "once again");
}

#[tokio::test]
async fn other_settings_hold_for_namespaces_of_which_nothing_is_said_at_once() {
    let world = World::new("{}");
    world.visibility("a/internal", Visibility::Internal).await;
    let visibilities = || ["a/internal", "a/other"].map(|name| world.namespaces.visibility(name));
    assert_eq!(visibilities(), [Visibility::Internal, Visibility::Public]);
    world.namespaces.configure(config("visibility: private"));
    assert_eq!(visibilities(), [Visibility::Internal, Visibility::Private]);
    // Also after the next change.
    world.visibility("a/internal", Visibility::Public).await;
    assert_eq!(visibilities(), [Visibility::Public, Visibility::Private]);
}

#[tokio::test]
async fn a_stream_sees_by_what_is_said_when_an_event_comes() {
    let world = World::new("{}");
    let sees = world.views().sees(&anonymous());
    assert!(sees.sees(&id("a/b/c")));
    world.visibility("a/b", Visibility::Private).await;
    assert!(!sees.sees(&id("a/b/c")));
}

#[tokio::test]
async fn a_list_has_what_a_caller_sees_into_by_pages() {
    let world = World::new("{}");
    for name in ["a/a", "b/b", "c/c"] {
        world.owned(name, &["token:ada"]).await;
    }
    world.visibility("b/b", Visibility::Private).await;
    let names = |access: &Access, after: &str, size| {
        let listed = world.namespaces.list(&access.caller, after, size);
        listed
            .iter()
            .map(|said| said.name.clone())
            .collect::<Vec<_>>()
    };
    world.owned("d/d", &["token:ada"]).await;
    world.visibility("d/d", Visibility::Internal).await;
    assert_eq!(names(&anonymous(), "", 9), ["a/a", "c/c"]);
    let one = by(Principal::token("t"), rights(Role::Agent, &[], &["b/b/x"]));
    assert_eq!(names(&one, "", 9), ["a/a", "b/b", "c/c", "d/d"]);
    assert_eq!(names(&one, "A/a", 1), ["b/b"]);
}

#[tokio::test]
async fn a_scan_tells_no_name_to_who_does_not_see_its_skill() {
    let world = World::new("{}");
    for (name, visibility) in [
        ("github/open", Visibility::Public),
        ("github/staff", Visibility::Internal),
        ("github/secret", Visibility::Private),
        ("github/other", Visibility::Private),
    ] {
        world.visibility(name, visibility).await;
    }
    let names = [
        "github/open/x",
        "github/staff/x",
        "github/secret/x",
        "github/other/x",
    ];
    let told = names.map(|one| names.map(|other| world.namespaces.also_sees(&id(one), &id(other))));
    let expected = [
        [true, false, false, false],
        [true, true, false, false],
        [true, true, true, false],
        [true, true, false, true],
    ];
    assert_eq!(told, expected);
    // A skill of a verified source has a name; one that looks like it is published elsewhere.
    world
        .publish("github/secret/kubernetes-deploy", &Principal::system())
        .await;
    let head = world
        .registry
        .head(&id("github/secret/kubernetes-deploy"))
        .expect("a head");
    assert_eq!(head.trust_tier(), TrustTier::Verified);
    let found = async |visibility| {
        world.visibility("github/secret", visibility).await;
        let skill = format!("local/{visibility}/kubernetes-depl0y");
        world.publish(&skill, &Principal::system()).await;
        let head = world.registry.head(&id(&skill)).expect("a head");
        let scan = world
            .registry
            .scan_of(&head, head.last_number)
            .expect("a scan");
        let found = scan.expect("a scan").report.findings.clone();
        found.iter().any(|finding| {
            finding.evidence.contains("kubernetes-deploy")
                || finding.description.contains("kubernetes-deploy")
        })
    };
    assert_eq!(
        (
            found(Visibility::Private).await,
            found(Visibility::Public).await
        ),
        (false, true)
    );
}

#[test]
fn a_scope_gives_no_sight_of_what_it_may_not_change() {
    let of = |actions: &[Action]| Rights {
        actions: actions.iter().copied().collect::<Actions>(),
        skills: vec!["a/b/*".parse().expect("a pattern")],
        sees: Vec::new(),
    };
    assert_eq!(of(&[Action::Read]).seen().count(), 0);
    assert_eq!(of(&[Action::Read, Action::Publish]).seen().count(), 1);
    assert!(!of(&[Action::Publish]).see_all());
    assert!(!of(&[Action::Block, Action::Audit]).see_all());
    assert!(of(&[Action::Sync]).see_all());
}
