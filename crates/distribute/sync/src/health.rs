//! The health of sources, by what happened in the last 24 hours.

use jiff::Timestamp;

use super::record::State;
use super::source_sync::DAY;
use super::{Engine, Error, Source};
use sources::RateLimit;

/// Failures in a row after which a source counts as unavailable.
const UNAVAILABLE_THRESHOLD: u32 = 3;

/// The health of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    /// The last sync succeeded, and so did all of the last 24 hours.
    Healthy,
    /// A sync of the last 24 hours failed.
    Degraded,
    /// The last three failed, or none ever succeeded.
    Unavailable,
    /// It takes no requests for now.
    RateLimited,
}

/// The health of all sources together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overall {
    /// Each is healthy.
    Healthy,
    /// Some are not.
    Degraded,
    /// All are unavailable.
    Critical,
}

/// The health of a source, and what it follows from.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The source.
    pub source: Source,
    /// Its health.
    pub standing: HealthStatus,
    /// When a sync last succeeded.
    pub last_success: Option<Timestamp>,
    /// When it was last looked at.
    pub last_check: Option<Timestamp>,
    /// Milliseconds of the last look.
    pub response_ms: Option<u64>,
    /// Its rate limit, as it reported it last.
    pub rate_limit: Option<RateLimit>,
    /// Syncs that failed in the last 24 hours.
    pub errors: u32,
    /// Why the last of them failed.
    pub last_error: Option<String>,
    /// Skills that come from it.
    pub skills: u32,
}

/// The health of a source, by its state at a time.
fn standing(state: &State, errors: usize, now: Timestamp) -> HealthStatus {
    // First: a place that asks to wait works, so failures from before say nothing of it now.
    if state.not_before.is_some_and(|time| now < time) {
        return HealthStatus::RateLimited;
    }
    // A source that never worked is likely a wrong address: one failure is enough.
    let never = state.last_success.is_none() && state.failed_in_row > 0;
    if state.failed_in_row >= UNAVAILABLE_THRESHOLD || never {
        HealthStatus::Unavailable
    } else if errors > 0 || state.failed_in_row > 0 {
        HealthStatus::Degraded
    } else {
        HealthStatus::Healthy
    }
}

impl Overall {
    /// The health of all, by that of each.
    #[must_use]
    pub fn of(sources: &[Health]) -> Self {
        let count = |standing| {
            sources
                .iter()
                .filter(|health| health.standing == standing)
                .count()
        };
        // No source at all is no fault: most servers have none.
        if sources.is_empty() || count(HealthStatus::Healthy) == sources.len() {
            Self::Healthy
        } else if count(HealthStatus::Unavailable) == sources.len() {
            Self::Critical
        } else {
            Self::Degraded
        }
    }
}

impl Engine {
    /// The health of one source, or of all.
    ///
    /// # Errors
    /// There is no such source; a record is damaged.
    pub fn health(&self, id: Option<&str>) -> Result<Vec<Health>, Error> {
        let sources = match id {
            Some(id) => vec![self.source(id)?],
            None => self.sources(),
        };
        let now = self.0.registry.now();
        let health = |source: Source| {
            let state = self.state(&source.id)?;
            let recent = |time: Timestamp| now.duration_since(time) < DAY;
            let errors = state
                .failures
                .iter()
                .filter(|failed| recent(failed.time))
                .count();
            Ok(Health {
                standing: standing(&state, errors, now),
                last_success: state.last_success,
                last_check: state.last_check,
                response_ms: state.response_ms,
                rate_limit: state.rate_limit,
                errors: u32::try_from(errors).unwrap_or(u32::MAX),
                last_error: state.failures.last().map(|failed| failed.message.clone()),
                skills: state.skills,
                source,
            })
        };
        sources.into_iter().map(health).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Failed;
    use super::*;

    #[test]
    fn a_source_does_as_its_last_day_went() {
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(100);
        let failure = Failed {
            time: now,
            message: String::new(),
        };
        let good = State {
            last_success: Some(now),
            ..State::default()
        };
        let state = |row, failures, not_before| State {
            failed_in_row: row,
            failures: vec![failure.clone(); failures],
            not_before,
            ..good.clone()
        };
        let later = now + jiff::SignedDuration::from_secs(1);
        for (state, expected) in [
            (State::default(), HealthStatus::Healthy),
            (good.clone(), HealthStatus::Healthy),
            (state(0, 1, None), HealthStatus::Degraded),
            (state(2, 2, None), HealthStatus::Degraded),
            (state(3, 3, None), HealthStatus::Unavailable),
            (
                State {
                    failed_in_row: 1,
                    ..State::default()
                },
                HealthStatus::Unavailable,
            ),
            (state(0, 0, Some(later)), HealthStatus::RateLimited),
            (state(0, 0, Some(now)), HealthStatus::Healthy),
        ] {
            assert_eq!(
                standing(&state, state.failures.len(), now),
                expected,
                "{state:?}"
            );
        }
    }
}
