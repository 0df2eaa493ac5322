//! Checks of the skills of a registry, and of those that are installed.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::budget::{self, Cost, Estimate, Item};
use super::conflict::{ConflictReport, Subject, compare};
use super::error::Error;
use super::installed::{Installed, InstalledSkill};
use composition::Member;
use executor::{Kind, Stop};
use lookup::Lookup;
use model::{SkillId, SkillKey, VersionSelector, VersionWish, VersionedReference};
use registry::{Catalog, Head, Registry};

/// Skills that were left out of a comparison and are named.
const MAX_NAMED_SKILLS: usize = 10;

/// Checks over a registry. Cheap to clone.
#[derive(Clone)]
pub struct Checks {
    pub(super) registry: Registry,
    installed: Arc<dyn Installed>,
    pub(super) budget: u64,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

impl Checks {
    /// Checks of a registry's skills, which together may have `budget` characters.
    #[must_use]
    pub fn new(registry: Registry, installed: Arc<dyn Installed>, budget: u64) -> Self {
        Self {
            registry,
            installed,
            budget,
        }
    }

    /// Checks of the skills of another registry: that of a caller who has some of their own in
    /// front.
    #[must_use]
    pub fn with_skills(&self, registry: Registry) -> Self {
        Self {
            registry,
            ..self.clone()
        }
    }

    /// The registry whose skills are checked.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Compares a skill with others, and with those that are installed where that is asked for.
    ///
    /// # Errors
    /// A skill cannot be found or read; what is installed cannot.
    pub async fn conflicts(
        &self,
        skill: String,
        against: Vec<String>,
        against_installed: bool,
    ) -> Result<ConflictReport, Error> {
        let this = self.clone();
        let work = move |stop: &Stop| {
            let catalog = this.registry.catalog();
            let subject = Subject::from(this.member(&catalog, &skill)?);
            let mut others = Vec::new();
            for text in &against {
                others.push(this.member(&catalog, text)?);
            }
            let installed = if against_installed {
                this.installed(false)?
            } else {
                Vec::new()
            };
            let left_out = add_installed(&this.registry, &installed, &mut others, stop)?;
            // The first of each skill stays: what was asked for comes before what is installed,
            // which may be another version.
            let mut known: HashSet<SkillKey> = HashSet::new();
            others.retain(|member| known.insert(member.id.key()));
            let others = others.into_iter().map(Subject::from).collect();
            let mut report = compare(subject, others, stop)?;
            report.recommendations.extend(uncompared(&left_out));
            Ok(report)
        };
        self.registry
            .executor()
            .run_fallible(Kind::Compose, work)
            .await
    }

    /// Estimates what skills would add to what is installed, where that is to count.
    ///
    /// # Errors
    /// A skill cannot be found or read; what is installed cannot.
    pub async fn estimate(
        &self,
        skills: Vec<String>,
        include_current: bool,
    ) -> Result<Estimate, Error> {
        let this = self.clone();
        let work = move |stop: &Stop| {
            let catalog = this.registry.catalog();
            let installed = this.installed(false)?;
            let is_installed =
                |id: &SkillId| installed.iter().any(|skill| skill.id.key() == id.key());
            let (mut asked, mut known) = (Vec::new(), HashSet::new());
            for text in &skills {
                stop.check()?;
                let member = this.member(&catalog, text)?;
                if known.insert(member.id.key()) {
                    let text = this.text(&member)?;
                    asked.push(item(&member, &text, is_installed(&member.id)));
                }
            }
            let mut current = Vec::new();
            for skill in installed.iter().filter(|_| include_current) {
                stop.check()?;
                current.push(this.current(&catalog, skill));
            }
            let current = include_current.then_some(current.as_slice());
            Ok(budget::estimate(asked, current, this.budget))
        };
        self.registry
            .executor()
            .run_fallible(Kind::Compose, work)
            .await
    }

    pub(super) fn installed(&self, health: bool) -> Result<Vec<InstalledSkill>, Error> {
        let installed = self.installed.installed(health);
        let mut installed = installed.map_err(Error::Installed)?;
        // What is installed on this machine may be more than the caller may see.
        if let Some(view) = self.registry.view() {
            installed.retain(|skill| view.sees(&skill.id));
        }
        Ok(installed)
    }

    /// The version that a text means.
    pub(super) fn member(&self, catalog: &Catalog, text: &str) -> Result<Member, Error> {
        let wanted = VersionedReference::parse(text);
        let head = Lookup::resolve_among(catalog, &wanted.skill)?.head;
        let version = self
            .registry
            .version(&head, &self.chosen(&head, &wanted.version)?)?;
        Ok(Member {
            name: catalog.short_name(&head).into(),
            id: head.id.clone(),
            version,
        })
    }

    /// The version of a wish: of a range the highest that was not withdrawn.
    pub(super) fn chosen(&self, head: &Head, wish: &VersionWish) -> Result<VersionSelector, Error> {
        let release = match wish {
            VersionWish::Is(selector) => return Ok(selector.clone()),
            VersionWish::Within(range) => {
                let releases = self.registry.releases(head)?.into_iter().rev();
                let mut fitting = releases
                    .filter(|release| !release.is_yanked && range.matches(&release.semantic));
                fitting.next()
            }
            VersionWish::Holds(digest) => {
                let mut releases = self.registry.releases(head)?.into_iter();
                releases.find(|release| release.digest == *digest)
            }
        };
        let number = release.map(|release| release.number.into());
        number.ok_or_else(|| Error::NoVersion {
            id: head.id.clone(),
            wish: wish.to_string(),
        })
    }

    /// The instructions of a version, front matter included.
    pub(super) fn text(&self, member: &Member) -> Result<String, Error> {
        let Some(file) = member.version.skill_md() else {
            return Ok(String::new());
        };
        let content = self.registry.content(file)?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    /// The cost of an installed skill, also where this server no longer hands its version out.
    fn current(&self, catalog: &Catalog, skill: &InstalledSkill) -> Item {
        match installed_member(&self.registry, catalog, skill) {
            Ok(member) => Item {
                // An estimate shows no tokens of what is installed, so its text is not read.
                cost: Cost::of(&member.version.skill, ""),
                ..unread(skill)
            },
            Err(_) => unread(skill),
        }
    }
}

/// Compares a version with what is installed.
///
/// # Errors
/// The work is to stop.
pub fn against_installed(
    registry: &Registry,
    member: Member,
    installed: &[InstalledSkill],
    stop: &Stop,
) -> Result<ConflictReport, Error> {
    let mut others = Vec::new();
    let left_out = add_installed(registry, installed, &mut others, stop)?;
    let others = others.into_iter().map(Subject::from).collect();
    let mut report = compare(Subject::from(member), others, stop)?;
    report.recommendations.extend(uncompared(&left_out));
    Ok(report)
}

/// Adds the versions that are installed, and returns the skills whose versions this server does
/// not hand out.
fn add_installed(
    registry: &Registry,
    installed: &[InstalledSkill],
    others: &mut Vec<Member>,
    stop: &Stop,
) -> Result<Vec<SkillId>, Error> {
    let (catalog, mut left_out) = (registry.catalog(), Vec::new());
    for skill in installed {
        stop.check()?;
        match installed_member(registry, &catalog, skill) {
            Ok(member) => others.push(member),
            Err(_) => left_out.push(skill.id.clone()),
        }
    }
    Ok(left_out)
}

pub(super) fn installed_member(
    registry: &Registry,
    catalog: &Catalog,
    skill: &InstalledSkill,
) -> Result<Member, Error> {
    let head = registry.head(&skill.id)?;
    let version = registry.version(&head, &skill.number.into())?;
    // It may have come from another server, where the number means something else.
    if version.digest != skill.digest {
        return Err(Error::NoVersion {
            id: head.id.clone(),
            wish: skill.digest.to_string(),
        });
    }
    Ok(Member {
        name: catalog.short_name(&head).into(),
        id: head.id.clone(),
        version,
    })
}

pub(super) fn item(member: &Member, text: &str, installed: bool) -> Item {
    let skill = &member.version.skill;
    Item {
        id: member.id.clone(),
        name: skill.name.clone(),
        cost: Cost::of(skill, text),
        installed,
    }
}

/// An installed skill whose version is not at hand.
pub(super) fn unread(skill: &InstalledSkill) -> Item {
    Item {
        id: skill.id.clone(),
        name: skill.name.clone(),
        cost: Cost {
            chars: skill.chars,
            ..Cost::default()
        },
        installed: true,
    }
}

/// A sentence on the installed skills that were not compared.
fn uncompared(left_out: &[SkillId]) -> Option<String> {
    let shown: Vec<&str> = left_out
        .iter()
        .take(MAX_NAMED_SKILLS)
        .map(SkillId::as_str)
        .collect();
    let more = match left_out.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| {
        let shown = shown.join(", ");
        format!("Not compared, since this server does not hand them out: {shown}{more}")
    })
}
