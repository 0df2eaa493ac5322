//! Fetchers for sources, wherever they are.

use std::sync::Arc;

use egress::Egress;
use secrecy::{ExposeSecret as _, SecretString};

use ::remote_sources::{
    ClawHub, Git, GitCredential, GitHub, GitHubOptions, GitOptions, Repertoire, WellKnown,
};
use ::sync::{Fetchers, Source, SourceKind};
use secret::NamedBy;
use sources::{Directory, Error, Fetch};

/// The prefix of a topic of GitHub in `select`.
const TOPIC: &str = "topic:";

/// Opens sources in folders and on the network.
#[derive(Debug, Clone)]
pub(super) struct Places {
    egress: Egress,
}

impl Places {
    /// Permits sources in these networks, in addition to public ones.
    ///
    /// # Errors
    /// What is no network, such as `10.0.0.0/8`.
    pub(super) fn new(networks: &[String]) -> Result<Self, String> {
        let egress = Egress::permitting(networks).map_err(|error| error.to_string())?;
        Ok(Self { egress })
    }

    fn git(&self, source: &Source, secret: Option<&SecretString>) -> Result<Git, Error> {
        // `name:password` where a name is needed; a token alone is what hosts take.
        let credential = secret.map(|secret| match secret.expose_secret().split_once(':') {
            Some((name, password)) => GitCredential::Login {
                user: name.to_owned(),
                password: password.to_owned().into(),
            },
            None => GitCredential::Token(secret.clone()),
        });
        let options = GitOptions {
            url: source.location.clone(),
            reference: source.reference.clone(),
            credential,
            ssh_key: None,
            known_hosts: None,
            // Whoever has the server's machine may read its folders anyway.
            permits_files: source.named_by == NamedBy::Operator,
            egress: self.egress.clone(),
        };
        Git::new(options, &source.path)
    }

    fn github(&self, source: &Source, secret: Option<&SecretString>) -> Result<GitHub, Error> {
        let mut options = GitHubOptions {
            api: source.location.clone(),
            branch: Some(source.reference.clone()).filter(|branch| !branch.is_empty()),
            ..GitHubOptions::default()
        };
        for word in &source.select {
            if let Some(topic) = word.strip_prefix(TOPIC) {
                options.topics.push(topic.to_owned());
            } else if word.contains('/') {
                options.repositories.push(word.clone());
            } else {
                options.owners.push(word.clone());
            }
        }
        GitHub::new(options, secret, self.egress.clone())
    }
}

impl Fetchers for Places {
    fn open(
        &self,
        source: &Source,
        secret: Option<&SecretString>,
    ) -> Result<Arc<dyn Fetch>, Error> {
        let (egress, at) = (self.egress.clone(), &source.location);
        Ok(match source.kind {
            SourceKind::Directory => Arc::new(Directory::new(at)?),
            SourceKind::Git => Arc::new(self.git(source, secret)?),
            SourceKind::Github => Arc::new(self.github(source, secret)?),
            SourceKind::WellKnown => Arc::new(WellKnown::new(at, secret, egress)?),
            SourceKind::Clawhub => {
                Arc::new(ClawHub::new(at, source.select.clone(), secret, egress)?)
            }
            SourceKind::Repertoire => Arc::new(Repertoire::new(at, secret, egress)?),
        })
    }
}
