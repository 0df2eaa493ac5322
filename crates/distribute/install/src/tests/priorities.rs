//! Places of skills.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// `a b* c`: the first one first, with a star those that are locked.
fn order(text: &str) -> Order {
    let places = text.split_whitespace().map(|name| PriorityEntry {
        id: id(&format!("x/y/{}", name.trim_end_matches('*'))),
        locked: name.ends_with('*'),
    });
    Order(places.collect())
}

fn shown(order: &Order) -> String {
    let names = order.places().iter().map(|place| {
        let star = if place.locked { "*" } else { "" };
        format!("{}{star}", place.id.slug())
    });
    names.collect::<Vec<_>>().join(" ")
}

fn put(before: &str, skill: &str, place: usize, lock: bool) -> (String, String) {
    let mut order = order(before);
    let moved = order
        .put(&id(&format!("x/y/{skill}")).key(), place, lock)
        .expect("there");
    let moved = moved
        .iter()
        .map(|m| format!("{}:{}>{}", m.id.slug(), m.from, m.to));
    (shown(&order), moved.collect::<Vec<_>>().join(" "))
}

#[test]
fn others_make_way_and_those_that_are_locked_stay() {
    for (before, skill, place, after, moved) in [
        ("a b c", "c", 1, "c* a b", "c:3>1 a:1>2 b:2>3"),
        ("a b c", "a", 3, "b c a*", "a:1>3 b:2>1 c:3>2"),
        ("a b* c", "c", 1, "c* b* a", "c:3>1 a:1>3"),
        ("a* b c", "c", 1, "c* a* b", "c:3>1 a:1>2 b:2>3"),
        ("a b c*", "a", 3, "b c* a*", "a:1>3 b:2>1 c:3>2"),
        ("a b c", "b", 9, "a c b*", "b:2>3 c:3>2"),
        ("a", "a", 1, "a*", "a:1>1"),
    ] {
        let expected = (after.to_owned(), moved.to_owned());
        assert_eq!(
            put(before, skill, place, true),
            expected,
            "{before}: {skill} to {place}"
        );
    }
    assert_eq!(put("a* b", "a", 2, false).0, "b a");
    assert_eq!(order("a").put(&id("x/y/z").key(), 1, true), None);
}

#[test]
fn skills_that_nobody_gave_a_place_come_last_and_those_that_are_gone_make_room() {
    let skills = ["x/y/new", "x/y/a", "x/y/c", "x/y/newer"].map(id);
    assert_eq!(shown(&order("a b* c*").of(&skills)), "a c* new newer");
}

#[test]
fn places_outlive_the_process_and_changes_at_once_keep_every_skill_once() {
    let machine = Machine::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        let files = files(ONE);
        let record = version(&format!("x/y/{name}"), 1, &files);
        machine.install(&record, &files).expect("installed");
    }
    let told = |machine: &Machine| machine.home().order().expect("an order");
    assert_eq!(
        (shown(&told(&machine).0), told(&machine).1),
        ("a b c d e f".to_owned(), false)
    );
    std::thread::scope(|scope| {
        for (at, name) in names.into_iter().enumerate() {
            let machine = &machine;
            scope.spawn(move || {
                for round in 0..5 {
                    let key = id(&format!("x/y/{name}")).key();
                    let place = (at + round) % names.len() + 1;
                    let lock = (at + round) % 2 == 0;
                    let set = machine.home().set_priority(&key, place, lock, &|| false);
                    assert_eq!(set.expect("set")[0].to, place);
                }
            });
        }
    });
    let (order, is_manual) = told(&machine);
    let there: BTreeSet<_> = order.places().iter().map(|place| place.id.slug()).collect();
    assert_eq!((there, is_manual), (BTreeSet::from(names), true));
    machine.uninstall("x/y/a", true, false).expect("removed");
    assert_eq!(told(&machine).0.places().len(), 5);
    let gone = machine
        .home()
        .set_priority(&id("x/y/a").key(), 1, true, NEVER);
    assert!(matches!(gone, Err(Error::NotInstalled { .. })), "{gone:?}");
}

proptest! {
    #[test]
    fn whatever_is_asked_for_every_skill_has_one_place_and_locks_hold(
        count in 1_usize..9,
        calls in prop::collection::vec((0_usize..9, 0_usize..12, any::<bool>()), 1..12),
    ) {
        let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
        let mut order = order(&names.join(" "));
        for (skill, place, lock) in calls {
            let before = order.clone();
            let key = id(&format!("x/y/s{}", skill % count)).key();
            let moved = order.put(&key, place, lock).expect("there");
            let at = place.clamp(1, count);
            prop_assert_eq!(order.place(&key), Some(at));
            prop_assert_eq!(moved[0].to, at);
            let there: BTreeSet<_> = order.places().iter().map(|p| p.id.to_string()).collect();
            prop_assert_eq!(there.len(), count);
            for (from, old) in (1..).zip(before.places()) {
                let (key_of, to) = (old.id.key(), order.place(&old.id.key()));
                if old.locked && key_of != key && from != at {
                    prop_assert_eq!(to, Some(from), "{} is locked", old.id);
                }
                if to != Some(from) && key_of != key {
                    prop_assert!(moved.iter().any(|m| m.id == old.id && Some(m.to) == to));
                }
            }
            // Those that make way keep their order.
            let free = |order: &Order| -> Vec<String> {
                let free = order.places().iter().filter(|p| !p.locked && p.id.key() != key);
                free.map(|p| p.id.to_string()).collect()
            };
            prop_assert_eq!(free(&before), free(&order));
        }
    }
}
