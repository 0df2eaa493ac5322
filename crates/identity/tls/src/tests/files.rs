//! Files of certificates: loaded, renewed, and refused.

use std::os::unix::fs::symlink;
use std::path::Path;

use jiff::Timestamp;
use rcgen::date_time_ymd;

use super::*;
use crate::Report;
use model::{Clock as _, SystemClock};

#[tokio::test]
async fn a_link_that_is_put_in_place_of_another_one_is_a_change() {
    let files = Files::new();
    // As Kubernetes mounts a secret: cert.pem -> ..data/cert.pem, ..data -> ..1.
    let mounted = |name: &str| {
        let folder = files.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        let (certificate, key) = files.authority.sign(|_| {});
        std::fs::write(folder.join("cert.pem"), certificate).expect("a file");
        std::fs::write(folder.join("key.pem"), key).expect("a file");
    };
    mounted("..1");
    symlink("..1", files.path("..data")).expect("a link");
    for name in ["cert.pem", "key.pem"] {
        std::fs::remove_file(files.path(name)).expect("removed");
        symlink(Path::new("..data").join(name), files.path(name)).expect("a link");
    }
    let tls = Tls::load(&files.config()).expect("loaded");
    assert_eq!(look(&tls), (ReloadOutcome::Same, ReloadOutcome::Same));
    mounted("..2");
    symlink("..2", files.path("..data_tmp")).expect("a link");
    std::fs::rename(files.path("..data_tmp"), files.path("..data")).expect("swapped");
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
    assert_eq!(tls.reload(), ReloadOutcome::Same);
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing_and_are_told() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let failing = || tls.gauges().map(|(_, _, value)| value)[1];
    let kept = |look: (ReloadOutcome, ReloadOutcome)| match look {
        (ReloadOutcome::Unsettled, ReloadOutcome::Kept(mistake)) => mistake.to_string(),
        look => panic!("{look:?}"),
    };
    let whole = std::fs::read_to_string(files.path("cert.pem")).expect("a file");
    let (other, _) = files.authority.sign(|_| {});
    files.write("cert.pem", &other);
    let (key, certificate) = (files.path("key.pem"), files.path("cert.pem"));
    let pair = format!(
        "tls.key: the key in `{}` is not that of the certificate in `{}`",
        key.display(),
        certificate.display()
    );
    assert_eq!(failing(), 0);
    assert_eq!(kept(look(&tls)), pair);
    assert_eq!(failing(), 1);
    assert!(matches!(tls.reload(), ReloadOutcome::Kept(_)));
    std::fs::remove_file(&certificate).expect("removed");
    let gone = format!(
        "tls.certificate: there is no file `{}`",
        certificate.display()
    );
    assert_eq!(kept(look(&tls)), gone);
    let (ended, ended_key) = files.authority.sign(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    files.write("cert.pem", &ended);
    let old_key = std::fs::read_to_string(&key).expect("a file");
    files.write("key.pem", &ended_key);
    let ended = format!(
        "tls.certificate: the certificate in `{}` ended at 2021-01-01T00:00:00Z",
        certificate.display()
    );
    assert_eq!(kept(look(&tls)), ended);
    let (server, client) = handshake(&tls, &files.client(None, &[])).await;
    assert!(
        server.is_ok() && client.is_ok(),
        "what was loaded serves on"
    );
    // Back to what is loaded, or on to something that works.
    files.write("cert.pem", &whole);
    files.write("key.pem", &old_key);
    assert_eq!((tls.reload(), failing()), (ReloadOutcome::Same, 0));
    files.renew();
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
}

#[test]
fn a_file_that_is_half_written_is_not_taken() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (certificate, key) = files.authority.sign(|_| {});
    files.write("cert.pem", &certificate);
    assert_eq!(tls.reload(), ReloadOutcome::Unsettled);
    files.write("key.pem", &key);
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
}

#[test]
fn what_cannot_be_loaded_is_told_by_its_setting() {
    let files = Files::new();
    let path = |name: &str| Some(files.path(name));
    let told = |change: &dyn Fn(&mut TlsConfig)| {
        let mut config = files.config();
        change(&mut config);
        config.mistake().expect("a mistake").to_string()
    };
    let at = |name: &str| files.path(name).display().to_string();
    let (certificate, key) = (at("cert.pem"), at("key.pem"));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    files.write("encrypted.pem", encrypted);
    files.write("damaged.pem", "-----BEGIN CERTIFICATE-----\nAAAA");
    files.write(
        "no.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let one = std::fs::read_to_string(files.path("cert.pem")).expect("a file");
    files.write("long.pem", &one.repeat(17));
    files.write("large.pem", &" ".repeat((1 << 20) + 1));
    std::fs::create_dir(files.path("folder")).expect("a folder");
    for (message, expected) in [
        (
            told(&|it| it.certificate = None),
            "tls.certificate: TLS needs the server's certificate: name its file, in PEM".to_owned(),
        ),
        (
            told(&|it| it.key = None),
            "tls.key: TLS needs the key of the certificate: name its file, in PEM".to_owned(),
        ),
        (
            told(&|it| it.certificate = path("none.pem")),
            format!("tls.certificate: there is no file `{}`", at("none.pem")),
        ),
        (
            told(&|it| it.certificate = path("folder")),
            format!("tls.certificate: `{}` is no file", at("folder")),
        ),
        (
            told(&|it| it.certificate = path("large.pem")),
            format!("tls.certificate: `{}` has more than 1 MiB", at("large.pem")),
        ),
        (
            told(&|it| it.certificate = path("key.pem")),
            format!("tls.certificate: `{key}` has no certificate in PEM"),
        ),
        (
            told(&|it| it.certificate = path("damaged.pem")),
            format!("tls.certificate: `{}` is damaged PEM", at("damaged.pem")),
        ),
        (
            told(&|it| it.certificate = path("no.pem")),
            format!("tls.certificate: `{}` has no certificate that can be read", at("no.pem")),
        ),
        (
            told(&|it| it.certificate = path("long.pem")),
            format!(
                "tls.certificate: `{}` has 17 certificates, more than the 16 that may stand between a server and its authority",
                at("long.pem")
            ),
        ),
        (
            told(&|it| it.key = path("cert.pem")),
            format!("tls.key: `{certificate}` has no private key in PEM"),
        ),
        (
            told(&|it| it.key = path("encrypted.pem")),
            format!(
                "tls.key: the key in `{}` is encrypted: decrypt it, for instance with `openssl pkey -in FILE -out FILE`",
                at("encrypted.pem")
            ),
        ),
        (
            told(&|it| it.client_ca = path("cert.pem")),
            "tls.client_certificates: `tls.client_ca` is for clients' certificates: write optional or required here, or leave it out".to_owned(),
        ),
        (
            told(&|it| it.client_certificates = ClientCertificates::Required),
            "tls.client_ca: clients' certificates need the authorities that sign them: name their file, in PEM".to_owned(),
        ),
    ] {
        assert_eq!(message, expected);
    }
    let relative = TlsConfig {
        certificate: Some("none/cert.pem".into()),
        ..files.config()
    };
    let absolute = std::path::absolute("none/cert.pem").expect("a path");
    assert_eq!(
        relative.mistake().expect("a mistake").message(),
        format!("there is no file `{}`", absolute.display())
    );
    assert_eq!(files.config().mistake(), None);
    assert_eq!(TlsConfig::default().mistake(), None);
}

#[test]
fn a_file_as_long_as_it_may_be_is_loaded() {
    let files = Files::new();
    let one = std::fs::read_to_string(files.path("cert.pem")).expect("a file");
    let largest = [one.as_str(), &" ".repeat((1 << 20) - one.len())].concat();
    for text in [one.repeat(16), largest] {
        files.write("cert.pem", &text);
        assert_eq!(files.config().mistake(), None, "{} bytes", text.len());
    }
}

#[test]
fn settings_are_read_as_they_are_documented() {
    let config: TlsConfig = serde_yaml::from_str(
        "{certificate: a.pem, key: b.pem, client_ca: c.pem, client_certificates: required}",
    )
    .expect("settings");
    assert_eq!(
        config,
        TlsConfig {
            certificate: Some("a.pem".into()),
            key: Some("b.pem".into()),
            client_ca: Some("c.pem".into()),
            client_certificates: ClientCertificates::Required,
        }
    );
    assert!(config.is_on() && !TlsConfig::default().is_on());
    let asks = |client_certificates| {
        let config = TlsConfig {
            client_certificates,
            ..TlsConfig::default()
        };
        config.asks_clients()
    };
    let all = [
        ClientCertificates::None,
        ClientCertificates::Optional,
        ClientCertificates::Required,
    ];
    assert_eq!(all.map(asks), [false, true, true]);
}

#[test]
fn an_operator_is_told_of_a_key_that_everybody_may_read_or_write() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let warnings = |mode| {
        let key = files.path("key.pem");
        std::fs::set_permissions(key, PermissionsExt::from_mode(mode)).expect("set");
        tls.warnings(SystemClock.now()).len()
    };
    let modes = [0o600, 0o640, 0o660, 0o604, 0o602, 0o601];
    assert_eq!(modes.map(warnings), [0, 0, 0, 1, 1, 0]);
}

#[test]
fn a_certificate_that_has_ended_makes_way_for_any_other_one() {
    let files = Files::new();
    let ended = |year| {
        let (certificate, key) = files.authority.sign(|params| {
            params.not_before = date_time_ymd(year, 1, 1);
            params.not_after = date_time_ymd(year + 1, 1, 1);
        });
        files.write("cert.pem", &certificate);
        files.write("key.pem", &key);
    };
    ended(2020);
    let tls = Tls::load(&files.config()).expect("loaded");
    ended(2021);
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
    files.renew();
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
}

#[test]
fn an_operator_is_told_of_an_end_that_is_near_and_of_a_key_that_others_may_read() {
    let files = Files::new();
    let (certificate, key) = files.authority.sign(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 31);
    });
    files.write("cert.pem", &certificate);
    files.write("key.pem", &key);
    let report = |at: &str| {
        let at: Timestamp = at.parse().expect("a time");
        files.config().report(at).expect("files").expect("TLS")
    };
    let of = |found: &str, is_urgent| Report {
        found: found.to_owned(),
        is_urgent,
    };
    let end = "the certificate ends at 2030-01-31T00:00:00Z";
    assert_eq!(
        report("2030-01-10T00:00:00Z"),
        of(&format!("{end}, in 21 days"), false)
    );
    assert_eq!(
        report("2030-01-10T00:00:01Z"),
        of(&format!("{end}, in 20 days"), true)
    );
    let shown = files.path("cert.pem").display().to_string();
    let ended =
        format!("tls.certificate: the certificate in `{shown}` ended at 2030-01-31T00:00:00Z");
    assert_eq!(report("2030-01-31T00:00:00Z"), of(&ended, true));
    std::fs::set_permissions(files.path("key.pem"), PermissionsExt::from_mode(0o644)).expect("set");
    let key = files.path("key.pem").display().to_string();
    let open = format!(
        "{end}, in 395 days; tls.key: everybody on this machine may read or write `{key}`; `chmod 0640` or stricter keeps the key"
    );
    assert_eq!(report("2029-01-01T00:00:00Z"), of(&open, true));
    assert_eq!(TlsConfig::default().report(SystemClock.now()), Ok(None));
}
