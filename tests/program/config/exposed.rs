//! Secrets in a config file that others on the machine may read.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{folder, run};

#[test]
fn a_file_with_secrets_that_everybody_may_read_is_warned_of_and_does_not_fail() {
    let folder = folder();
    let file = folder.path().join("r.yaml");
    let text = "listen: 127.0.0.1:0\ntools:\n  workers:\n    - {name: w, token: s3cret-s3cret-s3cret-s3cret, skills: [acme/*]}\n";
    std::fs::write(&file, text).expect("a file");
    let looked = |mode, args: &[&str]| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("a mode");
        let (code, stdout, stderr) = run(folder.path(), args, &[]);
        assert!(!stdout.contains("s3cret"), "{stdout}");
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        serde_json::from_str::<Value>(&stdout).expect("JSON")
    };
    let check = ["config", "check", "r.yaml", "--json"];
    let doctor = ["doctor", "--config", "r.yaml", "--data", "none", "--json"];
    let is_warned = |told: &Value| {
        let mut checks = told["checks"].as_array().expect("a list").iter();
        checks.any(|it| it["check"] == "config.secrets" && it["state"] == "warning")
    };
    let told = looked(0o644, &check);
    let warnings = told["warnings"].as_array().expect("a list");
    let warning = warnings[0].as_str().expect("text");
    assert!(warning.contains("(tools.workers[0].token)"), "{warning}");
    assert_eq!((&told["ok"], warnings.len()), (&json!(true), 1));
    assert!(is_warned(&looked(0o644, &doctor)));
    assert_eq!(looked(0o640, &check)["warnings"], json!([]));
    assert!(!is_warned(&looked(0o640, &doctor)));
}
