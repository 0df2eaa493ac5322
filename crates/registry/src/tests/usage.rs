//! Counts of use on their way into the store.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, mpsc};

use super::*;
use store::FileSync;
use store::unreadable::{Unreadable, begun, patient};

fn reads(registry: &Registry) -> u64 {
    let head = registry.head(&skill(ID)).expect("a head");
    let usage = registry.usage(&head).expect("usage");
    usage.iter().map(|(_, counts)| counts.reads).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_read_once_while_they_are_written_and_when_that_fails() {
    let directory = TempDir::new().expect("a folder");
    let (stalled, broken) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (reached_sender, reached) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let sync = FileSync::new({
        let (stalled, broken) = (Arc::clone(&stalled), Arc::clone(&broken));
        move |file| {
            if stalled.load(Ordering::SeqCst) {
                reached_sender.send(()).expect("a test");
                gone.lock().expect("a lock").recv().expect("a test");
            }
            if broken.load(Ordering::SeqCst) {
                return Err(std::io::Error::other("the disk is gone"));
            }
            file.sync_data()
        }
    });
    let options = Options {
        reserve_bytes: 0,
        sync,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let mut mode = store.mode();
    let clock: Arc<dyn Clock> = Arc::new(Hands::default());
    let registry = Registry::open(store, clock).expect("a registry");
    let world = World {
        directory,
        clock: Arc::default(),
        registry: registry.clone(),
    };
    world.published(ID, &text("", "one")).await;
    let read = || {
        let head = registry.head(&skill(ID)).expect("a head");
        registry.count(&head, number(1), UsageKind::Read, "");
    };
    for fails in [false, true] {
        let before = reads(&registry);
        read();
        stalled.store(true, Ordering::SeqCst);
        broken.store(fails, Ordering::SeqCst);
        let writing = tokio::spawn({
            let registry = registry.clone();
            async move { registry.write_usage().await }
        });
        reached.recv().expect("a sync");
        assert_eq!(reads(&registry), before + 1);
        read();
        assert_eq!(reads(&registry), before + 2);
        stalled.store(false, Ordering::SeqCst);
        go.send(()).expect("a sync that waits");
        assert_eq!(writing.await.expect("a writer").is_err(), fails);
        assert_eq!(reads(&registry), before + 2);
        broken.store(false, Ordering::SeqCst);
        let writable = mode.wait_for(|mode| *mode == store::Mode::ReadWrite);
        writable.await.expect("a store");
        registry.write_usage().await.expect("written");
        assert_eq!(reads(&registry), before + 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn counting_does_not_wait_for_usage_that_is_read() {
    let directory = TempDir::new().expect("a folder");
    let store = Store::open(&directory.path().join("data"), &patient()).expect("a store");
    let registry = Registry::open(store, Arc::new(Hands::default())).expect("a registry");
    let files = [("SKILL.md", &*text("", "one"))];
    publish(&registry, ID, &files, &caller(""))
        .await
        .expect("a version");
    let read = || {
        let head = registry.head(&skill(ID)).expect("a head");
        registry.count(&head, number(1), UsageKind::Read, "");
    };
    read();
    let unreadable = Unreadable::new(registry.store());
    let reading = tokio::spawn({
        let registry = registry.clone();
        async move { reads(&registry) }
    });
    let writing = tokio::spawn({
        let registry = registry.clone();
        async move { registry.write_usage().await.is_ok() }
    });
    begun().await;
    read();
    unreadable.open_again();
    assert!((1..=2).contains(&reading.await.expect("a reader")));
    assert!(writing.await.expect("a writer"));
    registry.write_usage().await.expect("written");
    assert_eq!(reads(&registry), 2);
}
