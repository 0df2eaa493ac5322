//! What a child may not do, whatever code runs in it, and what becomes of children.

use std::time::Duration;

use crate::common::{limits, number, sandbox};
use repertoire_sandbox::{Job, Limits, Outcome, Program, Sandbox, SandboxError, Stopped, Value};
use rustix::process::{Pid, Signal};

fn job(cases: &[&str], limits: Limits) -> Job {
    Job {
        program: Program::Expressions {
            setup: String::new(),
            solution: String::new(),
            cases: cases.iter().map(|case| (*case).to_owned()).collect(),
        },
        limits,
    }
}

async fn attempt(name: &str) -> Outcome {
    let sandbox = Sandbox::new(
        env!("CARGO_BIN_EXE_sandbox-attempts").into(),
        vec![name.into()],
    );
    let outcomes = sandbox.run(&job(&["1"], limits())).await;
    outcomes.expect("a sandbox that works").remove(0)
}

#[tokio::test]
async fn every_confinement_holds_where_these_tests_run() {
    let confinement = sandbox().confinement().await.expect("a child");
    assert!(confinement.is_whole(), "{confinement}");
}

#[tokio::test]
async fn native_code_that_asks_the_system_for_anything_is_ended() {
    assert_eq!(attempt("nothing").await, Outcome::Value(Value::Bool(true)));
    for name in [
        "open",
        "environment",
        "list",
        "create",
        "delete",
        "run",
        "tcp",
        "udp",
        "unix",
        "thread",
        "write-inherited",
        "read-inherited",
        "read-pipe",
        "signal",
        "raise",
        "priority",
        "link",
        "where",
    ] {
        assert_eq!(
            attempt(name).await,
            Outcome::Stopped(Stopped::Forbidden),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_child_that_does_not_keep_to_the_protocol_is_the_sandboxes_fault() {
    let told = |program: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(Into::into).collect();
        let sandbox = Sandbox::new(program.into(), arguments);
        async move {
            sandbox
                .run(&job(&["1"], limits()))
                .await
                .expect_err("a fault")
        }
    };
    assert!(matches!(
        told("/no/such/program", &[]).await,
        SandboxError::Start(_)
    ));
    for (program, arguments) in [
        ("/bin/true", vec![]),
        ("/bin/false", vec![]),
        ("/bin/echo", vec!["what"]),
        ("/bin/echo", vec![r#"{"Outcome":{"Value":"Null"}}"#]),
        ("/bin/sh", vec!["-c", "kill -SEGV $$"]),
        ("/bin/sh", vec!["-c", "yes | head -c 9000000"]),
    ] {
        let error = told(program, &arguments).await;
        assert!(matches!(error, SandboxError::Broke(_)), "{error}");
    }
    let confined = r#"{"Confined":{"rlimits":true,"landlock":7,"seccomp":true}}"#;
    let value = r#"{"Outcome":{"Value":"Null"}}"#;
    let too_many = format!("{confined}\n{value}\n{value}");
    let error = told("/bin/echo", &[&too_many]).await;
    assert!(matches!(error, SandboxError::Broke(_)), "{error}");
    let error = told("/bin/sh", &["-c", "echo the reason >&2; exit 3"]).await;
    assert_eq!(
        error.to_string(),
        "the sandbox broke: exit status: 3: the reason"
    );
}

#[tokio::test]
async fn how_a_child_ends_says_what_its_cases_came_to() {
    let confined = r#"echo '{"Confined":{"rlimits":true,"landlock":7,"seccomp":true}}'"#;
    for (end, stopped) in [
        ("kill -XCPU $$", Stopped::Time),
        ("kill -KILL $$", Stopped::Memory),
        ("kill -SYS $$", Stopped::Forbidden),
        (
            "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$",
            Stopped::Memory,
        ),
        ("yes x | tr -d '\\n'", Stopped::Output),
    ] {
        let script = format!("{confined}; echo '{{\"Outcome\":{{\"Value\":\"Null\"}}}}'; {end}");
        let sandbox = Sandbox::new("/bin/sh".into(), vec!["-c".into(), script.into()]);
        let outcomes = sandbox.run(&job(&["1", "2", "3"], limits())).await;
        let expected = [
            Outcome::Value(Value::Null),
            Outcome::Stopped(stopped),
            Outcome::Stopped(stopped),
        ];
        assert_eq!(outcomes.expect("a child"), expected, "{end}");
    }
}

#[tokio::test]
async fn a_child_that_will_not_end_is_ended_with_all_it_started() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let script = "sleep 1000 & sleep 1000";
    let short = Limits {
        wall_time: Duration::from_millis(300),
        ..Limits::default()
    };
    // Whoever is left holds the pipe open.
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).expect("inherited");
    let sandbox = Sandbox::new("/bin/sh".into(), vec!["-c".into(), script.into()]);
    let error = sandbox
        .run(&job(&["1"], short))
        .await
        .expect_err("no child");
    assert!(matches!(error, SandboxError::Broke(_)), "{error}");
    drop(writer);
    let (told, ended) = tokio::sync::oneshot::channel();
    // A thread that nobody waits for, if it waits for ever.
    std::thread::spawn(move || {
        let read = std::io::Read::read_to_end(&mut reader, &mut Vec::new());
        told.send(read.expect("read"))
    });
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert_eq!(ended.expect("in time").expect("told"), 0);
}

#[tokio::test]
async fn a_job_that_nobody_waits_for_leaves_no_process() {
    let program = env!("CARGO_BIN_EXE_sandbox-child");
    let sandbox = Sandbox::new(program.into(), vec!["nobody-waits".into()]);
    let endless = Limits {
        time: Duration::from_secs(600),
        wall_time: Duration::from_secs(600),
        ..Limits::default()
    };
    let looping = job(&["while (true) {}"], endless);
    let running = tokio::spawn(async move { sandbox.run(&looping).await });
    let id = loop {
        tokio::task::yield_now().await;
        if let Some(id) = process("nobody-waits") {
            break id;
        }
    };
    running.abort();
    assert!(running.await.expect_err("dropped").is_cancelled());
    let gone = async {
        while std::path::Path::new(&format!("/proc/{id}")).exists() {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(20), gone).await;
    gone.expect("neither a process nor what is left of one");
}

#[tokio::test]
async fn a_child_that_gets_no_processor_loses_none_of_its_time() {
    let program = env!("CARGO_BIN_EXE_sandbox-child");
    let sandbox = Sandbox::new(program.into(), vec!["held-up".into()]);
    let short = Limits {
        time: Duration::from_secs(1),
        ..limits()
    };
    let counting = "let i = 0; while (i < 500000) i++; i";
    let job = job(&[counting], short);
    let running = tokio::spawn(async move { sandbox.run(&job).await });
    let id = loop {
        tokio::task::yield_now().await;
        if let Some(id) = process("held-up") {
            break Pid::from_raw(i32::try_from(id).expect("a number")).expect("a process");
        }
    };
    rustix::process::kill_process(id, Signal::STOP).expect("stopped");
    // Longer than its time, shorter than what the clock gives it.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    rustix::process::kill_process(id, Signal::CONT).expect("continued");
    let outcomes = running.await.expect("no panic").expect("a child");
    assert_eq!(outcomes, [number(500_000.0)]);
}

/// The process that was started with this argument.
fn process(argument: &str) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("a list");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|id: &u32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.ends_with(format!("\0{argument}\0").as_bytes())
        })
}

#[tokio::test]
async fn many_run_at_once_and_none_takes_the_answer_of_another() {
    let mut runs = tokio::task::JoinSet::new();
    for run in 0..50_u32 {
        runs.spawn(async move {
            let job = job(&[&format!("{run} + 0.5")], limits());
            (run, sandbox().run(&job).await.expect("a child"))
        });
    }
    let mut count = 0;
    while let Some(done) = runs.join_next().await {
        let (run, outcomes) = done.expect("no panic");
        assert_eq!(outcomes, [number(f64::from(run) + 0.5)]);
        count += 1;
    }
    assert_eq!(count, 50);
}

#[tokio::test]
async fn an_operator_can_refuse_to_run_half_confined() {
    let whole = sandbox().require(true).run(&job(&["1"], limits())).await;
    assert_eq!(whole.expect("a child"), [number(1.0)]);
    // A child that has a second thread would be half outside.
    let refused = r#"{"Refused":"not every confinement holds"}"#;
    let sandbox = Sandbox::new("/bin/echo".into(), vec![refused.into()]);
    let error = sandbox
        .run(&job(&["1"], limits()))
        .await
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the sandbox refuses to run: not every confinement holds"
    );
}
