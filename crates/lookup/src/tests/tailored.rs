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
    fn task(&self, slugs: &[&str], exploration_percent: u32) -> Task {
        let heads = slugs.iter().map(|slug| {
            let id = format!("a/b/{slug}").parse().expect("an id");
            self.registry.head(&id).expect("a skill")
        });
        Task {
            fitting: heads.collect(),
            exploration_percent,
        }
    }

    fn used(&self, slug: &str) {
        let id = format!("a/b/{slug}").parse().expect("an id");
        let head = self.registry.head(&id).expect("a skill");
        self.registry
            .count(&head, VersionNumber::FIRST, UsageKind::Load, "s");
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
