//! The skills for a task: those that fit best and go together, with what they
//! require.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::load::{RegistryLibrary, shown};
use super::member::{Demand, because, rules_of};
use super::resolve::{Asked, resolve};
use super::scorer::{self, Hit};
use super::{Composition, Error, Finding, Member, rules};
use executor::{Kind, Stop};
use model::SkillKey;

/// Skills that are selected where no number is asked for.
const LIMIT: usize = 5;
/// Skills that are tried for each that is asked for: some do not go together.
const TRIED: usize = 4;

/// A skill that was selected.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// Shortest name that leads to it.
    pub name: Arc<str>,
    /// Its id.
    pub id: model::SkillId,
    /// How well it fits.
    pub score: f64,
    /// Why.
    pub reasons: Vec<String>,
    /// Name of the selected skill that requires it; empty: it fits itself.
    pub required_by: String,
}

/// The skills for a task, the best first, each before what it requires.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The skills.
    pub skills: Vec<Selected>,
    /// How many were looked at.
    pub considered: usize,
    /// Why skills that fit were left out.
    pub findings: Vec<Finding>,
}

impl Composition {
    /// Selects skills for a task; a limit of 0 is 5.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn select(
        &self,
        task: String,
        context: String,
        limit: usize,
    ) -> Result<Selection, Error> {
        self.index.ready().await;
        let this = self.clone();
        let work = move |stop: &Stop| {
            let limit = if limit == 0 { LIMIT } else { limit };
            this.selection(&task, &context, limit, stop)
        };
        self.executor().run_fallible(Kind::Compose, work).await
    }

    fn selection(
        &self,
        task: &str,
        context: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<Selection, Error> {
        let catalog = self.registry.catalog();
        let library = RegistryLibrary {
            registry: &self.registry,
            catalog: &catalog,
        };
        let scored = scorer::score(&self.index, &catalog, task, context, stop);
        stop.check()?;
        let mut selection = Selection {
            considered: scored.considered,
            ..Selection::default()
        };
        let mut asked: Vec<Asked> = Vec::new();
        let mut there: FxHashSet<SkillKey> = FxHashSet::default();
        for hit in scored.hits.iter().take(limit.saturating_mul(TRIED)) {
            if asked.len() >= limit {
                break;
            }
            let (id, name) = (&hit.head.id, shown(&catalog, &hit.head));
            asked.push(Asked {
                id: id.clone(),
                text: name.to_string(),
                name,
                numbers: hit.head.active.into_iter().collect(),
            });
            match together(&library, &asked, stop)? {
                Ok(members) => {
                    let news = members.iter().enumerate();
                    let news = news.filter(|(_, member)| there.insert(member.id.key()));
                    let news: Vec<usize> = news.map(|(at, _)| at).collect();
                    selection.add(&members, asked.len(), &news, hit, stop)?;
                }
                Err(finding) => {
                    asked.pop();
                    selection.findings.push(finding);
                }
            }
        }
        Ok(selection)
    }
}

/// The skills with what they require; or why they do not go together.
fn together(
    library: &RegistryLibrary<'_>,
    asked: &[Asked],
    stop: &Stop,
) -> Result<Result<Vec<Member>, Finding>, Error> {
    let members = match resolve(library, asked, stop)? {
        Ok(members) => members,
        Err(finding) => return Ok(Err(left_out(asked, *finding))),
    };
    let verdict = rules::check(&members, asked.len(), stop)?;
    Ok(match verdict.findings.into_iter().next() {
        Some(finding) => Err(left_out(asked, finding)),
        None => Ok(members),
    })
}

fn left_out(asked: &[Asked], finding: Finding) -> Finding {
    let name = asked.last().map(|skill| &*skill.name).unwrap_or_default();
    Finding {
        message: format!("'{name}' fits and was left out: {}", finding.message),
        ..finding
    }
}

impl Selection {
    /// Adds what a hit brings with it: itself, then what it requires.
    fn add(
        &mut self,
        members: &[Member],
        asked: usize,
        news: &[usize],
        hit: &Hit,
        stop: &Stop,
    ) -> Result<(), Error> {
        let verdict = rules::check(members, asked, stop)?;
        let mut news: Vec<usize> = news.to_vec();
        // Itself first, though others of the request come before it.
        news.sort_by_key(|at| {
            members
                .get(*at)
                .is_none_or(|member| member.id != hit.head.id)
        });
        if let Some(known) = self.skills.iter_mut().find(|known| known.id == hit.head.id) {
            // Required by a better one; what it is worth itself is told too.
            known.score = hit.score;
            known.reasons.extend(hit.reasons.iter().cloned());
        }
        for member in news.iter().filter_map(|at| Some((*at, members.get(*at)?))) {
            let (at, member) = member;
            let is_hit = member.id == hit.head.id;
            let chain = verdict.chain(members, at);
            let by = chain.iter().rev().nth(1).copied().unwrap_or_default();
            let reasons = if is_hit {
                hit.reasons.clone()
            } else {
                vec![format!("required by '{by}'{}", reason(members, by, member))]
            };
            self.skills.push(Selected {
                name: Arc::clone(&member.name),
                id: member.id.clone(),
                score: if is_hit { hit.score } else { 0.0 },
                reasons,
                required_by: if is_hit { String::new() } else { by.to_owned() },
            });
        }
        Ok(())
    }
}

/// Why a skill requires another, in its author's words.
fn reason(members: &[Member], by: &str, member: &Member) -> String {
    let by = members.iter().find(|other| &*other.name == by);
    let rule = by.and_then(|by| {
        rules_of(&by.version)
            .find(|rule| rule.demand == Demand::Requires && member.is_meant_by(&rule.target.skill))
    });
    rule.map_or_else(String::new, |rule| because(rule.reason))
}
