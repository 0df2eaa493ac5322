//! Who writes to the server, and knows what must come of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contract::v1;
use semver::Version;

use super::COMMON;
use super::tally::{Found, Sort};
use crate::harness::Dice;
use crate::harness::client::{Client, Gone, publication, published};
use crate::harness::model::{Answer, Draft, Op, Skill, draft};

/// Skills that a writer owns, at most.
const SKILLS: usize = 10;

/// The largest file of a skill.
const MOST_BYTES: usize = 200_000;

/// A write that was sent and, so far, not answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) op: Op,
    pub(super) key: String,
}

/// A skill of one writer.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) skill: Skill,
    pub(super) pending: Vec<Pending>,
}

/// A write with an idempotency key, and its answer.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) at: usize,
    pub(super) op: Op,
    pub(super) key: String,
    pub(super) answer: Answer,
}

/// A version that somebody wants to publish to the common skill.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) draft: Draft,
    pub(super) answer: Option<Answer>,
}

pub(super) type Common = Arc<Mutex<BTreeMap<String, Wanted>>>;

#[derive(Debug)]
pub(super) struct Writer {
    name: usize,
    pub(super) dice: Dice,
    pub(super) owned: Vec<Owned>,
    pub(super) named: Vec<Named>,
    keys: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) repeated: u64,
    pub(super) found: Vec<Found>,
    pub(super) ended: Option<(Instant, String)>,
}

impl Writer {
    pub(super) fn new(name: usize, seed: u64) -> Self {
        Self {
            name,
            dice: Dice::new(seed),
            owned: Vec::new(),
            named: Vec::new(),
            keys: 0,
            acknowledged: 0,
            refused: 0,
            repeated: 0,
            found: Vec::new(),
            ended: None,
        }
    }

    pub(super) fn key(&mut self) -> String {
        self.keys += 1;
        format!("writer-{}-{}", self.name, self.keys)
    }

    /// Writes until the server goes away.
    pub(super) async fn work(mut self, url: String, common: Common) -> Self {
        let done = match Client::connect(&url).await {
            Ok(client) => self
                .write_on(&client, &common)
                .await
                .map_err(|Gone(status)| format!("{status:?}")),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = done {
            self.ended = Some((Instant::now(), error));
        }
        self
    }

    async fn write_on(&mut self, client: &Client, common: &Common) -> Result<(), Gone> {
        // More than a server does before it is killed.
        for _ in 0..1_000_000 {
            match self.dice.below(100) {
                0..8 => self.stream(client).await?,
                8..18 => self.publish_common(client, common).await?,
                _ => self.one(client).await?,
            }
            if !self.found.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// One of the writer's skills, now and then a new one.
    fn pick(&mut self) -> usize {
        let owned = self.owned.len();
        if owned == 0 || (owned < SKILLS && self.dice.percent(15)) {
            let id = format!("local/global/writer-{}-skill-{owned}", self.name);
            self.owned.push(Owned {
                skill: Skill::new(id),
                pending: Vec::new(),
            });
            return owned;
        }
        self.dice.index(owned)
    }

    pub(super) fn draft(&mut self, at: usize) -> Draft {
        let declared = self
            .dice
            .percent(10)
            .then(|| Version::new(1 + self.dice.below(5), self.dice.below(3), 0));
        draft(
            &mut self.dice,
            &self.owned[at].skill.id,
            MOST_BYTES,
            declared,
        )
    }

    pub(super) fn op(&mut self, at: usize) -> Op {
        let sort = self.dice.below(100);
        let any = self.dice.next();
        let state = self.owned[at].skill.state.as_ref();
        let version = state
            .and_then(|state| {
                state
                    .versions
                    .keys()
                    .nth(usize::try_from(any).unwrap_or(0) % state.versions.len())
            })
            // A version that is not there is refused.
            .map_or(1, |number| {
                if any.is_multiple_of(29) {
                    number + 1000
                } else {
                    *number
                }
            });
        match (state, sort) {
            (Some(state), 40..45) => {
                let kept = state
                    .versions
                    .values()
                    .next()
                    .expect("a skill has a version");
                let files = Arc::clone(&kept.files);
                let digest = kept.digest.clone();
                Op::Publish(Draft {
                    files,
                    digest,
                    declared: None,
                    activate: true,
                    summary: "once more".to_owned(),
                })
            }
            (None, 0..90) | (Some(_), 0..40) => Op::Publish(self.draft(at)),
            (_, 45..65) => Op::Activate(version),
            (_, 65..80) => Op::Yank(version, format!("reason {any}")),
            (_, 80..95) => Op::Unyank(version),
            _ => Op::Delete,
        }
    }

    async fn one(&mut self, client: &Client) -> Result<(), Gone> {
        let at = self.pick();
        let op = self.op(at);
        let key = if self.dice.percent(35) {
            self.key()
        } else {
            String::new()
        };
        let id = self.owned[at].skill.id.clone();
        self.owned[at].pending.push(Pending {
            op: op.clone(),
            key: key.clone(),
        });
        // Sometimes the caller goes away at once and asks again under its key.
        if !key.is_empty() && self.dice.percent(30) {
            let patience = Duration::from_micros(self.dice.below(6_000));
            let _first = tokio::time::timeout(patience, client.write(&id, &op, &key)).await;
        }
        let answer = client.write(&id, &op, &key).await?;
        self.owned[at].pending.pop();
        self.answered(at, op, key, answer);
        Ok(())
    }

    /// Takes an answer into the model.
    pub(super) fn answered(&mut self, at: usize, op: Op, key: String, answer: Answer) {
        let owned = &mut self.owned[at];
        let expected = owned.skill.apply(&op);
        if answer != expected {
            let id = &owned.skill.id;
            self.found.push(Found(
                Sort::Wrong,
                format!("'{id}' answered {answer:?} instead of {expected:?} to {op:?}"),
            ));
            return;
        }
        if matches!(answer, Answer::Refused(_)) {
            self.refused += 1;
            return;
        }
        self.acknowledged += 1;
        if !key.is_empty() {
            self.named.push(Named {
                at,
                op,
                key,
                answer,
            });
        }
    }

    async fn publish_common(&mut self, client: &Client, common: &Common) -> Result<(), Gone> {
        let draft = draft(&mut self.dice, COMMON, 20_000, None);
        let digest = draft.digest.clone();
        let wanted = Wanted {
            draft: draft.clone(),
            answer: None,
        };
        common
            .lock()
            .expect("a lock")
            .insert(digest.clone(), wanted);
        let answer = client.write(COMMON, &Op::Publish(draft), "").await?;
        self.acknowledged += 1;
        common
            .lock()
            .expect("a lock")
            .get_mut(&digest)
            .expect("it is wanted")
            .answer = Some(answer);
        Ok(())
    }

    /// Publishes several versions over one stream.
    async fn stream(&mut self, client: &Client) -> Result<(), Gone> {
        let count = 2 + self.dice.index(14);
        let mut items = Vec::with_capacity(count);
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let at = self.pick();
            let draft = self.draft(at);
            let key = if self.dice.percent(35) {
                self.key()
            } else {
                String::new()
            };
            let owned = &mut self.owned[at];
            let skill = Some(publication(&owned.skill.id, &draft, &key));
            requests.push(v1::PublishSkillsRequest { skill });
            owned.pending.push(Pending {
                op: Op::Publish(draft),
                key,
            });
            items.push(at);
        }
        let answers = client
            .registry
            .clone()
            .publish_skills(tokio_stream::iter(requests))
            .await;
        let mut answers = answers.map_err(Gone)?.into_inner();
        for (index, at) in (0..).zip(items) {
            let Some(answer) = answers.message().await.map_err(Gone)? else {
                return Err(Gone(tonic::Status::unknown(
                    "a stream of answers ended early",
                )));
            };
            if answer.index != index {
                self.found.push(Found(
                    Sort::Wrong,
                    format!("item {index} was answered as {}", answer.index),
                ));
            }
            let answer = match answer.result.expect("an answer has a result") {
                v1::publish_skills_response::Result::Published(answer) => published(answer),
                v1::publish_skills_response::Result::Refused(refusal) => {
                    Answer::Refused(refusal.code)
                }
            };
            let Pending { op, key } = self.owned[at].pending.remove(0);
            self.answered(at, op, key, answer);
        }
        Ok(())
    }
}
