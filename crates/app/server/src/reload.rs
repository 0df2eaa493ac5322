//! A config file that is read again while the server runs.
//!
//! * What is wrong changes nothing: the server goes on with what it has.
//! * What can change while calls are in work is taken (`TAKEN`); of everything else that
//!   differs, the log says that it waits for a restart.
//! * Certificates are no part of it: the server looks at their files by itself (`tls`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Config, ConfigError, Limits, Server};
use config_file::Setting;

const ISSUERS: &str = "access.issuers";
/// Keys that are taken, with all below them.
const TAKEN: [&str; 5] = [
    "access.anonymous",
    ISSUERS,
    "limits.quotas",
    "log",
    "namespaces",
];

/// What a config file set when it was read last.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    settings: BTreeMap<String, String>,
}

/// What differs in a config file that was read again.
#[derive(Debug, PartialEq)]
pub struct Reread {
    /// What it sets now.
    pub config: Config,
    /// Keys that differ, and are taken.
    pub taken: Vec<String>,
    /// Keys that differ, and wait for a restart.
    pub left: Vec<String>,
}

/// A key is one of these, or below one.
fn is_among(key: &str, keys: &[&str]) -> bool {
    keys.iter().any(|above| {
        let below = key.strip_prefix(above);
        below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    })
}

fn read(path: &Path) -> Result<(Config, BTreeMap<String, String>), ConfigError> {
    let (_, settings) = Config::read_listed(path)?;
    let of = |Setting { key, value, .. }: Setting| (key, value);
    Ok((Config::read(path)?, settings.into_iter().map(of).collect()))
}

impl ConfigFile {
    /// What a file sets.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self {
            settings: read(path)?.1,
            path: path.to_owned(),
        })
    }

    /// Reads it again. Blocks.
    ///
    /// # Errors
    /// As [`Config::read`]; what it set before is compared with the next time, too.
    pub fn again(&mut self) -> Result<Reread, ConfigError> {
        let (config, settings) = read(&self.path)?;
        // Only once all of it could be read: with a file that is wrong, the next one is
        // compared with what holds.
        let before = std::mem::replace(&mut self.settings, settings);
        let keys = before.keys().chain(self.settings.keys());
        let differs = |key: &&String| before.get(*key) != self.settings.get(*key);
        let keys: std::collections::BTreeSet<_> = keys.filter(differs).cloned().collect();
        let (taken, left) = keys.into_iter().partition(|key| is_among(key, &TAKEN));
        Ok(Reread {
            config,
            taken,
            left,
        })
    }
}

impl Reread {
    /// Moves what was refused after all to what waits for a restart.
    pub fn refuse(&mut self, keys: &[&str]) {
        let refused = self.taken.extract_if(.., |key| is_among(key, keys));
        self.left.extend(refused);
    }
}

impl Server {
    /// Takes what can be taken of settings while calls are in work, beside what is logged:
    /// what callers without a token may do, issuers, quotas, and what holds of namespaces. Gives
    /// the keys, with all below them, that cannot be used with what waits for a restart.
    pub async fn take(&self, config: &Config) -> Vec<&'static str> {
        let limits: &Limits = &config.limits;
        let sign_in = &self.domain.sign_in;
        sign_in.set_anonymous(&config.access);
        let mut refused = Vec::new();
        if let Err(error) = sign_in.set_issuers(&config.access) {
            tracing::error!(error, "the issuers of `access.issuers` stay unchanged");
            // Where nobody signs in yet they need a restart. The rest is taken all the same.
            refused.push(ISSUERS);
        }
        self.domain.namespaces.configure(config.namespaces);
        self.domain.registry.set_storage_limits(limits.storage());
        self.front.set_quotas(&limits.quotas);
        if let Err(error) = self.domain.audit.reloaded(config.digest).await {
            tracing::warn!(%error, "the audit trail has no event of the reloaded settings");
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_read_again_says_what_differs_and_what_of_it_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.yaml");
        let write = |text: &str| std::fs::write(&path, text).expect("a file");
        write("limits: {calls: 100}\naccess: {sign_in: tokens}\n");
        let mut file = ConfigFile::read(&path).expect("a config");
        write(
            "access: {sign_in: tokens, anonymous: [reader]}\nnamespaces: {visibility: internal}\nlog: debug\n",
        );
        let again = file.again().expect("a config");
        assert_eq!(
            (again.taken, again.left),
            (
                vec![
                    "access.anonymous".to_owned(),
                    "log".to_owned(),
                    "namespaces.visibility".to_owned()
                ],
                vec!["limits.calls".to_owned()]
            )
        );
        write("lisen: x\n");
        file.again().expect_err("wrong");
        write("access: {sign_in: tokens}\n");
        let again = file.again().expect("a config");
        assert_eq!(
            again.taken.len(),
            3,
            "since it was right: {:?}",
            again.taken
        );
    }

    #[test]
    fn a_key_is_taken_as_a_whole_word() {
        let taken = [
            "log",
            "log_format",
            "limits.quotas.callers",
            "access.issuers[0].rules",
            "access.certificates",
        ]
        .map(|key| is_among(key, &TAKEN));
        assert_eq!(taken, [true, false, true, true, false]);
    }
}
