//! Servers for tests, in folders that go away: the real binary on a free port
//! ([`Server`]), and its services in this process ([`World`]).

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of this"
)]

pub mod corpus;
pub mod issuer;
pub mod web;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use contract::v1;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use gateway::Transport;
use server::{Config, Domain, Settings};
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

pub const BINARY: &str = env!("CARGO_BIN_EXE_repertoire");

/// A server of its own, stopped when it is dropped.
pub struct Server {
    pub url: String,
    pub data: PathBuf,
    child: Child,
    directory: Option<TempDir>,
    log: Arc<Mutex<String>>,
    logging: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[], "")
    }

    /// Starts with more arguments and a config file.
    pub fn with(args: &[&str], config: &str) -> Self {
        let directory = TempDir::new().expect("a folder");
        let mut server = Self::over(directory.path(), args, config);
        server.directory = Some(directory);
        server
    }

    /// Starts where its config file says that it listens.
    pub fn listening(config: &str) -> Self {
        let directory = TempDir::new().expect("a folder");
        let mut server = Self::spawned(directory.path(), &["serve"], &[], config);
        server.directory = Some(directory);
        server
    }

    /// The same over a folder that stays.
    pub fn over(directory: &Path, args: &[&str], config: &str) -> Self {
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        Self::spawned(directory, &serve, args, config)
    }

    fn spawned(directory: &Path, serve: &[&str], args: &[&str], config: &str) -> Self {
        let data = directory.join("data");
        let config_file = directory.join("config.yaml");
        std::fs::write(&config_file, config).expect("a config file");
        let mut child = Command::new(BINARY)
            .args(serve)
            .args(if args.contains(&"--log") {
                &[][..]
            } else {
                &["--log", "warn"]
            })
            .arg("--config")
            .arg(&config_file)
            .arg("--data")
            .arg(&data)
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let stderr = child.stderr.take().expect("stderr");
        let mut lines = BufReader::new(stderr).lines();
        let mut before = String::new();
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{before}"));
            let line = line.expect("text");
            if let Some(url) = line.strip_prefix("listening on ") {
                break url.to_owned();
            }
            // What it logs before, where it is told to say much.
            assert!(args.contains(&"--log"), "{line}");
            before.push_str(&line);
            before.push('\n');
        };
        // Whatever it logs later is read, so that it never waits for us.
        let log = Arc::new(Mutex::new(before));
        let logged = Arc::clone(&log);
        let logging = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("server: {line}");
                let mut logged = logged.lock().expect("a log");
                logged.push_str(&line);
                logged.push('\n');
            }
        });
        Self {
            url,
            data,
            child,
            directory: None,
            log,
            logging: Some(logging),
        }
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("a log").clone()
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.url.clone()).expect("an address");
        endpoint.connect().await.expect("a connection")
    }

    pub async fn registry(&self) -> RegistryClient<Channel> {
        RegistryClient::new(self.channel().await)
    }

    /// As whoever has the data directory reaches it, through the socket in it.
    pub async fn local_registry(&self) -> RegistryClient<Channel> {
        let channel = server::connect_local(&self.data).await;
        RegistryClient::new(channel.expect("a connection"))
    }

    pub async fn lookup(&self) -> LookupClient<Channel> {
        LookupClient::new(self.channel().await).max_decoding_message_size(20 << 20)
    }

    /// Runs a command against this server.
    pub fn command(&self, args: &[&str]) -> Output {
        command(&[args, &["--server", &self.url]].concat())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to stop, and waits for it.
    pub fn terminate(mut self) -> (Option<i32>, Duration) {
        self.end()
    }

    /// The same, and all that it has logged.
    pub fn terminate_logged(mut self) -> String {
        let (code, _) = self.end();
        assert_eq!(code, Some(0), "{}", self.log());
        let logging = self.logging.take().expect("not read to its end");
        logging.join().expect("a log");
        self.log()
    }

    fn end(&mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        let pid = self.child.id().to_string();
        let asked = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill");
        assert!(asked.success());
        let status = self.child.wait().expect("an end");
        (status.code(), start.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already where the test has stopped it.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The services without a port, with the bundled skills.
pub struct World {
    pub domain: Domain,
    pub transport: Transport,
    pub registry: RegistryClient<Transport>,
    directory: TempDir,
}

impl World {
    pub async fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let mut settings = Settings::new(&Config::default());
        settings.data = directory.path().join("data");
        settings.store.reserve_bytes = 0;
        settings.config.install.directory = Some(directory.path().join("skills"));
        let domain = Domain::open(&settings).await.expect("a domain");
        let transport = domain.transport(&settings.config.limits);
        Self {
            registry: RegistryClient::new(transport.clone()),
            transport,
            domain,
            directory,
        }
    }

    /// The folder that it is in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub async fn publish(&mut self, skill: v1::PublishSkillRequest) {
        let published = self.registry.publish_skill(skill).await;
        published.expect("published");
    }

    /// The same of a first version that the scan warns of, and that a person approves.
    pub async fn publish_approved(&mut self, skill: v1::PublishSkillRequest) {
        let approve = v1::ApproveVersionRequest {
            skill_id: skill.skill_id.clone(),
            version_number: 1,
            reason: "A person read it".to_owned(),
            ..Default::default()
        };
        self.publish(skill).await;
        let approved = self.registry.approve_version(approve).await;
        approved.expect("approved");
    }
}

/// A skill named by the end of its id: lines of front matter, and the text below it.
pub fn skill(id: &str, front_matter: &str, body: &str) -> v1::PublishSkillRequest {
    let name = id.rsplit('/').next().expect("a slug");
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{front_matter}---\n{body}\n");
    v1::PublishSkillRequest {
        skill_id: id.to_owned(),
        files: vec![file("SKILL.md", text)],
        ..Default::default()
    }
}

pub fn file(path: &str, content: impl Into<Bytes>) -> v1::File {
    v1::File {
        path: path.to_owned(),
        content: content.into(),
    }
}

/// Runs the binary in an environment without settings. It prints JSON.
pub fn command(args: &[&str]) -> Output {
    Command::new(BINARY)
        .args(args)
        .env_remove("REPERTOIRE_DATA")
        .env_remove("REPERTOIRE_SERVER")
        .env_remove("REPERTOIRE_CONFIG")
        .env("REPERTOIRE_FORMAT", "json")
        .stdin(Stdio::null())
        .output()
        .expect("the binary")
}

/// The reason of a refusal (`ErrorInfo`).
pub fn reason(status: &tonic::Status) -> String {
    let info = status.get_details_error_info();
    info.map_or_else(|| format!("{status:?}"), |info| info.reason)
}
