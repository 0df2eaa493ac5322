//! A server that lies: each text of its answers, one after the other, becomes a path that leads
//! out. Whatever command writes files, nothing outside of its own folder changes.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use tempfile::TempDir;
use tonic::transport::Channel;
use tower::{Service as _, ServiceExt as _};

use crate::support::{BINARY, Server, file, skill};

/// The lie of the moment, and the names of the texts that could be one.
#[derive(Default)]
struct Lie {
    field: String,
    text: String,
    seen: BTreeSet<String>,
}

impl Lie {
    /// Puts the lie in the place of each text of its field.
    fn twist(&mut self, message: &mut DynamicMessage) {
        for (field, value) in message.fields_mut() {
            let values = match value {
                Value::List(values) => values.iter_mut().collect(),
                Value::Map(values) => values.values_mut().collect(),
                value => vec![value],
            };
            for value in values {
                match value {
                    Value::Message(inner) => self.twist(inner),
                    Value::String(text) => {
                        self.seen.insert(field.name().to_owned());
                        if field.name() == self.field {
                            text.clone_from(&self.text);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The same in the messages of an answer.
    fn twist_all(&mut self, of: &MessageDescriptor, mut answer: Bytes) -> Bytes {
        let mut twisted = BytesMut::new();
        while answer.has_remaining() {
            assert_eq!(answer.get_u8(), 0, "it was not to be compressed");
            let length = answer.get_u32() as usize;
            let message = DynamicMessage::decode(of.clone(), answer.split_to(length));
            let mut message = message.expect("a message");
            self.twist(&mut message);
            let bytes = message.encode_to_vec();
            twisted.put_u8(0);
            twisted.put_u32(u32::try_from(bytes.len()).expect("small"));
            twisted.extend_from_slice(&bytes);
        }
        twisted.freeze()
    }
}

#[derive(Clone)]
struct Liar {
    honest: Channel,
    contract: DescriptorPool,
    lie: Arc<Mutex<Lie>>,
}

/// Asks the honest server, and lies.
async fn answer(
    State(mut liar): State<Liar>,
    mut request: Request<axum::body::Body>,
) -> Response<axum::body::Body> {
    request.headers_mut().remove("grpc-accept-encoding");
    let (service, method) = request.uri().path()[1..].split_once('/').expect("an rpc");
    let service = liar.contract.get_service_by_name(service);
    let service = service.expect("a service");
    let method = service.methods().find(|found| found.name() == method);
    let of = method.expect("an rpc").output();
    let request = request.map(tonic::body::Body::new);
    let honest = liar.honest.ready().await.expect("a connection");
    let (head, body) = honest.call(request).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("an answer");
    let trailers = body.trailers().cloned().map(Frame::trailers);
    let bytes = liar
        .lie
        .lock()
        .expect("one")
        .twist_all(&of, body.to_bytes());
    let frames = [Frame::data(bytes)].into_iter().chain(trailers);
    let frames = stream::iter(frames.map(Ok::<_, Infallible>));
    Response::from_parts(head, axum::body::Body::new(StreamBody::new(frames)))
}

/// All that is below a folder, but below some.
fn tree(folder: &Path, but: &[PathBuf]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let all = walkdir::WalkDir::new(folder).into_iter();
    for entry in all.filter_entry(|entry| !but.iter().any(|but| but == entry.path())) {
        let path = entry.expect("an entry").into_path();
        let content = std::fs::read(&path).unwrap_or_default();
        found.insert(path, content);
    }
    found
}

/// A machine with a folder to work in, deep enough for what leads up from it.
struct Machine {
    folder: TempDir,
    url: String,
}

impl Machine {
    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn run(&self, args: &[&str], lock: Option<&[u8]>) -> Output {
        let work = self.path("a/b/work");
        let _gone = std::fs::remove_dir_all(&work);
        std::fs::create_dir_all(work.join(".claude")).expect("a folder");
        if let Some(lock) = lock {
            std::fs::write(work.join("skills.lock"), lock).expect("a lock");
        }
        let mut command = Command::new(BINARY);
        command
            .args(args)
            .args(["--server", &self.url])
            .current_dir(work)
            .env_clear()
            .env("HOME", self.path("home"))
            .stdin(Stdio::null());
        command.output().expect("the binary")
    }

    /// All that no command may change: not the folder to work in, and not the user's own record.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let but = ["a/b/work", "home/.local"].map(|inside| self.path(inside));
        tree(self.folder.path(), &but)
    }
}

/// Commands that write files; `true`: from a lock.
const COMMANDS: [(&[&str], bool); 6] = [
    (&["install", "refunds"], false),
    (&["install"], true),
    (&["update"], true),
    (&["export", "refunds"], false),
    (&["export", "--all", "mirror"], false),
    (&["learn", "start", "testing-fundamentals"], false),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_server_leads_a_command_out_of_its_folder() {
    let server = Server::start();
    let mut refunds = skill("github/acme/refunds", "version: 1.2.0\n", "Refunds.");
    refunds.files.push(file("scripts/pay.sh", "#!/bin/sh\n"));
    let mut registry = server.registry().await;
    registry.publish_skill(refunds).await.expect("published");
    let lie = Arc::new(Mutex::new(Lie::default()));
    let liar = Liar {
        honest: server.channel().await,
        contract: DescriptorPool::decode(contract::FILE_DESCRIPTOR_SET).expect("a contract"),
        lie: lie.clone(),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let router = Router::new().fallback(answer).with_state(liar);
    tokio::spawn(async { axum::serve(listener, router).await });
    let folder = TempDir::new().expect("a folder");
    let machine = Machine { folder, url };
    std::fs::create_dir_all(machine.path("home")).expect("a folder");
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let mut lock = None;
    tokio::task::block_in_place(|| {
        for (args, is_locked) in COMMANDS {
            let locked = lock.as_deref().filter(|_| is_locked);
            *lie.lock().expect("one") = Lie::default();
            let honest = machine.run(args, locked);
            assert!(honest.status.success(), "{args:?}: {}", told(&honest));
            lock = lock.or_else(|| std::fs::read(machine.path("a/b/work/skills.lock")).ok());
            let locked = lock.as_deref().filter(|_| is_locked);
            let fields = lie.lock().expect("one").seen.clone();
            assert!(!fields.is_empty(), "{args:?}");
            let before = machine.outside();
            let mut refused = 0;
            let outside = machine.path("outside/x").display().to_string();
            for field in fields {
                for text in ["../../x", &outside] {
                    *lie.lock().expect("one") = Lie {
                        field: field.clone(),
                        text: text.to_owned(),
                        ..Lie::default()
                    };
                    let output = machine.run(args, locked);
                    refused += usize::from(!output.status.success());
                    let there = machine.outside();
                    assert_eq!(there, before, "{args:?} {field} {text}: {}", told(&output));
                }
            }
            assert!(refused > 0, "{args:?} took every lie");
        }
    });
}
