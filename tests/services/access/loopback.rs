//! Who may call over loopback where nobody signs in: a port of this machine is open to each of
//! its users, and to each page in their browsers.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Server;
use crate::support::web::{ask, get};

/// A user that every system has, and that owns nothing: `nobody`.
const OTHER_USER_ID: u32 = 65534;

/// The command of another user; none where this one may run none.
fn as_another_user(script: &str) -> Option<Command> {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("bash");
        command.uid(OTHER_USER_ID).args(["-c", script]);
        return Some(command);
    }
    let sudo = |args: &[&str]| {
        let mut command = Command::new("sudo");
        command.args(["-n", "-u", "nobody"]).args(args);
        command
    };
    let may = sudo(&["true"]).output().is_ok_and(|it| it.status.success());
    may.then(|| sudo(&["bash", "-c", script]))
}

/// What another user of this machine is answered: the status and the body.
fn answered_to_another_user(server: &Server, path: &str) -> Option<(u16, String)> {
    let port = server.url.rsplit(':').next().expect("a port");
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; \
         printf 'GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"
    );
    let Some(mut command) = as_another_user(&script) else {
        testing::skip("commands of another user, as root or by sudo");
        return None;
    };
    let output = command.current_dir("/").output().expect("an answer");
    let text = String::from_utf8(output.stdout).expect("text");
    let status = text.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    Some((status.expect(&text), body.expect(&text)))
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn another_user_of_the_machine_may_do_nothing_where_nobody_signs_in() {
    let server = Server::start();
    let Some((status, body)) = answered_to_another_user(&server, "/api/v1/skills") else {
        return;
    };
    let problem: Value = serde_json::from_str(&body).expect(&body);
    assert_eq!(
        (status, &problem["code"], &problem["detail"]),
        (
            403,
            &json!("PERMISSION_DENIED"),
            &json!(
                "Without sign-in, only the user who runs the server (and root) may see skills over loopback; this connection is of user 65534"
            )
        )
    );
    for (path, expected) in [
        ("/mcp", 403),
        ("/.well-known/agent-skills/index.json", 403),
        ("/healthz", 200),
        ("/metrics", 200),
    ] {
        let answer = answered_to_another_user(&server, path).expect("an answer");
        assert_eq!(answer.0, expected, "{path}: {}", answer.1);
    }
    let caller = answered_to_another_user(&server, "/api/v1/caller").expect("an answer");
    let caller: Value = serde_json::from_str(&caller.1).expect("JSON");
    assert_eq!(
        caller,
        json!({"caller": "anonymous", "actions": [], "skills": [], "sees": []})
    );
    assert_eq!(
        get(&server.url, "/api/v1/skills").await.status,
        200,
        "the owner"
    );
}

/// An address of this machine that is not of its loopback network, by which a packet would leave.
#[cfg(target_os = "linux")]
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: it is a network for documentation.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn another_user_who_calls_from_another_address_of_the_machine_may_do_nothing_either() {
    let server = Server::start();
    // Of a machine without one, nobody calls from there.
    let Some(address) = outer_address() else {
        return;
    };
    let port = server.url.rsplit(':').next().expect("a port");
    let script = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {port}), source_address=('{address}', 0))\n\
         s.sendall(b'GET /api/v1/skills HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n')\n\
         print(s.recv(64).split()[1].decode())"
    );
    let answered = |command: Option<Command>| {
        let output = command?.current_dir("/").output().expect("an answer");
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut own = Command::new("python3");
    own.args(["-c", &script]);
    assert_eq!(answered(Some(own)).as_deref(), Some("200"), "the owner");
    let Some(status) = answered(as_another_user(&format!("python3 -c \"{script}\""))) else {
        return testing::skip("commands of another user, as root or by sudo");
    };
    assert_eq!(status, "403");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_user_of_the_machine_may_call_where_the_operator_says_so() {
    let server = Server::with(&[], "access:\n  loopback: anyone\n");
    let Some((status, body)) = answered_to_another_user(&server, "/api/v1/skills") else {
        return;
    };
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn a_page_of_another_origin_reads_and_writes_nothing_where_nobody_signs_in() {
    let config = "web:\n  allowed_origins: [https://app.example.com, 'http://localhost:4000']\n";
    let server = Server::with(&[], config);
    let deleted = async |origin: &str| {
        let ask = ask(&server.url, "DELETE", "/api/v1/skills/a/b/c");
        let answer = ask.header("origin", origin).send().await;
        answer.refusal()
    };
    let other = "http://localhost:3000";
    let list = ask(&server.url, "GET", "/api/v1/skills");
    assert_eq!(list.header("origin", other).send().await.status, 200);
    assert_eq!(deleted(other).await, (403, "ORIGIN_REFUSED".to_owned()));
    // Its own page, by each of its names, and those that the operator lists.
    let named_otherwise = server.url.replace("127.0.0.1", "localhost");
    assert_eq!(
        deleted(&named_otherwise).await,
        (403, "ORIGIN_REFUSED".to_owned())
    );
    for origin in [
        &server.url,
        "https://app.example.com",
        "http://localhost:4000",
    ] {
        assert_eq!(
            deleted(origin).await,
            (404, "SKILL_NOT_FOUND".to_owned()),
            "{origin}"
        );
    }
    let caller = ask(&server.url, "GET", "/api/v1/caller");
    let caller = caller.header("origin", other).send().await.json();
    assert_eq!(caller["actions"], json!(["read", "load"]));
}

#[tokio::test]
async fn nobody_is_said_to_serve_where_only_tokens_of_workers_may() {
    let server = Server::start();
    let caller = get(&server.url, "/api/v1/caller").await.json();
    assert_eq!(
        caller["actions"],
        json!([
            "read", "load", "call", "learn", "grade", "publish", "activate", "delete", "block",
            "sync", "audit"
        ])
    );
}
