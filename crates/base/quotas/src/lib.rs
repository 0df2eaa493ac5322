//! Quotas: how many calls a caller may make over time.
//!
//! Rules:
//!
//! * A quota is a number of calls a minute. A caller that was quiet may make all of them
//!   at once; after that they come back evenly (the generic cell rate algorithm, as `governor`
//!   has it).
//! * Callers are those of admission: a token, or else an address. The server's own process and
//!   callers through the socket in the data directory have no quota.
//! * A call that is refused costs nothing of the quota, and its refusal says how long to wait.
//! * Without a quota in the config nothing is counted.
//!
//! Not here: how much a caller may have at once (`admission`), what a session may have
//! (`tools`), and how much a namespace holds (`registry`); its quotas are settings here, with
//! the others.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use serde::Deserialize;

use access::Action;
use model::{Code, Failure};

/// The number of callers from which on those that are quiet again are looked for.
const FORGET_THRESHOLD: usize = 4096;

/// How many calls a minute; none: as many as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerQuota {
    /// Calls of every kind.
    pub calls_per_minute: Option<NonZeroU32>,
    /// Calls of tools.
    pub tool_calls_per_minute: Option<NonZeroU32>,
}

/// Quotas of callers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasConfig {
    /// Calls of every kind that a caller may make a minute; none: as many as it likes.
    pub calls_per_minute: Option<NonZeroU32>,
    /// Calls of tools that a caller may make a minute; none: as many as it likes.
    pub tool_calls_per_minute: Option<NonZeroU32>,
    /// Overrides by the name of the caller, such as `token:ci`; each replaces both.
    pub callers: BTreeMap<String, CallerQuota>,
    /// Skills that a namespace may hold; none: as many as it likes.
    pub skills_per_namespace: Option<NonZeroU32>,
    /// MiB that all versions of its skills may have; none: as many as it likes.
    pub mib_per_namespace: Option<NonZeroU32>,
    /// Overrides by namespace, such as `github/acme`; each replaces both.
    pub namespaces: BTreeMap<String, NamespaceQuota>,
}

/// How much a namespace may hold; none: as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamespaceQuota {
    /// Skills.
    pub skills: Option<NonZeroU32>,
    /// MiB of all their versions.
    pub mib: Option<NonZeroU32>,
}

type Limiter<C> =
    RateLimiter<String, DashMapStateStore<String>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// One quota, with the use of all callers that have it.
#[derive(Debug)]
struct Rate<C: Clock> {
    name: &'static str,
    what: &'static str,
    per_minute: NonZeroU32,
    limiter: Limiter<C>,
    /// The number of callers at which those that are quiet are forgotten.
    forget_at: AtomicUsize,
}

/// The quotas of one caller.
#[derive(Debug)]
struct Rates<C: Clock> {
    calls: Option<Rate<C>>,
    tool_calls: Option<Rate<C>>,
}

/// The use that callers made of their quotas.
#[derive(Debug)]
pub struct Quotas<C: Clock = DefaultClock> {
    rates: Rates<C>,
    callers: BTreeMap<String, Rates<C>>,
    clock: C,
}

impl Quotas {
    /// Quotas of which nothing was used.
    #[must_use]
    pub fn new(config: &QuotasConfig) -> Self {
        Self::with_clock(config, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Quotas<C> {
    fn with_clock(config: &QuotasConfig, clock: C) -> Self {
        let all = CallerQuota {
            calls_per_minute: config.calls_per_minute,
            tool_calls_per_minute: config.tool_calls_per_minute,
        };
        let callers = config.callers.iter();
        let callers = callers.map(|(name, quota)| (name.clone(), Rates::new(*quota, &clock)));
        Self {
            rates: Rates::new(all, &clock),
            callers: callers.collect(),
            clock,
        }
    }

    /// No caller has a quota.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Rates { calls, tool_calls } = &self.rates;
        self.callers.is_empty() && calls.is_none() && tool_calls.is_none()
    }

    /// Takes a call of a caller from its quotas.
    ///
    /// # Errors
    /// `QUOTA_EXCEEDED`: nothing is left of one of them, now.
    pub fn take(&self, caller: &str, action: Option<Action>) -> Result<(), Failure> {
        let rates = self.callers.get(caller).unwrap_or(&self.rates);
        // The narrower one first: what it refuses costs nothing of the other.
        let is_of_tool = action == Some(Action::Call);
        let tool_calls = rates.tool_calls.as_ref().filter(|_| is_of_tool);
        for rate in tool_calls.into_iter().chain(&rates.calls) {
            rate.take(caller, &self.clock)?;
        }
        Ok(())
    }
}

impl<C: Clock + Clone> Rates<C> {
    fn new(quota: CallerQuota, clock: &C) -> Self {
        let rate = |per_minute: Option<NonZeroU32>, name, what| {
            Some(Rate::new(per_minute?, name, what, clock))
        };
        let (calls, tool_calls) = (quota.calls_per_minute, quota.tool_calls_per_minute);
        Self {
            calls: rate(calls, "calls_per_minute", "calls"),
            tool_calls: rate(tool_calls, "tool_calls_per_minute", "calls of tools"),
        }
    }
}

impl<C: Clock + Clone> Rate<C> {
    fn new(per_minute: NonZeroU32, name: &'static str, what: &'static str, clock: &C) -> Self {
        Self {
            name,
            what,
            per_minute,
            limiter: RateLimiter::new(
                Quota::per_minute(per_minute),
                DashMapStateStore::default(),
                clock.clone(),
            ),
            forget_at: AtomicUsize::new(FORGET_THRESHOLD),
        }
    }

    fn take(&self, caller: &str, clock: &C) -> Result<(), Failure> {
        self.forget_quiet();
        // `check_key` takes nothing from the quota where it refuses.
        let Err(not_until) = self.limiter.check_key(&caller.to_owned()) else {
            return Ok(());
        };
        Err(self.refusal(caller, not_until.wait_time_from(clock.now())))
    }

    /// Forgets callers that have their whole quota again, as if they never called. Addresses are
    /// many, so this runs whenever there are twice as many as were left.
    fn forget_quiet(&self) {
        let forget_at = self.forget_at.load(Ordering::Relaxed);
        if self.limiter.len() < forget_at {
            return;
        }
        // One caller does this; the others go on.
        let busy = usize::MAX;
        let exchanged =
            self.forget_at
                .compare_exchange(forget_at, busy, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.limiter.retain_recent();
            let next = self.limiter.len().saturating_mul(2).max(FORGET_THRESHOLD);
            self.forget_at.store(next, Ordering::Relaxed);
        }
    }

    fn refusal(&self, caller: &str, wait: Duration) -> Failure {
        let sentence = format!(
            "{caller} may make {} {} a minute",
            self.per_minute, self.what
        );
        let mut failure = Failure::new(Code::QuotaExceeded, sentence)
            .detail("quota", self.name)
            .detail("limit", self.per_minute)
            .suggest("Wait for the time that RetryInfo or Retry-After gives")
            .suggest(format!(
                "The operator sets it: `limits.quotas.{}`, or for one caller `limits.quotas.callers`",
                self.name
            ));
        failure.retry_after = Some(wait);
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    const CALLS: &str = "
calls_per_minute: 60
tool_calls_per_minute: 2
callers:
  token:ci: {calls_per_minute: 3}
";

    fn quotas(config: &str) -> (Quotas<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let config = serde_yaml::from_str(config).expect("a config");
        (Quotas::with_clock(&config, clock.clone()), clock)
    }

    /// How many of many calls are taken before one is refused.
    fn taken(quotas: &Quotas<FakeRelativeClock>, caller: &str, action: Action) -> usize {
        (0..1000)
            .take_while(|_| quotas.take(caller, Some(action)).is_ok())
            .count()
    }

    #[test]
    fn a_caller_makes_its_calls_at_once_and_then_as_they_come_back() {
        let (quotas, clock) = quotas(CALLS);
        assert_eq!(taken(&quotas, "token:ada", Action::Read), 60);
        assert_eq!(taken(&quotas, "token:bob", Action::Read), 60, "its own");
        clock.advance(Duration::from_secs(5));
        assert_eq!(taken(&quotas, "token:ada", Action::Read), 5);
        clock.advance(Duration::from_secs(3600));
        assert_eq!(taken(&quotas, "token:ada", Action::Read), 60, "and no more");
    }

    #[test]
    fn calls_of_tools_have_a_quota_of_their_own_and_a_caller_may_have_others() {
        let (quotas, _clock) = quotas(CALLS);
        assert_eq!(taken(&quotas, "token:ada", Action::Call), 2);
        // What was refused cost nothing of the other quota.
        assert_eq!(taken(&quotas, "token:ada", Action::Load), 58);
        assert_eq!(taken(&quotas, "token:ci", Action::Call), 3, "of every kind");
        let (none, _clock) = super::tests::quotas("{}");
        assert!(none.is_empty());
        assert_eq!(taken(&none, "token:ada", Action::Call), 1000);
        assert!(!quotas.is_empty());
    }

    #[test]
    fn a_refusal_says_the_limit_and_when_to_come_again() {
        let (quotas, clock) = quotas(CALLS);
        taken(&quotas, "10.0.0.1", Action::Call);
        clock.advance(Duration::from_secs(10));
        let refused = quotas.take("10.0.0.1", Some(Action::Call));
        let refused = refused.expect_err("two at once, and one in thirty seconds");
        assert_eq!(
            (refused.code, refused.message.as_str(), refused.retry_after),
            (
                Code::QuotaExceeded,
                "10.0.0.1 may make 2 calls of tools a minute",
                Some(Duration::from_secs(20))
            )
        );
        let details = refused.details.into_iter().collect::<Vec<_>>();
        assert_eq!(
            format!("{details:?}"),
            r#"[("limit", "2"), ("quota", "tool_calls_per_minute")]"#
        );
    }

    #[test]
    fn callers_that_are_quiet_are_forgotten() {
        let (quotas, clock) = quotas("{calls_per_minute: 60}");
        let known = || quotas.rates.calls.as_ref().expect("a quota").limiter.len();
        for round in 0..3 {
            for caller in 0..FORGET_THRESHOLD {
                let name = format!("{round}.{caller}");
                quotas.take(&name, None).expect("its first");
            }
            assert!(known() <= FORGET_THRESHOLD, "{} in round {round}", known());
            clock.advance(Duration::from_secs(60));
        }
    }

    #[test]
    fn callers_are_looked_through_when_there_are_twice_as_many_as_were_left() {
        let (quotas, clock) = quotas("{calls_per_minute: 60}");
        let rate = quotas.rates.calls.as_ref().expect("a quota");
        let state = || {
            let forget_at = rate.forget_at.load(Ordering::Relaxed);
            (rate.limiter.len(), forget_at)
        };
        let call = |round: &str, callers: usize| {
            for caller in 0..callers {
                let name = format!("{round}.{caller}");
                quotas.take(&name, None).expect("its first");
            }
        };
        call("quiet", FORGET_THRESHOLD);
        clock.advance(Duration::from_secs(60));
        call("busy", 1);
        assert_eq!(state(), (1, FORGET_THRESHOLD), "nobody was left");
        call("busy", FORGET_THRESHOLD + 1);
        assert_eq!(
            state(),
            (FORGET_THRESHOLD + 1, 2 * FORGET_THRESHOLD),
            "all were left"
        );
        clock.advance(Duration::from_secs(60));
        call("late", FORGET_THRESHOLD - 1);
        assert_eq!(
            state(),
            (2 * FORGET_THRESHOLD, 2 * FORGET_THRESHOLD),
            "not yet looked at"
        );
        call("last", 1);
        assert_eq!(
            state(),
            (FORGET_THRESHOLD, 2 * (FORGET_THRESHOLD - 1)),
            "the busy ones left"
        );
    }

    #[test]
    fn a_quota_of_any_sort_is_one_to_be_counted() {
        let is_empty = |config: &str| quotas(config).0.is_empty();
        let configs = [
            "{}",
            "{skills_per_namespace: 3}",
            "{calls_per_minute: 3}",
            "{tool_calls_per_minute: 3}",
            "callers: {token:ci: {calls_per_minute: 3}}",
        ];
        assert_eq!(configs.map(is_empty), [true, true, false, false, false]);
        let (only_one, _clock) = quotas(configs[4]);
        assert_eq!(taken(&only_one, "token:ci", Action::Read), 3);
        assert_eq!(taken(&only_one, "token:ada", Action::Read), 1000);
    }

    #[test]
    fn a_quota_is_a_number_above_zero() {
        for wrong in [
            "calls_per_minute: 0",
            "calls_per_minute: -1",
            "calls: 1",
            "callers: {token:ci: {calls: 1}}",
            "callers: {token:ci: {calls_per_minute: 0}}",
            "namespaces: {github/acme: {skill: 1}}",
            "namespaces: {github/acme: {mib: 0}}",
        ] {
            assert!(
                serde_yaml::from_str::<QuotasConfig>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
