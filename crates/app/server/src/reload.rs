//! Reload: a config file that is read again while the server runs.
//!
//! * A file with an error changes nothing: the server goes on with what it has.
//! * Settings that can change while calls are in work are taken (`TAKEN`); of all others that
//!   differ, the log says that they wait for a restart.
//! * Certificates are no part of it: the server watches their files (`tls`).

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

/// A config file, with its settings when it was read last.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    settings: BTreeMap<String, String>,
}

/// The differences in a config file that was read again.
#[derive(Debug, PartialEq)]
pub struct Reread {
    /// Its settings now.
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
        // Whole words: `log` is not `log_format`.
        below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    })
}

fn read(path: &Path) -> Result<(Config, BTreeMap<String, String>), ConfigError> {
    // Read once: config and settings of two reads could be those of two files.
    let (config, settings) = Config::read_listed(path)?;
    let of = |Setting { key, value, .. }: Setting| (key, value);
    Ok((config, settings.into_iter().map(of).collect()))
}

impl ConfigFile {
    /// Reads a file.
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
    /// As [`Config::read`]; the next time is compared with the last file that was right.
    pub fn again(&mut self) -> Result<Reread, ConfigError> {
        let (config, settings) = read(&self.path)?;
        // Only once all of it could be read: after a wrong file the next one is compared with
        // the settings that are in use.
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
    /// Moves settings that were refused after all to those that wait for a restart.
    pub fn refuse(&mut self, keys: &[&str]) {
        let refused = self.taken.extract_if(.., |key| is_among(key, keys));
        self.left.extend(refused);
    }
}

impl Server {
    /// Takes the settings that can change while calls are in work, but for the log filter: the
    /// rights of callers without a token, issuers, quotas, and namespaces. Returns the keys,
    /// with all below them, that cannot be used without a restart.
    pub async fn take(&self, config: &Config) -> Vec<&'static str> {
        let limits: &Limits = &config.limits;
        let sign_in = &self.domain.sign_in;
        sign_in.set_anonymous(&config.access);
        let mut refused = Vec::new();
        if let Err(error) = sign_in.set_issuers(&config.access) {
            tracing::error!(error, "the issuers of `access.issuers` stay unchanged");
            // As where sign-in is off: that needs a restart. The rest is taken all the same.
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
