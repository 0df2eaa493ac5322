//! What a fresh server shows, compared with what its writers know.

use super::tally::{Sort, Tally};
use super::writer::{Named, Owned, Pending, Writer};
use crate::harness::client::{Client, Everything, Gone};
use crate::harness::model::{Answer, Happened, State};

impl Writer {
    /// Compares the writer's skills with what a fresh server shows, and finds out
    /// what became of the writes without an answer; those under a key are asked
    /// again.
    pub(super) async fn compare(
        &mut self,
        client: &Client,
        everything: &Everything,
        tally: &mut Tally,
    ) -> Result<(), Gone> {
        let mut again = Vec::new();
        for (at, owned) in self.owned.iter_mut().enumerate() {
            let Owned { skill, pending } = owned;
            let seen = happened(everything, &skill.id);
            let known = skill.log.len().min(seen.len());
            if seen.len() < skill.log.len() {
                tally.find(
                    Sort::Lost,
                    format!("'{}': the log lacks {:?}", skill.id, &skill.log[known..]),
                );
                continue;
            }
            if seen[..known] != skill.log {
                tally.find(
                    Sort::Wrong,
                    format!("'{}': the log says {seen:?}, not {:?}", skill.id, skill.log),
                );
                continue;
            }
            for Pending { op, key } in pending.drain(..) {
                tally.unanswered += 1;
                let mut after = skill.clone();
                let answer = after.apply(&op);
                let there = match after.log.get(skill.log.len()) {
                    None => true,
                    Some(event) => seen.get(skill.log.len()) == Some(event),
                };
                if there {
                    tally.unanswered_there += u64::from(after.log.len() > skill.log.len());
                    *skill = after;
                }
                if !key.is_empty() {
                    again.push((at, op, key, there.then_some(answer)));
                }
            }
            if seen.len() > skill.log.len() {
                let more = &seen[skill.log.len()..];
                tally.find(
                    Sort::Wrong,
                    format!("'{}': nobody asked for {more:?}", skill.id),
                );
            }
            let shown = everything.skills.get(&skill.id).cloned().flatten();
            if shown != skill.state {
                let (shown, state) = (brief(shown.as_ref()), brief(skill.state.as_ref()));
                tally.find(
                    Sort::Half,
                    format!("'{}' is {shown}, while its log makes it {state}", skill.id),
                );
            }
        }
        for (at, op, key, answer) in again {
            if !tally.found.is_empty() || self.dice.percent(50) {
                continue;
            }
            let id = self.owned[at].skill.id.clone();
            let given = client.write(&id, &op, &key).await?;
            match answer {
                None => self.answered(at, op, key, given),
                Some(answer) => self.expect_again(tally, &key, &given, &answer),
            }
        }
        for _ in 0..4.min(self.named.len()) {
            let Named {
                at,
                op,
                key,
                answer,
            } = self.named[self.dice.index(self.named.len())].clone();
            let skill = &self.owned[at].skill;
            let number = match &answer {
                Answer::Published { number, .. }
                | Answer::Activated { number, .. }
                | Answer::Withdrawn { number, .. } => *number,
                Answer::Deleted { .. } | Answer::Refused(_) => 0,
            };
            // The answer to a write shows the version; one that was deleted since
            // has none to show.
            let shows = skill
                .state
                .as_ref()
                .is_some_and(|state| state.versions.contains_key(&number));
            if (number == 0 || shows) && tally.found.is_empty() {
                let given = client.write(&skill.id.clone(), &op, &key).await?;
                self.expect_again(tally, &key, &given, &answer);
            }
        }
        tally.acknowledged += std::mem::take(&mut self.acknowledged);
        tally.refused += std::mem::take(&mut self.refused);
        tally.repeated += std::mem::take(&mut self.repeated);
        tally.found.append(&mut self.found);
        Ok(())
    }

    fn expect_again(&mut self, tally: &mut Tally, key: &str, given: &Answer, before: &Answer) {
        self.repeated += 1;
        if given != before && !matches!(before, Answer::Refused(_)) {
            tally.find(
                Sort::Wrong,
                format!("the key '{key}' answered {before:?}, and then {given:?}"),
            );
        }
    }
}

pub(super) fn happened(everything: &Everything, id: &str) -> Vec<Happened> {
    everything
        .events
        .iter()
        .filter(|event| event.skill_id == id)
        .map(Into::into)
        .collect()
}

/// A state without its bytes.
pub(super) fn brief(state: Option<&State>) -> String {
    let Some(state) = state else {
        return "not there".to_owned();
    };
    let versions = state.versions.iter().map(|(number, kept)| {
        let yanked = if kept.yanked.is_some() {
            " withdrawn"
        } else {
            ""
        };
        format!(
            "{number} = {} {}{yanked}",
            kept.semantic,
            &kept.digest[..14]
        )
    });
    format!(
        "[{}], active {}",
        versions.collect::<Vec<_>>().join(", "),
        state.active
    )
}
