//! The callers that client certificates sign in: rules of the operator, in their order.

use serde::{Deserialize, Deserializer};

use crate::sign_in_config::actions;
use crate::tokens::check_name;
use access::{Actions, CertificateNames, Rights};
use model::SkillPattern;

/// The most rules: each connection with a certificate goes through them.
const MAX_RULES: usize = 1_000;
/// The most bytes of the name in a rule.
const MAX_NAME: usize = 1_024;

/// The caller that certificates with a name sign in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRule")]
pub struct CertificateRule {
    /// The caller's name, as `certificate:NAME`.
    pub name: String,
    /// The name in the certificate.
    pub of: CertificateName,
    /// The caller's rights.
    pub rights: Rights,
}

/// A name in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateName {
    /// A URI among the subject's alternative names.
    Uri(String),
    /// A host name among them, compared without case.
    Dns(String),
    /// An email address among them.
    Email(String),
    /// The common name of the subject.
    CommonName(String),
}

/// A rule as the settings have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    dns: Option<String>,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    common_name: Option<String>,
    #[serde(deserialize_with = "actions")]
    allow: Actions,
    #[serde(default)]
    skills: Vec<SkillPattern>,
    #[serde(default)]
    sees: Vec<SkillPattern>,
}

impl TryFrom<RawRule> for CertificateRule {
    type Error = String;

    fn try_from(raw: RawRule) -> Result<Self, String> {
        check_name(&raw.name).map_err(|error| error.to_string())?;
        let mut names = [
            raw.uri.map(CertificateName::Uri),
            raw.dns.map(CertificateName::Dns),
            raw.email.map(CertificateName::Email),
            raw.common_name.map(CertificateName::CommonName),
        ]
        .into_iter()
        .flatten();
        // With two names it would be open whether a certificate needs both or either: the operator
        // writes two rules for either, and there is no way to ask for both.
        let (Some(of), None) = (names.next(), names.next()) else {
            return Err(
                "a rule names the certificate by one of uri, dns, email, common_name".to_owned(),
            );
        };
        // `*.example.com` is a pattern elsewhere. Here it would silently match nothing.
        let text = of.text();
        if text.is_empty() || text.len() > MAX_NAME || text.contains('*') {
            return Err(format!(
                "the name of a certificate is compared as a whole: it has 1 to {MAX_NAME} bytes and no `*`"
            ));
        }
        Ok(Self {
            name: raw.name,
            of,
            rights: Rights {
                actions: raw.allow,
                skills: raw.skills,
                sees: raw.sees,
            },
        })
    }
}

impl CertificateName {
    fn text(&self) -> &str {
        match self {
            Self::Uri(text) | Self::Dns(text) | Self::Email(text) | Self::CommonName(text) => text,
        }
    }

    /// Tells whether a certificate has this name.
    fn is_in(&self, names: &CertificateNames) -> bool {
        match self {
            Self::Uri(uri) => names.uris.contains(uri),
            // DNS alone compares names without case (RFC 4343). The other names are compared byte
            // for byte: a looser match could let a second certificate in.
            Self::Dns(dns) => names.dns.iter().any(|it| it.eq_ignore_ascii_case(dns)),
            Self::Email(email) => names.emails.contains(email),
            Self::CommonName(name) => names.common_name.as_ref() == Some(name),
        }
    }
}

/// Returns the first rule that matches a certificate.
pub(crate) fn rule_for<'a>(
    rules: &'a [CertificateRule],
    names: &CertificateNames,
) -> Option<&'a CertificateRule> {
    rules.iter().find(|rule| rule.of.is_in(names))
}

/// Reads the rules of the settings.
pub(crate) fn rules<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CertificateRule>, D::Error> {
    let rules = Vec::<CertificateRule>::deserialize(deserializer)?;
    if rules.len() > MAX_RULES {
        let message = format!("there may be {MAX_RULES} rules");
        return Err(serde::de::Error::custom(message));
    }
    // The first rule wins, so a second one for the same name would silently have no effect.
    for (at, rule) in rules.iter().enumerate() {
        if rules.iter().take(at).any(|other| other.of == rule.of) {
            let message = format!(
                "`{}` and an earlier rule are for the same certificates",
                rule.name
            );
            return Err(serde::de::Error::custom(message));
        }
    }
    Ok(rules)
}
