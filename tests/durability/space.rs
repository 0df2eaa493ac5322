//! What a compaction of a server that serves gives back, how long it takes, and how
//! long others wait meanwhile. It measures and is not run with the others:
//!
//! ```sh
//! cargo test --release --test durability space -- --ignored --nocapture
//! ```
//!
//! `REPERTOIRE_SKILLS` is how many skills there are (2,000), each of 20 KB with five
//! versions. Half of them are deleted.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use tempfile::TempDir;

use crate::harness::client::{Client, read_skill};
use crate::harness::model::{Answer, Draft, Files, Op, digest, prose};
use crate::harness::{Dice, Server, repertoire, run};

const VERSIONS: usize = 5;
const BYTES: usize = 20_000;
const AT_ONCE: usize = 8;
/// As long as a loaded machine may need.
const LIMIT: Duration = Duration::from_secs(600);

fn id(number: usize) -> String {
    format!("local/global/skill-{number}")
}

async fn publish(client: &Client, number: usize, version: usize) {
    let mut dice = Dice::new((number * 1000 + version) as u64);
    let text = format!(
        "---\nname: skill-{number}\ndescription: Made to be measured, {version}.\n---\n{}\n",
        prose(&mut dice, BYTES / 2)
    );
    // Half of it cannot be packed.
    let rest = dice.bytes(BYTES / 2);
    let files = Files::from([
        ("SKILL.md".to_owned(), text.into()),
        ("assets/rest.npy".to_owned(), rest.into()),
    ]);
    let draft = Draft {
        digest: digest(&files),
        files: Arc::new(files),
        declared: None,
        activate: true,
        summary: String::new(),
    };
    let answer = client.write(&id(number), &Op::Publish(draft), "").await;
    let answer = answer.expect("an answer");
    assert!(matches!(answer, Answer::Published { .. }), "{answer:?}");
}

fn mib(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter();
    let bytes = files.map(|entry| entry.expect("an entry").metadata().expect("a file").len());
    bytes.sum::<u64>() >> 20
}

/// Reads and writes until something is over.
async fn waits<T: Send + 'static>(
    url: &str,
    from: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> (T, String) {
    let stop = Arc::new(AtomicBool::new(false));
    let spawn = |writes: bool| {
        let (url, stop) = (url.to_owned(), Arc::clone(&stop));
        tokio::spawn(async move {
            let client = Client::connect(&url).await.expect("a client");
            let (mut longest, mut done) = (Duration::ZERO, 0);
            while !stop.load(Ordering::SeqCst) {
                let began = Instant::now();
                if writes {
                    publish(&client, from + done, 0).await;
                } else {
                    let read = read_skill(&client, &id(1)).await;
                    assert!(read.expect("an answer").is_some());
                }
                longest = longest.max(began.elapsed());
                done += 1;
            }
            (longest, done)
        })
    };
    let (reads, writes) = (spawn(false), spawn(true));
    let done = tokio::task::spawn_blocking(work).await.expect("a task");
    stop.store(true, Ordering::SeqCst);
    let (reads, writes) = (reads.await.expect("reads"), writes.await.expect("writes"));
    let told = format!(
        "the slowest of {} reads of a skill with {VERSIONS} versions {:.0} ms, of {} writes {:.0} ms",
        reads.1,
        reads.0.as_secs_f64() * 1e3,
        writes.1,
        writes.0.as_secs_f64() * 1e3
    );
    (done, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
async fn what_a_compaction_gives_back() {
    let skills = env::var("REPERTOIRE_SKILLS").map_or(2000, |text| text.parse().expect("a number"));
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let (_server, url) = Server::start(&data);
    let client = Client::connect(&url).await.expect("a client");
    for version in 0..VERSIONS {
        let publishing = stream::iter(0..skills).map(|number| publish(&client, number, version));
        publishing.buffer_unordered(AT_ONCE).collect::<()>().await;
    }
    println!(
        "{skills} skills: store/ has {} MiB",
        mib(&data.join("store"))
    );
    let deleting = stream::iter((0..skills).step_by(2)).map(async |number| {
        let answer = client.write(&id(number), &Op::Delete, "").await;
        assert!(matches!(answer, Ok(Answer::Deleted { .. })), "{answer:?}");
    });
    deleting.buffer_unordered(AT_ONCE).collect::<()>().await;
    println!("half deleted: {} MiB", mib(&data.join("store")));
    let pause = || std::thread::sleep(Duration::from_secs(5));
    let ((), before) = waits(&url, skills, pause).await;
    println!("in 5 s without a compaction: {before}");
    let command = repertoire(&["compact"], &data);
    let began = Instant::now();
    let (ran, meanwhile) = waits(&url, 2 * skills, move || run(command, LIMIT)).await;
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    println!(
        "{}compacted in {:.1} s: {meanwhile}",
        ran.stdout,
        began.elapsed().as_secs_f64()
    );
    println!("store/ has {} MiB", mib(&data.join("store")));
}
