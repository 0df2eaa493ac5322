//! `GetSkill` over gRPC beside a tonic server that returns a constant of the same
//! size.
//!
//! Both servers are child processes on processor 0, the client is on processor 1;
//! they take turns, and what counts is the middle of the ratios of the rounds. The
//! client is raw HTTP/2 with requests that were encoded once, the same for both:
//! what it costs would only bring the two closer together.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use prost::Message as _;
use repertoire::contract::v1;
use support::process::{Server, pin};
use support::{Bar, against, figure, median, quantile, sample};
use tokio::net::TcpStream;
use tonic::transport::server::TcpIncoming;

/// Calls at once, over so many connections.
const CALLS: usize = 64;
const CONNECTIONS: usize = 4;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments
        .iter()
        .position(|argument| argument == "--constant")
    {
        Some(at) => constant(arguments[at + 1].parse().expect("a size")),
        None => compare(),
    }
}

/// A tonic server with its own settings that always gives the same answer.
#[tokio::main]
async fn constant(size: usize) {
    let listener = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listener.local_addr().expect("an address");
    eprintln!("listening on http://{address}");
    // The field's tag and length take three bytes.
    let answer = Constant {
        payload: Bytes::from(vec![b'x'; size - 3]),
    };
    assert_eq!(answer.encoded_len(), size);
    let service = ConstantService { answer };
    let incoming = listener.with_nodelay(Some(true));
    tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming(incoming)
        .await
        .expect("to serve");
}

#[derive(Clone, PartialEq, prost::Message)]
struct Constant {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
}

/// What tonic's generator writes for a service with one rpc.
#[derive(Clone)]
struct ConstantService {
    answer: Constant,
}

impl tonic::server::NamedService for ConstantService {
    const NAME: &'static str = "bench.Constant";
}

impl tower::Service<http::Request<tonic::body::Body>> for ConstantService {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let codec = tonic_prost::ProstCodec::<Constant, v1::GetSkillRequest>::default();
            Ok(tonic::server::Grpc::new(codec)
                .unary(service, request)
                .await)
        })
    }
}

impl tonic::server::UnaryService<v1::GetSkillRequest> for ConstantService {
    type Response = Constant;
    type Future = std::future::Ready<Result<tonic::Response<Constant>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<v1::GetSkillRequest>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new(self.answer.clone())))
    }
}

/// What is sent: one request, encoded once.
#[derive(Clone)]
struct Call {
    path: &'static str,
    message: Bytes,
    /// What it shows to say who calls.
    authorization: Option<String>,
}

impl Call {
    fn new(path: &'static str) -> Self {
        let request = v1::GetSkillRequest {
            skill_id: sample::ID.to_owned(),
            ..Default::default()
        };
        let mut message = BytesMut::new();
        message.put_u8(0);
        message.put_u32(u32::try_from(request.encoded_len()).expect("a small request"));
        request.encode(&mut message).expect("room");
        Self {
            path,
            message: message.freeze(),
            authorization: None,
        }
    }

    /// The same with a token.
    fn signed(self, token: &str) -> Self {
        Self {
            authorization: Some(format!("Bearer {token}")),
            ..self
        }
    }

    /// Calls once; the bytes of the message.
    async fn send(&self, address: &str, connection: &SendRequest<Bytes>) -> usize {
        let request = http::Request::post(format!("http://{address}{}", self.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let request = match &self.authorization {
            None => request,
            Some(authorization) => request.header("authorization", authorization),
        };
        let request = request.body(()).expect("a request");
        let mut ready = connection.clone().ready().await.expect("a connection");
        let (answer, mut sending) = ready.send_request(request, false).expect("a stream");
        sending
            .send_data(self.message.clone(), true)
            .expect("to send");
        let mut body = answer.await.expect("an answer").into_body();
        let mut size = 0;
        while let Some(data) = body.data().await {
            let data = data.expect("bytes");
            size += data.len();
            body.flow_control()
                .release_capacity(data.len())
                .expect("room");
        }
        let trailers = body.trailers().await.expect("trailers").expect("trailers");
        assert_eq!(trailers["grpc-status"], "0");
        size - 5
    }
}

async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 24);
    let (sender, connection) = builder.handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

struct Round {
    calls: f64,
    processor: f64,
}

/// Calls as fast as it goes for a while.
async fn round(server: &Server, call: &Call, time: Duration) -> Round {
    let address: Arc<str> = server.address.to_string().into();
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    let (begin, before) = (Instant::now(), server.cpu());
    for _ in 0..CONNECTIONS {
        let connection = connect(server.address).await;
        for _ in 0..CALLS / CONNECTIONS {
            let (call, connection) = (call.clone(), connection.clone());
            let (address, over) = (Arc::clone(&address), Arc::clone(&over));
            callers.push(tokio::spawn(async move {
                let mut count = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    call.send(&address, &connection).await;
                    count += 1;
                }
                count
            }));
        }
    }
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut count = 0;
    for caller in callers {
        count += caller.await.expect("a caller");
    }
    let (time, processor) = (begin.elapsed(), server.cpu().saturating_sub(before));
    Round {
        calls: count as f64 / time.as_secs_f64(),
        processor: processor.as_secs_f64() * 1e6 / count as f64,
    }
}

/// One call after the other: microseconds of each.
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
    let call = Call::new("/repertoire.v1.Lookup/GetSkill");
    let size = call
        .send(&ours.address.to_string(), &connect(ours.address).await)
        .await;
    let mut constant = std::process::Command::new(std::env::current_exe().expect("this program"));
    constant.args(["--constant", &size.to_string()]);
    let floor = Server::spawn(constant);
    let constant = Call::new("/bench.Constant/Get");
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
    with_tokens(&ours, &call, (rounds, time)).await;
    figure(
        "  memory of the server",
        support::mib(ours.memory("VmRSS")),
        "MiB",
    );
}

/// The same server without sign-in beside one that looks at a token with each call.
async fn with_tokens(open: &Server, call: &Call, (rounds, time): (usize, Duration)) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (data, config) = (
        folder.path().join("data"),
        folder.path().join("config.yaml"),
    );
    std::fs::write(&config, "access: {sign_in: tokens}\n").expect("a file");
    pin(0);
    let closed = Server::repertoire_with(&data, &["--config".as_ref(), config.as_os_str()]);
    pin(1);
    let local = repertoire::server::connect_local(&data).await;
    let local = local.expect("the socket");
    sample::publish(local.clone()).await;
    let made = v1::access_client::AccessClient::new(local)
        .create_token(v1::CreateTokenRequest {
            name: "bench".to_owned(),
            actions: vec![v1::Action::Read.into()],
            ..Default::default()
        })
        .await;
    let signed = call
        .clone()
        .signed(&made.expect("a token").into_inner().token);
    round(&closed, &signed, time / 2).await;
    let mut ratios = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let with = round(&closed, &signed, time).await;
        let without = round(open, call, time).await;
        ratios.push(with.calls / without.calls);
    }
    against(
        "GetSkill with a token / without sign-in, median of the rounds",
        median(&ratios),
        "x",
        Bar::AtLeast(0.97),
    );
}
