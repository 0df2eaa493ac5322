//! Saves in folders that are watched, and links below them.

use super::*;

#[tokio::test]
async fn a_save_is_seen_whichever_way_an_editor_saves() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    let (id, file) = ("local/project/a", folder.join("SKILL.md"));
    write(&folder, "nothing");
    world.says(id, "nothing").await;
    // In its place.
    fs::write(&file, text("a", "in-place")).expect("a file");
    let took = world.says(id, "in-place").await;
    eprintln!("from a save to seen: {took:?}");
    // In its place, in two steps with time between: half of it is nothing that is seen.
    fs::write(&file, "").expect("a file");
    let half = text("a", "later");
    fs::write(&file, &half.as_bytes()[..30]).expect("a file");
    tokio::time::sleep(Duration::from_millis(20)).await;
    fs::write(&file, half).expect("a file");
    world.says(id, "later").await;
    // Beside it, and renamed.
    let new = folder.join(".SKILL.md.new");
    fs::write(&new, text("a", "renamed")).expect("a file");
    fs::rename(&new, &file).expect("renamed");
    world.says(id, "renamed").await;
    // The old one goes aside first, then a new one comes, with a swap file beside.
    let swap = folder.join(".SKILL.md.swp");
    fs::write(&swap, "x").expect("a file");
    fs::rename(&file, folder.join("SKILL.md~")).expect("renamed");
    fs::write(&file, text("a", "swapped")).expect("a file");
    fs::remove_file(&swap).expect("removed");
    world.says(id, "swapped").await;
    // The whole folder is exchanged.
    let other = world.project("other");
    write(&other, "exchanged");
    fs::write(other.join("SKILL.md"), text("a", "exchanged")).expect("a file");
    fs::rename(&folder, world.project("old")).expect("renamed");
    fs::rename(&other, &folder).expect("renamed");
    world.says(id, "exchanged").await;
    // A file beside it belongs to it.
    fs::create_dir(folder.join("more")).expect("a folder");
    fs::write(folder.join("more/notes.md"), "Notes.").expect("a file");
    let files = |seen: &OverlaySnapshot| {
        let skill = seen
            .local
            .iter()
            .next()
            .map(|skill| skill.version().files.len());
        skill == Some(2)
    };
    world.until("a new folder", files).await;
    fs::remove_dir_all(&folder).expect("removed");
    world
        .until("it is gone", |seen| seen.local.is_empty())
        .await;
}

#[tokio::test]
async fn where_nothing_is_told_a_save_is_seen_all_the_same() {
    let world = World::with(Options {
        is_watched: false,
        ..Options::default()
    });
    let folder = world.project(".claude/skills/a");
    for word in ["first", "second", "third"] {
        write(&folder, word);
        let took = world.says("local/project/a", word).await;
        eprintln!("from a save to seen where nothing is told: {took:?}");
    }
}

#[tokio::test]
async fn a_link_in_a_folder_of_skills_is_followed_and_one_below_is_not() {
    let world = World::new();
    let (elsewhere, root) = (
        world.project("elsewhere/a"),
        world.project(".claude/skills"),
    );
    write(&elsewhere, "linked");
    fs::create_dir_all(root.join("group")).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, root.join("a")).expect("a link");
    std::os::unix::fs::symlink(&elsewhere, root.join("group/b")).expect("a link");
    // A link to where it is, which has no end.
    std::os::unix::fs::symlink(&root, root.join("ring")).expect("a link");
    // What is read of a skill is what it holds, and not where a link leads.
    fs::write(world.project("secret.txt"), "secret").expect("a file");
    std::os::unix::fs::symlink(world.project("secret.txt"), elsewhere.join("x.txt"))
        .expect("a link");
    let (seen, _) = world.until("linked", |seen| seen.local.len() == 1).await;
    let skill = seen.local.iter().next().expect("a skill");
    assert_eq!(skill.version().files.len(), 1);
    // A change behind the link is told.
    write(&elsewhere, "changed");
    world.says("local/project/a", "changed").await;
}

#[tokio::test]
async fn thousands_of_saves_leave_one_version() {
    let world = World::new();
    let folder = world.project(".claude/skills/a");
    for save in 0..3_000 {
        write(&folder, &format!("save-{save}"));
        if save % 100 == 0 {
            let seen = world.seen().await;
            assert!(seen.local.len() <= 1);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    world.says("local/project/a", "save-2999").await;
    let seen = world.seen().await;
    let id: SkillId = "local/project/a".parse().expect("an id");
    let page = seen.registry.list_versions(&id, 100, "").expect("a page");
    assert_eq!((page.versions.len(), page.next), (1, None));
}

#[tokio::test]
async fn a_burst_of_folders_and_a_branch_that_takes_them_away_are_seen_whole() {
    let world = World::new();
    let root = world.project(".claude/skills");
    write(&root.join("first"), "first");
    world.says("local/project/first", "first").await;
    for at in 0..499 {
        write(&root.join(format!("s{at}")), "burst");
    }
    let (_, took) = world.until("500", |seen| seen.local.len() == 500).await;
    eprintln!("from a burst of 499 folders to all seen: {took:?}");
    // Another branch: the root is removed and made anew, with others in it.
    fs::remove_dir_all(world.project(".claude")).expect("removed");
    for at in 0..20 {
        write(&root.join(format!("t{at}")), "branch");
    }
    let branch = |seen: &OverlaySnapshot| {
        let local = names(&seen.local);
        local.len() == 20 && local.iter().all(|id| id.starts_with("local/project/t"))
    };
    let (_, took) = world.until("a branch", branch).await;
    eprintln!("from a switched branch to seen: {took:?}");
    // And what happens in the new root is heard.
    write(&root.join("t1"), "heard");
    let took = world.says("local/project/t1", "heard").await;
    eprintln!("from a save in a remade root to seen: {took:?}");
    // The whole project, too.
    fs::remove_dir_all(&world.place.project).expect("removed");
    world.until("gone", |seen| seen.local.is_empty()).await;
    write(&root.join("anew"), "anew");
    world.says("local/project/anew", "anew").await;
}
