//! Random steps, compared with a model of the registry.

use super::*;

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
