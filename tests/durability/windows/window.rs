//! `repertoire mcp` as an agent's host has it, and the server behind it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::harness::BINARY;

/// As long as a loaded machine may need.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Looks until something is so.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A data directory, with settings for whatever is started on it.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    config: PathBuf,
    _folder: tempfile::TempDir,
}

impl Place {
    /// Servers that are unused leave at once, so that no test waits for that.
    pub(crate) fn new() -> Self {
        Self::named("data")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::with(name, 0)
    }

    /// Servers that are unused stay for longer than any test takes.
    pub(crate) fn lingering() -> Self {
        Self::with("data", 3600)
    }

    fn with(name: &str, linger: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("config.yaml");
        let limits = format!("limits:\n  linger_seconds: {linger}\n");
        fs::write(&config, limits).expect("a file");
        Self {
            data: folder.path().join(name),
            config,
            _folder: folder,
        }
    }

    /// A folder beside the data directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.config.with_file_name(name)
    }

    /// The home of whoever starts a window.
    pub(crate) fn home(&self) -> PathBuf {
        self.beside("home")
    }

    /// A folder beside the data directory, with a skill in it.
    pub(crate) fn skill(&self, name: &str) -> PathBuf {
        let folder = self.config.with_file_name(name);
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n");
        fs::write(folder.join("SKILL.md"), text).expect("a file");
        folder
    }

    /// The program on this directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).arg("--data").arg(&self.data);
        command.arg("--config").arg(&self.config);
        command.env_clear();
        command.env("REPERTOIRE_FORMAT", "json");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // What lies at the home of whoever runs this is nothing of the test's.
        command.env("HOME", self.home());
        command
    }

    /// Runs a command, and gives its JSON.
    pub(crate) fn run(&self, arguments: &[&str]) -> Json {
        let ran = crate::harness::run(self.command(arguments), LIMIT);
        assert_eq!(ran.code(), Some(0), "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", ran.stdout))
    }

    /// A window that has said what hosts say first.
    pub(crate) fn window(&self) -> Window {
        let mut window = Window::start(self.command(MCP));
        window.begin();
        window
    }

    /// The process that has the directory open, as it wrote there.
    pub(crate) fn holder(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data.join("lock")).ok()?;
        text.trim().parse().ok()
    }

    /// The server's process.
    pub(crate) fn server(&self) -> u32 {
        let found = self.run(&["status"])["process_id"].as_u64();
        u32::try_from(found.expect("a process")).expect("its number")
    }

    /// Waits until nobody has the directory open.
    pub(crate) fn is_left(&self) {
        until("nobody has it open", || {
            let held = store::holder(&self.data).expect("a lock");
            (held == store::Holder::None).then_some(())
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A server that a failed test left behind leaves by itself, in a moment.
        if let Ok(store::Holder::Process(Some(process))) = store::holder(&self.data)
            && process != std::process::id()
        {
            kill(process);
        }
    }
}

/// SIGKILL; the process may be gone.
pub(crate) fn kill(process: u32) {
    let _gone = Command::new("kill")
        .args(["-KILL", &process.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// A process is there, and not only to be waited for.
pub(crate) fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or("Z").starts_with('Z'))
}

/// SIGKILL, and waits until the process is gone.
pub(crate) fn killed(process: u32) {
    kill(process);
    until("it is gone", || (!lives(process)).then_some(()));
}

/// With the tools that publish, list and load.
pub(crate) const MCP: &[&str] = &["mcp", "--toolset", "skills"];

/// A window. Ended with SIGKILL when it is dropped.
pub(crate) struct Window {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Json>,
    /// What came that is no answer.
    pub(crate) notices: Vec<String>,
    sent: u64,
}

impl Window {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("a message");
                // Nobody listens to a window that was dropped.
                let _unheard = sender.send(message);
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            messages,
            notices: Vec::new(),
            sent: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, message: &Json) {
        let stdin = self.stdin.as_mut().expect("an open window");
        writeln!(stdin, "{message}").expect("a window that reads");
    }

    fn next(&mut self) -> Json {
        self.messages.recv_timeout(LIMIT).unwrap_or_else(|_| {
            let mut said = String::new();
            self.child.kill().expect("it can be ended");
            let stderr = self.child.stderr.as_mut().expect("a pipe");
            let _read = stderr.read_to_string(&mut said);
            panic!("no message: {said}")
        })
    }

    pub(crate) fn request(&mut self, method: &str, params: &Json) -> Json {
        self.sent += 1;
        let id = self.sent;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Json) {
        let method = message["method"].as_str().expect("a notice");
        self.notices.push(method.to_owned());
    }

    pub(crate) fn begin(&mut self) {
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let begun = self.request("initialize", &params);
        assert!(begun["result"].is_object(), "{begun}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        // As hosts do: only who asked for the list is told when it changes.
        self.request("tools/list", &json!({}));
    }

    /// Calls a tool: what is structured of its answer, or its refusal.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Json) -> Result<Json, Json> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", &params);
        match &answer["result"] {
            Json::Null => Err(answer["error"]["data"].clone()),
            result if result["isError"] == true => {
                Err(result["_meta"]["repertoire.v1/error"].clone())
            }
            result => Ok(result.clone()),
        }
    }

    /// Publishes a skill of this name.
    pub(crate) fn publish(&mut self, name: &str) -> Result<Json, Json> {
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n");
        let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        let files = json!([{"path": "SKILL.md", "content": content}]);
        let id = format!("local/global/{name}");
        self.call("publish_skill", &json!({"skill_id": id, "files": files}))
    }

    /// All that it says of the skills that there are.
    pub(crate) fn list(&mut self) -> String {
        let listed = self.call("list_skills", &json!({"page_size": 500}));
        listed
            .unwrap_or_else(|refusal| panic!("{refusal}"))
            .to_string()
    }

    /// Waits until it was told that the list of tools changed.
    pub(crate) fn is_told(&mut self) {
        let changed = "notifications/tools/list_changed";
        while !self.notices.iter().any(|notice| notice == changed) {
            let message = self.next();
            self.note(&message);
        }
    }

    /// The host closes the window.
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// How it ended by itself, and what it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("it ends").code(), said)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // It has ended already where it was closed.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Whether there is such a file in a data directory.
pub(crate) fn has(data: &Path, name: &str) -> bool {
    fs::symlink_metadata(data.join(name)).is_ok()
}
