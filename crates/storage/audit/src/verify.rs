//! Whether the chain is what was written.

use crate::retention::through_details;
use crate::{Details, Event, EventKind};
use store::{ChainMark, Store};

/// Maximum number of sentences and of gaps that are reported.
pub(crate) const MAX_REPORTED: usize = 100;
const MISSING: &str = "missing";

/// The result of checking the trail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Records that are there.
    pub records: u64,
    /// The damage, as sentences that name its location.
    pub damage: Vec<String>,
    /// Ranges of missing records, from the first number to the last.
    pub(crate) missing: Vec<(u64, u64)>,
}

fn range((first, last): (u64, u64)) -> String {
    format!("{first}-{last}")
}

fn parsed(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

impl Verified {
    /// Returns the missing records, as the record of a restore names them.
    pub(crate) fn missing_details(&self) -> Details {
        if self.missing.is_empty() {
            return Details::new();
        }
        let ranges: Vec<_> = self.missing.iter().copied().map(range).collect();
        [(MISSING.to_owned(), ranges.join(","))].into()
    }

    fn is_missing(&mut self, first: u64, last: u64) {
        if self.missing.len() < MAX_REPORTED {
            self.missing.push((first, last));
        } else if let Some(end) = self.missing.last_mut() {
            end.1 = last;
        }
    }

    fn wrong(&mut self, sentence: String) {
        if self.damage.len() < MAX_REPORTED {
            self.damage.push(sentence);
        }
    }
}

/// Reads the whole trail, and compares each record with its digest, and the ends with what is
/// stored of them.
#[must_use]
pub fn verify(store: &Store) -> Verified {
    let mut found = Verified::default();
    let (start, end) = match (store.chain_start(), store.chain_end()) {
        (Ok(start), Ok(end)) => (start, end),
        (start, end) => {
            let errors = [start.err(), end.err()].into_iter().flatten();
            errors.for_each(|error| found.wrong(error.to_string()));
            return found;
        }
    };
    let mut before = Some(start);
    let mut last = start;
    let mut pruned: Option<Details> = None;
    let mut explained: Vec<(u64, u64)> = Vec::new();
    for link in store.links(0, u64::MAX) {
        let link = match link {
            Ok(link) => link,
            Err(error) => {
                // Its number is reported as missing, too.
                found.wrong(error.to_string());
                continue;
            }
        };
        found.records += 1;
        let number = link.mark.number;
        if number <= start.number {
            let start = start.number;
            found.wrong(format!(
                "the audit trail has record {number}, and starts after {start}"
            ));
            continue;
        }
        if number > last.number + 1 {
            found.is_missing(last.number + 1, number - 1);
            // The record after a gap has no neighbor to be checked against.
            before = None;
        }
        if before.is_some_and(|before| before.next(&link.body) != link.mark) {
            found.wrong(format!(
                "the audit trail breaks at record {number}: it, or the one before, is not what was written"
            ));
        }
        match Event::decode(&link) {
            Ok(event) if event.kind == EventKind::Pruned => pruned = Some(event.details),
            Ok(event) if event.kind == EventKind::Restored => {
                let missing = event.details.get(MISSING).into_iter();
                explained.extend(missing.flat_map(|it| it.split(',')).filter_map(parsed));
            }
            Ok(_) => {}
            Err(error) => found.wrong(error.to_string()),
        }
        last = link.mark;
        before = Some(last);
    }
    check_ends(&mut found, (start, pruned), (last, end));
    for missing in std::mem::take(&mut found.missing) {
        // Explained by a restore, in a record that the chain covers itself.
        let (first, last) = missing;
        if explained.iter().any(|(a, b)| *a <= first && last <= *b) {
            continue;
        }
        found.wrong(match last - first {
            0 => format!("the audit trail has no record {first}"),
            _ => format!("the audit trail has no records {first} to {last}"),
        });
        found.missing.push(missing);
    }
    found
}

/// Compares the ends of the chain with what is stored of them.
fn check_ends(
    found: &mut Verified,
    (start, pruned): (ChainMark, Option<Details>),
    (last, end): (ChainMark, Option<ChainMark>),
) {
    let stated = (start.number > 0).then(|| through_details(start));
    if stated != pruned {
        found.wrong(format!(
            "the audit trail starts after record {}, and no record says that those before were pruned",
            start.number
        ));
    }
    let (last_number, end) = (last.number, end.unwrap_or_default());
    if end.number > last_number {
        found.is_missing(last_number + 1, end.number);
    } else if end != last {
        found.wrong(format!(
            "the audit trail goes up to record {last_number}, and is written down to end at {}",
            end.number
        ));
    }
}
