//! A hundred tenants, one of whom calls a hundred times as often as it may.
//!
//! The server is a child process on processor 0, the tenants are on processor 1, each with a
//! token and a connection of its own. First all call as fast as they can; what that comes to
//! says what half of the server is. A tenant's quota is its part of that half, and the greedy
//! one asks for a hundred times its own, as much as all the others together. Rounds with it
//! and without it take turns; what counts is the middle of the ratios of what the others are
//! answered, and the slowest of a hundred answers that they wait for.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are printed with three digits, and a quota is far below 2^53"
)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use contract::v1;
use h2::client::SendRequest;
use support::load::{Call, connect};
use support::process::{Server, pin};
use support::{Bar, against, figure, median, micros, quantile, quick, sample, signed};
use tokio::task::JoinSet;

const TENANTS: usize = 100;
/// Connections of the greedy one, and calls of each that may be under way: the server has who
/// is refused wait, so that it would ask for little over one.
const CONNECTIONS: usize = 16;
const IN_FLIGHT: usize = 256;

/// A tenant: what it calls, and over which connections.
struct Tenant {
    call: Call,
    connections: Vec<SendRequest<Bytes>>,
}

/// A server whose callers have a quota, and its tenants.
async fn tenants(folder: &std::path::Path, per_minute: Option<u64>) -> (Server, Vec<Arc<Tenant>>) {
    let quota = per_minute.map_or_else(String::new, |calls| {
        format!("limits: {{quotas: {{calls_per_minute: {calls}}}}}\n")
    });
    pin(0);
    let config = format!("access: {{sign_in: tokens}}\n{quota}");
    let (server, local) = signed::server(folder, &config).await;
    pin(1);
    sample::publish(local.clone()).await;
    let request = v1::GetSkillRequest {
        skill_id: sample::ID.to_owned(),
        ..Default::default()
    };
    let call = Call::new("/repertoire.v1.Lookup/GetSkill", &request);
    let mut tenants = Vec::with_capacity(TENANTS);
    for at in 0..TENANTS {
        let token = signed::token(local.clone(), &format!("t{at}"), &[v1::Action::Read]).await;
        let mut connections = Vec::new();
        for _ in 0..if at == 0 { CONNECTIONS } else { 1 } {
            connections.push(connect(server.address).await);
        }
        let call = call.signed(&token);
        tenants.push(Arc::new(Tenant { call, connections }));
    }
    (server, tenants)
}

/// What came of calls: answered, refused, and the microseconds of those that were answered.
#[derive(Default)]
struct Told {
    times: Vec<f64>,
    refused: usize,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.refused += other.refused;
    }
}

/// Calls at a steady rate until the time is over, or as fast as the answers come; at most so
/// many are under way.
async fn calls(
    tenant: Arc<Tenant>,
    address: Arc<str>,
    (per_second, in_flight): (Option<f64>, usize),
    end: Instant,
) -> Told {
    let begin = Instant::now();
    let (mut told, mut running, mut sent) = (Told::default(), JoinSet::new(), 0_u32);
    let keep = |told: &mut Told, outcome: Result<(u32, f64), _>| match outcome.expect("a call") {
        (0, time) => told.times.push(time),
        (8, _) => told.refused += 1,
        (status, _) => panic!("status {status}"),
    };
    while Instant::now() < end {
        if let Some(per_second) = per_second {
            let due = begin + Duration::from_secs_f64(f64::from(sent) / per_second);
            tokio::time::sleep_until(due.into()).await;
        }
        while running.len() >= in_flight {
            keep(&mut told, running.join_next().await.expect("a call"));
        }
        let (tenant, address) = (Arc::clone(&tenant), Arc::clone(&address));
        let at = sent as usize;
        running.spawn(async move {
            let begin = Instant::now();
            let connection = &tenant.connections[at % tenant.connections.len()];
            let (status, _) = tenant.call.ask(&address, connection).await;
            (status, micros(begin.elapsed()))
        });
        sent += 1;
    }
    while let Some(outcome) = running.join_next().await {
        keep(&mut told, outcome);
    }
    told
}

/// A round: what all but the first were told, and what the first was.
async fn round(
    (server, tenants): (&Server, &[Arc<Tenant>]),
    (per_second, greed): (Option<f64>, Option<f64>),
    time: Duration,
) -> (Told, Told) {
    let address: Arc<str> = server.address.to_string().into();
    let end = Instant::now() + time;
    let mut others = JoinSet::new();
    for tenant in &tenants[1..] {
        let pace = (per_second, 1);
        others.spawn(calls(Arc::clone(tenant), Arc::clone(&address), pace, end));
    }
    let greedy = greed.map(|greed| {
        let pace = (Some(greed), CONNECTIONS * IN_FLIGHT);
        tokio::spawn(calls(Arc::clone(&tenants[0]), address, pace, end))
    });
    let mut all = Told::default();
    while let Some(told) = others.join_next().await {
        all.add(told.expect("a tenant"));
    }
    let greedy = match greedy {
        Some(greedy) => greedy.await.expect("the greedy one"),
        None => Told::default(),
    };
    (all, greedy)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (rounds, seconds) = if quick() { (1, 2.0) } else { (9, 4.0) };
    let time = Duration::from_secs_f64(seconds);
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let kept = folder();
    let (server, all) = tenants(kept.path(), None).await;
    round((&server, &all), (None, None), time / 2).await;
    let (told, _) = round((&server, &all), (None, None), time).await;
    let most = told.times.len() as f64 / seconds;
    figure("all as fast as they can", most, "/s");
    drop((server, all));

    let per_second = most / 2.0 / TENANTS as f64;
    let kept = folder();
    let quota = (per_second * 60.0) as u64;
    let (server, all) = tenants(kept.path(), Some(quota)).await;
    // They stay a little below what they may have.
    let (theirs, greed) = (per_second * 0.95, per_second * 100.0);
    // What it may have at once is gone before the first round.
    round((&server, &all), (Some(theirs), Some(greed)), time).await;
    let (mut ratios, mut alone, mut beside) = (Vec::new(), Told::default(), Told::default());
    let (mut refused, mut answered) = (0, 0);
    for _ in 0..rounds {
        let (without, _) = round((&server, &all), (Some(theirs), None), time).await;
        let (with, greedy) = round((&server, &all), (Some(theirs), Some(greed)), time).await;
        ratios.push(with.times.len() as f64 / without.times.len() as f64);
        refused += greedy.refused;
        answered += greedy.times.len();
        alone.add(without);
        beside.add(with);
    }
    let all_rounds = f64::from(rounds) * seconds;
    figure(
        "99 tenants without the greedy one",
        alone.times.len() as f64 / all_rounds,
        "/s",
    );
    figure(
        "the greedy one is answered",
        answered as f64 / all_rounds,
        "/s",
    );
    figure(
        "the greedy one is refused",
        refused as f64 / all_rounds,
        "/s",
    );
    figure(
        "  p99 of the others without it",
        quantile(&alone.times, 0.99),
        "us",
    );
    figure(
        "  p99 of the others beside it",
        quantile(&beside.times, 0.99),
        "us",
    );
    figure(
        "  of theirs refused",
        (alone.refused + beside.refused) as f64,
        "",
    );
    against(
        "99 tenants beside it / without it, median",
        median(&ratios),
        "x",
        Bar::AtLeast(0.9),
    );
}
