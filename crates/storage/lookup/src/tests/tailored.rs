//! The section of a prompt for a task.

use super::*;
use model::VersionNumber;
use registry::UsageKind;

async fn world_of(count: usize) -> World {
    let mut world = World::new();
    for n in 0..count {
        let description =
            format!("Does the thing with the number {n} for people who need it done.");
        let text = format!("---\nname: skill-{n:02}\ndescription: {description}\n---\nBody.\n");
        let id = format!("a/b/skill-{n:02}");
        world = world
            .with_files(&id, &[("SKILL.md", text.as_bytes())])
            .await;
    }
    world
}

impl World {
    fn task(&self, slugs: &[&str], exploration_percent: u32) -> PromptTask {
        let heads = slugs.iter().map(|slug| {
            let id = format!("a/b/{slug}").parse().expect("an id");
            self.registry.head(&id).expect("a skill")
        });
        PromptTask {
            fitting: heads.collect(),
            exploration_percent,
        }
    }

    fn used(&self, slug: &str) {
        self.used_by(slug, UsageKind::Load);
    }

    fn used_by(&self, slug: &str, kind: UsageKind) {
        let id = format!("a/b/{slug}").parse().expect("an id");
        let head = self.registry.head(&id).expect("a skill");
        self.registry.count(&head, VersionNumber::FIRST, kind, "s");
    }
}

#[tokio::test]
async fn where_all_skills_fit_those_that_fit_the_task_come_first() {
    let world = world_of(3).await;
    let prompt = world
        .lookup
        .prompt_for(&world.task(&["skill-02"], 10), 0)
        .expect("a section");
    let lines: Vec<&str> = prompt
        .text
        .lines()
        .skip(2)
        .map(|line| &line[2..10])
        .collect();
    assert_eq!(lines, ["skill-02", "skill-00", "skill-01"]);
    assert_eq!((prompt.listed, prompt.left_out), (3, 0));
}

#[tokio::test]
async fn where_they_do_not_the_best_stand_with_what_they_are_for_and_the_rest_is_told() {
    let world = world_of(60).await;
    let fitting = [
        "skill-41", "skill-17", "skill-33", "skill-05", "skill-06", "skill-07", "skill-08",
        "skill-09",
    ];
    let prompt = world
        .lookup
        .prompt_for(&world.task(&fitting, 0), 120)
        .expect("a section");
    assert!(prompt.tokens() <= 120, "{}", prompt.tokens());
    let lines: Vec<&str> = prompt.text.lines().collect();
    assert_eq!(
        lines[2],
        "- skill-41: Does the thing with the number 41 for people who need it done. [a/b]"
    );
    assert!(lines[3].starts_with("- skill-17: "));
    assert_eq!(prompt.listed + prompt.left_out, 60);
    let last = lines.last().expect("a note");
    assert_eq!(
        *last,
        format!(
            "{} more skills are left out; search finds them, list_skills lists them.",
            prompt.left_out
        )
    );
    assert_eq!(prompt.next[0], fitting[prompt.listed]);
    assert!(prompt.explored.is_empty());
}

#[tokio::test]
async fn a_share_of_the_room_goes_to_what_nobody_has_used() {
    let world = world_of(60).await;
    let slugs: Vec<String> = (0..40).map(|n| format!("skill-{n:02}")).collect();
    for slug in &slugs[..30] {
        world.used(slug);
    }
    let fitting: Vec<&str> = slugs.iter().map(String::as_str).collect();
    let prompt = world
        .lookup
        .prompt_for(&world.task(&fitting, 50), 300)
        .expect("a section");
    assert!(!prompt.explored.is_empty());
    for name in &prompt.explored {
        assert!(prompt.text.contains(&format!("- {name}: ")), "{name}");
        assert!(!slugs[..30].contains(name), "{name} was used");
    }
    assert!(
        prompt.text.contains("- skill-00: "),
        "the best is there in any case"
    );
    let none = world
        .lookup
        .prompt_for(&world.task(&fitting, 0), 300)
        .expect("a section");
    assert_eq!(none.explored, [] as [String; 0]);
}

#[tokio::test]
async fn no_budget_is_overdrawn() {
    let world = world_of(12).await;
    let task = world.task(&["skill-03", "skill-04"], 20);
    for tokens in 20..400 {
        let prompt = world.lookup.prompt_for(&task, tokens).expect("a section");
        assert!(
            prompt.tokens() <= tokens as usize || prompt.listed == 0,
            "{tokens}: {}",
            prompt.text
        );
        assert_eq!(prompt.listed + prompt.left_out, 12);
    }
}

#[tokio::test]
async fn what_nobody_has_used_gets_no_more_than_its_share() {
    let world = world_of(60).await;
    world.used("skill-00");
    // Read, and not loaded: somebody knows it.
    world.used_by("skill-01", UsageKind::Read);
    let task = world.task(&["skill-00"], 10);
    let prompt = world.lookup.prompt_for(&task, 300).expect("a section");
    assert_eq!(
        prompt.explored,
        ["skill-02", "skill-03", "skill-04", "skill-05"]
    );
}

#[tokio::test]
async fn the_use_of_no_more_skills_is_looked_up_than_of_200() {
    let world = world_of(205).await;
    let mut slugs: Vec<_> = (0..205).map(|n| format!("skill-{n:02}")).collect();
    slugs.sort();
    slugs[..200].iter().for_each(|slug| world.used(slug));
    let explored = |world: &World| {
        let task = world.task(&[], 50);
        let prompt = world.lookup.prompt_for(&task, 300).expect("a section");
        prompt.explored
    };
    assert_eq!(explored(&world), [] as [String; 0]);
}

#[tokio::test]
async fn of_what_was_left_out_the_next_20_are_told() {
    let world = world_of(60).await;
    let slugs: Vec<String> = (0..60).map(|n| format!("skill-{n:02}")).collect();
    let fitting: Vec<&str> = slugs.iter().map(String::as_str).collect();
    let task = world.task(&fitting, 0);
    let prompt = world.lookup.prompt_for(&task, 120).expect("a section");
    assert_eq!(prompt.next, slugs[prompt.listed..][..20]);
}

#[tokio::test]
async fn a_share_of_more_than_all_is_all_of_the_room() {
    let mut world = World::new();
    for n in 0..60 {
        let text = format!("---\nname: s{n:02}\ndescription: x\n---\nBody.\n");
        let id = format!("a/b/s{n:02}");
        let files = [("SKILL.md", text.as_bytes())];
        world = world.with_files(&id, &files).await;
    }
    let explored = |percent: u32| {
        let task = world.task(&["s00"], percent);
        let prompt = world.lookup.prompt_for(&task, 100).expect("a section");
        prompt.explored.len()
    };
    // So many of 40 bytes and one more, though those here are shorter.
    assert_eq!([100, 101, 1_000].map(explored), [11; 3]);
}
