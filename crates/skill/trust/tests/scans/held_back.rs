//! Malicious skills that the rules were not written from: `held_back/*.txt`, in the form of
//! `cases`.
//!
//! They were written before the rules that find them, in other words, and no rule is made from
//! one of them: what is missed here becomes a case of another wording in `cases`, and the rule
//! is made from that. The verdict is the least that a kind deserves.

use repertoire_trust::Verdict;

use super::labelled::{cases, scan};

/// The shares, in hundredths, that are flagged at all, and that get the verdict they deserve.
const MIN_FLAGGED: usize = 95;
const MIN_DESERVED: usize = 85;

#[test]
fn nineteen_of_twenty_held_back_attacks_are_flagged_and_most_as_they_deserve() {
    let cases = cases("held_back");
    let (mut flagged, mut deserved, mut misses) = (0, 0, Vec::new());
    for case in &cases {
        let report = scan(case);
        let verdict = report.verdict;
        let wanted = Verdict::ALL
            .iter()
            .find(|known| known.name() == case.verdict);
        let is_deserved = Some(&verdict) >= wanted;
        flagged += usize::from(verdict != Verdict::Passed);
        deserved += usize::from(is_deserved);
        if !is_deserved {
            let found = report.findings.iter();
            let found: Vec<&str> = found.map(|found| found.rule.as_ref()).collect();
            misses.push(format!("{}: {} {found:?}", case.title, verdict.name()));
        }
    }
    let all = cases.len();
    let misses = misses.join("\n");
    println!("{flagged} of {all} flagged, {deserved} as they deserve\n{misses}");
    assert!(all >= 40, "{all} cases");
    assert!(
        flagged * 100 >= MIN_FLAGGED * all,
        "{flagged} of {all}\n{misses}"
    );
    assert!(
        deserved * 100 >= MIN_DESERVED * all,
        "{deserved} of {all}\n{misses}"
    );
}
