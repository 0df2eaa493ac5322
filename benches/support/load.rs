//! A load of gRPC calls on two servers in turn: ours, and a tonic server that
//! always gives the same answer.
//!
//! The client is raw HTTP/2 with a request that was encoded once, the same for
//! both: what it costs would only bring the two closer together.

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
use prost::Message;
use tokio::net::TcpStream;
use tonic::transport::server::TcpIncoming;

use super::process::Server;

/// Calls at once, over so many connections.
pub const CALLS: usize = 64;
pub const CONNECTIONS: usize = 4;
/// The path of the constant's rpc.
pub const CONSTANT: &str = "/bench.Constant/Get";

/// An answer of any size.
#[derive(Clone, PartialEq, prost::Message)]
struct Constant {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
}

/// What tonic's generator writes for a service with one rpc that takes an `R`.
struct ConstantService<R> {
    answer: Constant,
    request: std::marker::PhantomData<fn() -> R>,
}

impl<R> Clone for ConstantService<R> {
    fn clone(&self) -> Self {
        Self {
            answer: self.answer.clone(),
            request: std::marker::PhantomData,
        }
    }
}

impl<R> tonic::server::NamedService for ConstantService<R> {
    const NAME: &'static str = "bench.Constant";
}

impl<R: Message + Default + 'static> tower::Service<http::Request<tonic::body::Body>>
    for ConstantService<R>
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let codec = tonic_prost::ProstCodec::<Constant, R>::default();
            Ok(tonic::server::Grpc::new(codec)
                .unary(service, request)
                .await)
        })
    }
}

impl<R: Message + Default + 'static> tonic::server::UnaryService<R> for ConstantService<R> {
    type Response = Constant;
    type Future = std::future::Ready<Result<tonic::Response<Constant>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<R>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new(self.answer.clone())))
    }
}

/// A tonic server with its own settings that always gives the same answer, of
/// so many bytes.
#[tokio::main]
pub async fn constant<R: Message + Default + 'static>(size: usize) {
    let listener = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listener.local_addr().expect("an address");
    eprintln!("listening on http://{address}");
    // The field's tag and length take two bytes, or three from 128 on.
    let head = if size < 130 { 2 } else { 3 };
    let answer = Constant {
        payload: Bytes::from(vec![b'x'; size - head]),
    };
    assert_eq!(answer.encoded_len(), size);
    let service = ConstantService::<R> {
        answer,
        request: std::marker::PhantomData,
    };
    tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming(listener.with_nodelay(Some(true)))
        .await
        .expect("to serve");
}

/// What is sent: one request, encoded once.
#[derive(Clone)]
pub struct Call {
    path: &'static str,
    message: Bytes,
    /// What it shows to say who calls.
    authorization: Option<Arc<str>>,
}

impl Call {
    pub fn new(path: &'static str, request: &impl Message) -> Self {
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
    #[must_use]
    pub fn signed(&self, token: &str) -> Self {
        Self {
            authorization: Some(format!("Bearer {token}").into()),
            ..self.clone()
        }
    }

    /// Calls once; the bytes of the message.
    pub async fn send(&self, address: &str, connection: &SendRequest<Bytes>) -> usize {
        let (status, size) = self.ask(address, connection).await;
        assert_eq!(status, 0);
        size - 5
    }

    /// Calls once; the status, and the bytes of the body.
    pub async fn ask(&self, address: &str, connection: &SendRequest<Bytes>) -> (u32, usize) {
        let mut request = http::Request::post(format!("http://{address}{}", self.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", &**authorization);
        }
        let request = request.body(()).expect("a request");
        let mut ready = connection.clone().ready().await.expect("a connection");
        let (answer, mut sending) = ready.send_request(request, false).expect("a stream");
        // A server that refuses at once may not read it.
        let _unread = sending.send_data(self.message.clone(), true);
        let answer = answer.await.expect("an answer");
        let status =
            |headers: &http::HeaderMap| headers.get("grpc-status")?.to_str().ok()?.parse().ok();
        if let Some(status) = status(answer.headers()) {
            return (status, 0);
        }
        let mut body = answer.into_body();
        let mut size = 0;
        while let Some(data) = body.data().await {
            let data = data.expect("bytes");
            size += data.len();
            body.flow_control()
                .release_capacity(data.len())
                .expect("room");
        }
        let trailers = body.trailers().await.expect("trailers").expect("trailers");
        (status(&trailers).expect("a status"), size)
    }
}

pub async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
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

/// Calls a second, and microseconds of the server's processor for each.
pub struct Round {
    pub calls: f64,
    pub processor: f64,
}

/// Calls as fast as it goes for a while.
pub async fn round(server: &Server, call: &Call, time: Duration) -> Round {
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
