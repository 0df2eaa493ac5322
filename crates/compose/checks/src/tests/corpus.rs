//! Real skills: what is told of them, and how often.

use std::path::Path;

use walkdir::WalkDir;

use super::*;

/// The skills of the public corpus with their instructions; none where it is not there.
fn skills() -> Option<Vec<(Subject, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus");
    if !root.is_dir() {
        testing::skip("there are no public skills at ../shared/corpus");
        return None;
    }
    let mut found = Vec::new();
    for entry in WalkDir::new(&root).sort_by_file_name() {
        let path = entry.expect("an entry").into_path();
        let Some(folder) = path.parent().filter(|_| path.ends_with("SKILL.md")) else {
            continue;
        };
        let slug = folder
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let author = folder
            .strip_prefix(&root)
            .expect("below it")
            .components()
            .next();
        let author = author
            .expect("a part")
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        let files: Vec<(String, String)> = WalkDir::new(folder)
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .filter_map(|entry| {
                let inside = entry
                    .path()
                    .strip_prefix(folder)
                    .ok()?
                    .to_string_lossy()
                    .into_owned();
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                Some((inside, text))
            })
            .collect();
        let mut files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        files.sort_by_key(|(path, _)| *path != "SKILL.md");
        let Some(version) = version(&files, &slug) else {
            continue;
        };
        let id = format!("github/{author}/{slug}").parse::<SkillId>();
        let Ok(id) = id else { continue };
        let subject = Subject::from(Member {
            name: id.as_str().into(),
            id,
            version: Arc::new(version),
        });
        let text = files.first().map_or("", |(_, text)| text);
        found.push((subject, text.to_owned()));
    }
    Some(found)
}

/// The bounds are a little above what was measured (docs/checks.md). Each pair is printed,
/// with `--nocapture`.
#[test]
#[ignore = "nightly: some 500 public skills"]
fn skills_that_have_nothing_to_do_with_each_other_are_seldom_at_odds() {
    let Some(skills) = skills() else { return };
    let (mut pairs, mut warned, mut noted, mut folders) = (0, 0, 0, 0);
    for (at, (one, _)) in skills.iter().enumerate() {
        for (other, _) in skills.iter().skip(at + 1) {
            pairs += 1;
            let found = between(one, other);
            let Some(worst) = found.first() else { continue };
            match (worst.kind, worst.severity) {
                (ConflictKind::FileCollision, ConflictSeverity::Blocking) => folders += 1,
                (_, ConflictSeverity::Info) => noted += 1,
                _ => warned += 1,
            }
            let (one, other) = (&one.member.id, &other.member.id);
            println!(
                "{:?} {one} {other} {} {:?}",
                worst.severity, worst.description, worst.overlap
            );
        }
    }
    println!("{pairs} pairs: {folders} of one folder, {warned} warned, {noted} noted");
    assert!(pairs > 100_000 && folders < 12 && warned <= 3 && noted <= 150);
}

/// What an audit says of each, by kind, printed with `--nocapture`.
#[test]
fn most_real_skills_name_files_that_they_have_and_say_when_to_use_them() {
    let Some(skills) = skills() else { return };
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    let (mut dead_ends, mut silent) = (0, 0);
    for (subject, text) in &skills {
        let version = &subject.member.version;
        let facts = Facts {
            member: &subject.member,
            text,
            cost: Cost::of(&version.skill, text),
            installed_at: None,
            newer: None,
            uses: 1,
            last_used_at: None,
            now: Timestamp::UNIX_EPOCH,
            budget: 50_000,
        };
        let (issues, warnings) = audit(&facts, |_| Presence::There);
        dead_ends += usize::from(issues.iter().any(|issue| issue.title == "Missing file"));
        for issue in issues {
            let name = format!(
                "{:?}, {}, fixable {}",
                issue.kind, issue.title, issue.auto_fixable
            );
            *counts.entry(name).or_default() += 1;
            println!("{}: {}", subject.member.id, issue.description);
        }
        silent += usize::from(
            warnings
                .iter()
                .any(|warning| warning.kind == WarningKind::NoTriggers),
        );
        for warning in warnings {
            *counts.entry(format!("{:?}", warning.kind)).or_default() += 1;
        }
    }
    println!("{counts:#?}, {dead_ends} with files that are not there");
    assert!(skills.len() > 450 && dead_ends < 50 && silent < 120);
}
