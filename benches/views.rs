//! What it costs that a caller does not see every skill.
//!
//! 50,000 skills in a hundred namespaces, half of which are private. Two callers ask for the
//! same, in turn, one call after the other: one sees every skill, the other half of them. What
//! counts is the middle of the ratios of the rounds. Then a skill is published before each
//! call, so that what a caller sees has to move on.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::time::Instant;

use bytes::Bytes;
use contract::v1;
use contract::v1::access_client::AccessClient;
use contract::v1::registry_client::RegistryClient;
use futures_util::{StreamExt as _, stream};
use h2::client::SendRequest;
use support::corpus::Corpus;
use support::load::{Call, connect};
use support::process::pin;
use support::{figure, median, mib, micros, quantile, quick, signed};
use tonic::transport::Channel;

const TEAMS: usize = 100;

/// A skill of one of the teams.
fn request(corpus: &Corpus, at: usize) -> v1::PublishSkillRequest {
    v1::PublishSkillRequest {
        skill_id: format!("views/team-{:02}/bench-{at:06}", at % TEAMS),
        ..corpus.request(at)
    }
}

fn search(query: &str) -> Call {
    let request = v1::SearchRequest {
        query: query.to_owned(),
        ..Default::default()
    };
    Call::new("/repertoire.v1.Lookup/Search", &request)
}

/// A caller, and its connection.
struct Caller {
    token: String,
    address: String,
    connection: SendRequest<Bytes>,
}

impl Caller {
    /// Microseconds of a call.
    async fn time(&self, call: &Call) -> f64 {
        let call = call.signed(&self.token);
        let begin = Instant::now();
        call.send(&self.address, &self.connection).await;
        micros(begin.elapsed())
    }
}

/// Publishes so many skills, and makes those of half of the teams private.
async fn publish(local: &Channel, corpus: &Corpus, skills: usize) {
    let registry = RegistryClient::new(local.clone());
    stream::iter(0..skills)
        .for_each_concurrent(64, |at| {
            let (mut registry, request) = (registry.clone(), request(corpus, at));
            async move {
                registry.publish_skill(request).await.expect("a version");
            }
        })
        .await;
    let mut access = AccessClient::new(local.clone());
    for team in 0..TEAMS / 2 {
        let request = v1::SetNamespaceRequest {
            namespace: format!("views/team-{team:02}"),
            visibility: v1::Visibility::Private.into(),
            ..Default::default()
        };
        access.set_namespace(request).await.expect("a namespace");
    }
}

/// Two callers make the same calls, in turn.
async fn compare(all: &Caller, half: &Caller, calls: &[(&str, &Vec<Call>)], rounds: usize) {
    for (name, calls) in calls {
        let (mut ratios, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..rounds {
            let mut of = [Vec::new(), Vec::new()];
            for call in *calls {
                of[0].push(all.time(call).await);
                of[1].push(half.time(call).await);
            }
            ratios.push(median(&of[1]) / median(&of[0]));
            for (times, of) in times.iter_mut().zip(of) {
                times.extend(of);
            }
        }
        for (who, times) in ["all", "half"].iter().zip(&times) {
            figure(&format!("{name}, who sees {who}, p50"), median(times), "us");
            figure(
                &format!("{name}, who sees {who}, p99"),
                quantile(times, 0.99),
                "us",
            );
        }
        figure(
            &format!("  {name}, half / all, median"),
            median(&ratios),
            "x",
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (skills, rounds, writes) = if quick() {
        (500, 2, 5)
    } else {
        (50_000, 5, 50)
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    pin(0);
    let (server, local) = signed::server(folder.path(), "access: {sign_in: tokens}\n").await;
    pin(1);
    let corpus = Corpus::load();
    publish(&local, &corpus, skills).await;
    let mut callers = Vec::new();
    // Who may look into the audit trail sees every skill.
    for (name, actions) in [
        ("all", &[v1::Action::Read, v1::Action::Audit][..]),
        ("half", &[v1::Action::Read]),
    ] {
        callers.push(Caller {
            token: signed::token(local.clone(), name, actions).await,
            address: server.address.to_string(),
            connection: connect(server.address).await,
        });
    }
    let [all, half] = &callers[..] else {
        unreachable!("two callers")
    };
    let mut registry = RegistryClient::new(local.clone());
    let mut lookup = v1::lookup_client::LookupClient::new(local);
    let last = || v1::SearchRequest {
        query: format!("bench-{:06}", skills - 1),
        ..Default::default()
    };
    while lookup
        .search(last())
        .await
        .expect("hits")
        .into_inner()
        .total
        == 0
    {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let mut queries: Vec<&str> = include_str!("../tests/relevance/queries.tsv")
        .lines()
        .filter_map(|line| line.split('\t').nth(2))
        .collect();
    queries.dedup();
    let searches: Vec<_> = queries.iter().map(|query| search(query)).collect();
    let memory = server.memory("VmRSS");
    figure(
        "first search of who sees half",
        half.time(&searches[0]).await / 1e3,
        "ms",
    );
    figure(
        "memory that it adds",
        mib(server.memory("VmRSS").saturating_sub(memory)),
        "MiB",
    );

    let get = v1::GetSkillRequest {
        skill_id: request(&corpus, TEAMS - 1).skill_id,
        ..Default::default()
    };
    let gets = vec![Call::new("/repertoire.v1.Lookup/GetSkill", &get); 500];
    compare(
        all,
        half,
        &[("Search", &searches), ("GetSkill", &gets)],
        rounds,
    )
    .await;

    let mut after = [Vec::new(), Vec::new()];
    for at in 0..writes {
        let published = registry.publish_skill(request(&corpus, skills + at)).await;
        published.expect("a version");
        let which = at % 2;
        let caller = [all, half][which];
        after[which].push(caller.time(&gets[0]).await);
    }
    for (who, times) in ["all", "half"].iter().zip(&after) {
        let name = format!("GetSkill right after a write, who sees {who}");
        figure(&name, times.iter().sum::<f64>() / times.len() as f64, "us");
    }
}
