//! Where a chain goes on.

use super::*;
use crate::{Batch, Forgery};

fn appending(bodies: &[&str], forgets_end: bool) -> Batch {
    let mut batch = Batch::new();
    for body in bodies {
        batch.append(body.as_bytes().to_vec());
    }
    if forgets_end {
        batch.forget_end();
    }
    batch
}

fn bodies(store: &Store) -> Vec<(u64, String)> {
    let links = store.links(0, u64::MAX).map(|link| {
        let link = link.expect("a record");
        let body = String::from_utf8(link.body).expect("text");
        (link.mark.number, body)
    });
    links.collect()
}

#[tokio::test]
async fn a_batch_that_forgets_the_end_appends_to_the_last_record_that_there_is() {
    let of = |records: &[(u64, &str)]| -> Vec<_> {
        let records = records.iter();
        records
            .map(|(at, body)| (*at, (*body).to_owned()))
            .collect()
    };
    for (forgets_end, expected) in [
        (false, of(&[(1, "a"), (2, "b"), (4, "d"), (5, "e")])),
        (true, of(&[(1, "a"), (2, "b"), (3, "d"), (4, "e")])),
    ] {
        let store = Store::in_memory(&options());
        let three = appending(&["a", "b", "c"], false);
        store.commit(three).await.expect("written");
        let mut forged = Forgery::of(&store);
        assert!(forged.remove(3));
        store.commit(forged.batch()).await.expect("written");
        let two = appending(&["d", "e"], forgets_end);
        store.commit(two).await.expect("written");
        assert_eq!(bodies(&store), expected);
        let last = store.links_back(0, u64::MAX).next();
        let last = last.expect("one").expect("a record").mark;
        assert_eq!(store.chain_end().expect("an end"), Some(last));
    }
}

#[tokio::test]
async fn what_a_group_appends_is_not_lost_to_a_batch_that_forgets_the_end() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    // While the first is written, the others wait together.
    let (first, second, forgets, third, fourth) = tokio::join!(
        store.commit(appending(&["a"], false)),
        store.commit(appending(&["b"], false)),
        store.commit(appending(&["c"], true)),
        store.commit(appending(&[], true)),
        store.commit(appending(&["d"], false)),
    );
    for written in [first, second, forgets, third, fourth] {
        written.expect("written");
    }
    let bodies: Vec<_> = bodies(&store).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies.concat(), "abcd");
    store.close().await;
}
