//! Composing skills, resolving what they require, and checking calls of tools.
//!
//! Composing and resolving are measured in process, over skills in memory; what is
//! composed again comes from the cache of a registry's compositions.
//! `CheckTool` is called over gRPC beside a tonic server that returns a constant of
//! the same size: both are child processes on processor 0 and take turns, the
//! client is on processor 1, and what counts is the middle of the ratios.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use composition::{
    Composition, Error, Library, Member, RequestedSkill, SetQuery, ToolPolicy, compose_until,
    resolve,
};
use contract::v1;
use jiff::Timestamp;
use model::{
    ComposabilityRule, ComposabilityRuleType, Digest, FilePath, Principal, Reference, Skill,
    SkillId, SystemClock, Version, VersionNumber,
};
use registry::{Bundle, Caller, Registry, Release};
use search::SearchIndex;
use serde_json::json;
use store::{Options, Store};
use support::load::{self, Call, constant};
use support::process::{Server, pin};
use support::{Bar, Random, against, figure, median, micros};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let constant_at = arguments
        .iter()
        .position(|argument| argument == "--constant");
    if let Some(at) = constant_at {
        constant::<v1::CheckToolRequest>(arguments[at + 1].parse().expect("a size"));
        return;
    }
    composing();
    composing_again();
    resolving();
    checking();
}

/// A skill of nothing but a name.
fn skill(name: &str) -> Skill {
    let fields = json!({"name": name, "description": "", "front_matter": {}});
    serde_json::from_value(fields).expect("a skill")
}

fn version(number: u32, semantic: &str, skill: Skill) -> Arc<Version> {
    Arc::new(Version {
        number: VersionNumber::new(number).expect("a number"),
        semantic: semantic.parse().expect("a version"),
        digest: Digest::of(format!("{} {number}", skill.name).as_bytes()),
        skill,
        files: Vec::new(),
        problems: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        created_by: Principal::system(),
        change_summary: String::new(),
    })
}

fn id(name: &str) -> SkillId {
    format!("bench/load/{name}").parse().expect("an id")
}

/// 20 skills of 30 tools: some of their own, some that many have, some patterns.
fn members() -> Vec<Member> {
    let member = |at: usize| {
        let name = format!("skill-{at}");
        let mut skill = skill(&name);
        let own = (0..18).map(|tool| format!("tool_{at}_{tool}"));
        let shared = (0..9).map(|tool| format!("shared_{}", (at + tool) % 24));
        let patterns = [
            format!("Bash(task-{at}:*)"),
            format!("mcp__server_{}__*", at % 4),
            "Bash(git:*)".to_owned(),
        ];
        skill.allowed_tools = own.chain(shared).chain(patterns).collect();
        skill.forbidden_tools = vec![format!("shared_{}", at % 6), "Bash(git push:*)".to_owned()];
        skill.execution_protocol = (0..5)
            .map(|step| format!("step {}", (at + step) % 40))
            .collect();
        Member {
            name: name.as_str().into(),
            id: id(&name),
            version: version(1, "1.0.0", skill),
        }
    };
    (0..20).map(member).collect()
}

fn rounds(count: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        work();
        times.push(micros(begin.elapsed()));
    }
    times
}

fn composing() {
    let members = members();
    let count = if support::quick() { 200 } else { 20_000 };
    for (policy, name) in [
        (ToolPolicy::Union, "union"),
        (ToolPolicy::Intersection, "intersection"),
    ] {
        let times = rounds(count, || {
            black_box(compose_until(
                black_box(&members),
                policy,
                &executor::Stop::never(),
            ))
            .expect("a composition");
        });
        against(
            &format!("20 skills of 30 tools, {name}, p50"),
            median(&times),
            "us",
            Bar::AtMost(400.0),
        );
    }
}

/// The same set when it was composed before: by its members, as the gate before tools
/// has them, and by name.
#[tokio::main(flavor = "current_thread")]
async fn composing_again() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let store = Store::open(&folder.path().join("data"), &Options::default()).expect("a store");
    let registry = Registry::open(store, Arc::new(SystemClock)).expect("a registry");
    let caller = Caller::new(Principal::system());
    let mut query = SetQuery::default();
    for member in members() {
        let bundle = Bundle {
            files: BTreeMap::from([(FilePath::skill_md(), skill_md(&member).into())]),
            id: Some(member.id),
            ..Bundle::default()
        };
        let prepared = registry.prepare(bundle).await.expect("a skill");
        let published = registry.publish(prepared, "", true, &caller).await;
        published.expect("published");
        query.skills.push(member.name.to_string());
    }
    let index = SearchIndex::new(registry.clone(), folder.path().join("search"), None);
    let composition = Composition::new(registry, index);
    let first = composition.set(query.clone()).await.expect("a set");
    let members = &first.composed.members;
    assert_eq!(members.len(), query.skills.len());
    let count = if support::quick() { 200 } else { 20_000 };
    let (mut by_member, mut by_name) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let begin = Instant::now();
        black_box(composition.together(members).await.expect("a set"));
        by_member.push(micros(begin.elapsed()));
        let query = query.clone();
        let begin = Instant::now();
        black_box(composition.set(query).await.expect("a set"));
        by_name.push(micros(begin.elapsed()));
    }
    against(
        "20 skills of 30 tools, composed again, p50",
        median(&by_member),
        "us",
        Bar::AtMost(10.0),
    );
    figure(
        "  by names that have to be found, p50",
        median(&by_name),
        "us",
    );
}

/// 1,000 skills of 5 versions; each requires up to 3 later ones by ranges.
struct Books(BTreeMap<String, Vec<Arc<Version>>>);

const SKILLS: usize = 1_000;

impl Books {
    fn new() -> Self {
        let mut random = Random::new(7);
        let mut books = BTreeMap::new();
        for at in 0..SKILLS {
            let name = format!("s{at:04}");
            let mut versions = Vec::new();
            for (number, semantic) in (1..).zip(["1.0.0", "1.1.0", "1.2.3", "2.0.0", "2.1.0"]) {
                let mut skill = skill(&name);
                let mut require = |target: usize, range: &str| {
                    if target < SKILLS {
                        skill.composability_rules.push(ComposabilityRule {
                            kind: ComposabilityRuleType::Requires,
                            skill: format!("s{target:04}{range}"),
                            reason: String::new(),
                        });
                    }
                };
                // The newest of each wants what some others do not go with, so that
                // the solver has to go back.
                let range = if number == 5 && random.below(8) == 0 {
                    "@^1.2"
                } else {
                    "@>=1.1"
                };
                require(at + 1, range);
                require(at + 2 + random.below(20), "@>=1.0, <3");
                require(at + 2 + random.below(200), "@>=1.2");
                versions.push(version(number, semantic, skill));
            }
            books.insert(id(&name).to_string(), versions);
        }
        Self(books)
    }
}

impl Library for Books {
    fn find(&self, reference: &Reference) -> Option<(SkillId, Arc<str>)> {
        let id = id(&reference.to_string());
        self.0
            .contains_key(id.as_str())
            .then(|| (id.clone(), id.slug().into()))
    }

    fn releases(&self, id: &SkillId) -> Result<Vec<Release>, Error> {
        let release = |version: &Arc<Version>| Release {
            semantic: version.semantic.clone(),
            number: version.number,
            digest: version.digest,
            is_yanked: false,
        };
        Ok(self.0[id.as_str()].iter().map(release).collect())
    }

    fn active(&self, id: &SkillId) -> Option<VersionNumber> {
        Some(self.0[id.as_str()].last()?.number)
    }

    fn version(&self, id: &SkillId, number: VersionNumber) -> Result<Arc<Version>, Error> {
        let mut versions = self.0[id.as_str()].iter();
        Ok(Arc::clone(
            versions.find(|v| v.number == number).expect("a version"),
        ))
    }
}

fn resolving() {
    let books = Books::new();
    let first = id("s0000");
    let asked = [RequestedSkill {
        numbers: vec![books.active(&first).expect("a version")],
        name: "s0000".into(),
        text: "s0000".to_owned(),
        id: first,
    }];
    let solve = || resolve(&books, &asked, &executor::Stop::never()).expect("a library");
    let members = solve().expect("a set");
    let count = if support::quick() { 3 } else { 100 };
    let times = rounds(count, || {
        black_box(solve().is_ok());
    });
    figure(
        "  skills of the set that was found",
        members.len() as f64,
        "",
    );
    against(
        "1,000 skills of 5 versions with ranges, p50",
        median(&times) / 1e3,
        "ms",
        Bar::AtMost(50.0),
    );
}

/// The file of a skill with the tools of a member.
fn skill_md(member: &Member) -> String {
    let skill = &member.version.skill;
    format!(
        "---\nname: {}\ndescription: Does a thing.\nallowed_tools: {}\nforbidden_tools: {}\n---\nBody.\n",
        skill.name,
        json!(skill.allowed_tools),
        json!(skill.forbidden_tools),
    )
}

/// Publishes two skills with the tools of two of the members.
async fn publish(address: SocketAddr) {
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}"));
    let channel = channel
        .expect("an address")
        .connect()
        .await
        .expect("a connection");
    let mut registry = v1::registry_client::RegistryClient::new(channel);
    for member in members().into_iter().take(2) {
        let request = v1::PublishSkillRequest {
            skill_id: member.id.to_string(),
            files: vec![v1::File {
                path: "SKILL.md".to_owned(),
                content: skill_md(&member).into(),
            }],
            ..Default::default()
        };
        registry
            .publish_skill(request)
            .await
            .expect("a published skill");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn checking() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Children keep the processor of the thread that starts them.
    pin(0);
    let ours = Server::repertoire(&folder.path().join("data"));
    publish(ours.address).await;
    let request = v1::CheckToolRequest {
        tool: "tool_1_17".to_owned(),
        skills: vec!["skill-0".to_owned(), "skill-1".to_owned()],
        ..Default::default()
    };
    let call = Call::new("/repertoire.v1.Composition/CheckTool", &request);
    let connection = load::connect(ours.address).await;
    let size = call.send(&ours.address.to_string(), &connection).await;
    let mut floor = std::process::Command::new(std::env::current_exe().expect("this program"));
    floor.args(["--constant", &size.to_string()]);
    let floor = Server::spawn(floor);
    let constant = Call::new(load::CONSTANT, &request);
    pin(1);

    println!(
        "CheckTool, {size} bytes, {} calls at once over {} connections",
        load::CALLS,
        load::CONNECTIONS
    );
    let (rounds, time) = if support::quick() {
        (3, 0.5)
    } else {
        (31, 0.7)
    };
    let time = Duration::from_secs_f64(time);
    load::round(&ours, &call, time / 2).await;
    load::round(&floor, &constant, time / 2).await;
    let (mut ratios, mut processor) = (Vec::new(), Vec::new());
    let (mut rates, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let a = load::round(&ours, &call, time).await;
        let b = load::round(&floor, &constant, time).await;
        ratios.push(a.calls / b.calls);
        processor.push(b.processor / a.processor);
        rates.push(a.calls);
        floors.push(b.calls);
    }
    figure("CheckTool, median", median(&rates), "/s");
    figure("constant, median", median(&floors), "/s");
    figure(
        "constant / CheckTool, time on a processor",
        median(&processor),
        "x",
    );
    against(
        "CheckTool / constant, median of the rounds",
        median(&ratios),
        "x",
        Bar::AtLeast(0.8),
    );
}
