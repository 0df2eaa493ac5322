//! Many windows on one data directory: each is `repertoire mcp`, as an agent's host starts
//! it, and whoever comes second goes through the server that is there already.

mod local;
mod window;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use std::time::Instant;

use contract::v1::admin_client::AdminClient;
use contract::v1::{GetStatusRequest, LeaveRequest};
use gateway::Refusal;
use serde_json::json;
use server::connect_local;
use window::{LIMIT, MCP, Place, Window, has, kill, killed, lives, until};

use crate::harness::{Server, run};

#[test]
fn two_windows_a_list_and_an_import_at_once_share_a_fresh_directory() {
    let place = Place::new();
    let folder = place.skill("at-once").display().to_string();
    let (mut first, mut second) = std::thread::scope(|scope| {
        let windows = [(); 2].map(|()| scope.spawn(|| place.window()));
        let listed = scope.spawn(|| place.run(&["list"]));
        let imported = scope.spawn(|| place.run(&["import", &folder]));
        let skills = listed.join().expect("a list")["skills"].clone();
        assert!(
            skills.as_array().is_some_and(|all| all.len() >= 6),
            "{skills}"
        );
        imported.join().expect("an import");
        let [first, second] = windows.map(|window| window.join().expect("a window"));
        (first, second)
    });
    for window in [&mut first, &mut second] {
        assert!(window.list().contains("local/global/at-once"));
    }
    // One server has the directory, and both windows are on it.
    let status = place.run(&["status"]);
    assert_eq!(
        json!([status["background"], status["url"], status["connections"]]),
        json!([true, "", 3])
    );
    // What a command or a window writes, every window is told.
    for window in [&mut first, &mut second] {
        window.notices.clear();
    }
    place.run(&["import", &place.skill("later").display().to_string()]);
    for window in [&mut first, &mut second] {
        window.is_told();
        assert!(window.list().contains("local/global/later"));
        window.notices.clear();
    }
    second.publish("by-the-second").expect("published");
    first.is_told();
    assert!(first.list().contains("local/global/by-the-second"));
    first.close();
    assert!(second.list().contains("local/global/at-once"));
    second.close();
    place.is_left();
    until("its log says why it left", || {
        let log = fs::read_to_string(place.data.join("server.log")).expect("a log");
        log.contains("unused=true").then_some(())
    });
    assert!(!has(&place.data, "socket"));
}

/// Publishes until it is acknowledged. The answer of a call that a killed server had is
/// another call away.
fn publish(window: &mut Window, name: &str) {
    for _ in 0..2 {
        match window.publish(name) {
            Ok(_) => return,
            Err(refusal) => assert_eq!(refusal["code"], "SERVER_UNREACHABLE", "{refusal}"),
        }
    }
    panic!("{name} was not published by the call after the kill");
}

#[test]
fn a_server_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost() {
    let place = Place::new();
    let (mut first, mut second) = (place.window(), place.window());
    let loaded = first.call("load_skill", &json!({"skill_id": "write_sql"}));
    let session = loaded.expect("loaded")["structuredContent"]["session_id"].clone();
    // Sessions are written a moment after they change.
    let changed = Instant::now();
    let mut names = BTreeSet::new();
    while changed.elapsed().as_millis() < 200 {
        let name = format!("before-{}", names.len());
        publish(&mut first, &name);
        names.insert(name);
    }
    let mut servers = BTreeSet::from([place.server()]);
    for round in 0..6 {
        let server = place.server();
        // Dead for certain, or while the next calls are under way.
        if round % 2 == 0 {
            killed(server);
        } else {
            kill(server);
        }
        std::thread::scope(|scope| {
            for (name, window) in [("a", &mut first), ("b", &mut second)] {
                names.insert(format!("{name}-{round}"));
                let name = format!("{name}-{round}");
                scope.spawn(move || {
                    // What only reads is answered, whatever became of the server.
                    window.list();
                    publish(window, &name);
                });
            }
        });
        until("it is gone", || (!lives(server)).then_some(()));
        assert!(servers.insert(place.server()), "it is another one");
    }
    for window in [&mut first, &mut second] {
        let listed = window.list();
        for name in &names {
            let id = format!("local/global/{name}\"");
            assert!(listed.contains(&id), "{name} was acknowledged");
        }
    }
    let still = second.call("list_loaded_skills", &json!({"session_id": session}));
    assert!(still.expect("a session").to_string().contains("write_sql"));
    // Windows hear of changes through the new server.
    for window in [&mut first, &mut second] {
        window.notices.clear();
    }
    publish(&mut first, "heard");
    second.is_told();
    drop((first, second));
    place.is_left();
    assert_eq!(place.run(&["verify"])["whole"], true);
}

/// What can be seen of a server that starts, in order.
const STAGES: [&str; 5] = ["", "lock", "store", "FORMAT", "socket"];

#[test]
fn a_server_may_be_killed_at_any_stage_of_its_start() {
    for stage in STAGES {
        let place = Place::new();
        let mut window = Window::start(place.command(MCP));
        let server = until(stage, || {
            let holder = place.holder()?;
            has(&place.data, stage).then_some(holder)
        });
        kill(server);
        window.begin();
        publish(&mut window, "kept");
        killed(place.server());
        assert!(window.list().contains("local/global/kept"), "{stage}");
        window.close();
        place.is_left();
        assert_eq!(place.run(&["verify"])["whole"], true, "{stage}");
    }
}

#[test]
fn a_window_that_started_the_server_may_be_killed_at_any_stage() {
    for stage in STAGES {
        let place = Place::new();
        let starter = Window::start(place.command(MCP));
        until(stage, || {
            (place.holder().is_some() && has(&place.data, stage)).then_some(())
        });
        // Its whole group, as a host does that is impatient.
        kill(starter.pid());
        let mut window = place.window();
        publish(&mut window, "kept");
        drop(starter);
        assert!(window.list().contains("local/global/kept"), "{stage}");
        let mut other = place.window();
        kill(window.pid());
        assert!(other.list().contains("local/global/kept"), "{stage}");
        other.close();
        place.is_left();
    }
}

#[test]
fn a_server_that_no_window_waits_for_leaves_the_directory_at_once() {
    let place = Place::new();
    let mut background = place.command(&["background"]);
    background.stdin(Stdio::null()).stderr(Stdio::null());
    let mut unheard = || {
        let mut server = background.stdout(Stdio::piped()).spawn().expect("a server");
        drop(server.stdout.take());
        server
    };
    // It has the directory by the time its window is gone.
    let mut server = unheard();
    assert!(server.wait().expect("its end").success());
    let log = fs::read_to_string(place.data.join("server.log")).expect("a log");
    let times: Vec<jiff::Timestamp> = log
        .lines()
        .map(|line| {
            line.split(' ')
                .next()
                .expect("a time")
                .parse()
                .expect("a time")
        })
        .collect();
    let [serving, left] = times[..] else {
        panic!("{log}");
    };
    // Where a window may come, it is ten seconds.
    assert!(left.duration_since(serving).as_secs() < 10, "{log}");
    // Another process has the directory, without a socket, until after the window is gone.
    let held = store::Store::open(&place.data, &store::Options::default()).expect("a store");
    let mut server = unheard();
    assert!(server.wait().expect("its end").success());
    drop(held);
    let again = fs::read_to_string(place.data.join("server.log")).expect("a log");
    assert_eq!(again, log, "it never served");
}

#[test]
fn a_server_may_be_killed_while_it_leaves_and_a_window_may_come_then() {
    for is_killed in [true, false] {
        let place = Place::new();
        let mut window = place.window();
        publish(&mut window, "kept");
        let server = place.server();
        window.close();
        // The name goes first, then what was written, then the lock.
        until("it leaves", || (!has(&place.data, "socket")).then_some(()));
        if is_killed {
            kill(server);
        }
        let mut window = place.window();
        assert!(window.list().contains("local/global/kept"));
        window.close();
        place.is_left();
        assert_eq!(place.run(&["verify"])["whole"], true);
    }
}

#[test]
fn a_command_waits_for_another_one_that_has_the_directory_to_itself() {
    let place = Place::new();
    let folders: Vec<_> = (0..6).map(|n| place.skill(&format!("of-{n}"))).collect();
    std::thread::scope(|scope| {
        for folder in &folders {
            let folder = folder.display().to_string();
            let place = &place;
            scope.spawn(move || place.run(&["publish", &folder]));
        }
    });
    let listed = place.run(&["list"]).to_string();
    for number in 0..6 {
        assert!(
            listed.contains(&format!("local/global/of-{number}\"")),
            "{listed}"
        );
    }
}

#[test]
fn the_path_of_a_directory_may_be_longer_than_that_of_a_socket() {
    let place = Place::named(&"d".repeat(200));
    let (mut first, mut second) = (place.window(), place.window());
    publish(&mut first, "far-away");
    assert!(second.list().contains("local/global/far-away"));
    killed(place.server());
    assert!(second.list().contains("local/global/far-away"));
    assert!(place.run(&["list"]).to_string().contains("far-away"));
}

#[test]
fn a_server_that_is_to_stay_takes_over_and_windows_follow_it() {
    let place = Place::new();
    let mut window = place.window();
    publish(&mut window, "kept");
    let background = place.server();
    let (mut server, url) = Server::start(&place.data);
    until("it left", || (!lives(background)).then_some(()));
    assert!(window.list().contains("local/global/kept"));
    let status = place.run(&["status"]);
    assert_eq!(
        json!([status["url"], status["background"]]),
        json!([url, false])
    );
    // It goes, and the window has another one started.
    server.terminate();
    let (status, stderr) = server.ended(LIMIT);
    assert!(status.is_some_and(|status| status.success()), "{stderr}");
    assert!(window.list().contains("local/global/kept"));
    window.close();
    place.is_left();
}

#[test]
fn what_needs_the_directory_for_itself_is_told_who_has_it() {
    let place = Place::new();
    let mut window = place.window();
    window.list();
    let server = place.server();
    for arguments in [&["verify"][..], &["reindex"]] {
        let ran = run(place.command(arguments), LIMIT);
        assert_eq!(ran.code(), Some(1), "{arguments:?}: {}", ran.stdout);
        for word in [
            "DATA_IN_USE",
            &format!("in use by process {server};"),
            "repertoire status",
        ] {
            assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
        }
    }
    let doctor = run(place.command(&["doctor"]), LIMIT).stdout;
    assert!(doctor.contains(&format!("process {server} ")), "{doctor}");
    window.close();
    place.is_left();
    let doctor = run(place.command(&["doctor"]), LIMIT).stdout;
    assert!(doctor.contains("no process has "), "{doctor}");
}

#[test]
fn a_server_that_nobody_uses_is_there_for_the_next_window_and_makes_way_for_the_rest() {
    let place = Place::lingering();
    place.window().close();
    let server = place.server();
    let mut window = place.window();
    publish(&mut window, "kept");
    assert_eq!(place.server(), server);
    window.close();
    for arguments in [&["verify"][..], &["reindex"]] {
        place.run(arguments);
        assert!(!lives(server), "{arguments:?}");
        place.window().close();
    }
    assert!(
        place
            .run(&["list"])
            .to_string()
            .contains("local/global/kept")
    );
}

#[test]
fn a_window_has_codebases_read_where_it_was_started_and_nowhere_else() {
    let place = Place::new();
    let window = |name: &str, manifest: &str| {
        let folder = place.skill(name);
        fs::write(folder.join(manifest), "{\"name\": \"it\"}").expect("a file");
        let mut command = place.command(&["mcp", "--toolset", "discovery-core"]);
        command.current_dir(&folder);
        let mut window = Window::start(command);
        window.begin();
        (window, folder)
    };
    let (mut first, folder) = window("one", "package.json");
    let (mut second, _) = window("two", "composer.json");
    let mut seen = |path: &str| {
        let both = [&mut first, &mut second];
        both.map(|window| window.call("analyze_codebase", &json!({"path": path})))
            .map(|seen| {
                seen.map_or_else(
                    |refusal| refusal["message"].to_string(),
                    |seen| seen.to_string(),
                )
            })
    };
    let [one, two] = seen(".");
    assert!(one.contains("npm") && !one.contains("composer"), "{one}");
    assert!(two.contains("composer") && !two.contains("npm"), "{two}");
    // The folder of the other one is out of reach.
    let [one, two] = seen(&folder.display().to_string());
    assert!(one.contains("npm"), "{one}");
    assert!(two.ends_with("may be analysed\""), "{two}");
}

#[test]
fn a_window_on_a_directory_that_cannot_be_opened_says_why() {
    let place = Place::new();
    fs::create_dir(&place.data).expect("a folder");
    fs::write(place.data.join("thesis.txt"), "years of work").expect("a file");
    let (code, said) = Window::start(place.command(MCP)).ended();
    assert_eq!(code, Some(1), "{said}");
    for word in [
        "DATA_UNUSABLE",
        "thesis.txt",
        "name another directory with --data",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(fs::read_dir(&place.data).expect("a folder").count(), 1);
}

#[tokio::test]
async fn a_window_of_another_contract_is_told_so() {
    let place = Place::new();
    let mut window = place.window();
    window.list();
    let channel = connect_local(&place.data).await.expect("a server");
    let mut admin = AdminClient::new(channel);
    let mut request = tonic::Request::new(GetStatusRequest {});
    let metadata = request.metadata_mut();
    metadata.insert("repertoire-contract", "another".parse().expect("text"));
    let refused = admin.get_status(request).await.expect_err("a refusal");
    let refused = Refusal::from(refused);
    assert_eq!(refused.code, "CONTRACT_DIFFERS");
    let server = place.server();
    assert!(
        refused.text().contains(&format!("`kill {server}`")),
        "{}",
        refused.text()
    );
    // Whoever says nothing of its contract is served, and may have the server leave.
    admin.leave(LeaveRequest {}).await.expect("it leaves");
    until("it left", || (!lives(server)).then_some(()));
    assert!(window.list().contains("write_sql"));
}

#[tokio::test]
async fn a_server_can_be_reached_before_it_says_where_it_is() {
    let place = Place::new();
    // Until this pipe is read, it takes nothing more.
    let (mut log, mut stderr) = std::io::pipe().expect("a pipe");
    let filled = vec![b'\n'; 1 << 16];
    stderr.write_all(&filled).expect("written");
    let command = place.command(&["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
    let server = tokio::process::Command::from(command)
        .stderr(stderr)
        .kill_on_drop(true)
        .spawn();
    let _server = server.expect("the program starts");
    let socket = place.data.join("socket");
    until("the socket takes a connection", || {
        UnixStream::connect(&socket).ok()
    });
    let mut before = vec![0; filled.len()];
    log.read_exact(&mut before)
        .expect("what it was filled with");
    let mut line = String::new();
    BufReader::new(log).read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("listening on http://");
    TcpStream::connect(address.expect("an address")).expect("a connection");
}
