//! Who calls.

mod loopback;

use super::*;
use access::Role;
use futures_util::FutureExt as _;
use jiff::Timestamp;
use model::SystemClock;
use store::{Options, Store};

/// It is always the same time.
struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Of a server without tokens, at a time.
fn sign_in_at(config: &str, now: Timestamp) -> SignIn {
    let config: SignInConfig = serde_yaml::from_str(config).expect("a config");
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    SignIn::new(&config, tokens, Arc::new(At(now))).expect("a sign-in")
}

async fn sign_in(config: &str) -> (SignIn, Secret) {
    let config: SignInConfig = serde_yaml::from_str(config).expect("a config");
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let secret = Secret::new([7; 32]);
    let new = crate::NewToken {
        name: "ci".to_owned(),
        rights: Rights::to_all(Role::Reader.actions()),
        expires_at: None,
    };
    let by = Principal::local();
    let made = tokens.create(new, &secret, &by, Timestamp::UNIX_EPOCH);
    made.await.expect("made");
    let sign_in = SignIn::new(&config, tokens, Arc::new(SystemClock));
    (sign_in.expect("a sign-in"), secret)
}

fn shows(value: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, value.parse().expect("a value"));
    headers
}

fn recognize(sign_in: &SignIn, headers: &HeaderMap, is_worker: bool) -> Result<Access, Failure> {
    sign_in.recognize(&sign_in.shown(headers), is_worker)
}

#[tokio::test]
async fn without_sign_in_everybody_may_do_all_but_look_after_the_server() {
    let (sign_in, secret) = sign_in("{}").await;
    let access = recognize(
        &sign_in,
        &shows(&format!("Bearer {}", secret.reveal())),
        false,
    )
    .expect("anonymous");
    assert!(access.caller.is_anonymous());
    let denied: Vec<_> = Action::ALL
        .iter()
        .filter(|action| !access.caller.rights.allow(**action))
        .collect();
    assert_eq!(
        denied,
        [
            &Action::Review,
            &Action::Serve,
            &Action::Operate,
            &Action::Administer
        ]
    );
    // Workers have tokens of their own, which `tools` checks.
    let worker = recognize(&sign_in, &HeaderMap::new(), true).expect("a worker");
    let allowed: Vec<_> = worker.caller.rights.actions.iter().collect();
    assert_eq!(allowed, [Action::Serve]);
    assert!(
        Action::ALL
            .iter()
            .all(|a| Access::local().caller.rights.allow(*a))
    );
}

#[tokio::test]
async fn with_tokens_nobody_in_particular_may_do_what_the_operator_says() {
    let (sign_in, secret) = sign_in("{sign_in: tokens, anonymous: [read, reader, learn]}").await;
    let anonymous = recognize(&sign_in, &HeaderMap::new(), false).expect("anonymous");
    let allowed: Vec<_> = anonymous.caller.rights.actions.iter().collect();
    assert_eq!(allowed, [Action::Read, Action::Load, Action::Learn]);
    let text = secret.reveal();
    for shown in [format!("Bearer {text}"), format!("bEARER  {text} ")] {
        let access = recognize(&sign_in, &shows(&shown), false).expect("known");
        assert_eq!(access.caller.principal, Principal::token("ci"));
    }
    for shown in [
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "Bearer ",
        "Bearer rpt_",
        &text,
        &format!("Bearer {text}x"),
        &format!("Bearer {}", Secret::new([8; 32]).reveal()),
    ] {
        let refused = recognize(&sign_in, &shows(shown), false).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "TOKEN_REFUSED: Unknown token",
            "{shown}"
        );
    }
    // A worker's own token is looked at where workers are let in.
    let worker = recognize(&sign_in, &shows("Bearer 0123456789abcdef"), true);
    let rights = worker.expect("a worker").caller.rights.clone();
    assert_eq!(rights.actions.iter().collect::<Vec<_>>(), [Action::Serve]);
}

#[tokio::test(start_paused = true)]
async fn what_a_token_began_ends_with_it_and_says_why() {
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let config = SignInConfig {
        sign_in: Mode::Tokens,
        ..SignInConfig::default()
    };
    let sign_in = SignIn::new(&config, tokens.clone(), Arc::new(SystemClock));
    let sign_in = sign_in.expect("a sign-in");
    let (by, now) = (Principal::local(), SystemClock.now());
    let create = async |name: &str, secret: &Secret, expires_at| {
        let rights = Rights::to_all(Role::Reader.actions());
        let name = name.to_owned();
        let new = crate::NewToken {
            name,
            rights,
            expires_at,
        };
        tokens.create(new, secret, &by, now).await.expect("made");
        let shown = shows(&format!("Bearer {}", secret.reveal()));
        recognize(&sign_in, &shown, false).expect("known")
    };
    // Time that stands still goes on where nothing else is to do.
    let hour = jiff::SignedDuration::from_hours(1);
    let expiring = create("a", &Secret::new([1; 32]), Some(now + hour)).await;
    let expired = sign_in.ended(&expiring).expect("an end");
    let begun = tokio::time::Instant::now();
    assert_eq!(
        expired.await.to_string(),
        "TOKEN_REFUSED: The token has expired"
    );
    assert!(
        begun.elapsed() > Duration::from_secs(3590),
        "{:?}",
        begun.elapsed()
    );
    let lasting = create("b", &Secret::new([2; 32]), None).await;
    let mut revoked = sign_in.ended(&lasting).expect("an end");
    assert!(revoked.as_mut().now_or_never().is_none());
    tokens.revoke("b").await.expect("revoked");
    let revoked = tokio::time::timeout(Duration::from_secs(1), revoked).await;
    assert_eq!(
        revoked.expect("at once").to_string(),
        "TOKEN_REFUSED: The token was revoked"
    );
    assert!(sign_in.ended(&sign_in.anonymous()).is_none());
    assert!(sign_in.ended(&Access::local()).is_none());
}

#[tokio::test]
async fn a_proxy_is_asked_who_its_client_is_where_the_operator_has_one_alone() {
    let address: IpAddr = [10, 0, 0, 1].into();
    let mut headers = HeaderMap::new();
    for line in ["6.6.6.6", "7.7.7.7, ::ffff:192.0.2.9"] {
        headers.append("x-forwarded-for", line.parse().expect("a value"));
    }
    let origin = async |config: &str, headers: &HeaderMap| {
        let found = sign_in(config).await.0.origin(headers, "http", address);
        assert_eq!((found.face, found.address), ("http", Some(address)));
        found.forwarded.map(|it| it.to_string())
    };
    let behind = "{behind_proxy: true}";
    assert_eq!(origin("{}", &headers).await, None);
    assert_eq!(origin(behind, &headers).await.as_deref(), Some("192.0.2.9"));
    headers.insert("x-forwarded-for", "unknown".parse().expect("a value"));
    assert_eq!(origin(behind, &headers).await, None);
    // A socket for both versions of IP shows an address of version 4 as one of version 6.
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().expect("an address");
    let found = sign_in("{}").await.0.origin(&headers, "http", mapped);
    assert_eq!(found.address, Some(address));
}

#[test]
fn issuers_of_a_server_where_nobody_signs_in_are_refused() {
    let config = "issuers: [{issuer: https://a.example.com, name: a, rules: [{claims: {sub: x}, role: reader}]}]";
    let config: SignInConfig = serde_yaml::from_str(config).expect("settings");
    let said = config.check().expect_err("refused");
    assert!(said.contains("set `access.sign_in: tokens`"), "{said}");
    let config = SignInConfig {
        sign_in: Mode::Tokens,
        ..config
    };
    let said = config.check().expect_err("refused");
    assert!(said.contains("has no `audiences`"), "{said}");
}

#[test]
fn an_action_that_there_is_none_of_is_told_with_those_there_are() {
    let wrong = serde_yaml::from_str::<SignInConfig>("{anonymous: [write]}");
    let said = wrong.expect_err("refused").to_string();
    assert!(
        said.contains("unknown action or role `write`; actions are read, load,"),
        "{said}"
    );
}

const RULES: &str = "
sign_in: tokens
anonymous: [reader]
certificates:
  - {name: ci, uri: 'spiffe://acme/ci', allow: [publisher], skills: [github/acme/*]}
  - {name: web, dns: web.acme.example, allow: [read]}
  - {name: ada, email: ada@acme.example, allow: [administrator]}
  - {name: old, common_name: Old Machine, allow: [load]}
";

fn named(change: impl FnOnce(&mut CertificateNames)) -> CertificateNames {
    let mut names = CertificateNames::default();
    change(&mut names);
    names
}

#[tokio::test]
async fn a_certificate_signs_in_by_the_first_rule_that_names_it() {
    let (sign_in, _) = sign_in(RULES).await;
    let later = SystemClock.now() + jiff::SignedDuration::from_hours(1);
    let caller = |names: &CertificateNames| {
        let connection = sign_in.of_certificate(names, later, CancellationToken::new());
        let access = recognize(&connection, &HeaderMap::new(), false);
        let caller = access.expect("a caller").caller;
        (
            caller.principal.to_string(),
            caller.rights.actions.iter().collect::<Vec<_>>(),
            caller.rights.skills.len(),
            caller.expires_at,
        )
    };
    let publisher: Vec<_> = Role::Publisher.actions().iter().collect();
    let ci = named(|it| {
        it.dns = vec!["web.acme.example".into()];
        it.uris = vec!["spiffe://acme/other".into(), "spiffe://acme/ci".into()];
    });
    assert_eq!(
        caller(&ci),
        ("certificate:ci".into(), publisher, 1, Some(later))
    );
    let web = named(|it| it.dns = vec!["WEB.acme.example".into()]);
    let read = vec![Action::Read];
    assert_eq!(
        caller(&web),
        ("certificate:web".into(), read, 0, Some(later))
    );
    let ada = named(|it| it.emails = vec!["ada@acme.example".into()]);
    assert_eq!(caller(&ada).0, "certificate:ada");
    let old = named(|it| it.common_name = Some("Old Machine".into()));
    assert_eq!(caller(&old).0, "certificate:old");
    // Nobody in particular: each name is looked for where it belongs, and as a whole.
    let reader: Vec<_> = Role::Reader.actions().iter().collect();
    let anonymous = ("anonymous".to_owned(), reader, 0, None);
    for names in [
        CertificateNames::default(),
        named(|it| it.uris = vec!["spiffe://acme/ci/x".into(), "SPIFFE://acme/ci".into()]),
        named(|it| it.dns = vec!["*.acme.example".into(), "spiffe://acme/ci".into()]),
        named(|it| it.common_name = Some("web.acme.example".into())),
        named(|it| it.emails = vec!["Ada@acme.example".into()]),
        named(|it| it.uris = vec!["web.acme.example".into(), "Old Machine".into()]),
    ] {
        assert_eq!(caller(&names), anonymous, "{names:?}");
    }
}

#[tokio::test]
async fn a_token_says_who_calls_where_a_certificate_is_shown_as_well() {
    let (sign_in, secret) = sign_in(RULES).await;
    let later = SystemClock.now() + jiff::SignedDuration::from_hours(1);
    let ada = named(|it| it.emails = vec!["ada@acme.example".into()]);
    let connection = sign_in.of_certificate(&ada, later, CancellationToken::new());
    let token = shows(&format!("Bearer {}", secret.reveal()));
    let access = recognize(&connection, &token, false).expect("known");
    assert_eq!(access.caller.principal, Principal::token("ci"));
    // One that is wrong does not make way for the certificate.
    let refused = recognize(&connection, &shows("Bearer rpt_wrong"), false);
    let refused = refused.expect_err("refused").to_string();
    assert!(refused.starts_with("TOKEN_REFUSED"), "{refused}");
}

#[tokio::test]
async fn a_certificate_signs_nobody_in_where_nobody_signs_in() {
    let (sign_in, _) = sign_in(&RULES.replace("tokens", "none")).await;
    let ada = named(|it| it.emails = vec!["ada@acme.example".into()]);
    let later = SystemClock.now() + jiff::SignedDuration::from_hours(1);
    let connection = sign_in.of_certificate(&ada, later, CancellationToken::new());
    let access = recognize(&connection, &HeaderMap::new(), false);
    assert!(access.expect("anonymous").caller.is_anonymous());
}

#[tokio::test]
async fn what_a_certificate_began_ends_with_it() {
    const LAPSED: &str = "CERTIFICATE_REFUSED: The certificate of the connection has ended, or its authority is trusted no more";
    let (sign_in, _) = sign_in(RULES).await;
    let ada = named(|it| it.emails = vec!["ada@acme.example".into()]);
    let (now, ended) = (SystemClock.now(), CancellationToken::new());
    let later = now + jiff::SignedDuration::from_hours(1);
    let connection = sign_in.of_certificate(&ada, later, ended.clone());
    let access = recognize(&connection, &HeaderMap::new(), false).expect("known");
    let mut stream = connection.ended(&access).expect("an end");
    assert!(stream.as_mut().now_or_never().is_none());
    ended.cancel();
    assert_eq!(stream.await.to_string(), LAPSED);
    let refused = |connection: &SignIn| {
        let access = recognize(connection, &HeaderMap::new(), false);
        access.expect_err("refused").to_string()
    };
    assert_eq!(refused(&connection), LAPSED);
    let expired = sign_in.of_certificate(&ada, now, CancellationToken::new());
    assert_eq!(refused(&expired), LAPSED);
}

#[test]
fn a_rule_that_cannot_be_meant_is_told() {
    let read = |rules: &str| {
        let config = format!("{{sign_in: tokens, certificates: [{rules}]}}");
        let read = serde_yaml::from_str::<SignInConfig>(&config);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let too_many: Vec<_> = (0..=1_000)
        .map(|at| format!("{{name: n, dns: h{at}, allow: []}}"))
        .collect();
    for (rules, told) in [
        (
            "{name: a, allow: [read]}",
            "by one of uri, dns, email, common_name",
        ),
        ("{name: a, uri: u, dns: d, allow: [read]}", "by one of uri"),
        (
            "{name: a, dns: '*.acme.example', allow: [read]}",
            "compared as a whole",
        ),
        ("{name: a, dns: '', allow: [read]}", "compared as a whole"),
        (
            &format!("{{name: a, uri: {}, allow: []}}", "u".repeat(1_025)),
            "1 to 1024 bytes",
        ),
        (
            "{name: 'a b', dns: d, allow: [read]}",
            "a name has 1 to 64 letters",
        ),
        (
            "{name: a, dns: d, allow: [write]}",
            "unknown action or role `write`",
        ),
        ("{name: a, dns: d}", "missing field `allow`"),
        ("{name: a, dns: d, allow: [read], skills: ['*']}", "skill"),
        (
            "{name: a, dns: d, allow: []}, {name: b, dns: d, allow: []}",
            "`b` and an earlier rule",
        ),
        (&too_many.join(", "), "there may be 1000 rules"),
    ] {
        assert!(read(rules).contains(told), "{told}: {}", read(rules));
    }
    assert_eq!(read(&too_many[..1_000].join(", ")), "");
    let longest = format!("{{name: a, uri: {}, allow: []}}", "u".repeat(1_024));
    assert_eq!(read(&longest), "");
}

#[test]
fn rules_that_would_have_no_effect_are_told() {
    let config = |sign_in: &str| {
        let text =
            format!("{{sign_in: {sign_in}, certificates: [{{name: a, dns: d, allow: []}}]}}");
        serde_yaml::from_str::<SignInConfig>(&text).expect("a config")
    };
    let key = |mistake: Option<(&'static str, &'static str)>| mistake.map(|(key, _)| key);
    let told = Some("access.certificates");
    assert_eq!(key(config("none").mistake(true)), told);
    assert_eq!(key(config("tokens").mistake(false)), told);
    assert_eq!(config("tokens").mistake(true), None);
    assert_eq!(SignInConfig::default().mistake(false), None);
}

#[test]
fn other_machines_are_served_with_sign_in_and_tls_alone() {
    let is_safe = |config: &str, has_tls| {
        let config: SignInConfig = serde_yaml::from_str(config).expect("a config");
        config.why_unsafe(has_tls).is_none()
    };
    assert!(is_safe("sign_in: tokens", true));
    assert!(is_safe("{sign_in: tokens, behind_proxy: true}", false));
    assert!(!is_safe("sign_in: tokens", false));
    assert!(!is_safe("{}", true));
}

#[test]
fn callers_are_known_by_what_they_show_alone_where_they_sign_in_behind_a_proxy() {
    let names_callers = |config: &str| {
        let config: SignInConfig = serde_yaml::from_str(config).expect("a config");
        config.names_callers()
    };
    assert!(names_callers("{sign_in: tokens, behind_proxy: true}"));
    assert!(!names_callers("{sign_in: tokens}"));
    assert!(!names_callers("{behind_proxy: true}"));
}

#[test]
fn a_certificate_holds_until_its_end_and_not_at_it() {
    let end = Timestamp::constant(1_800_000_000, 0);
    let ada = named(|it| it.emails = vec!["ada@acme.example".into()]);
    let caller = |now| {
        let sign_in = sign_in_at(RULES, now);
        let connection = sign_in.of_certificate(&ada, end, CancellationToken::new());
        let access = recognize(&connection, &HeaderMap::new(), false);
        let access = access.map(|access| access.caller.principal.to_string());
        access.map_err(|failure| failure.code)
    };
    let before = end - jiff::SignedDuration::from_nanos(1);
    assert_eq!(caller(before), Ok("certificate:ada".to_owned()));
    assert_eq!(caller(end), Err(Code::CertificateRefused));
}

#[tokio::test(start_paused = true)]
async fn what_is_begun_with_a_token_that_has_expired_ends_at_once_and_says_why() {
    let now = Timestamp::constant(1_800_000_000, 0);
    let sign_in = sign_in_at("sign_in: tokens", now);
    let ended = async |principal, expires_at, is_revoked: bool| {
        let caller = Caller {
            expires_at,
            ..Caller::new(principal, Rights::default())
        };
        if is_revoked {
            caller.ended.cancel();
        }
        let access = Access {
            caller: Arc::new(caller),
            signs_in: true,
            limit: None,
            origin: Origin::PROCESS,
        };
        let ended = sign_in.ended(&access).expect("an end");
        let ended = tokio::time::timeout(Duration::from_secs(1), ended).await;
        ended.expect("at once").to_string()
    };
    let second = jiff::SignedDuration::from_secs(1);
    for at in [now - second, now] {
        let told = ended(Principal::token("ci"), Some(at), false).await;
        assert_eq!(told, "TOKEN_REFUSED: The token has expired");
    }
    let (token, of_issuer) = (Principal::token("ci"), Principal::oidc("acme", "ada"));
    assert_eq!(
        ended(token, Some(now + second), true).await,
        "TOKEN_REFUSED: The token was revoked"
    );
    assert_eq!(
        ended(of_issuer, None, true).await,
        "TOKEN_REFUSED: The issuer of the token has withdrawn its key, or has other settings here"
    );
}

#[tokio::test]
async fn what_nobody_in_particular_may_do_is_set_while_the_server_runs() {
    let (sign_in, _) = sign_in("{sign_in: tokens, anonymous: [read]}").await;
    let connection = sign_in.clone();
    let config: SignInConfig =
        serde_yaml::from_str("{sign_in: tokens, anonymous: [learn]}").expect("a config");
    sign_in.set_anonymous(&config);
    let access = recognize(&connection, &HeaderMap::new(), false).expect("anonymous");
    let allowed: Vec<_> = access.caller.rights.actions.iter().collect();
    assert_eq!(allowed, [Action::Learn]);
}

#[tokio::test]
async fn a_server_where_nobody_signs_in_takes_no_issuers_until_its_next_start() {
    let (sign_in, _) = sign_in("{}").await;
    let config = "{sign_in: tokens, public_url: 'https://a.example.com', issuers: [{issuer: https://a.example.com, name: a, audiences: [x], rules: [{claims: {sub: x}, role: reader}]}]}";
    let config: SignInConfig = serde_yaml::from_str(config).expect("settings");
    let refused = sign_in.set_issuers(&config);
    assert_eq!(
        refused,
        Err("no caller can sign in until the next start".to_owned())
    );
    assert_eq!(sign_in.set_issuers(&SignInConfig::default()), Ok(()));
}
