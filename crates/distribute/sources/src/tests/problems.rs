//! Folders that are no skill as they are.

use super::*;

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";

/// The problems of what was read: of which rule, of which file, and how much each matters.
fn problems(files: &Files) -> Vec<(&str, &str, model::Severity)> {
    let problems = files.problems.iter();
    problems
        .map(|problem| {
            (
                problem.rule.as_str(),
                problem.file.as_str(),
                problem.severity,
            )
        })
        .collect()
}

#[tokio::test]
async fn a_skill_md_in_large_file_storage_is_a_problem_of_its_skill_alone() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/SKILL.md", SKILL);
    write(root.path(), "one/model.bin", POINTER);
    write(root.path(), "two/SKILL.md", POINTER);
    write(root.path(), "two/a.md", "a");
    let place = Directory::new(root.path()).expect("a place");
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["one", "two"]);
    assert!(is_unchanged(&place, &found.mark, &work).await);

    let one = place.read(&found.items[0], &work).await.expect("files");
    assert_eq!(texts(&one), [("SKILL.md", SKILL.to_owned())]);
    let warned = ("file-lfs-pointer", "model.bin", model::Severity::Warning);
    assert_eq!(problems(&one), [warned]);

    let two = place.read(&found.items[1], &work).await.expect("files");
    assert_eq!(texts(&two), [("a.md", "a".to_owned())]);
    let refused = ("file-lfs-pointer", "SKILL.md", model::Severity::Error);
    assert_eq!(problems(&two), [refused]);

    // It was fetched.
    write(root.path(), "two/SKILL.md", SKILL);
    let again = listing(&place, Some(&found.mark), &work).await;
    assert_eq!(again.items[0], found.items[0]);
    let two = place.read(&again.items[1], &work).await.expect("files");
    assert_eq!(
        (texts(&two), problems(&two)),
        (
            vec![("SKILL.md", SKILL.to_owned()), ("a.md", "a".to_owned())],
            vec![]
        )
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_skill_is_part_of_its_fingerprint() {
    let (root, (_folder, work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/SKILL.md", SKILL);
    let place = Directory::new(root.path()).expect("a place");
    let mut seen: Vec<String> = Vec::new();
    // The files that are taken are the same each time.
    for wrong in [None, Some("aux.txt"), Some("b:c")] {
        let wrong = wrong.map(|name| root.path().join("one").join(name));
        if let Some(wrong) = &wrong {
            fs::write(wrong, "x").expect("a file");
        }
        let found = listing(&place, None, &work).await;
        let read = place.read(&found.items[0], &work).await.expect("files");
        assert_eq!(texts(&read), [("SKILL.md", SKILL.to_owned())]);
        let fingerprint = found.items[0].fingerprint.clone();
        assert!(!seen.contains(&fingerprint), "{wrong:?}");
        seen.push(fingerprint);
        if let Some(wrong) = &wrong {
            fs::remove_file(wrong).expect("removed");
        }
    }
}
