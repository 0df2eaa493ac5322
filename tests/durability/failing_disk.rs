//! A server whose disk stalls, or refuses writes for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use contract::v1;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use server::{Config, LogFormat, Server, Settings, Telemetry};
use store::FileSync;
use tempfile::TempDir;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::harness::client::{Client, read_skill};
use crate::harness::model::{Answer, Op, Skill, draft};
use crate::harness::{self, Dice, START_LIMIT};
use crate::support::web;

/// How long anything may take that must not wait for the disk.
const SOON: Duration = Duration::from_secs(20);
const HOT: &str = "local/global/hot";
const COLD: &str = "local/global/cold";

async fn health(url: &str, service: &str) -> ServingStatus {
    let channel = tonic::transport::Channel::from_shared(url.to_owned()).expect("an address");
    let mut client = HealthClient::new(channel.connect().await.expect("a connection"));
    let asked = HealthCheckRequest {
        service: service.to_owned(),
    };
    let answer = client.check(asked).await.expect("an answer");
    answer.into_inner().status()
}

/// The health of the whole server, of what writes, of what reads, and of the page.
async fn well(url: &str) -> (bool, bool, bool, u16) {
    let serving = |status| status == ServingStatus::Serving;
    (
        serving(health(url, "").await),
        serving(health(url, "repertoire.v1.Registry").await),
        serving(health(url, "repertoire.v1.Lookup").await),
        web::get(url, "/healthz").await.status.as_u16(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn while_the_disk_stalls_only_the_writer_waits() {
    let folder = TempDir::new().expect("a folder");
    let stalled = Arc::new(AtomicBool::new(false));
    let (reached_sender, reached) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let mut settings = Settings::new(&Config::default());
    settings.listen = "127.0.0.1:0".parse().expect("an address");
    settings.data = folder.path().join("data");
    settings.store.reserve_bytes = 0;
    settings.store.sync = FileSync::new({
        let stalled = Arc::clone(&stalled);
        move |file| {
            if stalled.load(Ordering::SeqCst) {
                // The test may have ended.
                let _unheard = reached_sender.send(());
                let _ended = gone.lock().expect("a lock").recv();
            }
            file.sync_data()
        }
    });
    let telemetry = Telemetry::start("off", LogFormat::Text, None).expect("telemetry");
    let server = Server::start(settings, &telemetry, &|_| Ok(()))
        .await
        .expect("a server");
    server.follow().await;
    let url = format!("http://{}", server.address);
    let client = Client::connect(&url).await.expect("a client");
    let mut dice = Dice::new(1);
    for id in [HOT, COLD] {
        let op = Op::Publish(draft(&mut dice, id, 2_000, None));
        client.write(id, &op, "").await.expect("a write");
    }
    let before = seen(&client).await;

    stalled.store(true, Ordering::SeqCst);
    let op = Op::Publish(draft(&mut dice, HOT, 2_000, None));
    let writing = tokio::spawn({
        let client = client.clone();
        async move { client.write(HOT, &op, "").await }
    });
    let reached = tokio::task::spawn_blocking(move || reached.recv().map(|()| reached));
    let _reached = reached.await.expect("a task").expect("a sync");
    let all = async {
        for _ in 0..20 {
            assert_eq!(seen(&client).await, before);
            assert_eq!(well(&url).await, (true, true, true, 200));
        }
    };
    tokio::time::timeout(SOON, all).await.expect("nobody waits");
    stalled.store(false, Ordering::SeqCst);
    go.send(()).expect("a sync that waits");
    let answer = writing.await.expect("a writer").expect("an answer");
    assert!(
        matches!(answer, Answer::Published { number: 2, .. }),
        "{answer:?}"
    );
    assert_ne!(seen(&client).await, before);
    drop(client);
    server.stop().await;
}

/// What the reads answer, of the skill that is written and of another.
async fn seen(client: &Client) -> Vec<String> {
    let (mut registry, mut lookup) = (client.registry.clone(), client.lookup.clone());
    let mut seen = Vec::new();
    for id in [HOT, COLD] {
        let skill_id = || id.to_owned();
        let got = lookup.get_skill(v1::GetSkillRequest {
            skill_id: skill_id(),
            ..Default::default()
        });
        seen.push(format!("{:?}", got.await.expect("a skill").into_inner()));
        let versions = registry.list_versions(v1::ListVersionsRequest {
            skill_id: skill_id(),
            ..Default::default()
        });
        seen.push(format!(
            "{:?}",
            versions.await.expect("versions").into_inner()
        ));
        let metrics = registry.get_metrics(v1::GetMetricsRequest {
            skill_id: skill_id(),
        });
        // Reading counts, so only that there is an answer matters.
        metrics.await.expect("metrics");
    }
    let listed = lookup.list_skills(v1::ListSkillsRequest::default());
    seen.push(format!("{:?}", listed.await.expect("a list").into_inner()));
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_refuses_writes_for_a_while_stops_writes_for_that_while() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    // Most systems end a process at its limit of file sizes; a full quota does not.
    let mut server = harness::Server::spawn_after("trap '' XFSZ", &data);
    let url = server.listens(START_LIMIT).expect("a server");
    let client = Client::connect(&url).await.expect("a client");
    let mut dice = Dice::new(3);
    let mut skills: Vec<Skill> = (0..6)
        .map(|n| Skill::new(format!("local/global/skill-{n}")))
        .collect();
    for at in 0..18 {
        let skill = &mut skills[at % 6];
        let op = Op::Publish(draft(&mut dice, &skill.id, 60_000, None));
        let answer = client.write(&skill.id, &op, "").await.expect("an answer");
        assert_eq!(answer, skill.apply(&op));
    }
    // Small ones, that nobody writes to meanwhile.
    let mut others = Vec::new();
    for n in 0..24 {
        let mut other = Skill::new(format!("local/global/other-{n}"));
        let op = Op::Publish(draft(&mut dice, &other.id, 2_000, None));
        let answer = client.write(&other.id, &op, "").await.expect("an answer");
        assert_eq!(answer, other.apply(&op));
        others.push(other);
    }
    assert_eq!(well(&url).await, (true, true, true, 200));

    for round in 0..2 {
        // sled writes whole segments: the next one does not fit any more.
        let size = std::fs::metadata(data.join("store/db"))
            .expect("a file")
            .len();
        limit_file_size(server.pid(), Some(size));
        let mut unknown = Vec::new();
        let (mut refused, mut asked, mut read) = (0, 0, 0);
        for n in 0..400 {
            let at = n % skills.len();
            let op = Op::Publish(draft(&mut dice, &skills[at].id, 200_000, None));
            match client
                .write(&skills[at].id, &op, "")
                .await
                .expect("an answer")
            {
                Answer::Refused(code) => {
                    assert_eq!(code, "STORE_UNAVAILABLE");
                    unknown.push((at, op));
                    refused += 1;
                }
                answer => {
                    assert_eq!(refused, 0, "acknowledged after a refusal");
                    assert_eq!(answer, skills[at].apply(&op));
                }
            }
            // Nothing but what was acknowledged is read. What lies beside a write that
            // failed may be out of reach until the disk writes again.
            for skill in skills.iter().filter(|_| refused > 0) {
                if let Ok(found) = read_skill(&client, &skill.id).await {
                    assert_eq!(found, skill.state, "round {round}, '{}'", skill.id);
                }
            }
            for skill in others.iter().filter(|_| refused > 0) {
                asked += 1;
                if let Ok(found) = read_skill(&client, &skill.id).await {
                    assert_eq!(found, skill.state, "round {round}, '{}'", skill.id);
                    read += 1;
                }
            }
            if refused == 8 {
                break;
            }
        }
        assert_eq!(refused, 8, "the disk takes everything");
        assert!(read * 4 > asked, "reads go on: {read} of {asked}");
        assert_eq!(well(&url).await, (false, false, true, 503));
        let page = web::get(&url, "/healthz").await;
        assert_eq!(page.json(), serde_json::json!({"status": "read-only"}));

        limit_file_size(server.pid(), None);
        tokio::time::timeout(SOON * 3, serving_again(&url))
            .await
            .expect("the way back");
        assert_eq!(well(&url).await, (true, true, true, 200));
        // What was refused was taken back, and can be asked for again.
        for skill in skills.iter().chain(&others) {
            let found = read_skill(&client, &skill.id)
                .await
                .expect("a readable skill");
            assert_eq!(found, skill.state, "'{}'", skill.id);
        }
        println!("round {round}: {read} of {asked}");
        for (at, op) in unknown.into_iter().take(3) {
            let answer = client
                .write(&skills[at].id, &op, "")
                .await
                .expect("an answer");
            assert_eq!(answer, skills[at].apply(&op));
        }
    }
    drop(client);
    server.kill();
    let (_server, url) = harness::Server::start(&data);
    let client = Client::connect(&url).await.expect("a client");
    for skill in &skills {
        let found = read_skill(&client, &skill.id)
            .await
            .expect("a readable skill");
        assert_eq!(found, skill.state, "'{}'", skill.id);
    }
}

/// Sets the limit of file sizes of a process from outside; none: as large as may be.
fn limit_file_size(pid: u32, current: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    let limit = Rlimit {
        current,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, limit).expect("a limit");
}

async fn serving_again(url: &str) {
    let channel = tonic::transport::Channel::from_shared(url.to_owned()).expect("an address");
    let mut client = HealthClient::new(channel.connect().await.expect("a connection"));
    let asked = HealthCheckRequest {
        service: String::new(),
    };
    let mut changes = client.watch(asked).await.expect("a stream").into_inner();
    while let Some(change) = changes.message().await.expect("a change") {
        if change.status() == ServingStatus::Serving {
            return;
        }
    }
}
