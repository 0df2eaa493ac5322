//! What claims are worth, and what clients of OAuth are told.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use serde_json::{Value, json};

use crate::claims::{Claims, rights};
use crate::config::{IssuerConfig, MAX_RULES, PublicUrl, check};
use crate::resource::MAX_CHALLENGE;
use crate::{Issuers, ProtectedResource};
use access::{Access, Action};
use model::Principal;

fn parse(more: &str) -> Result<IssuerConfig, String> {
    let text = format!("issuer: https://login.example.com\nname: corp\n{more}");
    serde_yaml::from_str(&text).map_err(|error| error.to_string())
}

fn object(value: Value) -> Claims {
    let Value::Object(claims) = value else {
        panic!("claims are an object")
    };
    claims.into_iter().collect()
}

fn allowed(config: &IssuerConfig, claims: Value) -> (String, Vec<String>) {
    let (rights, _) = rights(&object(claims), config);
    let actions: Vec<_> = rights.actions.iter().map(Action::name).collect();
    let skills = rights.skills.iter().map(ToString::to_string);
    (actions.join(" "), skills.collect())
}

#[test]
fn the_first_rule_whose_claims_all_match_says_what_a_caller_may_do() {
    let config = parse(
        "rules:\n\
         - {claims: {repository_owner: acme, ref: [refs/heads/main, refs/heads/next]}, actions: [read, publish], skills: [github/acme/*]}\n\
         - {claims: {realm_access.roles: skills, email_verified: true, level: 3}, role: agent}\n\
         - {claims: {https://acme.example/team: blue}, role: reader, actions: [audit]}\n",
    )
    .expect("settings");
    let nothing = (String::new(), Vec::new());
    let publish = ("read publish".to_owned(), vec!["github/acme/*".to_owned()]);
    let agent = ("read load call learn".to_owned(), Vec::new());
    let cases = [
        (
            json!({"repository_owner": "acme", "ref": "refs/heads/next"}),
            publish.clone(),
        ),
        (
            json!({"repository_owner": "acme", "ref": "refs/heads/other"}),
            nothing.clone(),
        ),
        (json!({"repository_owner": "acme"}), nothing.clone()),
        (
            json!({"repository_owner": "ACME", "ref": "refs/heads/main"}),
            nothing.clone(),
        ),
        (
            json!({"realm_access": {"roles": ["x", "skills"]}, "email_verified": true, "level": 3}),
            agent.clone(),
        ),
        (
            json!({"realm_access.roles": ["skills"], "email_verified": "true", "level": "3"}),
            agent,
        ),
        (
            json!({"realm_access": {"roles": ["skills"]}, "email_verified": false, "level": 3}),
            nothing.clone(),
        ),
        (
            json!({"https://acme.example/team": "blue"}),
            ("read load audit".to_owned(), Vec::new()),
        ),
        (json!({"https://acme.example/team": {"blue": 1}}), nothing),
        // Of two that match the first.
        (
            json!({"https://acme.example/team": "blue", "repository_owner": "acme", "ref": "refs/heads/main"}),
            publish,
        ),
    ];
    for (claims, expected) in cases {
        assert_eq!(allowed(&config, claims.clone()), expected, "{claims}");
    }
}

#[test]
fn scopes_take_from_what_a_rule_allows_and_add_nothing() {
    let config = parse("scopes: require\nrules: [{claims: {sub: ada}, role: agent}]\n");
    let config = config.expect("settings");
    let cases = [
        (json!("openid read"), "read"),
        (json!("administrator"), "read load call learn"),
        (json!("administer publish"), ""),
        (json!(["reader", "call"]), "read load call"),
        (json!(""), ""),
        (json!(7), ""),
        (json!("read ".repeat(1_000)), ""),
    ];
    for (scope, expected) in cases {
        for name in ["scope", "scp"] {
            let claims = json!({"sub": "ada", name: scope});
            assert_eq!(allowed(&config, claims).0, expected, "{scope}");
        }
    }
    assert_eq!(allowed(&config, json!({"sub": "ada"})).0, "");
    let (rights, scope) = rights(
        &object(json!({"sub": "ada", "scope": "openid read"})),
        &config,
    );
    let caller = access::Caller {
        scope,
        ..access::Caller::new(Principal::oidc("corp", "ada"), rights)
    };
    let access = Access {
        caller: caller.into(),
        signs_in: true,
        limit: None,
        origin: access::Origin::PROCESS,
    };
    let refused = access.require(Action::Call).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "PERMISSION_DENIED: oidc:corp/ada may call tools, but its token has no scope `call`"
    );
    let details: Vec<_> = refused
        .details
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(details, ["action=call", "scope=read call"]);
    // What no scope would bring is told without one.
    let refused = access.require(Action::Publish).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "PERMISSION_DENIED: oidc:corp/ada may not publish skills"
    );
}

#[test]
fn settings_that_cannot_be_meant_are_refused_in_the_words_of_an_operator() {
    let refused = |more: &str| parse(more).expect_err("refused");
    for (more, expected) in [
        ("rules: []", "an issuer has 1 to 1000 rules"),
        (
            "rules: [{claims: {}, role: reader}]",
            "names no claim, so it would be for every caller of the issuer",
        ),
        (
            "rules: [{claims: {sub: a}}]",
            "it allows nothing: write `role`, `actions` or both",
        ),
        (
            "rules: [{claims: {sub: a}, role: king}]",
            "`king` is not a role; use reader, agent",
        ),
        (
            "rules: [{claims: {sub: a}, actions: [write]}]",
            "`write` is not an action; use read, load",
        ),
        (
            "rules: [{claims: {sub: {a: b}}, role: reader}]",
            "the claim `sub` is compared with text",
        ),
        (
            "rules: [{claims: {sub: []}, role: reader}]",
            "the claim `sub` is compared with text",
        ),
        (
            "rules: [{claims: {sub: a}, role: reader, skills: ['*']}]",
            "`*`",
        ),
        (
            "rules: [{claims: {sub: a}, rle: reader}]",
            "unknown field `rle`",
        ),
        (
            "allow_networks: [intranet]\nrules: []",
            "`intranet` is not a network",
        ),
        ("scopes: maybe\nrules: []", "unknown variant `maybe`"),
        ("", "missing field `rules`"),
    ] {
        let said = refused(more);
        assert!(said.contains(expected), "{more}: {said}");
    }
}

#[test]
fn addresses_and_names_that_cannot_be_meant_are_refused() {
    let issuer = |url: &str, name: &str| {
        let rule = "rules: [{claims: {sub: a}, role: reader}]";
        let text = format!("issuer: {url}\nname: {name}\n{rule}\n");
        serde_yaml::from_str::<IssuerConfig>(&text).map_err(|error| error.to_string())
    };
    for url in [
        "http://login.example.com",
        "login.example.com",
        "https://a:b@login.example.com",
        "https://login.example.com/?a=b",
        "file:///etc/passwd",
    ] {
        let said = issuer(url, "a").expect_err("refused");
        assert!(
            said.contains("is no issuer; write its address"),
            "{url}: {said}"
        );
    }
    for name in ["A", "a/b", "''", "abcdefghijklmnopqrstuvwxyzabcdefg"] {
        let said = issuer("https://login.example.com", name).expect_err("refused");
        assert!(
            said.contains("a name has 1 to 32 lower-case letters"),
            "{name}: {said}"
        );
    }
    let one = |url: &str, name: &str| issuer(url, name).expect("an issuer");
    let both = |first, second| {
        check(&[first, second], None)
            .expect_err("refused")
            .to_string()
    };
    let (a, b) = ("https://a.example.com", "https://b.example.com");
    assert_eq!(both(one(a, "x"), one(b, "x")), "two issuers are called `x`");
    assert_eq!(
        both(one(a, "x"), one(a, "y")),
        "two issuers are called `https://a.example.com`"
    );
    assert_eq!(
        both(one(a, "x"), one(b, "y")),
        "the issuer `x` has no `audiences`: write for whom its tokens are, or set `access.public_url`"
    );
    let many: Vec<_> = (0..33)
        .map(|at| one(&format!("https://{at}.example.com"), &format!("x{at}")))
        .collect();
    assert_eq!(
        check(&many, None).expect_err("refused").to_string(),
        "there are 33 issuers, of at most 32"
    );
    for wrong in [
        "skills.example.com",
        "https://skills.example.com/app",
        "http://skills.example.com",
    ] {
        assert!(PublicUrl::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
    for right in [
        "https://skills.example.com/",
        "http://localhost:50051",
        "http://127.0.0.1:1",
    ] {
        assert!(PublicUrl::try_from(right.to_owned()).is_ok(), "{right}");
    }
}

fn resource(more: &str) -> ProtectedResource {
    let config = parse(&format!(
        "{more}rules: [{{claims: {{sub: ada}}, role: agent}}]\n"
    ));
    let url = PublicUrl::try_from("https://skills.example.com/".to_owned()).expect("an address");
    Issuers::new(&[config.expect("settings")], Some(&url))
        .expect("issuers")
        .resource()
        .as_ref()
        .clone()
}

#[test]
fn a_client_finds_the_issuers_in_the_metadata_of_what_it_wants_to_call() {
    let resource = resource("scopes: require\n");
    let metadata = |path: &str| {
        resource
            .metadata(path)
            .map_err(|failure| failure.to_string())
    };
    let expected = |of: &str| {
        json!({
            "resource": format!("https://skills.example.com{of}"),
            "resource_name": "Repertoire",
            "authorization_servers": ["https://login.example.com"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": [
                "read", "load", "call", "learn", "grade", "publish", "activate", "delete", "block", "sync",
                "review", "audit", "serve", "operate", "administer",
                "reader", "agent", "publisher", "reviewer", "operator", "administrator",
            ],
        })
    };
    for of in ["", "/mcp", "/mcp/agent"] {
        let path = format!("/.well-known/oauth-protected-resource{of}");
        assert_eq!(metadata(&path), Ok(expected(of)));
    }
    for other in [
        "/.well-known/oauth-protected-resource/api",
        "/register",
        "/.well-known/openid-configuration",
    ] {
        let said = metadata(other).expect_err("refused");
        assert_eq!(said, format!("ROUTE_NOT_FOUND: There is no {other} here"));
    }
    let with_tokens = ProtectedResource::default()
        .metadata("/register")
        .expect_err("refused");
    assert_eq!(
        with_tokens.suggestions,
        [
            "This server takes tokens: send `authorization: Bearer TOKEN` with each call",
            "The operator creates tokens: `repertoire token create NAME --role ROLE`",
        ]
    );
}

#[test]
fn a_challenge_says_where_the_issuers_are_named_and_which_scopes_to_ask_for() {
    let challenge = |resource: &ProtectedResource, path: &str, said: &str| {
        let mut headers = HeaderMap::new();
        if !said.is_empty() {
            headers.insert(WWW_AUTHENTICATE, said.parse().expect("a value"));
        }
        resource.challenge(path, &mut headers);
        let value = headers.get(WWW_AUTHENTICATE);
        value.map_or(String::new(), |value| {
            value.to_str().expect("text").to_owned()
        })
    };
    let with_scopes = resource("scopes: require\n");
    let metadata =
        "resource_metadata=\"https://skills.example.com/.well-known/oauth-protected-resource";
    assert_eq!(
        challenge(&with_scopes, "/mcp", "Bearer realm=\"r\""),
        format!("Bearer realm=\"r\", {metadata}/mcp\", scope=\"read load\"")
    );
    assert_eq!(
        challenge(
            &with_scopes,
            "/api/v1/skills",
            "Bearer error=\"insufficient_scope\", scope=\"read call\""
        ),
        format!("Bearer error=\"insufficient_scope\", scope=\"read call\", {metadata}\"")
    );
    assert_eq!(
        challenge(&resource(""), "/mcp/\"x", "Bearer realm=\"r\""),
        format!("Bearer realm=\"r\", {metadata}\"")
    );
    assert_eq!(challenge(&with_scopes, "/mcp", ""), "");
    assert_eq!(
        challenge(&ProtectedResource::default(), "/mcp", "Bearer realm=\"r\""),
        "Bearer realm=\"r\""
    );
}

#[test]
fn a_challenge_that_would_be_too_long_is_left_as_it_was() {
    let resource = resource("");
    let challenge = |said: usize| {
        let said = "x".repeat(said);
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, said.parse().expect("a value"));
        resource.challenge("/mcp", &mut headers);
        headers[WWW_AUTHENTICATE].len()
    };
    let added = challenge(1) - 1;
    assert_eq!(challenge(MAX_CHALLENGE - added), MAX_CHALLENGE);
    let longer = MAX_CHALLENGE - added + 1;
    assert_eq!(challenge(longer), longer);
}

#[test]
fn an_issuer_has_so_many_rules_and_no_more() {
    let rules = |count: usize| {
        let rule = "- {claims: {sub: ada}, role: agent}\n";
        parse(&format!("rules:\n{}", rule.repeat(count)))
    };
    assert!(rules(MAX_RULES).is_ok());
    for count in [0, MAX_RULES + 1] {
        let rules = if count == 0 {
            parse("rules: []\n")
        } else {
            rules(count)
        };
        let said = rules.err().unwrap_or_default();
        assert!(said.contains("an issuer has 1 to 1000 rules"), "{said}");
    }
}
