//! What a lock file says, and installs from it.

use std::process::Stdio;

use serde_json::json;

use super::super::{RISKY, names, versioned};
use super::{Machine, publish, served};
use crate::support::file;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_lock_does_not_say_is_never_installed_from_it() {
    let server = served().await;
    let machine = Machine::new(&server);
    machine.done(&["install", "util"]);
    let lock = machine.lock();
    let at = lock.find("sha256:").expect("a digest");
    let other = format!(
        "{}sha256:{}{}",
        &lock[..at],
        "0".repeat(64),
        &lock[at + 71..]
    );
    for lock in [other.clone(), other.replace("number = 1", "number = 9")] {
        let machine = Machine::new(&server);
        std::fs::write(machine.path("skills.lock"), &lock).expect("a lock");
        let refused = machine.refused(&["install", "--frozen"]);
        let expected = ["SKILL_INSTALL_FAILED", "VERSION_NOT_FOUND"];
        assert!(expected.contains(&refused.0.as_str()), "{refused:?}");
        assert_eq!(names(&machine.path(".claude")), Vec::<String>::new());
    }
    // A version that is gone is chosen anew, where somebody may choose.
    let machine = Machine::new(&server);
    let gone = lock.replace("number = 1", "number = 9");
    std::fs::write(machine.path("skills.lock"), gone).expect("a lock");
    machine.done(&["install"]);
    assert_eq!(machine.lock(), lock);
    for (lock, code) in [
        ("version = 9\n", "LOCAL_FILE_FAILED"),
        ("<<<<<<<", "LOCAL_FILE_FAILED"),
    ] {
        std::fs::write(machine.path("skills.lock"), lock).expect("a lock");
        assert_eq!(machine.refused(&["install"]).0, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_accepts_a_risk_once_and_a_lock_accepts_none() {
    let server = served().await;
    let mut risky = versioned("github/acme/risky", "1.0.0", "");
    risky.files.push(file("setup.sh", RISKY));
    publish(&server, risky).await;
    let machine = Machine::new(&server);
    let refused = machine.refused(&["install", "risky"]);
    assert_eq!(refused.0, "SECURITY_RISK_DETECTED");
    assert!(refused.1.contains("should be looked at"), "{refused:?}");
    assert_eq!(
        (names(&machine.path(".claude")), machine.lock()),
        (vec![], String::new())
    );
    let told = machine.done(&["install", "risky", "--force"]);
    assert_eq!(told["skills"][0]["verdict"], "warning");
    let other = Machine::new(&server);
    std::fs::write(other.path("skills.lock"), machine.lock()).expect("a lock");
    let refused = other.refused(&["install", "--frozen"]);
    assert_eq!(refused.0, "SECURITY_RISK_DETECTED");
    assert!(refused.2.contains("--force"), "{refused:?}");
    assert_eq!(names(&other.path(".claude")), [""; 0]);
    other.done(&["install", "--frozen", "--force"]);
    std::fs::remove_dir_all(other.path(".claude/skills")).expect("removed");
    other.done(&["install", "--frozen"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_npx_is_read_where_there_is_no_other() {
    let server = served().await;
    let machine = Machine::new(&server);
    assert_eq!(machine.refused(&["install"]).0, "LOCAL_FILE_FAILED");
    let lock = json!({"version": 1, "skills": {
        "util": {"source": "acme/skills", "sourceType": "github", "computedHash": "ab"},
        "elsewhere": {"source": "other/skills", "sourceType": "github", "computedHash": "cd"},
        "here": {"source": "../skills", "sourceType": "local", "computedHash": "ef"},
    }});
    std::fs::write(machine.path("skills-lock.json"), lock.to_string()).expect("a lock");
    let (code, told) = machine.told(&["install"]);
    assert_eq!((code, &told["missing"]), (1, &json!(["elsewhere", "here"])));
    assert_eq!(names(&machine.path(".claude/skills")), ["util/SKILL.md"]);
    assert!(machine.lock().contains("github/acme/util"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_both_come_to_be_and_the_lock_names_both() {
    let server = served().await;
    let machine = Machine::new(&server);
    for round in 0..3 {
        publish(
            &server,
            versioned(&format!("github/acme/one-{round}"), "1.0.0", ""),
        )
        .await;
        publish(
            &server,
            versioned(&format!("github/acme/two-{round}"), "1.0.0", ""),
        )
        .await;
        let names = [
            format!("one-{round}"),
            format!("two-{round}"),
            "util".to_owned(),
        ];
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                let mut command = machine.command(&["install", name]);
                command
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the binary")
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().expect("an end");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{stderr}");
        }
        for name in names {
            assert!(
                machine.lock().contains(&format!("github/acme/{name}")),
                "{name}"
            );
        }
    }
    assert_eq!(machine.told(&["audit"]).0, 0);
}
