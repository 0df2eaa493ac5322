//! Settings: the trusted issuers, and the rights that their claims give.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::{Host, Url};

use access::{Action, Actions, Rights, Role};
#[cfg(feature = "issuers")]
use egress::Egress;
use model::SkillPattern;

/// The most issuers of a server.
pub(crate) const MAX_ISSUERS: usize = 32;
/// The most rules of an issuer.
pub(crate) const MAX_RULES: usize = 1_000;
const MAX_NAME: usize = 32;

/// An issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// Its address, as the claim `iss` has it.
    pub issuer: IssuerUrl,
    /// Its short name: a part of the name of each caller, and of the log.
    pub name: IssuerName,
    /// Accepted values of the claim `aud`, with the server's `public_url`.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// The claim that names a caller.
    #[serde(default = "subject")]
    pub principal_claim: String,
    /// The use of a token's scopes.
    #[serde(default)]
    pub scopes: ScopeUse,
    /// Networks inside the company that it may be in; else only public addresses.
    #[serde(default)]
    pub allow_networks: Networks,
    /// The rights of callers, by the claims of their tokens. The first rule that matches decides.
    #[serde(deserialize_with = "rules")]
    pub rules: Vec<Rule>,
}

fn subject() -> String {
    "sub".to_owned()
}

/// The use of a token's scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeUse {
    /// Nothing: the rules alone say what a caller may do.
    #[default]
    Ignore,
    /// A caller may do what its rule says and its scopes name: actions, or roles.
    Require,
}

/// The rights of callers whose claims match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// All of these have to match.
    pub(crate) claims: BTreeMap<String, Vec<String>>,
    pub(crate) rights: Rights,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    /// A value, or a list of which any may match.
    claims: BTreeMap<String, Value>,
    role: Option<String>,
    #[serde(default)]
    actions: Vec<String>,
    #[serde(default)]
    skills: Vec<SkillPattern>,
    #[serde(default)]
    sees: Vec<SkillPattern>,
}

/// A claim's value as text, for comparison; none for lists, objects and fractions.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        // A fraction has several spellings, such as `1.5` and `15e-1`.
        Value::Number(value) if value.is_i64() || value.is_u64() => Some(value.to_string()),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawRule::deserialize(deserializer)?;
        Self::new(raw).map_err(serde::de::Error::custom)
    }
}

impl Rule {
    fn new(raw: RawRule) -> Result<Self, String> {
        if raw.claims.is_empty() {
            return Err("`claims` names no claim, so it would be for every caller of the issuer; where that is meant, write the claim `iss` with the address of the issuer".to_owned());
        }
        let mut claims = BTreeMap::new();
        for (name, values) in raw.claims {
            let values = match values {
                Value::Array(values) => values,
                value => vec![value],
            };
            let texts: Option<Vec<_>> = values.iter().map(text).collect();
            let texts = texts.filter(|texts| !texts.is_empty()).ok_or_else(|| {
                format!("the claim `{name}` is compared with text, a whole number, true or false, or a list of these")
            })?;
            claims.insert(name, texts);
        }
        let mut actions = Vec::new();
        if let Some(role) = raw.role {
            actions.extend(role.parse::<Role>()?.actions().iter());
        }
        for action in raw.actions {
            actions.push(action.parse::<Action>()?);
        }
        if actions.is_empty() {
            return Err("it allows nothing: write `role`, `actions` or both".to_owned());
        }
        Ok(Self {
            claims,
            rights: Rights {
                actions: actions.into_iter().collect::<Actions>(),
                skills: raw.skills,
                sees: raw.sees,
            },
        })
    }
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(deserializer)?;
    if rules.is_empty() || rules.len() > MAX_RULES {
        let message = format!("an issuer has 1 to {MAX_RULES} rules");
        return Err(serde::de::Error::custom(message));
    }
    Ok(rules)
}

/// Tells whether the host of a URL is this machine, by the URL alone.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        // Not resolved: another name could lead to this machine today and elsewhere tomorrow.
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Tells whether nobody on the way can change a URL's answers: it is `https`, or on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Parses a safe URL without user, password, query and fragment.
fn plain(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    (is_plain && is_safe(&url) && text.len() <= 512).then_some(url)
}

/// The address of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct IssuerUrl {
    /// As it was written: OpenID Connect compares issuers as text, without normalizing.
    pub(crate) text: String,
    /// The URL of its metadata.
    pub(crate) discovery: Url,
}

impl TryFrom<String> for IssuerUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let address = format!(
            "{}/.well-known/openid-configuration",
            text.trim_end_matches('/')
        );
        let discovery = plain(&text).and_then(|_| Url::parse(&address).ok());
        let Some(discovery) = discovery else {
            return Err(format!(
                "`{text}` is no issuer; write its address as the claim `iss` has it, such as https://login.example.com"
            ));
        };
        Ok(Self { text, discovery })
    }
}

/// The short name of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct IssuerName(pub(crate) String);

impl TryFrom<String> for IssuerName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(is_right) {
            return Err(format!(
                "a name has 1 to {MAX_NAME} lower-case letters, digits and `-`"
            ));
        }
        Ok(Self(text))
    }
}

/// Networks that an issuer may be in.
#[cfg(feature = "issuers")]
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Networks(pub(crate) Egress);

/// Networks that an issuer may be in. Nothing reads them: this build has no issuers.
#[cfg(not(feature = "issuers"))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Networks(pub(crate) Vec<String>);

#[cfg(feature = "issuers")]
impl TryFrom<Vec<String>> for Networks {
    type Error = String;

    fn try_from(networks: Vec<String>) -> Result<Self, String> {
        let egress = Egress::permitting(&networks);
        egress.map(Self).map_err(|error| error.to_string())
    }
}

/// The address by which clients know a server: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PublicUrl(pub(crate) String);

impl PublicUrl {
    /// Scheme and host, without a slash at the end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let origin = text.strip_suffix('/').unwrap_or(&text);
        match plain(origin) {
            // By its origin, so that capitals and a port of 443 do not make another audience of it.
            Some(url) if url.path() == "/" => Ok(Self(url.origin().ascii_serialization())),
            _ => Err(format!(
                "`{text}` is no address of this server; write scheme and host as clients do, such as https://skills.example.com"
            )),
        }
    }
}

/// Why issuers cannot be used together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There are more than may be.
    #[error("there are {0} issuers, of at most {MAX_ISSUERS}")]
    TooMany(usize),
    /// Two have a name or an address in common.
    #[error("two issuers are called `{0}`")]
    Twice(String),
    /// Every token of the issuer would be accepted, even one for another service.
    #[error(
        "the issuer `{0}` has no `audiences`: write for whom its tokens are, or set `access.public_url`"
    )]
    NoAudience(String),
    /// There are some, and this build knows none.
    #[error("this build leaves out the feature `oidc`")]
    NotBuilt,
    /// TLS cannot be set up.
    #[error("issuers cannot be called: {0}")]
    Client(String),
}

/// Checks the issuers of a server together.
///
/// # Errors
/// They cannot be used together.
pub fn check(issuers: &[IssuerConfig], public_url: Option<&PublicUrl>) -> Result<(), ConfigError> {
    if issuers.len() > MAX_ISSUERS {
        return Err(ConfigError::TooMany(issuers.len()));
    }
    for (at, issuer) in issuers.iter().enumerate() {
        for other in issuers.iter().skip(at + 1) {
            if other.name == issuer.name {
                return Err(ConfigError::Twice(issuer.name.0.clone()));
            }
            if other.issuer.text == issuer.issuer.text {
                return Err(ConfigError::Twice(issuer.issuer.text.clone()));
            }
        }
        if issuer.audiences.is_empty() && public_url.is_none() {
            return Err(ConfigError::NoAudience(issuer.name.0.clone()));
        }
    }
    Ok(())
}
