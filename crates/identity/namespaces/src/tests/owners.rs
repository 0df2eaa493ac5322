//! Who owns a namespace, and how it came to be so.

use super::*;
use model::Code;

#[tokio::test]
async fn where_a_namespace_has_owners_they_alone_write_in_it() {
    let world = World::new("{}");
    world.owned("a/b", &["token:ada", "oidc:acme/bob"]).await;
    let bob = by(
        Principal::oidc("acme", "bob"),
        rights(Role::Publisher, &[], &[]),
    );
    let eve = token("eve", Role::Publisher);
    for action in [Action::Publish, Action::Activate, Action::Delete] {
        let may = |access: &Access, skill: &str| {
            let may = world.may(access, action, skill);
            may.err().map(|failure| failure.code)
        };
        let outcomes = [
            may(&token("ada", Role::Publisher), "a/b/x"),
            may(&bob, "A/B/x"),
            may(&administrator(), "a/b/x"),
            may(&eve, "a/b/x"),
            may(&eve, "a/other/x"),
            // A short name may lead into it.
            may(&eve, "x"),
        ];
        let expected = [
            None,
            None,
            None,
            Some(Code::NamespaceNotOwned),
            None,
            Some(Code::PermissionDenied),
        ];
        assert_eq!(outcomes, expected, "{action}");
    }
    // To own it gives no rights.
    let failure = world.may(&token("ada", Role::Reader), Action::Publish, "a/b/x");
    assert_eq!(
        failure.map_err(|failure| failure.code),
        Err(Code::PermissionDenied)
    );
    // Who reviews is no owner.
    let reviews = world.may(&token("eve", Role::Reviewer), Action::Review, "a/b/x");
    assert!(reviews.is_ok(), "{reviews:?}");
}

#[tokio::test]
async fn where_nobody_may_publish_first_a_namespace_needs_an_owner() {
    let world = World::new("first_publish: refused");
    let ada = token("ada", Role::Publisher);
    let may = || {
        world
            .may(&ada, Action::Publish, "a/b/x")
            .map_err(|failure| failure.code)
    };
    assert_eq!(may(), Err(Code::NamespaceNotOwned));
    world.owned("a/b", &["token:ada"]).await;
    assert_eq!(may(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_publish_claims_a_namespace_and_none_after_it() {
    let world = World::new("{first_publish: claims, visibility: private}");
    world.publish("old/one/x", &Principal::source("s")).await;
    let (ada, eve) = (token("ada", Role::Publisher), token("eve", Role::Publisher));
    world.publish("a/b/x", &ada.caller.principal).await;
    world.publish("a/b/y", &ada.caller.principal).await;
    world.publish("old/one/y", &ada.caller.principal).await;
    let listed = world.namespaces.list(&administrator().caller, "", 9);
    let owners: Vec<_> = listed
        .iter()
        .map(|said| (said.name.as_str(), said.owners.clone()))
        .collect();
    assert_eq!(owners, [("a/b", vec![ada.caller.principal.clone()])]);
    let may = |access, skill| {
        world
            .may(access, Action::Publish, skill)
            .map_err(|it| it.code)
    };
    assert_eq!(may(&eve, "a/b/z"), Err(Code::NamespaceNotOwned));
    assert_eq!(may(&ada, "a/b/z"), Ok(()));
    // What was there before anybody could own it stays open.
    assert_eq!(may(&eve, "old/one/z"), Ok(()));
    // Its owner sees it at once, also after a start.
    let agent = token("ada", Role::Agent);
    assert_eq!(
        World::seen(&world.views(), &agent).await,
        Some(texts(&["a/b/x", "a/b/y"]))
    );
    let again = Namespaces::open(world.store.clone(), config("first_publish: claims"));
    let again = again
        .expect("namespaces")
        .list(&administrator().caller, "", 9);
    assert_eq!(again, listed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_publish_first_at_once_one_owns_the_namespace() {
    let world = Arc::new(World::new("first_publish: claims"));
    let publishers = (0..8).map(|n| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let text = skill_md("name: x\ndescription: Does.", "Body.");
            let bundle = Bundle {
                id: Some(id(&format!("a/b/skill-{n}"))),
                files: [("SKILL.md".parse().expect("a path"), text.into())].into(),
                ..Bundle::default()
            };
            let prepared = world.registry.prepare(bundle).await.expect("a skill");
            let caller = registry::Caller::new(Principal::token(&n.to_string()));
            let published = world.registry.publish(prepared, "", true, &caller).await;
            published.map_err(|error| Failure::from(error).code)
        })
    });
    let publishers: Vec<_> = publishers.collect();
    let mut refused = Vec::new();
    for publisher in publishers {
        refused.extend(publisher.await.expect("a task").err());
    }
    // Those that came between are told to try again, and are refused then.
    assert!(
        refused.iter().all(|code| *code == Code::WriteContention),
        "{refused:?}"
    );
    let listed = world.namespaces.list(&administrator().caller, "", 9);
    let owners: Vec<_> = listed.iter().map(|said| said.owners.len()).collect();
    assert_eq!(owners, [1]);
}

#[tokio::test]
async fn owners_say_who_owns_and_sees_and_others_do_not() {
    let world = World::new("{}");
    world.owned("a/b", &["token:ada"]).await;
    let change = |add: &[&str], remove: &[&str]| Change {
        add_owners: texts(add),
        remove_owners: texts(remove),
        ..Change::default()
    };
    let set = async |name: &str, change: Change, access: &Access| {
        let set = world
            .namespaces
            .change(name, change, access, Timestamp::UNIX_EPOCH);
        set.await
            .map(|said| said.owners)
            .map_err(|error| error.to_string())
    };
    let (ada, eve) = (token("ada", Role::Publisher), token("eve", Role::Publisher));
    let (of_ada, of_eve) = (ada.caller.principal.clone(), eve.caller.principal.clone());
    let refused = "token:eve does not own a/b, so it may not change its owners or visibility";
    assert_eq!(
        set("a/b", change(&["token:eve"], &[]), &eve).await,
        Err(refused.to_owned())
    );
    let last = "a/b would have no owner: add another owner first, or ask an administrator";
    assert_eq!(
        set("a/b", change(&[], &["token:ada"]), &ada).await,
        Err(last.to_owned())
    );
    let both = set("a/b", change(&["token:eve", "token:ada"], &[]), &ada).await;
    assert_eq!(both, Ok(vec![of_ada, of_eve.clone()]));
    assert_eq!(
        set("A/B", change(&[], &["token:ada"]), &eve).await,
        Ok(vec![of_eve])
    );
    assert_eq!(
        set("a/b", change(&[], &["token:eve"]), &administrator()).await,
        Ok(Vec::new())
    );
}

#[tokio::test]
async fn what_is_no_namespace_and_no_owner_is_refused() {
    let world = World::new("{}");
    let many: Vec<_> = (0..=64).map(|n| format!("token:{n}")).collect();
    let long = format!("oidc:acme/{}", "x".repeat(400));
    let owners = |owners: Vec<String>| Change {
        add_owners: owners,
        ..Change::default()
    };
    let mut refused = Vec::new();
    for (name, change) in [
        ("acme", Change::default()),
        ("a/b/c", Change::default()),
        ("a /b", Change::default()),
        ("builtin/repertoire", Change::default()),
        ("a/b", owners(vec!["ada".to_owned()])),
        ("a/b", owners(vec!["oidc:acme".to_owned()])),
        ("a/b", owners(vec!["anonymous".to_owned()])),
        ("a/b", owners(vec![long])),
        ("a/b", owners(many)),
        (
            "a/b",
            Change {
                remove_owners: texts(&["token:ada"]),
                ..Change::default()
            },
        ),
    ] {
        let root = administrator();
        let set = world
            .namespaces
            .change(name, change, &root, Timestamp::UNIX_EPOCH);
        match set.await {
            Err(Error::Parameter { field, .. }) => refused.push(field),
            other => panic!("{name}: {other:?}"),
        }
    }
    let (namespace, add) = ("namespace", "add_owners");
    let expected = [
        namespace,
        namespace,
        namespace,
        namespace,
        add,
        add,
        add,
        add,
        add,
        "remove_owners",
    ];
    assert_eq!(refused, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimed_namespace_keeps_the_slugs_of_its_skills() {
    let world = World::new("first_publish: claims");
    let (ada, eve) = (Principal::token("ada"), Principal::token("eve"));
    let outcome = async |registry: &Registry, skill: &str, by: &Principal| {
        let published = publish(registry, skill, by).await;
        published
            .map(drop)
            .map_err(|error| Failure::from(error).code)
    };
    for (skill, by, expected) in [
        ("z/ada/desk", &ada, Ok(())),
        ("a/eve/desk", &eve, Err(Code::NameHeld)),
        ("a/ada/desk", &ada, Ok(())),
        ("a/s/desk", &Principal::source("s"), Ok(())),
        ("a/eve/other", &eve, Ok(())),
    ] {
        assert_eq!(
            outcome(&world.registry, skill, by).await,
            expected,
            "{skill}"
        );
    }
    // A name that the caller cannot know of is no reason.
    for namespace in ["z/ada", "a/ada", "a/s"] {
        world.visibility(namespace, Visibility::Private).await;
    }
    let views = world.views();
    let seen = views
        .seen(&by(eve.clone(), rights(Role::Publisher, &["a/eve/*"], &[])))
        .await
        .expect("a part");
    assert_eq!(outcome(&seen.registry, "a/eve/desk", &eve).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_more_callers_see_takes_no_name_from_a_skill_that_they_know() {
    let world = World::new("{}");
    world.visibility("hidden/a", Visibility::Private).await;
    let (ada, eve) = (Principal::token("ada"), Principal::token("eve"));
    world.publish("hidden/a/desk", &ada).await;
    world.publish("shown/b/desk", &eve).await;
    let holder = || {
        let catalog = world.registry.catalog();
        catalog.holder("desk").map(|head| head.id.to_string())
    };
    // Those who see both go on with the first.
    assert_eq!(holder().as_deref(), Some("hidden/a/desk"));
    let change = Change {
        visibility: NewVisibility::Set(Visibility::Public),
        ..Change::default()
    };
    let stranger = token("eve", Role::Publisher);
    let refused = world.namespaces.widens("hidden/a", &change, &stranger);
    assert!(
        matches!(refused, Err(Error::NotOwner { .. })),
        "{refused:?}"
    );
    let widens = world
        .namespaces
        .widens("hidden/a", &change, &administrator());
    assert!(widens.expect("may"));
    let by = registry::Caller::new(ada);
    let again = world.registry.claim_again("Hidden/A", &by);
    again.await.expect("claimed");
    assert_eq!(holder().as_deref(), Some("shown/b/desk"));
    let narrower = world
        .namespaces
        .widens("shown/b", &change, &administrator());
    assert!(!narrower.expect("may"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_shown_to_more_keeps_its_names_where_nobody_knew_another_holder() {
    let world = World::new("{}");
    let (ada, eve) = (Principal::token("ada"), Principal::token("eve"));
    for namespace in ["inner/a", "inner/b"] {
        world.visibility(namespace, Visibility::Internal).await;
    }
    world.publish("inner/a/desk", &ada).await;
    world.publish("inner/b/desk", &eve).await;
    // Whoever sees the second sees the first, and those to whom the first is shown see no second.
    let by = registry::Caller::new(ada);
    let again = world.registry.claim_again("inner/a", &by);
    again.await.expect("nothing to claim");
    let catalog = world.registry.catalog();
    let holder = catalog.holder("desk").map(|head| head.id.to_string());
    assert_eq!(holder.as_deref(), Some("inner/a/desk"));
}
