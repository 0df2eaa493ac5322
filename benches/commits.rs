//! Durable commits of 1 KB records: the store beside redb.
//!
//! redb gets the same bytes from the same callers through one thread with the same
//! rules for groups, and every group is one transaction that is durable at its
//! end. Both grow with the rounds, which they take in turn.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redb::{Database, Durability, TableDefinition};
use store::{Batch, Limits, Options, Store, Table, TableId};
use support::{Bar, Random, against, figure, median, micros, quantile};
use tokio::sync::{mpsc, oneshot};

const CALLERS: usize = 64;
const RECORD: usize = 1024;
const RECORDS: Table<String, String> = Table::new(TableId::Usage);
const REDB: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

/// Something that keeps a record and says when it is durable.
trait Keeper: Clone + Send + 'static {
    fn keep(&self, key: String, value: String) -> impl Future<Output = ()> + Send;
}

#[derive(Clone)]
struct Ours(Store);

impl Keeper for Ours {
    async fn keep(&self, key: String, value: String) {
        let mut batch = Batch::new();
        batch.put(&RECORDS, &key, &value);
        self.0.commit(batch).await.expect("a commit");
    }
}

type Write = (Vec<u8>, Vec<u8>, oneshot::Sender<()>);

#[derive(Clone)]
struct Redb(mpsc::Sender<Write>);

impl Redb {
    /// redb behind one thread that gathers as the store's committer does.
    fn open(path: &Path, limits: Limits) -> Self {
        let database = Database::create(path).expect("a database");
        let (sender, mut waiting) = mpsc::channel::<Write>(limits.waiting);
        std::thread::spawn(move || {
            while let Some(first) = waiting.blocking_recv() {
                let mut bytes = first.1.len();
                let mut group = vec![first];
                while group.len() < limits.group && bytes < limits.group_bytes {
                    let Ok(next) = waiting.try_recv() else { break };
                    bytes += next.1.len();
                    group.push(next);
                }
                let mut transaction = database.begin_write().expect("a transaction");
                transaction
                    .set_durability(Durability::Immediate)
                    .expect("durability");
                let mut table = transaction.open_table(REDB).expect("a table");
                for (key, value, _) in &group {
                    table
                        .insert(key.as_slice(), value.as_slice())
                        .expect("an insert");
                }
                drop(table);
                transaction.commit().expect("a commit");
                for (_, _, answer) in group {
                    answer.send(()).expect("a caller that waits");
                }
            }
        });
        Self(sender)
    }
}

impl Keeper for Redb {
    async fn keep(&self, key: String, value: String) {
        let (answer, answered) = oneshot::channel();
        self.0
            .send((key.into_bytes(), value.into_bytes(), answer))
            .await
            .expect("the thread");
        answered.await.expect("an answer");
    }
}

/// Records that no other caller and round writes, in no order.
fn record(random: &mut Random) -> (String, String) {
    let key = format!("record/{:016x}", random.next());
    let mut value = String::with_capacity(RECORD + 16);
    while value.len() < RECORD {
        write!(value, "{:016x}", random.next()).expect("room");
    }
    (key, value)
}

/// Commits a second of so many callers.
async fn together(keeper: &impl Keeper, round: u64, time: Duration) -> f64 {
    let over = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let callers: Vec<_> = (0..CALLERS as u64)
        .map(|caller| {
            let (keeper, over) = (keeper.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut random = Random::new(round * 1_000 + caller + 1);
                let mut count = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    let (key, value) = record(&mut random);
                    keeper.keep(key, value).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut count = 0;
    for caller in callers {
        count += caller.await.expect("a caller");
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

/// Microseconds of each commit of one caller.
async fn alone(keeper: &impl Keeper, round: u64, count: usize) -> Vec<f64> {
    let mut random = Random::new(1_000_000 + round);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, value) = record(&mut random);
        let begin = Instant::now();
        keeper.keep(key, value).await;
        times.push(micros(begin.elapsed()));
    }
    times
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let options = Options::default();
    let ours = Ours(Store::open(&folder.path().join("store"), &options).expect("a store"));
    let redb = Redb::open(&folder.path().join("redb"), options.limits);
    let (rounds, time) = if support::quick() { (3, 0.5) } else { (9, 2.0) };
    let time = Duration::from_secs_f64(time);
    println!("durable commits of {RECORD} byte records");
    together(&ours, 0, time / 4).await;
    together(&redb, 0, time / 4).await;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let a = together(&ours, round, time).await;
        let b = together(&redb, round, time).await;
        println!(
            "  {CALLERS} callers: store {a:>7.0}/s   redb {b:>7.0}/s   ratio {:.3}",
            a / b
        );
        ratios.push(a / b);
    }
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let count = if support::quick() { 50 } else { 500 };
        one.extend(alone(&ours, round, count).await);
        other.extend(alone(&redb, round, count).await);
    }
    for (name, times) in [("store", &one), ("redb", &other)] {
        figure(&format!("{name}, one caller, p50"), median(times), "us");
        figure(
            &format!("{name}, one caller, p99"),
            quantile(times, 0.99),
            "us",
        );
    }
    against(
        "store / redb, 64 callers, median",
        median(&ratios),
        "x",
        Bar::AtLeast(1.0),
    );
    ours.0.close().await;
}
