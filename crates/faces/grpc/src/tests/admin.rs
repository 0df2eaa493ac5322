//! Backups and compactions whose caller leaves.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::admin::{self, AdminService};
use contract::handlers::Admin as _;
use contract::v1::LeaveRequest;
use executor::{Error as WorkError, Kind, Stop};
use store::faults::{Disk, Unreadable, patient};

/// As long as a loaded machine may need.
const LIMIT: Duration = Duration::from_secs(30);

fn service(directory: &TempDir, options: &Options) -> (AdminService, Store) {
    let directory = directory.path().join("data");
    let store = Store::open(&directory, options).expect("a store");
    let registry = Registry::open(store.clone(), Arc::new(SystemClock)).expect("a registry");
    let service = AdminService {
        directory,
        kind: admin::Kind::Serve {
            url: "http://it".to_owned(),
        },
        started_at: Timestamp::UNIX_EPOCH,
        registry,
        connected: tokio::sync::watch::channel(1).1,
    };
    (service, store)
}

fn in_use(service: &AdminService) -> usize {
    let mut stats = service.registry.executor().stats();
    let stats = stats.find(|(kind, _)| *kind == Kind::Maintain);
    stats.expect("a kind").1.in_use
}

/// Waits until nothing is at work any more.
async fn ended(service: &AdminService) {
    let ended = async {
        while in_use(service) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, ended).await.expect("its end");
}

#[tokio::test]
async fn a_server_leaves_when_asked_to_unless_it_was_started_to_stay() {
    let directory = TempDir::new().expect("a folder");
    let (mut service, _store) = service(&directory, &patient());
    let refused = service.leave(Request::new(LeaveRequest {})).await;
    let refused = refused.expect_err("a refusal");
    let refused = gateway::Refusal::from(refused);
    assert_eq!(refused.code, "DATA_IN_USE");
    assert!(refused.text().contains("http://it"), "{refused}");
    let leave = CancellationToken::new();
    service.kind = admin::Kind::Background {
        leave: leave.clone(),
    };
    let left = service.leave(Request::new(LeaveRequest {})).await;
    left.expect("it leaves");
    assert!(leave.is_cancelled());
}

#[tokio::test]
async fn a_backup_heeds_that_it_is_to_stop() {
    let directory = TempDir::new().expect("a folder");
    let (service, _) = service(&directory, &patient());
    let stopped = service.registry.backup(&Stop::at(Instant::now()));
    let error = stopped.expect_err("nobody waits for it");
    assert!(
        matches!(error, ::registry::Error::Work(WorkError::Deadline)),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_leaves_ends_a_backup_and_makes_room_for_the_next() {
    let directory = TempDir::new().expect("a folder");
    let (service, store) = service(&directory, &patient());
    let unreadable = Unreadable::new(&store);
    let calling = tokio::spawn({
        let service = service.clone();
        async move {
            service
                .backup(Request::new(v1::BackupRequest {}))
                .await
                .is_ok()
        }
    });
    while in_use(&service) == 0 {
        tokio::task::yield_now().await;
    }
    let refused = service.backup(Request::new(v1::BackupRequest {})).await;
    let refused = refused.err().expect("another one is at work");
    assert_eq!(refused.code, model::Code::Overloaded);
    calling.abort();
    unreadable.open_again();
    ended(&service).await;
    let pieces = service.backup(Request::new(v1::BackupRequest {})).await;
    let pieces = pieces.expect("a backup").into_inner();
    let pieces: Vec<_> = pieces.map(|piece| piece.expect("a piece")).collect().await;
    let size: usize = pieces.iter().map(|piece| piece.chunk.len()).sum();
    assert_eq!(size as u64, pieces[0].size_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_leaves_ends_a_compaction_which_leaves_all_as_it_was() {
    let directory = TempDir::new().expect("a folder");
    let (disk, sync) = Disk::new();
    let options = Options { sync, ..patient() };
    let (service, store) = service(&directory, &options);
    let content = bytes::Bytes::from_static(b"nothing uses it");
    let digest = Digest::of(&content);
    let mut batch = store::Batch::new();
    batch.content(&store::Content::pack(digest, &content));
    store.commit(batch).await.expect("a commit");

    disk.stall();
    let calling = tokio::spawn({
        let service = service.clone();
        async move {
            let request = Request::new(v1::CompactRequest {});
            let messages = service.compact(request).await.expect("a stream");
            messages.into_inner().count().await
        }
    });
    disk.reached();
    calling.abort();
    calling.await.expect_err("it has left");
    disk.go();
    ended(&service).await;
    assert!(
        store.has_content(&digest).expect("a store"),
        "it was not replaced"
    );
    assert!(!service.directory.join("store.new").exists());
    let messages = service.compact(Request::new(v1::CompactRequest {})).await;
    let messages = messages.expect("a stream").into_inner();
    let messages: Vec<_> = messages
        .map(|message| message.expect("a message"))
        .collect()
        .await;
    let outcome = messages.last().and_then(|message| message.outcome);
    assert!(outcome.expect("an outcome").replaced);
    assert!(!store.has_content(&digest).expect("a store"));
}
