//! What skills cost.

use proptest::prelude::*;

use super::*;

fn item(id: &str, chars: u64, installed: bool) -> Item {
    Item {
        id: id.parse().expect("an id"),
        name: id.to_owned(),
        cost: Cost {
            listed_chars: chars / 10,
            listed_tokens: chars / 40,
            chars,
            tokens: chars / 4,
        },
        installed,
    }
}

#[test]
fn the_example_of_the_specification_is_estimated_as_it_is_there() {
    let asked = vec![
        item("github/a/skill1", 3_000, false),
        item("github/a/skill2", 2_500, false),
    ];
    let current = [item("github/a/old", 15_000, true)];
    let found = estimate(asked.clone(), Some(&current), 50_000);
    let expected = Estimate {
        current: 15_000,
        addition: 5_500,
        projected: 20_500,
        limit: 50_000,
        percent: 41,
        items: asked,
        overflow: None,
        listed_chars: 2_050,
        added_tokens: 1_375,
        recommendations: Vec::new(),
    };
    assert_eq!(found, expected);
}

#[test]
fn what_is_installed_adds_nothing_unless_it_is_left_out() {
    let asked = vec![
        item("github/a/old", 15_000, true),
        item("github/a/new", 1_000, false),
    ];
    let current = [item("github/a/old", 15_000, true)];
    let sums = |estimate: Estimate| (estimate.current, estimate.addition, estimate.projected);
    assert_eq!(
        sums(estimate(asked.clone(), Some(&current), 50_000)),
        (15_000, 1_000, 16_000)
    );
    assert_eq!(sums(estimate(asked, None, 50_000)), (0, 16_000, 16_000));
}

#[test]
fn what_does_not_fit_is_told_with_what_would_make_it_fit() {
    let asked = vec![
        item("github/a/new", 9_000, false),
        item("github/a/small", 2_000, false),
    ];
    let current = [item("github/a/old", 40_000, true)];
    let found = estimate(asked, Some(&current), 50_000);
    assert_eq!(
        (found.projected, found.percent, found.overflow),
        (51_000, 102, Some(1_000))
    );
    assert_eq!(
        found.recommendations.first().map(String::as_str),
        Some("Without github/a/small (2000 characters) it fits")
    );
    let huge = estimate(
        vec![
            item("github/a/x", 60_000, false),
            item("github/a/y", 60_000, false),
        ],
        None,
        10_000,
    );
    assert_eq!(
        huge.recommendations.first().map(String::as_str),
        Some("Begin with github/a/x, which has 60000 of the 110000 characters that are too many")
    );
}

#[test]
fn the_report_of_the_specification_is_told_as_it_is_there() {
    let items = vec![
        item("github/a/small", 7_250, true),
        item("github/large/documentation-skill", 8_000, true),
        item("github/a/other", 7_250, true),
    ];
    let found = report(items, 50_000);
    assert_eq!((found.used, found.percent), (22_500, 45));
    let largest: Vec<_> = found
        .largest
        .iter()
        .map(|(item, share)| (item.id.as_str(), item.cost.chars, *share))
        .collect();
    assert_eq!(
        largest,
        [
            ("github/large/documentation-skill", 8_000, 16),
            ("github/a/other", 7_250, 15),
            ("github/a/small", 7_250, 15),
        ]
    );
    assert_eq!(
        found.suggestions.first().map(String::as_str),
        Some("documentation-skill uses 16% of budget - consider lazy loading")
    );
}

#[test]
fn a_skill_costs_its_name_and_description_always_and_its_text_when_it_is_loaded() {
    let subject = described("github/a/ete", "Zählt Wörter.", "");
    let text = "---\nname: ete\ndescription: \"Zählt Wörter.\"\n\n---\nDo it.\n";
    let skill = &subject.member.version.skill;
    let cost = Cost::of(skill, text);
    assert_eq!((cost.listed_chars, cost.chars), (16, skill.chars));
    assert_eq!(cost.tokens, model::tokens(text) as u64);
    assert!(cost.listed_tokens < cost.tokens);
}

proptest! {
    #[test]
    fn sums_are_those_of_the_parts(
        asked in prop::collection::vec((0_u64..9_000, any::<bool>()), 0..8),
        current in prop::collection::vec(0_u64..9_000, 0..8),
        limit in 0_u64..60_000,
        counts in any::<bool>(),
    ) {
        let asked: Vec<Item> = asked.into_iter().enumerate()
            .map(|(at, (chars, installed))| item(&format!("a/b/c{at}"), chars, installed)).collect();
        let current: Vec<Item> = current.into_iter().enumerate()
            .map(|(at, chars)| item(&format!("a/b/d{at}"), chars, true)).collect();
        let found = estimate(asked.clone(), counts.then_some(&current[..]), limit);
        let new: u64 = asked.iter().filter(|item| !(counts && item.installed)).map(|item| item.cost.chars).sum();
        let paid: u64 = if counts { current.iter().map(|item| item.cost.chars).sum() } else { 0 };
        prop_assert_eq!((found.addition, found.current), (new, paid));
        prop_assert_eq!(found.projected, new + paid);
        prop_assert_eq!(found.overflow, (new + paid > limit).then(|| new + paid - limit));
        prop_assert_eq!(found.overflow.is_none(), found.percent <= 100 || limit == 0 && new + paid == 0);
        prop_assert_eq!(found.recommendations.is_empty(), found.overflow.is_none());
        prop_assert_eq!(found.items, asked);
    }
}
