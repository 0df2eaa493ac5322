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
                let mut scanned = 0;
                for forms in [&*PROVED, &*HINTED] {
                    let mut scan = Scan::new(&text, forms, is_cut);
                    for _ in scan.by_ref() {}
                    scanned += scan.scanned;
                }
                let max = 8 * text.len();
                assert!(scanned <= max, "{piece:?}: {scanned} bytes");
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
            let prefix = PROOFS.iter().find(|form| secret.starts_with(form.0));
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

proptest::proptest! {
    #[test]
    fn what_is_around_a_token_does_not_hide_it(
        token in any_token(),
        (before, after) in proptest::sample::select(AROUND.to_vec()),
        words in "[a-z ,.:\n]{0,40}",
    ) {
        let text = format!("{words} {before}{token}{after} {words}");
        let at = words.len() + 1 + before.len();
        let found: Vec<(usize, usize)> = credentials(&text).map(|found| (found.at, found.len)).collect();
        proptest::prop_assert_eq!(found, [(at, token.len())], "{}", text);
        proptest::prop_assert!(!redacted(&text).contains(&token));
    }
}

/// What comes before and behind tokens: names of other forms above all.
const AROUND: &[(&str, &str)] = &[
    ("", ""),
    ("Bearer ", ""),
    ("token=", "&page=2"),
    ("api_key=", ";"),
    ("password=", ","),
    ("secret=", ")"),
    ("https://", "@host.example/x"),
    ("https://user:", "@host.example/x"),
    ("\"", "\""),
    ("Authorization: Bearer ", "\\n"),
    ("a\\n", "\\n"),
    ("q=a%20", "%20b"),
];

/// A token of any kind of letters and digits, random but for what its form fixes.
fn any_token() -> impl proptest::strategy::Strategy<Value = String> {
    proptest::prop_oneof![
        "ghp_[A-Za-z0-9]{36}",
        "sk-ant-api03-[A-Za-z0-9]{40}",
        "AKIA[A-Z0-9]{16}",
        "xoxb-[0-9]{11}-[A-Za-z0-9]{24}",
        "sk_live_[A-Za-z0-9]{24}",
        "npm_[A-Za-z0-9]{36}",
        "eyJ[A-Za-z0-9]{20}\\.eyJ[A-Za-z0-9]{20}\\.[A-Za-z0-9]{30}",
    ]
}
