//! `GetSkill` over gRPC beside a tonic server that returns a constant of the same
//! size, and what it costs to find out who calls.
//!
//! Servers are child processes on processor 0, the client is on processor 1;
//! they take turns, and what counts is the middle of the ratios of the rounds. The
//! client is raw HTTP/2 with requests that were encoded once, the same for both:
//! what it costs would only bring the two closer together.

mod support;

use std::time::{Duration, Instant};

use contract::v1;
use serde_json::json;
use support::load::{CALLS, CONNECTIONS, CONSTANT, Call, connect, constant, round};
use support::process::{Server, pin};
use support::signed::issuer::{Issuer, now};
use support::{Bar, against, figure, median, quantile, sample, signed};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments
        .iter()
        .position(|argument| argument == "--constant")
    {
        Some(at) => constant::<v1::GetSkillRequest>(arguments[at + 1].parse().expect("a size")),
        None => compare(),
    }
}

/// Microseconds of calls, one after the other.
async fn alone(server: &Server, call: &Call, count: usize) -> Vec<f64> {
    let connection = connect(server.address).await;
    let address = server.address.to_string();
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        call.send(&address, &connection).await;
        times.push(support::micros(begin.elapsed()));
    }
    times
}

#[tokio::main(flavor = "current_thread")]
async fn compare() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Children keep the processor of the thread that starts them.
    pin(0);
    let ours = Server::repertoire(&folder.path().join("data"));
    sample::publish(sample::channel(ours.address).await).await;
    let request = v1::GetSkillRequest {
        skill_id: sample::ID.to_owned(),
        ..Default::default()
    };
    let call = Call::new("/repertoire.v1.Lookup/GetSkill", &request);
    let size = call
        .send(&ours.address.to_string(), &connect(ours.address).await)
        .await;
    let mut floor = std::process::Command::new(std::env::current_exe().expect("this program"));
    floor.args(["--constant", &size.to_string()]);
    let floor = Server::spawn(floor);
    let constant = Call::new(CONSTANT, &request);
    assert_eq!(
        constant
            .send(&floor.address.to_string(), &connect(floor.address).await)
            .await,
        size
    );
    pin(1);

    println!("GetSkill, {size} bytes, {CALLS} calls at once over {CONNECTIONS} connections");
    // Short turns, so that whatever else the machine does meets both alike.
    let (rounds, time) = if support::quick() {
        (3, 0.5)
    } else {
        (31, 0.7)
    };
    let time = Duration::from_secs_f64(time);
    round(&ours, &call, time / 2).await;
    round(&floor, &constant, time / 2).await;
    let (mut ratios, mut processor) = (Vec::new(), Vec::new());
    let (mut rates, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let a = round(&ours, &call, time).await;
        let b = round(&floor, &constant, time).await;
        println!(
            "  GetSkill {:>7.0}/s {:>5.1} us of a processor   constant {:>7.0}/s {:>5.1} us   ratio {:.3}",
            a.calls,
            a.processor,
            b.calls,
            b.processor,
            a.calls / b.calls
        );
        ratios.push(a.calls / b.calls);
        processor.push(b.processor / a.processor);
        rates.push(a.calls);
        floors.push(b.calls);
    }
    figure("GetSkill, median", median(&rates), "/s");
    figure("constant, median", median(&floors), "/s");
    figure(
        "constant / GetSkill, time on a processor",
        median(&processor),
        "x",
    );
    let count = if support::quick() { 500 } else { 5_000 };
    for (name, server, call) in [("GetSkill", &ours, &call), ("constant", &floor, &constant)] {
        let times = alone(server, call, count).await;
        figure(&format!("{name}, one caller, p50"), median(&times), "us");
        figure(
            &format!("{name}, one caller, p99"),
            quantile(&times, 0.99),
            "us",
        );
    }
    against(
        "GetSkill / constant, median of the rounds",
        median(&ratios),
        "x",
        Bar::AtLeast(0.8),
    );
    with_sign_in(&ours, &call, (rounds, time)).await;
    figure(
        "  memory of the server",
        support::mib(ours.memory("VmRSS")),
        "MiB",
    );
}

/// The same server without sign-in beside one that looks at a token, or a JWT, with each call.
async fn with_sign_in(open: &Server, plain: &Call, (rounds, time): (usize, Duration)) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let issuer = Issuer::start().await;
    let config = issuer.config("", "{claims: {sub: ada}, role: reader}");
    pin(0);
    let (closed, local) = signed::server(folder.path(), &format!("access:\n{config}")).await;
    pin(1);
    sample::publish(local.clone()).await;
    let token = signed::token(local, "bench", &[v1::Action::Read]).await;
    let jwt = issuer.token(&json!({"exp": now() + 3_600}));
    let (by_token, by_jwt) = (plain.signed(&token), plain.signed(&jwt));
    for call in [&by_token, &by_jwt] {
        round(&closed, call, time / 2).await;
    }
    let arms = [
        ("token", &by_token, Bar::AtLeast(0.97)),
        ("JWT", &by_jwt, Bar::AtLeast(0.92)),
    ];
    let mut ratios = [const { (Vec::new(), Vec::new()) }; 2];
    for _ in 0..rounds {
        for ((_, call, _), (rates, processor)) in arms.iter().zip(&mut ratios) {
            let without = round(open, plain, time).await;
            let with = round(&closed, call, time).await;
            rates.push(with.calls / without.calls);
            processor.push(without.processor / with.processor);
        }
    }
    for ((name, _, bar), (rates, processor)) in arms.into_iter().zip(&ratios) {
        let what = format!("GetSkill with a {name} / without sign-in");
        against(&format!("{what}, median"), median(rates), "x", bar);
        figure(
            &format!("{what}, time on a processor"),
            median(processor),
            "x",
        );
    }
}
