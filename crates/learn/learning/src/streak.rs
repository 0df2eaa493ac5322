//! Days in a row.
//!
//! A day is a date in the learner's own time zone when something was handed in, so that
//! midnight is theirs and days of 23 and 25 hours are days. A date that was counted stays,
//! wherever the learner or the clock goes next.

use jiff::ToSpan as _;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Runs of days that are stored, the newest.
// The record of a learner is written with every change, so it must not grow for ever.
const MAX_RUNS: usize = 64;

/// The days on which a learner handed something in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// First and last day of each run, in order, with at least a day between two.
    runs: Vec<(Date, Date)>,
    /// Days of the longest run.
    longest: u32,
}

fn days((first, last): (Date, Date)) -> u32 {
    let days = first.until(last).map_or(0, |span| span.get_days());
    u32::try_from(days).unwrap_or(0) + 1
}

/// No more than a day lies between the end of one run and the beginning of the next.
fn touch(end: Date, start: Date) -> bool {
    end.checked_add(1.day()).is_ok_and(|next| next >= start)
}

impl Streak {
    /// Counts a day.
    pub(crate) fn add(&mut self, day: Date) {
        // Sorted and merged anew: the day may be before others, after a flight west or with a clock
        // that was set back, and may close a gap between two runs.
        self.runs.push((day, day));
        self.runs.sort_unstable();
        let mut runs: Vec<(Date, Date)> = Vec::with_capacity(self.runs.len());
        for run in self.runs.drain(..) {
            match runs.last_mut() {
                Some(last) if touch(last.1, run.0) => last.1 = last.1.max(run.1),
                _ => runs.push(run),
            }
        }
        // Before old runs are cut off, as the longest may be among them.
        let longest = runs.iter().copied().map(days).max().unwrap_or(0);
        self.longest = self.longest.max(longest);
        let old = runs.len().saturating_sub(MAX_RUNS);
        self.runs = runs.split_off(old);
    }

    /// Days in a row up to a day, or up to the one before it.
    #[must_use]
    pub fn current(&self, today: Date) -> u32 {
        let run = self
            .runs
            .iter()
            .copied()
            .find(|run| run.0 <= today && touch(run.1, today));
        // Days after today were counted by a wrong clock, or further east.
        run.map_or(0, |(first, last)| days((first, last.min(today))))
    }

    /// The longest there was.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// The last day.
    #[must_use]
    pub fn last(&self) -> Option<Date> {
        self.runs.last().map(|run| run.1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    fn streak(days: &[Date]) -> Streak {
        let mut streak = Streak::default();
        for day in days {
            streak.add(*day);
        }
        streak
    }

    #[test]
    fn a_streak_goes_on_until_a_whole_day_is_missed() {
        let streak = streak(&[date(2025, 12, 30), date(2025, 12, 31), date(2026, 1, 1)]);
        assert_eq!(streak.current(date(2026, 1, 1)), 3);
        assert_eq!(streak.current(date(2026, 1, 2)), 3, "today is not over");
        assert_eq!(streak.current(date(2026, 1, 3)), 0);
        assert_eq!(streak.longest(), 3);
    }

    #[test]
    fn a_clock_that_jumped_ahead_and_back_costs_no_day() {
        let streak = streak(&[
            date(2026, 3, 1),
            date(2027, 3, 2),
            date(2026, 3, 2),
            date(2026, 3, 3),
        ]);
        assert_eq!(streak.current(date(2026, 3, 3)), 3);
        assert_eq!(streak.longest(), 3);
        assert_eq!(streak.last(), Some(date(2027, 3, 2)));
    }

    proptest! {
        #[test]
        fn a_streak_is_what_counting_days_one_by_one_gives(
            days in prop::collection::vec(0_i64..90, 0..60),
            today in 0_i64..90,
        ) {
            let day = |n: i64| date(2026, 1, 1).checked_add(n.days()).unwrap();
            let streak = streak(&days.iter().map(|n| day(*n)).collect::<Vec<_>>());
            let set: BTreeSet<i64> = days.into_iter().collect();
            let back = |from: i64| (0..1_000).take_while(|n| set.contains(&(from - n))).count();
            let current = if set.contains(&today) { back(today) } else { back(today - 1) };
            let longest = set.iter().map(|day| back(*day)).max().unwrap_or(0);
            prop_assert_eq!(streak.current(day(today)) as usize, current);
            prop_assert_eq!(streak.longest() as usize, longest);
        }
    }
}
