//! How much a skill may be.

use super::*;

/// The problems of a skill: of which rule, of which file, and whether it refuses the skill.
fn problems(read: &SkillFiles) -> Vec<(&str, &str, bool)> {
    let problems = read.problems.iter();
    problems
        .map(|problem| {
            (
                problem.rule.as_str(),
                problem.file.as_str(),
                problem.severity == Severity::Error,
            )
        })
        .collect()
}

#[test]
fn a_skill_has_as_many_files_as_it_may_and_one_more_refuses_it() {
    let place = folder(&[("SKILL.md", SKILL)]);
    let at = |name: &str| place.path().join(name);
    for number in 1..MAX_FILES {
        fs::write(at(&format!("f{number}")), "").expect("a file");
    }
    let full = read(place.path());
    assert_eq!((full.files.len(), problems(&full)), (MAX_FILES, vec![]));

    fs::write(at("z"), "").expect("a file");
    let more = read(place.path());
    assert_eq!(
        (more.files.len(), problems(&more)),
        (MAX_FILES, vec![("too-many-files", "z", true)])
    );
}

#[test]
fn the_files_of_a_skill_have_as_many_bytes_as_they_may_together_and_one_more_refuses_it() {
    let place = folder(&[]);
    let sized = |name: &str, bytes: u64| {
        let file = fs::File::create(place.path().join(name)).expect("a file");
        file.set_len(bytes).expect("a file of that length");
    };
    let half = MAX_SKILL_BYTES / 2;
    sized("a", half);
    sized("b", half);
    let full = read(place.path());
    assert_eq!((taken(&full), problems(&full)), (vec!["a", "b"], vec![]));

    sized("b", half + 1);
    let more = read(place.path());
    assert_eq!(
        (taken(&more), problems(&more)),
        (vec!["a"], vec![("skill-too-large", "b", true)])
    );
}
