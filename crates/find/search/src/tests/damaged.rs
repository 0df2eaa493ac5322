//! An index whose files are damaged: closed, and under the hands of those who search.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::*;

/// Words that skills have, each in one.
const WORDS: [&str; 12] = [
    "deploy",
    "rollout",
    "invoice",
    "refund",
    "kubernetes",
    "terraform",
    "postgres",
    "mysql",
    "parser",
    "lexer",
    "mailer",
    "calendar",
];

async fn world() -> World {
    let mut world = World::new();
    for word in WORDS {
        let front = format!("name: {word}\ndescription: Knows all of {word} and its things.");
        world = world
            .with(&format!("a/b/{word}"), &front, "Some text, for all.")
            .await;
    }
    world.index.complete().await;
    world
}

/// The files of words that say where documents are; others are of the writer alone.
fn searched(folder: &Path) -> Vec<PathBuf> {
    let words = folder.join(follow::INDEX).join("words");
    let files = files_below(&words).into_iter().map(|(file, _)| file);
    let is_searched = |file: &PathBuf| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        matches!(
            ending,
            Some("term" | "idx" | "pos" | "store" | "fast" | "fieldnorm" | "del")
        )
    };
    files.filter(is_searched).collect()
}

/// Finds every word, after no more refusals than a damaged index may have.
async fn finds_all(world: &World, what: &str) {
    let mut refused = 0;
    'again: loop {
        assert!(refused < 20, "{what}: it is never made anew");
        world.index.caught_up().await;
        for word in WORDS {
            let query = SearchQuery {
                text: word.to_owned(),
                limit: 5,
                words_only: true,
                ..SearchQuery::default()
            };
            match world.index.search(&query, &Stop::never()) {
                Ok(found) if slugs(&found).first().map(String::as_str) == Some(word) => {}
                Ok(found) => panic!("{what}: '{word}' finds {:?}", slugs(&found)),
                Err(Error::Rebuilding) => {
                    refused += 1;
                    continue 'again;
                }
                Err(error) => panic!("{what}: {error}"),
            }
        }
        return;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_files_are_damaged_while_nobody_uses_it_is_made_anew() {
    let mut world = world().await;
    for case in 0..24_usize {
        world.stop.cancel();
        let World {
            directory,
            folder,
            registry,
            following,
            ..
        } = world;
        following.await.expect("the index stops");
        let files = searched(&folder);
        let file = &files[case % files.len()];
        let mut bytes = std::fs::read(file).expect("a file");
        let at = bytes.len() * (case % 7) / 7;
        match case % 3 {
            0 => bytes[at] ^= 1 << (case % 8),
            1 => bytes.truncate(at),
            _ => bytes[at..].fill(0xff),
        }
        replace(file, &bytes);
        let what = format!("case {case}, {}, byte {at}", file.display());
        world = World::over(directory, folder, registry);
        finds_all(&world, &what).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_meets_damage_has_the_index_made_anew() {
    let mut world = world().await;
    let mut met = 0;
    for case in 0..8 {
        let mut damage = world.index.inner.damage.subscribe();
        // In place: the index has the files open.
        for file in searched(&world.folder) {
            let is_words = ["term", "idx"]
                .iter()
                .any(|ending| file.extension() == Some(ending.as_ref()));
            if is_words {
                let length = std::fs::metadata(&file).expect("a file").len();
                let opened = std::fs::OpenOptions::new().write(true).open(&file);
                let noise = vec![0xf0_u8 + case; usize::try_from(length).expect("a length")];
                opened
                    .and_then(|opened| opened.write_all_at(&noise, 0))
                    .expect("written");
            }
        }
        // Words that were asked for are kept.
        world.index.inner.postings.forget();
        let query = SearchQuery {
            text: "deploy refund".to_owned(),
            limit: 5,
            words_only: true,
            ..SearchQuery::default()
        };
        match world.index.search(&query, &Stop::never()) {
            Err(Error::Rebuilding) => {
                damage.changed().await.expect("it is told");
                met += 1;
            }
            // What is damaged looks like no hits: it is noticed when it is opened.
            found => {
                assert_eq!(found.expect("an answer").total, 0, "case {case}");
                world = world.restarted().await;
            }
        }
        finds_all(&world, &format!("case {case}")).await;
    }
    assert!(met > 0, "no search met damage");
    let code = |error: Error| model::Failure::from(error).code;
    assert_eq!(code(Error::Rebuilding), model::Code::IndexUnavailable);
}
