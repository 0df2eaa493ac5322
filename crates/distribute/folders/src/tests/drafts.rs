//! Which skills are in folders, under which ids, and what is told of them.

use std::collections::BTreeMap;

use model::SkillId;

use super::*;

type Drafts = BTreeMap<PathBuf, (Draft, Option<Claim>)>;

fn ids(author: Option<&str>) -> Ids {
    Ids::new(author.map(|author| ("local".to_owned(), author.to_owned())))
}

fn id(author: &str, slug: &str) -> SkillId {
    SkillId::new("local", author, slug).expect("an id")
}

fn read_all(root: &Path, author: Option<&str>) -> Drafts {
    drafts(root, ids(author), false).expect("drafts")
}

/// Rules that a draft breaks, each with its file and line.
fn broken(draft: &Draft) -> Vec<(&str, &str, u32)> {
    let problems = draft.candidate.problems.iter();
    let broken =
        problems.map(|problem| (problem.rule.as_str(), problem.file.as_str(), problem.line));
    broken.collect()
}

#[test]
fn every_skill_below_a_folder_has_an_id_of_its_own() {
    let place = folder(&[
        ("a/pdf/SKILL.md", &skill("pdf", "One.")),
        ("b/tables/SKILL.md", &skill("tables", "One.")),
    ]);
    let all = read_all(place.path(), Some("me"));
    let told: Vec<_> = all
        .iter()
        .map(|(path, (draft, claim))| {
            let path = path.strip_prefix(place.path()).expect("below");
            (
                path.to_str().expect("a text"),
                draft.is_valid,
                claim.clone(),
            )
        })
        .collect();
    let own = |slug| Some(Claim::Own(id("me", slug)));
    let expected = [
        ("a/pdf", true, own("pdf")),
        ("b/tables", true, own("tables")),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_folder_without_a_skill_below_it_is_read_as_one_and_told_what_it_lacks() {
    let place = folder(&[("README.md", "# No skill\n")]);
    let all = read_all(place.path(), Some("me"));
    let (path, (draft, claim)) = all.first_key_value().expect("one");
    assert_eq!((all.len(), path.as_path()), (1, place.path()));
    assert_eq!((draft.is_valid, claim), (false, &None));
    assert!(!draft.candidate.problems.is_empty());
}

#[test]
fn a_skill_with_a_file_that_cannot_be_published_is_not_valid_and_the_file_is_told() {
    let place = folder(&[("pdf/SKILL.md", &skill("pdf", "One."))]);
    write(place.path(), "pdf/con/notes.md", "Notes.");
    let draft = Draft::read(&place.path().join("pdf"), None, false);
    assert!(draft.candidate.skill.is_some(), "its SKILL.md is one");
    assert!(!draft.is_valid);
    let problems = draft.valid().map(|_| ()).expect_err("a refusal");
    let told: Vec<_> = problems.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(told, ["path-invalid"]);
}

#[test]
fn no_folder_takes_the_id_of_another_and_a_copy_is_told_as_one() {
    let place = folder(&[
        ("a/pdf/SKILL.md", &skill("pdf", "One.")),
        ("b/pdf/SKILL.md", &skill("pdf", "One.")),
        ("c/pdf/SKILL.md", &format!("\n{}", skill("pdf", "Another."))),
    ]);
    let mut all = read_all(place.path(), Some("me"));
    let at = |name: &str| place.path().join(name);
    let (first, own) = all.remove(&at("a/pdf")).expect("the first");
    assert_eq!(
        (first.is_valid, own),
        (true, Some(Claim::Own(id("me", "pdf"))))
    );
    let copy = Claim::Copy {
        id: id("me", "pdf"),
        of: at("a/pdf"),
    };
    let (second, claim) = all.remove(&at("b/pdf")).expect("the second");
    assert_eq!((second.is_valid, claim), (true, Some(copy)));
    let (third, claim) = all.remove(&at("c/pdf")).expect("the third");
    assert_eq!((third.is_valid, claim), (false, None));
    // The line is that of its name, which somebody has to change.
    assert!(
        broken(&third).contains(&("id-taken", "SKILL.md", 3)),
        "{:?}",
        broken(&third)
    );
    assert!(third.valid().is_err());
}

#[test]
fn a_named_author_goes_before_what_the_path_tells() {
    let place = folder(&[("acme__skills/pdf/SKILL.md", &skill("pdf", "One."))]);
    for (author, expected) in [(Some("me"), "me"), (None, "acme")] {
        let all = read_all(place.path(), author);
        let claims: Vec<_> = all.into_values().map(|(_, claim)| claim).collect();
        assert_eq!(claims, [Some(Claim::Own(id(expected, "pdf")))]);
    }
}

#[test]
fn nobody_is_told_the_same_of_a_skill_twice_until_it_changes_or_comes_back() {
    let place = folder(&[
        ("a/SKILL.md", &skill("a", "One.")),
        ("b/SKILL.md", &skill("b", "One.")),
    ]);
    let mut told = ReportedProblems::default();
    let mut news = || {
        let mut all = read_all(place.path(), Some("me"));
        told.news(&mut all);
        let names = all.keys().map(|path| name(path));
        names.collect::<Vec<_>>()
    };
    assert_eq!(news(), ["a", "b"]);
    assert_eq!(news(), [""; 0]);
    write(place.path(), "b/SKILL.md", &skill("b", "Two."));
    assert_eq!(news(), ["b"]);
    assert_eq!(news(), [""; 0]);
    fs::remove_dir_all(place.path().join("a")).expect("removed");
    assert_eq!(news(), [""; 0]);
    write(place.path(), "a/SKILL.md", &skill("a", "One."));
    assert_eq!(news(), ["a"]);
    told.forget();
    let mut all = read_all(place.path(), Some("me"));
    told.news(&mut all);
    assert_eq!(all.len(), 2);
}
