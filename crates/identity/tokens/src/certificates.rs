//! Whom a client's certificate signs in: rules of the operator, in their order.

use serde::{Deserialize, Deserializer};

use crate::sign_in::actions;
use crate::tokens::check_name;
use access::{Actions, CertificateNames, Rights};
use model::SkillPattern;

/// Rules that there may be: each connection with a certificate goes through them.
const MAX_RULES: usize = 1_000;
/// Bytes of what a rule compares with.
const MAX_NAME: usize = 1_024;

/// Whom certificates of a name sign in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct CertificateRule {
    /// What the caller is called, as `certificate:NAME`.
    pub name: String,
    /// The name that the certificate has.
    pub of: CertificateName,
    /// What the caller may do.
    pub rights: Rights,
}

/// A name in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateName {
    /// A URI among the subject's alternative names.
    Uri(String),
    /// A name of a machine among them, compared without case.
    Dns(String),
    /// An address of mail among them.
    Email(String),
    /// The common name of the subject.
    CommonName(String),
}

/// A rule as it stands in the settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
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

impl TryFrom<Written> for CertificateRule {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        check_name(&written.name).map_err(|error| error.to_string())?;
        let mut names = [
            written.uri.map(CertificateName::Uri),
            written.dns.map(CertificateName::Dns),
            written.email.map(CertificateName::Email),
            written.common_name.map(CertificateName::CommonName),
        ]
        .into_iter()
        .flatten();
        let (Some(of), None) = (names.next(), names.next()) else {
            return Err(
                "a rule names the certificate by one of uri, dns, email, common_name".to_owned(),
            );
        };
        let text = of.text();
        if text.is_empty() || text.len() > MAX_NAME || text.contains('*') {
            return Err(format!(
                "the name of a certificate is compared as a whole: it has 1 to {MAX_NAME} bytes and no `*`"
            ));
        }
        Ok(Self {
            name: written.name,
            of,
            rights: Rights {
                actions: written.allow,
                skills: written.skills,
                sees: written.sees,
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

    /// A certificate has it.
    fn is_in(&self, names: &CertificateNames) -> bool {
        match self {
            Self::Uri(uri) => names.uris.contains(uri),
            Self::Dns(dns) => names.dns.iter().any(|it| it.eq_ignore_ascii_case(dns)),
            Self::Email(email) => names.emails.contains(email),
            Self::CommonName(name) => names.common_name.as_ref() == Some(name),
        }
    }
}

/// The first rule for a certificate.
pub(crate) fn rule_for<'a>(
    rules: &'a [CertificateRule],
    names: &CertificateNames,
) -> Option<&'a CertificateRule> {
    rules.iter().find(|rule| rule.of.is_in(names))
}

/// Reads rules.
pub(crate) fn rules<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CertificateRule>, D::Error> {
    let rules = Vec::<CertificateRule>::deserialize(deserializer)?;
    if rules.len() > MAX_RULES {
        let message = format!("there may be {MAX_RULES} rules");
        return Err(serde::de::Error::custom(message));
    }
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
