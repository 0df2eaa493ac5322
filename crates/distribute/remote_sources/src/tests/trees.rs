//! What is in the trees of GitHub, and what stays out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::double::Asked;
use super::github::{entry, hub, id, named};
use super::*;

/// What a repository has at its top, each file with its text, at ids of their places.
fn tree(files: Vec<(String, String)>) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| {
        let path = asked.path.split('?').next().expect("a path");
        if path.ends_with(&format!("/git/trees/{}", id('a'))) {
            let mut entries = Vec::new();
            let mut folders = std::collections::BTreeSet::new();
            for (at, (path, text)) in files.iter().enumerate() {
                let above = path.match_indices('/').map(|(at, _)| &path[..at]);
                for folder in above.filter(|folder| folders.insert(folder.to_owned())) {
                    entries.push(entry(folder, "040000", "tree", 'a'));
                }
                entries.push(json!({
                    "path": path, "mode": "100644", "type": "blob",
                    "sha": format!("{at:040}"), "size": text.len(),
                }));
            }
            return Reply::json(&json!({"truncated": false, "tree": entries}));
        }
        match path.rsplit_once("/git/blobs/") {
            Some((_, sha)) => {
                let (_, text) = &files[sha.parse::<usize>().expect("a place")];
                Reply::json(&json!({"encoding": "base64", "content": STANDARD.encode(text)}))
            }
            None => hub(asked),
        }
    }
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let files = files.iter();
    files
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

#[tokio::test]
async fn what_is_no_part_of_a_skill_is_left_out_and_not_even_asked_for() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let files = owned(&[
        ("SKILL.md", SKILL),
        (".skillignore", "/notes\n!target/\n!.env\n"),
        (".env", "A=1"),
        ("keys/id_rsa", "x"),
        ("model.bin", pointer),
        ("node_modules/a/SKILL.md", SKILL),
        ("node_modules/b.js", "x"),
        ("notes/.skillignore", "SKILL.md\n"),
        ("target/goals.md", "x"),
    ]);
    let (double, (_folder, work)) = (Double::start(tree(files)).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["acme/skills"]);
    let skip = |path: &str| (format!("acme/skills/{path}"), "tools make it".to_owned());
    assert_eq!(found.skipped, [skip("node_modules"), skip("target")]);
    double.asked();
    let read = place.read(&found.items[0], &work).await.expect("files");
    let read_paths: Vec<_> = texts(&read).into_iter().map(|(path, _)| path).collect();
    assert_eq!(read_paths, [".skillignore", "SKILL.md", "target/goals.md"]);
    let told: Vec<_> = read
        .problems
        .iter()
        .map(|problem| (problem.rule.as_str(), problem.file.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("file-left-out", ".env"),
            ("file-left-out", "keys/id_rsa"),
            ("file-left-out", "node_modules"),
            ("file-left-out", "notes"),
            ("file-lfs-pointer", "model.bin"),
        ]
    );
    // The tree and four blobs, each once.
    let asked = double.paths();
    assert_eq!(asked.len(), 5, "{asked:?}");
}

#[tokio::test]
async fn folders_that_are_too_deep_are_told() {
    let last = vec!["d"; skill_folder::MAX_DEPTH + 1].join("/");
    let deep = format!("{last}/x/SKILL.md");
    let files = owned(&[("SKILL.md", SKILL), (&deep, SKILL)]);
    let (double, (_folder, work)) = (Double::start(tree(files)).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    assert_eq!(paths(&found), ["acme/skills"]);
    let expected = (
        format!("acme/skills/{last}"),
        skill_folder::TOO_DEEP.to_owned(),
    );
    assert_eq!(found.skipped, [expected]);
    let read = place.read(&found.items[0], &work).await.expect("files");
    assert!(
        read.problems
            .iter()
            .any(|problem| problem.rule == "path-invalid" && problem.file == last),
        "{:?}",
        read.problems
    );
}

#[tokio::test]
async fn patterns_that_are_too_many_refuse_the_skill() {
    let patterns = "#".repeat(100_000);
    let files = owned(&[("SKILL.md", SKILL), ("a/.skillignore", &patterns)]);
    let (double, (_folder, work)) = (Double::start(tree(files)).await, work());
    let place = named(&double);
    let found = listing(&place, None, &work).await;
    let read = place.read(&found.items[0], &work).await.expect("files");
    assert_eq!(
        read.problems,
        [skill_folder::too_many_patterns("a/.skillignore")]
    );
}
