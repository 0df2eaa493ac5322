//! The subject of a skill, for recommendations: the facts of the catalog, and the words of its
//! name.

use std::borrow::Cow;
use std::sync::LazyLock;

use codebase::{Fact, TechnologyKind};
use model::listed;
use registry::{Head, Summary};
use search::folded_words;
use technologies::table;

use super::project::RUNTIMES;

/// A technology that a skill is about.
#[derive(Debug, Clone)]
pub(super) struct About<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) confidence: f64,
    /// The name of the skill has it: it is of no use without.
    pub(super) is_named: bool,
    /// Code is written in it, or with it.
    pub(super) is_language: bool,
    pub(super) is_framework: bool,
}

/// The subject of a skill.
#[derive(Debug, Clone)]
pub(super) struct Subject<'a> {
    pub(super) technologies: Vec<About<'a>>,
    /// Categories with how certain they are, the main one first.
    pub(super) categories: Vec<(Cow<'a, str>, f64)>,
    /// Share of the words of its name that are common terms.
    pub(super) plain: f64,
    /// Its name says a technology, and no niche of it.
    pub(super) is_core: bool,
    /// It is for something that is done once.
    pub(super) is_once: bool,
    /// Technologies that its description names, whether it is about them or not.
    pub(super) mentioned: Vec<&'static str>,
}

/// Common terms, or their beginnings where they are longer than three letters: a name that has no
/// others is that of a practice. One that has others is that of a product, of house rules, or of
/// a niche that few projects have.
static PLAIN: LazyLock<Vec<&str>> =
    LazyLock::new(|| listed(include_str!("subject/plain.txt")).collect());

/// Words of a name that says no more than how something is written, or tried.
static CORE: LazyLock<Vec<&str>> =
    LazyLock::new(|| listed(include_str!("subject/core.txt")).collect());

/// Words of what is done once, or by those who make skills.
static ONCE: LazyLock<Vec<&str>> =
    LazyLock::new(|| listed(include_str!("subject/once.txt")).collect());

/// Words of a name that are a technology's, at most.
const MAX_WORDS: usize = 3;

/// Short ones are whole words: `ci` begins too many others.
fn begins(word: &str, beginnings: &[&str]) -> bool {
    beginnings
        .iter()
        .any(|beginning| word == *beginning || beginning.len() > 3 && word.starts_with(beginning))
}

/// The words of a name, evaluated.
struct Name {
    technologies: Vec<&'static str>,
    plain: f64,
    is_core: bool,
    is_once: bool,
}

impl Name {
    /// Reads a name. Words count as a technology where the skill is about it.
    fn read(name: &str, is_about: impl Fn(&str) -> bool) -> Self {
        let words = folded_words(name);
        let (mut technologies, mut plain, mut core) = (Vec::new(), 0_usize, 0_usize);
        let mut left = words.as_slice();
        while let Some((first, behind)) = left.split_first() {
            // The longest first: `react native` is not `react`.
            let longest = (1..=MAX_WORDS).rev().find_map(|length| {
                let (some, behind) = left.split_at_checked(length)?;
                let id = facets::technology_id(&some.join(" "))?;
                is_about(id).then_some((id, length, behind))
            });
            left = if let Some((id, length, behind)) = longest {
                technologies.push(id);
                plain += length;
                core += length;
                behind
            } else {
                plain += usize::from(begins(first, &PLAIN));
                core += usize::from(begins(first, &CORE));
                behind
            };
        }
        let count = |words: usize| f64::from(u32::try_from(words).unwrap_or(u32::MAX));
        Self {
            technologies,
            plain: count(plain) / count(words.len().max(1)),
            is_core: core == words.len(),
            is_once: words.iter().any(|word| begins(word, &ONCE)),
        }
    }
}

impl<'a> Subject<'a> {
    /// The subject of a skill.
    pub(super) fn of(head: &'a Head) -> Self {
        let mut subject = Self::facets(head.summary.as_ref());
        let about = &mut subject.technologies;
        let name = Name::read(head.id.slug(), |id| {
            about.iter().any(|about| about.id == id)
        });
        for about in about {
            about.is_named = name.technologies.contains(&about.id.as_ref());
        }
        let description = head.summary.as_ref().map(|summary| &summary.description);
        Self {
            plain: name.plain,
            is_core: name.is_core,
            is_once: name.is_once,
            mentioned: description.map_or_else(Vec::new, |text| facets::technologies_named(text)),
            ..subject
        }
    }

    /// The best subject that a skill may have by the facts of the catalog alone: it fits no
    /// codebase better.
    pub(super) fn at_best(head: &'a Head, is_here: impl Fn(&str) -> bool) -> Self {
        let mut subject = Self::facets(head.summary.as_ref());
        for about in &mut subject.technologies {
            about.is_named = is_here(&about.id);
        }
        subject
    }

    fn facets(summary: Option<&'a Summary>) -> Self {
        let technologies = summary.into_iter().flat_map(Summary::technologies_about);
        let technologies = technologies.map(|(id, confidence)| {
            let known = table().get(&id);
            let is = |kind: TechnologyKind| known.is_some_and(|known| known.kind == kind);
            let tests = known.is_some_and(|known| known.facts.contains(&Fact::Tests));
            About {
                confidence,
                is_named: false,
                is_language: is(TechnologyKind::Language) || RUNTIMES.contains(&id.as_ref()),
                is_framework: is(TechnologyKind::Framework) && !tests,
                id,
            }
        });
        Self {
            technologies: technologies.collect(),
            categories: summary.into_iter().flat_map(Summary::categories).collect(),
            plain: 1.0,
            is_core: true,
            is_once: false,
            mentioned: Vec::new(),
        }
    }

    /// The category that it is mainly of.
    pub(super) fn main(&self) -> Option<&str> {
        self.categories.first().map(|(id, _)| id.as_ref())
    }

    /// It is for this area.
    pub(super) fn is_for(&self, area: &str) -> bool {
        self.categories.iter().any(|(id, _)| id == area)
    }

    /// It is about this technology.
    pub(super) fn is_about(&self, technology: &str) -> bool {
        self.technologies.iter().any(|about| about.id == technology)
    }
}
