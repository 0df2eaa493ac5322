//! Infers the categories of a skill.
//!
//! Each part of a skill adds to the categories that its words stand for, and so do the
//! technologies that it is about. The category with the most evidence is the main one; others
//! count from a share of that.

use super::Inferred;
use super::rules::rules;
use super::text::{Parts, Role, Word, stem};

/// The weight of a word, by the part that it is in.
const NAME_WEIGHT: f64 = 3.0;
const TAGS_WEIGHT: f64 = 1.5;
const TITLE_WEIGHT: f64 = 1.0;
const MATTER_WEIGHT: f64 = 1.5;
const MORE_WEIGHT: f64 = 0.8;
const MAX_OF_DESCRIPTION: f64 = 3.5;
const BODY_WEIGHT: f64 = 0.15;
const MAX_OF_BODY: f64 = 1.2;
/// The weight of a technology for its first category, and for its others.
const TECHNOLOGY_WEIGHT: f64 = 3.0;
const OTHER_TECHNOLOGY_WEIGHT: f64 = 1.0;
const MAX_OF_TECHNOLOGIES: f64 = 3.5;

/// With less evidence a skill has no category.
const MIN_EVIDENCE: f64 = 1.0;
/// Other categories need this, and this share of the main one.
const MIN_OTHER_EVIDENCE: f64 = 2.5;
const MIN_OTHER_SHARE: f64 = 0.6;
/// The category of a technology that a skill is certainly about needs less.
const MIN_PLATFORM_SHARE: f64 = 0.3;
const CERTAIN_CONFIDENCE: f64 = 0.9;
/// The most categories of a skill.
const MAX_CATEGORIES: usize = 4;

/// Infers categories, the main one first.
pub(super) fn infer(parts: &Parts, technologies: &[Inferred]) -> Vec<Inferred> {
    let mut evidence = CategoryEvidence::new();
    evidence.part(&parts.name, NAME_WEIGHT);
    for tag in &parts.tags {
        evidence.part(tag, TAGS_WEIGHT);
    }
    // Added up apart and capped, like the body and the technologies: no long text outweighs a name.
    let mut description = CategoryEvidence::new();
    let first = parts.first();
    for (at, (role, words)) in parts.description.iter().enumerate() {
        let weight = match role {
            Role::Matter if at <= first => MATTER_WEIGHT,
            _ => MORE_WEIGHT,
        };
        description.part(words, weight);
        description.unspaced(words, weight);
    }
    evidence.add(&description, MAX_OF_DESCRIPTION);
    evidence.part(&parts.title, TITLE_WEIGHT);
    let mut body = CategoryEvidence::new();
    for words in &parts.body {
        body.part(words, BODY_WEIGHT);
    }
    evidence.add(&body, MAX_OF_BODY);
    let mut of_technologies = CategoryEvidence::new();
    for technology in technologies {
        of_technologies.technology(technology);
    }
    evidence.add(&of_technologies, MAX_OF_TECHNOLOGIES);
    let platform = technologies
        .iter()
        .filter(|technology| technology.confidence() >= CERTAIN_CONFIDENCE)
        .find_map(|technology| first_category(&technology.id));
    evidence.strongest(platform)
}

/// Returns the categories of a technology.
fn categories_of(id: &str) -> &'static [usize] {
    let at = rules().technology(id);
    let technology = at.and_then(|at| rules().technologies.get(at));
    technology.map_or(&[], |technology| &technology.categories)
}

fn first_category(id: &str) -> Option<usize> {
    categories_of(id).first().copied()
}

/// The evidence for each category, by its index in the rules.
struct CategoryEvidence {
    of: Vec<f64>,
}

impl CategoryEvidence {
    fn new() -> Self {
        Self {
            of: vec![0.0; rules().categories.len()],
        }
    }

    fn put(&mut self, category: usize, weight: f64) {
        if let Some(known) = self.of.get_mut(category) {
            *known += weight;
        }
    }

    /// Adds the evidence of some words; each phrase counts once.
    fn part(&mut self, words: &[Word], weight: f64) {
        let stems: Vec<&str> = words.iter().map(|word| stem(&word.text)).collect();
        let mut seen: Vec<&[&str]> = Vec::new();
        rules().says.find(&stems, |found| {
            let phrase = stems.get(found.from..found.to).unwrap_or_default();
            if !seen.contains(&phrase) {
                seen.push(phrase);
                for (category, says) in found.value {
                    self.put(*category, weight * says);
                }
            }
            true
        });
    }

    /// The same for languages without blanks between words.
    fn unspaced(&mut self, words: &[Word], weight: f64) {
        for word in words.iter().filter(|word| !word.text.is_ascii()) {
            for (part, category) in &rules().unspaced {
                if word.text.contains(part) {
                    self.put(*category, weight);
                }
            }
        }
    }

    fn technology(&mut self, technology: &Inferred) {
        for (rank, category) in categories_of(&technology.id).iter().enumerate() {
            let weight = if rank == 0 {
                TECHNOLOGY_WEIGHT
            } else {
                OTHER_TECHNOLOGY_WEIGHT
            };
            self.put(*category, weight * technology.confidence());
        }
    }

    fn add(&mut self, other: &Self, max: f64) {
        for (known, more) in self.of.iter_mut().zip(&other.of) {
            *known += more.min(max);
        }
    }

    fn strongest(self, platform: Option<usize>) -> Vec<Inferred> {
        let mut found: Vec<(usize, f64)> = self.of.into_iter().enumerate().collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let Some((_, best)) = found
            .first()
            .copied()
            .filter(|(_, best)| *best >= MIN_EVIDENCE)
        else {
            return Vec::new();
        };
        let others = MIN_OTHER_EVIDENCE.max(best * MIN_OTHER_SHARE);
        found.retain(|(at, weight)| {
            let of_platform = platform == Some(*at) && *weight >= best * MIN_PLATFORM_SHARE;
            *weight >= best.min(others) || of_platform
        });
        found.truncate(MAX_CATEGORIES);
        // Grows with the evidence, and never reaches certainty: the rules only guess.
        let total = best + 2.0;
        let inferred = |(at, weight): (usize, f64)| {
            let category = rules().categories.get(at)?;
            Some(Inferred::new(category.id, (weight / total).min(0.95)))
        };
        found.into_iter().filter_map(inferred).collect()
    }
}
