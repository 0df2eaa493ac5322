//! Killed at every step: what is there is the old as a whole, or the new.

use super::*;
use crate::disk::STEPS;

/// Does something, and is killed at its n-th step; false: it was done before.
fn killed_at(step: usize, what: impl FnOnce() -> Result<(), Error>) -> bool {
    STEPS.with(|steps| steps.set(Some(step)));
    let done = what();
    STEPS.with(|steps| steps.set(None));
    done.is_err()
}

/// What a machine has: each skill with its health and its files.
type Seen = (
    Vec<(String, &'static str, Option<String>)>,
    BTreeMap<String, String>,
);

fn seen(machine: &Machine) -> Seen {
    // The next change finishes what was cut off; a list does not.
    drop(Directory::open(&machine.directory(), NEVER).expect("open"));
    let health = machine.health();
    (health, machine.there())
}

/// What begins, and what is done to it: killed at every step and then looked at, it is one
/// or the other; and it can be done again.
fn killed_at_every_step(
    begin: impl Fn(&Machine),
    what: impl Fn(&Machine) -> Result<(), Error>,
    least_steps: usize,
) {
    let (before, after) = {
        let machine = Machine::new();
        begin(&machine);
        let before = seen(&machine);
        what(&machine).expect("done");
        (before, seen(&machine))
    };
    assert_ne!(before, after);
    let mut step = 0;
    loop {
        let machine = Machine::new();
        begin(&machine);
        let was_killed = killed_at(step, || what(&machine));
        // Before anybody else comes, an agent finds no half of a skill.
        let there = machine.there();
        let is_between = there.is_empty() || there.len() < before.1.len().min(after.1.len());
        assert!(
            there == before.1 || there == after.1 || is_between,
            "{step}: {there:?}"
        );
        let found = seen(&machine);
        assert!(found == before || found == after, "{step}: {found:#?}");
        if !was_killed {
            assert_eq!(found, after);
            break;
        }
        if found == before {
            what(&machine).unwrap_or_else(|error| panic!("{step}: {error}"));
            assert_eq!(seen(&machine), after, "{step}");
        }
        // Whatever it was, nothing is left of it.
        drop(Directory::open(&machine.directory(), NEVER).expect("open"));
        let ours = tree(&machine.directory().join(".repertoire"), "");
        let names: Vec<_> = ours
            .keys()
            .filter(|name| !name.contains("json.new"))
            .collect();
        assert!(
            names == ["installed.json"] || names.is_empty(),
            "{step}: {names:?}"
        );
        step += 1;
    }
    assert!(step >= least_steps, "{step} steps");
}

fn put(machine: &Machine, number: u32, text: &[(&str, &str)], method: Method) -> Result<(), Error> {
    let files = files(text);
    let record = version("github/acme/refunds", number, &files);
    machine
        .install_with(&record, &files, method, false)
        .map(|_| ())
}

#[test]
fn an_install_leaves_nothing_or_everything() {
    for method in [Method::Copy, Method::Symlink] {
        killed_at_every_step(|_| {}, |machine| put(machine, 1, ONE, method), 8);
    }
}

#[test]
fn an_update_leaves_the_old_version_or_the_new_one() {
    for (old, new) in [
        (Method::Copy, Method::Copy),
        (Method::Symlink, Method::Symlink),
        (Method::Copy, Method::Symlink),
        (Method::Symlink, Method::Copy),
    ] {
        killed_at_every_step(
            |machine| put(machine, 1, ONE, old).expect("installed"),
            |machine| put(machine, 2, TWO, new),
            10,
        );
    }
}

#[test]
fn an_update_carries_along_what_others_put_there_or_leaves_it_where_it_is() {
    killed_at_every_step(
        |machine| {
            put(machine, 1, ONE, Method::Copy).expect("installed");
            machine.write("refunds/data/cache.json", "{}");
            machine.write("refunds/data/deep/other.json", "{}");
        },
        |machine| put(machine, 2, TWO, Method::Copy),
        10,
    );
}

#[test]
fn an_uninstall_removes_all_of_it_or_nothing() {
    for method in [Method::Copy, Method::Symlink] {
        killed_at_every_step(
            |machine| put(machine, 1, ONE, method).expect("installed"),
            |machine| {
                machine
                    .uninstall("github/acme/refunds", true, false)
                    .map(|_| ())
            },
            5,
        );
    }
    killed_at_every_step(
        |machine| {
            put(machine, 1, ONE, Method::Copy).expect("installed");
            machine.write("refunds/data/cache.json", "{}");
        },
        |machine| {
            machine
                .uninstall("github/acme/refunds", false, false)
                .map(|_| ())
        },
        5,
    );
}
