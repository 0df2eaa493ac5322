//! How many there may be: owners, namespaces of which something is said, views that are kept.
//! And what comes to its end although its caller leaves.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::namespaces::{MAX, NAMESPACES};
use registry::{Claim, Claims as _};
use store::{Batch, Options};

fn owners(owners: &[String]) -> Change {
    Change {
        add_owners: owners.to_vec(),
        ..Change::default()
    }
}

#[tokio::test]
async fn a_namespace_has_as_many_owners_as_it_may_have_and_no_more() {
    let world = World::new("{}");
    let root = administrator();
    let add = async |names: &[String]| {
        let set = world
            .namespaces
            .change("a/b", owners(names), &root, Timestamp::UNIX_EPOCH);
        let owners = set.await.map(|said| said.owners.len());
        owners.map_err(|error| error.to_string())
    };
    let names: Vec<_> = (0..64).map(|n| format!("token:{n}")).collect();
    assert_eq!(add(&names).await, Ok(64));
    // Who owns it already is not counted twice.
    assert_eq!(add(&names).await, Ok(64));
    let refused = "a namespace has 64 owners at most".to_owned();
    assert_eq!(add(&texts(&["certificate:ci"])).await, Err(refused));
}

#[tokio::test]
async fn an_owner_is_a_caller_of_any_kind_whose_name_is_not_too_long() {
    let world = World::new("{}");
    let root = administrator();
    let longest = format!("token:{}", "x".repeat(314));
    let names = ["token:ada", "certificate:ci", "oidc:acme/ada/1", &longest].map(str::to_owned);
    let set = world
        .namespaces
        .change("a/b", owners(&names), &root, Timestamp::UNIX_EPOCH);
    let expected = vec![
        Principal::token("ada"),
        Principal::certificate("ci"),
        Principal::oidc("acme", "ada/1"),
        Principal::token(&"x".repeat(314)),
    ];
    assert_eq!(set.await.expect("said").owners, expected);
    let longer = [format!("{longest}x")];
    let set = world
        .namespaces
        .change("a/b", owners(&longer), &root, Timestamp::UNIX_EPOCH);
    assert!(matches!(
        set.await,
        Err(Error::Parameter {
            field: "add_owners",
            ..
        })
    ));
}

#[tokio::test]
async fn something_is_said_of_so_many_namespaces_and_of_no_more() {
    let store = Store::in_memory(&Options::default());
    let by = administrator().caller.principal.clone();
    let all: Vec<_> = (0..MAX).map(|at| format!("n/a{at}")).collect();
    for names in all.chunks(1_000) {
        let mut batch = Batch::new();
        for name in names {
            let said = Namespace {
                name: name.clone(),
                visibility: Some(Visibility::Public),
                owners: Vec::new(),
                updated_at: Timestamp::UNIX_EPOCH,
                updated_by: by.clone(),
            };
            batch.put(&NAMESPACES, name, &said);
        }
        store.commit(batch).await.expect("written");
    }
    let settings = config("first_publish: claims");
    let namespaces = Namespaces::open(store, settings).expect("namespaces");
    let root = administrator();
    let set = async |name: &str| {
        let change = owners(&texts(&["token:ada"]));
        let set = namespaces.change(name, change, &root, Timestamp::UNIX_EPOCH);
        set.await.map(drop).map_err(|error| error.to_string())
    };
    let claim = |skill: &str| {
        let (ada, now) = (Principal::token("ada"), Timestamp::UNIX_EPOCH);
        let claimed = namespaces.claim(&mut Batch::new(), &id(skill), &ada, now);
        claimed.expect("read")
    };
    let refused = format!("There are {MAX} namespaces with settings, the maximum");
    assert_eq!(set("new/one").await, Err(refused));
    assert_eq!(claim("new/one/x"), Claim::None);
    // Of those that there are more may be said.
    assert_eq!(claim("n/a7/x"), Claim::Added);
    assert_eq!(set("n/a7").await, Ok(()));
}

#[tokio::test]
async fn views_of_callers_who_were_there_last_are_kept_and_of_no_more() {
    let world = World::new("{}");
    world.visibility("a/b", Visibility::Private).await;
    let views = world.views();
    let mut made = Vec::new();
    for at in 0..600 {
        let skill = format!("a/b/skill-{at}");
        let access = by(Principal::token("t"), rights(Role::Agent, &[], &[&skill]));
        let seen = views.seen(&access).await.expect("a view");
        made.push(Arc::downgrade(seen.registry.view().expect("a view")));
    }
    let kept = made.iter().filter(|view| view.upgrade().is_some()).count();
    assert!((1..=256).contains(&kept), "{kept}");
}

#[tokio::test]
async fn a_change_says_when_it_was_made_and_by_whom() {
    let world = World::new("{}");
    world.owned("a/b", &["token:ada"]).await;
    let later = Timestamp::from_second(60).expect("a time");
    let ada = token("ada", Role::Publisher);
    let change = Change {
        visibility: NewVisibility::Set(Visibility::Internal),
        ..Change::default()
    };
    let said = world.namespaces.change("A/B", change, &ada, later).await;
    let expected = Namespace {
        name: "a/b".to_owned(),
        visibility: Some(Visibility::Internal),
        owners: vec![Principal::token("ada")],
        updated_at: later,
        updated_by: Principal::token("ada"),
    };
    assert_eq!(said.expect("said"), expected);
    let listed = world.namespaces.list(&administrator().caller, "", 9);
    assert_eq!(listed, [Arc::new(expected)]);
}

#[tokio::test]
async fn a_change_goes_through_although_its_caller_leaves() {
    let world = World::new("{}");
    let (root, now) = (administrator(), Timestamp::UNIX_EPOCH);
    let change = owners(&texts(&["token:ada"]));
    {
        let change = world.namespaces.change("a/b", change, &root, now);
        let mut change = pin!(change);
        let polled = change
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    // One change at a time: this one comes after it.
    world.owned("c/d", &["token:ada"]).await;
    let listed = world.namespaces.list(&root.caller, "", 9);
    let names: Vec<_> = listed.iter().map(|said| said.name.as_str()).collect();
    assert_eq!(names, ["a/b", "c/d"]);
}

#[tokio::test]
async fn a_claim_keeps_who_sees_a_namespace_and_fails_where_somebody_was_faster() {
    let world = World::new("first_publish: claims");
    world.visibility("a/b", Visibility::Private).await;
    let (ada, now) = (Principal::token("ada"), Timestamp::UNIX_EPOCH);
    let claim = |skill: &str| {
        let mut batch = Batch::new();
        let claimed = world.namespaces.claim(&mut batch, &id(skill), &ada, now);
        assert_eq!(claimed.expect("read"), Claim::Added, "{skill}");
        batch
    };
    let (late, new) = (claim("a/b/x"), claim("c/d/x"));
    world.store.commit(claim("a/b/x")).await.expect("claimed");
    world.owned("c/d", &["token:eve"]).await;
    for batch in [late, new] {
        world.store.commit(batch).await.expect_err("too late");
    }
    let listed = world.namespaces.list(&administrator().caller, "", 9);
    let listed: Vec<_> = listed
        .iter()
        .map(|said| (said.name.as_str(), said.visibility, said.owners.clone()))
        .collect();
    let expected = [
        ("a/b", Some(Visibility::Private), vec![ada.clone()]),
        ("c/d", None, vec![Principal::token("eve")]),
    ];
    assert_eq!(listed, expected);
}
