use super::*;

/// Random letters, made where they are needed: none stands in this file.
fn letters(count: usize) -> String {
    (0..count)
        .map(|at| char::from(b"q7Zk2mWx9LpR4tVb8NcY"[at % 20]))
        .collect()
}

#[test]
fn credentials_are_known_by_their_form() {
    let key = format!("AKIA{}", letters(16).to_uppercase());
    let github = format!("ghp_{}", letters(36));
    let jwt = format!("eyJ{0}.eyJ{0}.{0}", letters(20));
    for (credential, what) in [
        (&key, "an AWS access key"),
        (&github, "a GitHub token"),
        (&format!("sk-ant-api03-{}", letters(40)), "an Anthropic key"),
        (&format!("xoxb-{}", letters(30)), "a Slack token"),
        (&format!("rpt_{}", letters(43)), "a token of Repertoire"),
        (&format!("rpt_-_{}", letters(41)), "a token of Repertoire"),
        (&jwt, "a signed token"),
    ] {
        let text = format!("Set it to {credential}, then go on.");
        let found: Vec<_> = credentials(&text).collect();
        let expected = Credential {
            at: 10,
            len: credential.len(),
            what,
            is_certain: true,
        };
        assert_eq!(found, [expected], "{text}");
        assert_eq!(redacted(&text), "Set it to [redacted], then go on.");
    }
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
    assert_eq!(redacted(pem), "[redacted]-----END RSA PRIVATE KEY-----");
}

#[test]
fn what_is_no_credential_stays() {
    for text in [
        "task-management and risk-averse, disk-ghp_",
        "Bearer rpt_… and rpt_monthly_sales_by_region",
        "AKIA is what the keys of AWS begin with",
        "-----BEGIN CERTIFICATE-----",
        "https://example.com/a@b and mail@example.com",
        "token=$TOKEN",
        "eyJ alone",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn a_password_in_an_address_is_not_repeated() {
    for (text, shown) in [
        (
            "skill://me:s3cret@host/x is not there",
            "skill://[redacted]@host/x is not there",
        ),
        ("https://s3cret@host", "https://[redacted]@host"),
        ("'x?token=abcdefgh1&y=2'", "'x?token=[redacted]&y=2'"),
        ("Bearer abcdefgh12345678", "Bearer [redacted]"),
    ] {
        assert_eq!(redacted(text), shown);
    }
}

#[test]
fn each_byte_is_looked_at_a_bounded_number_of_times() {
    let key = format!("AKIA{}-", letters(16).to_uppercase());
    let token = format!("sk-ant-{}", ".".repeat(40));
    for piece in [
        "eyJ-",
        "eyJ.",
        "-eyJaaaaaaaa.eyJaaaaaaaa",
        "-eyJ.eyJ-eyJ",
        "token=",
        "token=a&",
        "Bearer ",
        "sk-",
        "-AKIA",
        "AIza-",
        "xoxb-",
        "SG.",
        "://",
        "://a@",
        "-----BEGIN ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\n-----END ",
        &key,
        &token,
    ] {
        let text = piece.repeat(20_000 / piece.len());
        for text in [text.clone(), format!("{text}{}", ".".repeat(20_000))] {
            for is_cut in [false, true] {
                let mut scan = Scan::new(&text, is_cut);
                for _ in scan.by_ref() {}
                let max = 8 * text.len();
                assert!(scan.scanned <= max, "{piece:?}: {} bytes", scan.scanned);
            }
        }
    }
}

#[test]
fn what_a_cut_leaves_of_a_credential_is_not_repeated() {
    for secret in [
        format!("AKIA{}", letters(16).to_uppercase()),
        format!("ghp_{}", letters(36)),
        format!("sk-ant-api03-{}", letters(40)),
        format!("eyJ{0}.eyJ{0}.{0}", letters(20)),
    ] {
        for end in 1..=secret.len() {
            let text = format!("Set it to {}", &secret[..end]);
            let prefix = FORMS.iter().find(|form| secret.starts_with(form.0));
            let prefix = prefix.expect("its form").0.len();
            // Only what comes behind the prefix is secret.
            let is_shown = !redacted_start(&text).contains("[redacted]");
            assert!(!is_shown || end <= prefix, "{text}");
        }
    }
    for (start, shown) in [
        ("https://me:s3cr", "https://[redacted]"),
        ("https://me:s@cr", "https://[redacted]"),
        ("https://example.com/a", "https://example.com/a"),
        ("x?token=abc", "x?token=[redacted]"),
        ("Bearer ab, and mo", "Bearer ab, and mo"),
    ] {
        assert_eq!(redacted_start(start), shown);
    }
}

#[test]
fn what_documentation_shows_is_a_placeholder() {
    assert!(is_placeholder("AKIAIOSFODNN7EXAMPLE"));
    assert!(is_placeholder(
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    ));
    assert!(!is_placeholder(&format!("ghp_{}", letters(36))));
}
