//! The main job on real input: every skill of a corpus is published and read back byte
//! for byte, or refused with a reason that names file, line and rule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use contract::v1;
use model::Digest;
use serde_json::Value;

use crate::support::{Server, corpus};

fn import(server: &Server, repository: &Path) -> Value {
    let name = repository
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let author = name.split("__").next().expect("an owner").to_owned();
    let folder = repository.display().to_string();
    let output = server.command(&[
        "import", "--json", "--source", "github", "--author", &author, &folder,
    ]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{name}: {error}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let refused = summary["refused"].as_array().expect("a list").len();
    assert_eq!(output.status.code(), Some(i32::from(refused > 0)), "{name}");
    summary
}

#[tokio::test(flavor = "multi_thread")]
async fn every_skill_of_ours_is_published_and_read_back_or_refused_with_its_reason() {
    // A heading and no front matter; a copy of the recipes, which were published.
    let refused = [("front-matter-missing", 1), ("id-taken", 1)];
    import_and_read_back(&corpus::ours(), 40, &refused).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "nightly: some 500 public skills"]
async fn every_public_skill_is_published_and_read_back_or_refused_with_its_reason() {
    let Some(corpus) = corpus::public() else {
        return;
    };
    // Five begin with a heading. What is taken are copies in another folder of the same
    // repository, most of them translations; the one with the shortest path was published.
    let refused = [("front-matter-missing", 5), ("id-taken", 21)];
    import_and_read_back(&corpus, 515, &refused).await;
}

/// Of a hundred folders in the wild so many may be refused, and each with a reason.
const MAX_REFUSED: u64 = 7;

/// Imports the repositories of a corpus, which has so many skills, twice; and reads all
/// of them back.
async fn import_and_read_back(corpus: &Path, skills: u64, refusals: &[(&str, u32)]) {
    let server = Server::start();
    let mut repositories: Vec<PathBuf> = std::fs::read_dir(corpus)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    repositories.sort();

    let (mut created, mut copies) = (0, 0);
    let mut rules = BTreeMap::<String, u32>::new();
    for repository in &repositories {
        let summary = import(&server, repository);
        created += summary["created"].as_u64().expect("a count");
        copies += summary["copies"].as_array().expect("a list").len() as u64;
        for refused in summary["refused"].as_array().expect("a list") {
            let problems = refused["problems"].as_array().expect("a list");
            let first = problems
                .first()
                .unwrap_or_else(|| panic!("no reason: {refused}"));
            assert_eq!(first["severity"], "error", "{refused}");
            for part in ["rule", "message"] {
                assert!(
                    !first[part].as_str().unwrap_or_default().is_empty(),
                    "{refused}"
                );
            }
            assert!(first["line"].as_u64() > Some(0), "{refused}");
            assert_eq!(first["file"], "SKILL.md", "{refused}");
            *rules
                .entry(first["rule"].as_str().expect("a rule").to_owned())
                .or_default() += 1;
        }
    }
    println!("{created} created, {copies} copies; refused by rule: {rules:?}");
    let refused: u32 = rules.values().sum();
    assert_eq!(created + copies + u64::from(refused), skills);
    assert!(u64::from(refused) * 100 <= skills * MAX_REFUSED);
    assert_eq!(
        rules
            .iter()
            .map(|(rule, count)| (rule.as_str(), *count))
            .collect::<Vec<_>>(),
        refusals
    );

    // Again: nothing new, whatever the order.
    for repository in repositories.iter().rev() {
        let summary = import(&server, repository);
        assert_eq!(
            (&summary["created"], &summary["updated"]),
            (&0.into(), &0.into()),
            "{}",
            repository.display()
        );
    }

    let read = read_back(&server, corpus).await;
    assert_eq!(read, created);
    let (code, _) = server.terminate();
    assert_eq!(code, Some(0));
}

/// Back over gRPC: every file of every skill is the file on disk. How many skills
/// there were.
async fn read_back(server: &Server, corpus: &Path) -> u64 {
    let mut lookup = server.lookup().await;
    let mut on_disk = BTreeMap::<String, Vec<BTreeMap<String, PathBuf>>>::new();
    for entry in corpus::skill_folders(corpus) {
        let found = corpus::files(&entry);
        let text = std::fs::read(entry.join("SKILL.md"))
            .or_else(|_| std::fs::read(entry.join("skill.md")));
        on_disk
            .entry(Digest::of(&text.expect("a SKILL.md")).to_string())
            .or_default()
            .push(found);
    }
    let mut request = v1::ListSkillsRequest {
        source: "github".to_owned(),
        page_size: 100,
        ..Default::default()
    };
    let mut read = 0;
    loop {
        let page = lookup
            .list_skills(request.clone())
            .await
            .expect("a page")
            .into_inner();
        for skill in &page.skills {
            let listed = v1::ListFilesRequest {
                skill_id: skill.id.clone(),
                ..Default::default()
            };
            let listed = lookup
                .list_files(listed)
                .await
                .expect("files")
                .into_inner()
                .files;
            let skill_md = listed
                .iter()
                .find(|f| f.path.eq_ignore_ascii_case("SKILL.md"))
                .expect("a SKILL.md");
            let candidates = on_disk
                .get(&skill_md.digest)
                .unwrap_or_else(|| panic!("{} is not on disk", skill.id));
            let expected = candidates
                .iter()
                .find(|files| files.keys().eq(listed.iter().map(|f| &f.path)))
                .unwrap_or_else(|| panic!("{} has other files", skill.id));
            for file in &listed {
                let part = v1::ReadFileRequest {
                    skill_id: skill.id.clone(),
                    path: file.path.clone(),
                    ..Default::default()
                };
                let content = lookup
                    .read_file(part)
                    .await
                    .expect("a file")
                    .into_inner()
                    .content;
                assert_eq!(
                    content,
                    std::fs::read(&expected[&file.path]).expect("a file"),
                    "{} {}",
                    skill.id,
                    file.path
                );
                assert_eq!(Digest::of(&content).to_string(), file.digest);
            }
            read += 1;
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    read
}
