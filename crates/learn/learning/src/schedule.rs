//! Spaced repetition: when an exercise is about to be forgotten.
//!
//! FSRS (Ye and others, "A Stochastic Shortest Path Algorithm for Optimizing Spaced
//! Repetition Scheduling", 2022) with its default weights: nothing is due sooner than a day
//! after it was practised, and the next time is when nine in ten would still know it.

use chrono::{DateTime, Utc};
use jiff::Timestamp;
use rs_fsrs::{Card, FSRS, Parameters, Rating, State};
use serde::{Deserialize, Serialize};

/// How well an exercise was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recall {
    /// Not at all.
    Failed,
    /// With hints, or not at once.
    Hard,
    /// At once, and not all right.
    Good,
    /// At once.
    Easy,
}

/// The memory of an exercise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// When it is practised again.
    pub(crate) due: Timestamp,
    /// When it was practised last.
    pub(crate) practised: Timestamp,
    /// Days until one in ten has forgotten it.
    stability: f64,
    /// 1 to 10.
    difficulty: f64,
    /// Times it was practised.
    times: u32,
    /// Times it was forgotten.
    pub(crate) lapses: u32,
}

#[expect(
    clippy::expect_used,
    reason = "both count from 1970, and chrono reaches further"
)]
fn chrono(time: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp(time.as_second(), 0).expect("a time")
}

/// A due time; the last time there is, where a wrong clock is near to it.
fn jiff(time: DateTime<Utc>) -> Timestamp {
    Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::MAX)
}

/// The memory after an exercise was done.
pub(crate) fn practised(known: Option<&Memory>, recall: Recall, now: Timestamp) -> Memory {
    // A clock that was set back must not make time negative.
    let now = known.map_or(now, |memory| now.max(memory.practised));
    let card = known.map_or_else(Card::default, |memory| Card {
        due: chrono(memory.due),
        stability: memory.stability,
        difficulty: memory.difficulty,
        elapsed_days: 0,
        scheduled_days: 0,
        reps: i32::try_from(memory.times).unwrap_or(i32::MAX),
        lapses: i32::try_from(memory.lapses).unwrap_or(i32::MAX),
        state: State::Review,
        last_review: chrono(memory.practised),
    });
    let rating = match recall {
        Recall::Failed => Rating::Again,
        Recall::Hard => Rating::Hard,
        Recall::Good => Rating::Good,
        Recall::Easy => Rating::Easy,
    };
    let scheduler = FSRS::new(Parameters {
        // No steps of minutes: an exercise that was done just now teaches nothing.
        enable_short_term: false,
        // Random days would spread the load of many cards; here they would make the same
        // practice come to another date.
        enable_fuzz: false,
        ..Parameters::default()
    });
    let card = scheduler.next(card, chrono(now), rating).card;
    let lapses = known.map_or(0, |memory| memory.lapses);
    Memory {
        due: jiff(card.due),
        practised: now,
        stability: card.stability,
        difficulty: card.difficulty,
        times: known.map_or(0, |memory| memory.times).saturating_add(1),
        lapses: lapses.saturating_add(u32::from(recall == Recall::Failed)),
    }
}

impl Memory {
    /// The probability that it is still known, 0 to 1.
    pub(crate) fn retrievability(&self, now: Timestamp) -> f64 {
        let seconds = (now.as_second() - self.practised.as_second()).max(0);
        #[expect(clippy::cast_precision_loss, reason = "seconds of a human life")]
        let days = seconds as f64 / 86_400.0;
        Parameters::forgetting_curve(days, self.stability)
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.due <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_second(1_760_000_000 + day * 86_400).unwrap()
    }

    fn days_until_due(memory: &Memory) -> i64 {
        (memory.due.as_second() - memory.practised.as_second()) / 86_400
    }

    #[test]
    fn what_was_done_well_is_due_later_than_what_was_not() {
        let recalls = [Recall::Failed, Recall::Hard, Recall::Good, Recall::Easy];
        let due = recalls.map(|recall| days_until_due(&practised(None, recall, day(0))));
        assert_eq!(due, [1, 2, 3, 15]);
    }

    #[test]
    fn the_days_until_the_next_time_grow_and_a_lapse_shrinks_them() {
        let mut memory = practised(None, Recall::Good, day(0));
        let mut due = vec![days_until_due(&memory)];
        for _ in 0..3 {
            memory = practised(Some(&memory), Recall::Good, memory.due);
            due.push(days_until_due(&memory));
        }
        assert!(due.is_sorted() && due.first() < due.last(), "{due:?}");
        let lapsed = practised(Some(&memory), Recall::Failed, memory.due);
        assert!(days_until_due(&lapsed) < days_until_due(&memory));
        assert_eq!((memory.lapses, lapsed.lapses), (0, 1));
    }

    #[test]
    fn a_clock_that_was_set_back_changes_no_chance_and_no_order() {
        let memory = practised(None, Recall::Good, day(10));
        assert!((memory.retrievability(day(3)) - 1.0).abs() < f64::EPSILON);
        let again = practised(Some(&memory), Recall::Good, day(3));
        assert_eq!(again.practised, day(10));
        assert!(again.due >= memory.practised);
    }

    #[test]
    fn nine_in_ten_know_it_when_it_is_due() {
        let memory = practised(None, Recall::Easy, day(0));
        let known = memory.retrievability(memory.due);
        assert!((known - 0.9).abs() < 0.01, "{known}");
        assert!(memory.is_due(memory.due) && !memory.is_due(day(1)));
    }
}
