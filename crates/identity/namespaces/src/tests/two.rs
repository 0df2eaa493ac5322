//! Two on one store.

use proptest::prelude::*;

use super::*;
use registry::Claims as _;
use store::Batch;

/// What one of two does to a namespace.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(Option<Visibility>),
    AddOwner(&'static str),
    RemoveOwner(&'static str),
    /// A first publish, which may make its caller the owner.
    Publish(&'static str),
}

fn step() -> impl Strategy<Value = (usize, &'static str, Step)> {
    let caller = prop::sample::select(vec!["ada", "eve"]);
    let visibility = prop::option::of(prop::sample::select(vec![
        Visibility::Public,
        Visibility::Internal,
        Visibility::Private,
    ]));
    let step = prop_oneof![
        visibility.prop_map(Step::Set),
        caller.clone().prop_map(Step::AddOwner),
        caller.clone().prop_map(Step::RemoveOwner),
        caller.prop_map(Step::Publish),
    ];
    (
        0..2_usize,
        prop::sample::select(vec!["a/b", "A/B", "c/d"]),
        step,
    )
}

async fn take(namespaces: &Namespaces, store: &Store, name: &str, step: Step) {
    let change = match step {
        Step::Publish(by) => {
            let (mut batch, by) = (Batch::new(), Principal::token(by));
            let skill = id(&format!("{name}/x"));
            let claim = namespaces.claim(&mut batch, &skill, &by, Timestamp::UNIX_EPOCH);
            claim.expect("read");
            store.commit(batch).await.expect("written");
            return;
        }
        Step::Set(visibility) => Change {
            visibility: visibility.map_or(NewVisibility::BySettings, NewVisibility::Set),
            ..Change::default()
        },
        Step::AddOwner(owner) => Change {
            add_owners: vec![format!("token:{owner}")],
            ..Change::default()
        },
        Step::RemoveOwner(owner) => Change {
            remove_owners: vec![format!("token:{owner}")],
            ..Change::default()
        },
    };
    let root = administrator();
    let changed = namespaces
        .change(name, change, &root, Timestamp::UNIX_EPOCH)
        .await;
    let is_known = matches!(changed, Ok(_) | Err(Error::Parameter { .. }));
    assert!(is_known, "{changed:?}");
}

/// What callers get: the records, and who sees a skill of each.
fn seen(namespaces: &Namespaces) -> (Vec<Arc<Namespace>>, Vec<bool>) {
    let nobody = by(Principal::anonymous(), rights(Role::Reader, &[], &[]));
    let callers = [
        token("ada", Role::Reader),
        token("eve", Role::Reader),
        nobody,
    ];
    let known = namespaces.known();
    let sees = callers.iter().flat_map(|access| {
        let key = crate::visibility_key::VisibilityKey::of(&access.caller, &known);
        let known = Arc::clone(&known);
        ["a/b", "c/d", "e/f"].map(move |name| {
            key.as_ref()
                .is_none_or(|key| key.sees_into(name, &known.levels))
        })
    });
    (
        namespaces.list(&administrator().caller, "", 99),
        sees.collect(),
    )
}

proptest! {
    #[test]
    fn two_on_one_store_show_the_same_namespaces_after_any_history(
        steps in proptest::collection::vec(step(), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let store = Store::in_memory(&options());
            let settings = || config("{visibility: internal, first_publish: claims}");
            let open = || Namespaces::open(store.clone(), settings()).expect("namespaces");
            let two = [open(), open()];
            for (at, name, step) in steps {
                take(&two[at], &store, name, step).await;
                let again = seen(&open());
                assert_eq!(seen(&two[0]), again);
                assert_eq!(seen(&two[1]), again);
            }
        });
    }
}

#[tokio::test]
async fn a_namespace_that_another_server_made_private_is_private_here_and_settings_still_apply() {
    let store = Store::in_memory(&options());
    let open = || Namespaces::open(store.clone(), config("{}")).expect("namespaces");
    let (one, other) = (open(), open());
    take(&one, &store, "a/b", Step::Set(Some(Visibility::Private))).await;
    assert_eq!(other.visibility("a/b"), Visibility::Private);
    other.configure(config("visibility: internal"));
    let visibilities = ["a/b", "c/d"].map(|name| other.visibility(name));
    assert_eq!(visibilities, [Visibility::Private, Visibility::Internal]);
    assert_eq!(one.visibility("c/d"), Visibility::Public);
}
