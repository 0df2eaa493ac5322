//! `get_skill` as an MCP tool beside an rmcp server with one constant tool, and
//! what a call through the gateway costs.
//!
//! Both servers are child processes on processor 0, the client is on processor 1;
//! they take turns, and what counts is the middle of the ratios of the rounds. Where
//! the machine does other things as well, look at the time on a processor. The
//! constant tool answers with the result that the server gave, made once; its
//! server has the product's transport settings behind axum's listener. The client
//! writes requests that were encoded once.
//!
//! The gateway is measured in process on one thread, beside the generated client
//! over the same transport.

mod support;

#[path = "mcp/client.rs"]
mod client;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::serve::ListenerExt as _;
use client::{Caller, WAYS, Way, answer};
use contract::v1;
use contract::v1::lookup_client::LookupClient;
use gateway::{Context, Gateway, ToolAnswer};
use mcp_transport::{Sessions, http_service};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Map;
use server::{Config, Domain, Limits, Settings};
use support::process::{Server, pin, thread_time};
use support::{against, figure, median, micros, sample};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const TOOL: &str = "get_skill";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments
        .iter()
        .position(|argument| argument == "--constant")
    {
        Some(at) => constant(Path::new(&arguments[at + 1])),
        None => compare(),
    }
}

/// A server with one tool that always gives the same result.
#[derive(Clone)]
struct Constant {
    tool: Arc<Tool>,
    result: Arc<CallToolResult>,
}

impl ServerHandler for Constant {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, _: &str) -> Option<Tool> {
        Some(self.tool.as_ref().clone())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResponse::Complete(self.result.as_ref().clone()))
    }
}

/// Serves the result in a file.
#[tokio::main]
async fn constant(result: &Path) {
    let result = std::fs::read(result).expect("a result");
    let handler = Constant {
        tool: Arc::new(Tool::new(TOOL, "Always the same.", Map::new())),
        result: Arc::new(serde_json::from_slice(&result).expect("a result")),
    };
    let service = http_service(
        move || handler.clone(),
        Arc::new(Sessions::new(std::time::Duration::from_secs(3600))),
        CancellationToken::new(),
    );
    let routes = axum::Router::new().route_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    eprintln!(
        "listening on http://{}",
        listener.local_addr().expect("an address")
    );
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("no delay"));
    axum::serve(listener, routes).await.expect("to serve");
}

/// What came of a while.
#[derive(Default, Clone, Copy)]
struct Round {
    calls: u32,
    time: Duration,
    /// Time that the server was on a processor.
    processor: Duration,
}

impl Round {
    fn rate(self) -> f64 {
        f64::from(self.calls) / self.time.as_secs_f64()
    }

    /// Microseconds of a processor for a call.
    fn cost(self) -> f64 {
        micros(self.processor) / f64::from(self.calls)
    }

    /// Several one after the other.
    fn sum(rounds: &[Self]) -> Self {
        rounds.iter().fold(Self::default(), |sum, round| Self {
            calls: sum.calls + round.calls,
            time: sum.time + round.time,
            processor: sum.processor + round.processor,
        })
    }
}

/// Calls as fast as it goes for a while.
async fn round(server: &Server, callers: &mut Vec<Caller>, time: Duration) -> Round {
    let over = Arc::new(AtomicBool::new(false));
    let (begin, before) = (Instant::now(), server.cpu());
    let mut calling = Vec::new();
    for mut caller in callers.drain(..) {
        let over = Arc::clone(&over);
        calling.push(tokio::spawn(async move {
            let before = caller.calls;
            while !over.load(Ordering::Relaxed) {
                caller.call().await;
            }
            let count = caller.calls - before;
            (caller, count)
        }));
    }
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut total = 0_u32;
    for calling in calling {
        let (caller, count) = calling.await.expect("a caller");
        callers.push(caller);
        total += count;
    }
    Round {
        calls: total,
        time: begin.elapsed(),
        processor: server.cpu().saturating_sub(before),
    }
}

/// Both servers in turn.
async fn turns(ours: &Server, floor: &Server, way: Way) {
    let mut tool = Caller::all(ours, "/mcp/discovery-core", way).await;
    let mut constant = Caller::all(floor, "/mcp", way).await;
    let (a, b) = (
        answer(&tool[0].call().await),
        answer(&constant[0].call().await),
    );
    assert_eq!(a["result"]["isError"], false);
    let (size, other) = (a.to_string().len(), b.to_string().len());
    assert!(size.abs_diff(other) < 64, "{size} and {other} bytes");
    println!("{}, {size} bytes", way.name);
    // Short turns, so that whatever else the machine does meets both alike.
    let (rounds, time) = if support::quick() {
        (3, 0.4)
    } else {
        (25, 0.6)
    };
    let time = Duration::from_secs_f64(time);
    round(ours, &mut tool, time / 2).await;
    round(floor, &mut constant, time / 2).await;
    let (mut tools, mut constants) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let a = round(ours, &mut tool, time).await;
        let b = round(floor, &mut constant, time).await;
        println!(
            "  {TOOL} {:>7.0}/s {:>5.1} us of a processor   constant {:>7.0}/s {:>5.1} us   ratio {:.3}, by processor {:.3}",
            a.rate(),
            a.cost(),
            b.rate(),
            b.cost(),
            a.rate() / b.rate(),
            b.cost() / a.cost(),
        );
        tools.push(a);
        constants.push(b);
    }
    let rates = |rounds: &[Round]| rounds.iter().map(|round| round.rate()).collect::<Vec<_>>();
    let (rates, floors) = (rates(&tools), rates(&constants));
    let ratios: Vec<_> = rates.iter().zip(&floors).map(|(a, b)| a / b).collect();
    let (tools, constants) = (Round::sum(&tools), Round::sum(&constants));
    figure("  get_skill, median", median(&rates), "/s");
    figure("  constant, median", median(&floors), "/s");
    figure("  get_skill, of a processor", tools.cost(), "us");
    figure("  constant, of a processor", constants.cost(), "us");
    figure(
        "  the same by processor time, all rounds",
        constants.cost() / tools.cost(),
        "x",
    );
    let ratio = median(&ratios);
    match way.bar {
        Some(bar) => against("  get_skill / constant, median", ratio, "x", bar),
        None => figure("  get_skill / constant, median", ratio, "x"),
    }
}

/// Figures of the parts of a call, in microseconds.
#[derive(Default)]
struct Parts {
    client: Vec<f64>,
    read: Vec<f64>,
    call: Vec<f64>,
    write: Vec<f64>,
    whole: Vec<f64>,
    tool: Vec<f64>,
    /// On a processor, in all rounds: by the generated client, and as a tool.
    processor: [Duration; 2],
}

/// What the gateway adds to a call, in process.
async fn gateway(data: &Path) {
    let config = Config {
        data: Some(data.to_owned()),
        ..Config::default()
    };
    let domain = Domain::open(&Settings::new(&config))
        .await
        .expect("an empty data directory");
    let transport = domain.transport(&Limits::default());
    sample::publish(transport.clone()).await;
    let gateway = Gateway::new(contract::load().expect("the contract"), transport.clone());
    let mut methods = gateway.contract().methods().iter();
    let method = methods.find(|method| method.name == "GetSkill");
    let method = Arc::clone(method.expect("GetSkill"));
    let tools = gateway.contract().tools(Some("discovery-core"));
    let tool = tools.iter().find(|tool| tool.name == TOOL).expect("a tool");
    let mut arguments = Map::new();
    arguments.insert("skill_id".to_owned(), sample::ID.into());
    let mut client = LookupClient::new(transport);

    let (rounds, calls) = if support::quick() {
        (5_u32, 200_u32)
    } else {
        (61, 1_000)
    };
    let per_call = |time: Duration| micros(time) / f64::from(calls);
    let mut parts = Parts::default();
    for _ in 0..rounds {
        let (begin, before) = (Instant::now(), thread_time());
        for _ in 0..calls {
            let request = v1::GetSkillRequest {
                skill_id: sample::ID.to_owned(),
                ..Default::default()
            };
            client.get_skill(request).await.expect("the skill");
        }
        parts.client.push(per_call(begin.elapsed()));
        parts.processor[0] += thread_time().saturating_sub(before);

        let (mut read, mut call, mut write) = Default::default();
        for _ in 0..calls {
            let arguments = arguments.clone();
            let begin = Instant::now();
            let ask = gateway.read(&method, arguments).expect("a request");
            let asked = Instant::now();
            let answer = gateway.call(&method, ask, Context::default()).await;
            let answer = answer.expect("the skill");
            let answered = Instant::now();
            let json = answer.text();
            drop(answer);
            let written = Instant::now();
            drop(json);
            read += asked - begin;
            call += answered - asked;
            write += written - answered;
        }
        parts.whole.push(per_call(read + call + write));
        parts.read.push(per_call(read));
        parts.call.push(per_call(call));
        parts.write.push(per_call(write));

        let (begin, before) = (Instant::now(), thread_time());
        for _ in 0..calls {
            let arguments = arguments.clone();
            let answer = gateway.call_tool(tool, arguments, Context::default(), None);
            let answer: ToolAnswer = answer.await.expect("an answer");
            drop(answer);
        }
        parts.tool.push(per_call(begin.elapsed()));
        parts.processor[1] += thread_time().saturating_sub(before);
    }
    domain.close().await;
    println!("GetSkill in process, one thread");
    let added = parts.whole.iter().zip(&parts.client);
    let added: Vec<_> = added.map(|(whole, client)| whole - client).collect();
    for (name, times) in [
        ("generated client", &parts.client),
        ("gateway", &parts.whole),
        ("  JSON to message", &parts.read),
        ("  call by descriptors", &parts.call),
        ("  message to JSON", &parts.write),
        ("gateway - generated client", &added),
        ("as a tool, with envelope and text", &parts.tool),
    ] {
        figure(&format!("  {name}"), median(times), "us");
    }
    let [client, tool] = parts
        .processor
        .map(|time| per_call(time) / f64::from(rounds));
    figure("  generated client, of a processor", client, "us");
    figure("  as a tool, of a processor", tool, "us");
}

#[tokio::main(flavor = "current_thread")]
async fn compare() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Children keep the processor of the thread that starts them.
    pin(0);
    let ours = Server::repertoire(&folder.path().join("data"));
    sample::publish(sample::channel(ours.address).await).await;
    let mut caller = Caller::all(&ours, "/mcp/discovery-core", WAYS[0]).await;
    let answer = answer(&caller[0].call().await);
    drop(caller);
    assert_eq!(answer["result"]["structuredContent"]["success"], true);
    let result = folder.path().join("result.json");
    std::fs::write(&result, answer["result"].to_string()).expect("a file");
    let mut constant = Command::new(std::env::current_exe().expect("this program"));
    constant.arg("--constant").arg(&result);
    let floor = Server::spawn(constant);
    pin(1);

    for way in WAYS {
        turns(&ours, &floor, way).await;
    }
    drop((ours, floor));
    gateway(&folder.path().join("in-process")).await;
}
