//! A server on a disk that refuses writes.

use std::collections::BTreeMap;

use tempfile::TempDir;
use testing::at_night;

use super::{Left, STOP_LIMIT, compare};
use crate::harness::client::Client;
use crate::harness::model::{Answer, Op, Skill, draft};
use crate::harness::{self, Dice, START_LIMIT, Server};

/// Writes until the disk refuses, then tries on, the same write among others.
/// None is to be acknowledged any more.
async fn write_until_refused(client: &Client, dice: &mut Dice) -> Vec<Left> {
    let mut left: BTreeMap<String, Left> = BTreeMap::new();
    let mut refused = 0;
    for number in 0..400 {
        let id = format!("local/global/skill-{}", number % 20);
        let owned = left.entry(id.clone()).or_insert_with(|| Left {
            skill: Skill::new(id.clone()),
            unknown: None,
        });
        let mut version = draft(dice, &id, 1_000, None);
        let mut files = (*version.files).clone();
        let size = 20_000 + dice.index(80_000);
        files.insert("assets/noise.npy".to_owned(), dice.bytes(size).into());
        version.digest = harness::model::digest(&files);
        version.files = files.into();
        let op = Op::Publish(version);
        let key = if dice.percent(50) {
            format!("key-{number}")
        } else {
            String::new()
        };
        // What was refused is asked for once more.
        for _ in 0..2 {
            match client.write(&id, &op, &key).await {
                Ok(Answer::Refused(code)) => {
                    assert_eq!(code, "STORE_UNAVAILABLE");
                    refused += 1;
                    owned.unknown.get_or_insert_with(|| op.clone());
                }
                Ok(answer) => {
                    assert_eq!(refused, 0, "acknowledged after a refusal: {answer:?}");
                    assert_eq!(answer, owned.skill.apply(&op));
                    break;
                }
                Err(_gone) => {
                    owned.unknown.get_or_insert_with(|| op.clone());
                    return left.into_values().collect();
                }
            }
        }
        if refused > 12 {
            return left.into_values().collect();
        }
    }
    panic!("the disk takes everything");
}

/// What a server acknowledged on a disk that refuses some write is there; what
/// it did not is whole or absent. `words` set the limit.
async fn on_a_disk_that_refuses(words: &str, dice: &mut Dice) -> String {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let mut server = Server::spawn_after(words, &data);
    let Some(url) = server.listens(START_LIMIT) else {
        let (status, stderr) = server.ended(STOP_LIMIT);
        assert!(
            status.is_some_and(|status| !status.success()),
            "{words}: {status:?}"
        );
        assert!(!stderr.contains("panicked"), "{words}: {stderr}");
        let more = compare(&data, &[]).await;
        return format!(
            "{words}: did not start, {more} more; {}",
            stderr.lines().last().unwrap_or_default()
        );
    };
    let client = Client::connect(&url).await.expect("a client");
    let left = write_until_refused(&client, dice).await;
    // Reads go on or are refused; none shows what is not acknowledged.
    let mut read = 0;
    for left in &left {
        if let Ok(found) = harness::client::read_skill(&client, &left.skill.id).await {
            assert_eq!(found, left.skill.state, "{words}: '{}'", left.skill.id);
            read += 1;
        }
    }
    drop(client);
    server.terminate();
    let (status, stderr) = server.ended(STOP_LIMIT);
    assert!(
        status.is_some(),
        "{words}: the server does not stop: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{words}: {stderr}");
    let versions: usize = left
        .iter()
        .filter_map(|left| left.skill.state.as_ref())
        .map(|state| state.versions.len())
        .sum();
    let more = compare(&data, &left).await;
    let status = status.expect("it ended");
    format!(
        "{words}: {versions} versions acknowledged and there, {more} more; {read} of {} skills read meanwhile; {status}",
        left.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_refuses_a_write_loses_nothing_that_was_acknowledged() {
    let mut dice = Dice::new(11);
    // In KiB; a database begins with a segment of 4 MiB.
    let limits = at_night(
        &[0, 1_000, 4_200, 8_190][..],
        &[0, 1, 200, 1_000, 4_090, 4_200, 5_000, 6_500, 8_190, 8_300],
    );
    for limit in limits {
        // The write is refused with an error.
        println!(
            "{}",
            on_a_disk_that_refuses(&format!("trap '' XFSZ; ulimit -f {limit}"), &mut dice).await
        );
        // The write is the end of the process.
        println!(
            "{}",
            on_a_disk_that_refuses(&format!("ulimit -f {limit}"), &mut dice).await
        );
    }
}
