//! Settings and files of TLS, and what is told of them.

use std::path::Path;

use super::{Files, RULES, json_of, refused};
use crate::support::{self, Server};

/// What the program says of a config file that it does not start with.
fn config_refused(folder: &Path, config: &str, args: &[&str]) -> (String, String) {
    let file = folder.join("config.yaml");
    std::fs::write(&file, config).expect("a file");
    let (file, data) = (
        file.display().to_string(),
        folder.join("data").display().to_string(),
    );
    let given = ["--config", &file, "--data", &data, "--json"];
    let output = support::command(&[args, &given].concat());
    let (code, message, _) = refused(&output);
    (code, message)
}

#[test]
fn files_and_settings_that_cannot_be_used_are_told_by_their_line() {
    let files = Files::new();
    let folder = files.folder.path();
    let at = folder.join("config.yaml").display().to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let good = files.tls(None);
    for (config, expected) in [
        (
            good.replace("cert.pem", "none.pem"),
            format!(
                "{at}:2: tls.certificate: there is no file `{}`",
                files.path("none.pem").display()
            ),
        ),
        (
            good.replace("key.pem", "ca.pem"),
            format!(
                "{at}:3: tls.key: `{}` has no private key in PEM",
                files.path("ca.pem").display()
            ),
        ),
        (
            format!("{good}  client_certificates: required\n"),
            format!(
                "{at}:1: tls.client_ca: clients' certificates need the authorities that sign them: name their file, in PEM"
            ),
        ),
        (
            format!("{good}{RULES}"),
            format!(
                "{at}:8: access.certificates: the server asks for no certificates: set `tls.client_certificates` to optional or required, and `tls.client_ca`"
            ),
        ),
    ] {
        let (code, message) = config_refused(folder, &config, &serve);
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("CONFIG_INVALID", expected.as_str())
        );
        let file = at.clone();
        let checked = support::command(&["config", "check", &file, "--json"]);
        let mistakes = &json_of(&checked)["mistakes"];
        let told = format!(
            "{at}:{}: {}: {}",
            mistakes[0]["line"],
            mistakes[0]["key"].as_str().unwrap_or_default(),
            mistakes[0]["message"].as_str().unwrap_or_default()
        );
        assert_eq!(
            (told, mistakes.as_array().map(Vec::len)),
            (expected, Some(1))
        );
    }
    let (code, message) = config_refused(
        folder,
        &format!("{good}access: {{certificates: [{{name: a, allow: [read]}}]}}\n"),
        &serve,
    );
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("a rule names the certificate by one of uri, dns, email, common_name"),
        "{message}"
    );
}

#[test]
fn other_machines_are_served_with_tls_and_sign_in_alone() {
    let files = Files::new();
    let beyond = ["serve", "--listen", "0.0.0.0:0"];
    let (code, message) = config_refused(files.folder.path(), &files.tls(None), &beyond);
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("Set `access.sign_in: tokens`"),
        "{message}"
    );
    let signed = "listen: 0.0.0.0:0\naccess: {sign_in: tokens}\n";
    let (_, message) = config_refused(files.folder.path(), signed, &["serve"]);
    assert!(
        message.contains("Set `tls.certificate` and `tls.key`"),
        "{message}"
    );
    let server = Server::listening(&format!("{signed}{}", files.tls(None)));
    assert!(server.url.starts_with("https://0.0.0.0:"), "{}", server.url);
}

#[test]
fn the_doctor_says_when_the_certificate_ends() {
    let files = Files::new();
    let ended = files.authority.sign(|params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let finding = || {
        let config = files.write("config.yaml", &files.tls(None));
        let data = files.path("data").display().to_string();
        let output = support::command(&["doctor", "--config", &config, "--data", &data, "--json"]);
        let checks = json_of(&output)["checks"]
            .as_array()
            .expect("checks")
            .clone();
        let found = checks
            .into_iter()
            .find(|it| it["check"] == "tls.certificate");
        let found = found.expect("of TLS");
        let text = |name: &str| found[name].as_str().expect("text").to_owned();
        (text("state"), text("found"))
    };
    let (state, found) = finding();
    assert_eq!(state, "ok");
    assert!(
        found.starts_with("the certificate ends at 4096-01-01T00:00:00Z, in "),
        "{found}"
    );
    files.write("cert.pem", &ended.0);
    files.write("key.pem", &ended.1);
    let shown = files.path("cert.pem").display().to_string();
    let expected =
        format!("tls.certificate: the certificate in `{shown}` ended at 2021-01-01T00:00:00Z");
    assert_eq!(finding(), ("warning".to_owned(), expected));
    std::fs::remove_file(files.path("key.pem")).expect("removed");
    let gone = files.path("key.pem").display().to_string();
    assert_eq!(
        finding(),
        (
            "failed".to_owned(),
            format!("tls.key: there is no file `{gone}`")
        )
    );
}
