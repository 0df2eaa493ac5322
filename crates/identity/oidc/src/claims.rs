//! The caller and its rights, by the claims of a verified token.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::Refused;
use crate::config::{IssuerConfig, PublicUrl, Rule, ScopeUse, text};
use access::{Actions, Rights, Scope};
use model::Principal;

/// The claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// The most that two clocks may differ by.
pub(crate) const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
/// The most characters of the claim that names a caller.
pub(crate) const MAX_PRINCIPAL: usize = 256;
/// The most characters of the scopes of a token.
const MAX_SCOPE: usize = 4_096;

/// Finds a claim by its name; else by its path, such as `realm_access.roles`.
fn claim<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    // The whole name first: claims of some issuers are URLs, which have points in them.
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut path = name.split('.');
    let first = claims.get(path.next()?)?;
    path.try_fold(first, |value, part| value.get(part))
}

/// Tells whether the claim is one of the values, or a list with one of them.
fn matches(claim: &Value, wanted: &[String]) -> bool {
    let is_wanted = |value: &Value| text(value).is_some_and(|text| wanted.contains(&text));
    match claim {
        Value::Array(values) => values.iter().any(is_wanted),
        value => is_wanted(value),
    }
}

impl Rule {
    fn matches(&self, claims: &Claims) -> bool {
        self.claims
            .iter()
            .all(|(name, wanted)| claim(claims, name).is_some_and(|it| matches(it, wanted)))
    }
}

fn moment(claims: &Claims, name: &'static str) -> Result<Option<Timestamp>, Refused> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number beyond all times is none after it, too"
    )]
    let seconds = value
        .as_i64()
        // RFC 7519, 2: a time may have a fraction.
        .or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64));
    let moment = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map(Some).ok_or(Refused::Claim(name))
}

/// Returns the end of a token's validity, with the leeway.
///
/// # Errors
/// It is not valid now, or does not say.
pub(crate) fn valid_until(claims: &Claims, now: Timestamp) -> Result<Timestamp, Refused> {
    let until = |at: Timestamp| at.checked_add(LEEWAY).unwrap_or(Timestamp::MAX);
    let expires = moment(claims, "exp")?.ok_or(Refused::Claim("exp"))?;
    if until(expires) <= now {
        return Err(Refused::Expired(expires));
    }
    for name in ["nbf", "iat"] {
        let begins = moment(claims, name)?;
        if let Some(begins) = begins.filter(|begins| *begins > until(now)) {
            return Err(Refused::NotYet(begins));
        }
    }
    Ok(until(expires))
}

/// Tells whether the token is for this server.
pub(crate) fn is_for(
    claims: &Claims,
    config: &IssuerConfig,
    public_url: Option<&PublicUrl>,
) -> bool {
    let is_ours = |audience: &str| {
        let listed = config.audiences.iter().any(|ours| ours == audience);
        // The server or its MCP endpoint. The rest is compared as well:
        // `https://skills.example.com.evil.net` begins with an address of ours.
        let rest = public_url.and_then(|url| audience.strip_prefix(url.0.as_str()));
        let is_address =
            rest.is_some_and(|rest| matches!(rest, "" | "/" | "/mcp") || rest.starts_with("/mcp/"));
        listed || is_address
    };
    match claims.get("aud") {
        Some(Value::String(audience)) => is_ours(audience),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_ours),
        _ => false,
    }
}

/// The principal of the caller: never the same for callers of two issuers.
pub(crate) fn principal(claims: &Claims, config: &IssuerConfig) -> Result<Principal, Refused> {
    let name = claim(claims, &config.principal_claim).and_then(text);
    // No blanks and no control characters: the name goes into logs, the audit trail and rules.
    let is_right = |c: char| c.is_ascii_graphic() || c.is_alphanumeric();
    let name = name.filter(|name| {
        let chars = name.chars().count();
        (1..=MAX_PRINCIPAL).contains(&chars) && name.chars().all(is_right)
    });
    let name = name.ok_or_else(|| Refused::Principal(config.principal_claim.clone()))?;
    Ok(Principal::oidc(&config.name.0, &name))
}

/// The rights of the first rule that matches, reduced to the scopes of the token.
pub(crate) fn rights(claims: &Claims, config: &IssuerConfig) -> (Rights, Option<Scope>) {
    // Without a rule the caller is known and may do nothing: `whoami` can then say who it is, and
    // the audit trail names it.
    let rule = config.rules.iter().find(|rule| rule.matches(claims));
    let mut rights = rule.map(|rule| rule.rights.clone()).unwrap_or_default();
    if config.scopes == ScopeUse::Ignore {
        return (rights, None);
    }
    let granted = scopes(claims);
    let named: Actions = granted
        .iter()
        .flat_map(|name| actions(name).iter())
        .collect();
    let all: Vec<_> = rights.actions.iter().collect();
    // What only the scopes withhold is remembered: a client can ask its issuer for that.
    let (kept, withheld): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| named.has(*it));
    rights.actions = kept.into_iter().collect();
    let scope = Scope {
        granted,
        withheld: withheld.into_iter().collect(),
    };
    (rights, Some(scope))
}

/// The known scopes of a token: of `scope` (RFC 8693, 4.2), or of `scp`.
fn scopes(claims: &Claims) -> Vec<String> {
    // `scp` is what Okta and Microsoft Entra write.
    let value = claims.get("scope").or_else(|| claims.get("scp"));
    let all: Vec<&str> = match value {
        Some(Value::String(text)) if text.len() <= MAX_SCOPE => text.split(' ').collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let known = all.into_iter().filter(|name| !actions(name).is_empty());
    let mut found = Vec::new();
    for name in known {
        if !found.iter().any(|it| it == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Returns the actions of a scope, which is named like an action or a role.
fn actions(scope: &str) -> Actions {
    Actions::of_name(scope).unwrap_or_default()
}
