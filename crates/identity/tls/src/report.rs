//! The state of the files, for an operator's health check.

use jiff::Timestamp;

use crate::{Mistake, Tls, TlsConfig};

/// Days before its end from which on a certificate should be renewed: the usual ones have 90
/// days or less, and are renewed when a third is left.
const RENEWAL_DAYS: i64 = 21;
const SECONDS_PER_DAY: i64 = 24 * 3600;

/// The state of the files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// In a sentence.
    pub found: String,
    /// The operator should act.
    pub is_urgent: bool,
}

impl TlsConfig {
    /// Reports the state of the files. `None`: there is no TLS. Blocks.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn report(&self, now: Timestamp) -> Result<Option<Report>, Mistake> {
        if !self.is_on() {
            return Ok(None);
        }
        let tls = Tls::load(self)?;
        let (end, mut warnings) = (tls.not_after(), tls.warnings(now));
        let days = (end.as_second() - now.as_second()).div_euclid(SECONDS_PER_DAY);
        let is_urgent = days < RENEWAL_DAYS || !warnings.is_empty();
        if end > now {
            warnings.insert(0, format!("the certificate ends at {end}, in {days} days"));
        }
        Ok(Some(Report {
            found: warnings.join("; "),
            is_urgent,
        }))
    }
}
