//! What goes wrong with a place for a moment, and what is there afterwards.

use super::*;

#[tokio::test]
async fn numbers_go_on_after_a_skill_that_was_broken_gone_or_in_another_folder() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    let id: SkillId = "local/project/a".parse().expect("an id");
    let number = |seen: &Seen| {
        let skill = seen.local.get(&id.key());
        skill.map(|skill| skill.version().number.get())
    };
    write(&folder, "one");
    world.says(id.as_str(), "one").await;
    assert_eq!(number(&*world.seen().await), Some(1));
    // Half of it is typed.
    let broken = "---\nname: [\n---\n";
    fs::write(folder.join("SKILL.md"), broken).expect("a file");
    world.until("broken", |seen| seen.local.is_empty()).await;
    write(&folder, "two");
    world.says(id.as_str(), "two").await;
    assert_eq!(number(&*world.seen().await), Some(2));
    // It is gone, and is what it was afterwards.
    fs::remove_dir_all(&folder).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    write(&folder, "two");
    world.says(id.as_str(), "two").await;
    assert_eq!(number(&*world.seen().await), Some(2));
    // It is another agent's from now on.
    fs::remove_dir_all(&folder).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    write(&world.project(".cursor/skills/a"), "three");
    world.says(id.as_str(), "three").await;
    assert_eq!(number(&*world.seen().await), Some(3));
}
