//! Audits of the skills of a registry, and of those that are installed.

use std::collections::HashSet;

use super::audit::{
    Facts, Health, Issue, IssueKind, IssueSeverity, Presence, Warning, audit, health,
};
use super::budget::{self, BudgetReport, Cost};
use super::checks::{Checks, installed_member, item, unread};
use super::conflict::Subject;
use super::error::Error;
use super::hooks::{Hooks, hooks};
use super::installed::InstalledSkill;
use composition::Member;
use executor::{Kind, Stop};
use lookup::Lookup;
use model::{Failure, SkillId, VersionSelector, VersionWish, VersionedReference};
use registry::{Catalog, Head};

/// A skill that was audited.
#[derive(Debug, Clone)]
pub struct AuditedSkill {
    /// The skill.
    pub id: SkillId,
    /// All that is wrong with it, the worst first.
    pub issues: Vec<Issue>,
    /// Its warnings.
    pub warnings: Vec<Warning>,
}

/// The result of an audit.
#[derive(Debug, Clone)]
pub struct Activation {
    /// The skills that were audited, by id.
    pub audited: Vec<AuditedSkill>,
    /// Their state as a whole.
    pub health: Health,
    /// What to do, the most urgent first.
    pub recommendations: Vec<String>,
    /// Hooks for a host; none: it was not asked for, or there is nothing to call up.
    pub hooks: Option<Hooks>,
    /// Their share of the budget.
    pub budget: BudgetReport,
}

impl Checks {
    /// Audits a skill; none: all that are installed.
    ///
    /// # Errors
    /// The skill cannot be found or read; what is installed cannot.
    pub async fn audit(
        &self,
        skill: Option<String>,
        generate_hooks: bool,
        recommend: bool,
    ) -> Result<Activation, Error> {
        let this = self.clone();
        let work =
            move |stop: &Stop| this.run_audit(skill.as_deref(), generate_hooks, recommend, stop);
        self.registry
            .executor()
            .run_fallible(Kind::Compose, work)
            .await
    }

    fn run_audit(
        &self,
        skill: Option<&str>,
        generate_hooks: bool,
        recommend: bool,
        stop: &Stop,
    ) -> Result<Activation, Error> {
        let catalog = self.registry.catalog();
        let installed = self.installed(true)?;
        let members: Vec<_> = installed
            .iter()
            .map(|skill| {
                let member = installed_member(&self.registry, &catalog, skill);
                (member, Some(skill))
            })
            .collect();
        // What a skill requires must be among what is installed, also where only one skill is
        // audited.
        let there = members
            .iter()
            .filter_map(|(member, _)| member.as_ref().ok());
        let there: Vec<Member> = there.cloned().collect();
        let subjects = match skill {
            Some(text) => {
                let member = self.member(&catalog, text)?;
                let entry = installed
                    .iter()
                    .find(|skill| skill.id.key() == member.id.key());
                vec![(Ok(member), entry)]
            }
            None => members,
        };
        let (mut audited, mut items, mut called) = (Vec::new(), Vec::new(), Vec::new());
        for (member, entry) in subjects {
            stop.check()?;
            let damage = entry.and_then(|skill| skill.damage.as_deref());
            let mut issues: Vec<Issue> = damage.map(damaged).into_iter().collect();
            let mut warnings = Vec::new();
            let id = match member {
                Ok(member) => {
                    let text = self.text(&member)?;
                    let item = item(&member, &text, entry.is_some());
                    let facts = self.facts(&catalog, &member, &text, item.cost, entry)?;
                    let presence =
                        |wanted: &VersionedReference| self.presence(&catalog, &there, wanted);
                    let (found, worth) = audit(&facts, presence);
                    issues.extend(found);
                    warnings = worth;
                    items.push(item);
                    let id = member.id.clone();
                    called.push(Subject::from(member));
                    id
                }
                // One version that cannot be read must not hide what is wrong with the others.
                Err(error) => {
                    let Some(skill) = entry else { continue };
                    issues.push(withheld(error));
                    items.push(unread(skill));
                    skill.id.clone()
                }
            };
            issues.sort_by_key(|issue| issue.severity);
            audited.push(AuditedSkill {
                id,
                issues,
                warnings,
            });
        }
        let issues: Vec<Vec<Issue>> = audited.iter().map(|skill| skill.issues.clone()).collect();
        Ok(Activation {
            health: health(&issues),
            recommendations: if recommend {
                recommendations(&audited)
            } else {
                Vec::new()
            },
            hooks: if generate_hooks { hooks(&called) } else { None },
            budget: budget::report(items, self.budget),
            audited,
        })
    }

    fn facts<'a>(
        &self,
        catalog: &Catalog,
        member: &'a Member,
        text: &'a str,
        cost: Cost,
        entry: Option<&InstalledSkill>,
    ) -> Result<Facts<'a>, Error> {
        let head = self.registry.head(&member.id)?;
        let usage = self.registry.usage(&head)?;
        let active = catalog
            .get(&member.id.key())
            .and_then(|head| head.summary.as_ref());
        let newer = active.map(|active| active.semantic.clone());
        Ok(Facts {
            newer: newer.filter(|newer| *newer > member.version.semantic),
            uses: usage.iter().map(|(_, used)| used.loads + used.reads).sum(),
            last_used_at: usage.iter().filter_map(|(_, used)| used.last_used_at).max(),
            installed_at: entry.map(|skill| skill.time),
            now: self.registry.now(),
            budget: self.budget,
            member,
            text,
            cost,
        })
    }

    fn presence(
        &self,
        catalog: &Catalog,
        there: &[Member],
        wanted: &VersionedReference,
    ) -> Presence {
        let is_it =
            |member: &&Member| member.is_meant_by(&wanted.skill) && member.meets(&wanted.version);
        if there.iter().any(|member| is_it(&member)) {
            return Presence::There;
        }
        // It is not installed, but could it be? One that is blocked, or has no active version, is as
        // good as unknown.
        let known = Lookup::find_among(catalog, &wanted.skill);
        let known =
            known.filter(|found| found.head.blocked.is_none() && found.head.active.is_some());
        let has = |head: &Head| match &wanted.version {
            VersionWish::Is(VersionSelector::Active) => true,
            wish => {
                let chosen = self.chosen(head, wish);
                chosen.is_ok_and(|selector| self.registry.version(head, &selector).is_ok())
            }
        };
        match known {
            Some(found) if has(&found.head) => Presence::NotInstalled,
            _ => Presence::Unknown,
        }
    }
}

/// An installed file is not what it was.
fn damaged(what: &str) -> Issue {
    Issue {
        kind: IssueKind::FileMissing,
        severity: IssueSeverity::Error,
        title: "Installed files differ",
        description: model::printable(what).into_owned(),
        fix: Some("Install it again".to_owned()),
        auto_fixable: false,
    }
}

/// An installed version that is not handed out any more.
fn withheld(error: Error) -> Issue {
    Issue {
        kind: IssueKind::FileMissing,
        severity: IssueSeverity::Error,
        title: "Version that this server does not hand out",
        description: Failure::from(error).message,
        fix: Some("Uninstall it, or install a version that is there".to_owned()),
        auto_fixable: false,
    }
}

/// The steps that resolve the issues, the most urgent first.
fn recommendations(audited: &[AuditedSkill]) -> Vec<String> {
    const MAX_RECOMMENDATIONS: usize = 20;
    let errors = |severity: IssueSeverity| {
        audited.iter().flat_map(move |skill| {
            let issues = skill
                .issues
                .iter()
                .filter(move |issue| issue.severity == severity);
            issues.map(move |issue| match &issue.fix {
                Some(fix) => format!("{}: {fix} ({})", skill.id, issue.title.to_lowercase()),
                None => format!("Fix {} in {}", issue.title.to_lowercase(), skill.id),
            })
        })
    };
    let worth = audited.iter().flat_map(|skill| &skill.warnings);
    let worth = worth.map(|warning| warning.advice.clone());
    let mut known = HashSet::new();
    errors(IssueSeverity::Error)
        .chain(errors(IssueSeverity::Warning))
        .chain(worth)
        .filter(|sentence| known.insert(sentence.clone()))
        .take(MAX_RECOMMENDATIONS)
        .collect()
}
