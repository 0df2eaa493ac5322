//! The rank of a skill among a few others in a search.
//!
//! The server's own index is made for thousands of skills, lives in a folder and is filled
//! by a task that follows the log: hundreds of milliseconds for a grade of a few. So this
//! asks the same question of the same words, cut and stemmed as the index does it, in a
//! millisecond and without a file. The formula is a BM25 of its own: a skill is one text whose
//! words weigh by their field, its length is compared with the mean of the few, and meaning
//! counts nothing. So ranks are like those of the index, and need not be the same.

use std::collections::BTreeMap;

use model::Skill;

/// How much a word of a field counts.
const NAME_WEIGHT: f64 = 4.0;
const DESCRIPTION_WEIGHT: f64 = 2.0;
const KEYWORDS_WEIGHT: f64 = 3.0;
const BODY_WEIGHT: f64 = 1.0;

/// The constants `k1` and `b` of BM25.
const SATURATION_FACTOR: f64 = 1.2;
const LENGTH_FACTOR: f64 = 0.5;

/// Words of a skill with what they count.
type Weights = BTreeMap<String, f64>;

/// The rank from 1 of the first skill among all for a question; 0: it is not found.
pub(super) fn place(question: &str, skill: (&Skill, &str), others: &[(&Skill, &str)]) -> usize {
    let weights: Vec<Weights> = std::iter::once(&skill).chain(others).map(weights).collect();
    let asked = search::stems(question);
    let scores = scores(&asked, &weights);
    match scores.split_first() {
        Some((own, others)) if *own > 0.0 => {
            // Behind its equals: being no better than the others is not enough.
            1 + others.iter().filter(|score| *score >= own).count()
        }
        _ => 0,
    }
}

fn weights((skill, body): &(&Skill, &str)) -> Weights {
    let mut weights = Weights::new();
    let mut add = |text: &str, weight: f64| {
        for word in search::stems(text) {
            *weights.entry(word).or_default() += weight;
        }
    };
    add(&skill.name, NAME_WEIGHT);
    add(&skill.description, DESCRIPTION_WEIGHT);
    for words in [&skill.tags, &skill.triggers, &skill.technologies] {
        for word in words {
            add(word, KEYWORDS_WEIGHT);
        }
    }
    add(&skill.category, KEYWORDS_WEIGHT);
    add(body, BODY_WEIGHT);
    weights
}

#[expect(clippy::cast_precision_loss, reason = "a few skills")]
fn scores(asked: &[String], all: &[Weights]) -> Vec<f64> {
    let count = all.len() as f64;
    let lengths: Vec<f64> = all.iter().map(|weights| weights.values().sum()).collect();
    let mean = (lengths.iter().sum::<f64>() / count).max(1.0);
    let score = |(weights, length): (&Weights, &f64)| -> f64 {
        let of_word = |word: &String| {
            let weight = weights.get(word).copied().unwrap_or_default();
            let with = all.iter().filter(|other| other.contains_key(word)).count() as f64;
            let idf = (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
            let long = 1.0 - LENGTH_FACTOR + LENGTH_FACTOR * length / mean;
            idf * weight * (SATURATION_FACTOR + 1.0) / (weight + SATURATION_FACTOR * long)
        };
        asked.iter().map(of_word).sum()
    };
    all.iter().zip(&lengths).map(score).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use model::FilePath;
    use skill_md::ReadOptions;

    use super::*;

    fn skill(name: &str, description: &str) -> Skill {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n\nText\n");
        let files = BTreeMap::from([(FilePath::skill_md(), Bytes::from(text))]);
        let reading = skill_md::read(&files, &ReadOptions::default());
        reading.skill.expect("a skill")
    }

    #[test]
    fn the_words_of_the_question_decide_and_being_no_better_is_not_enough() {
        let notes = skill("notes", "Writes release notes");
        let same = skill("notes", "Writes release notes");
        let invoices = skill("invoices", "Files invoices and receipts");
        let others = [(&invoices, "Text"), (&same, "Text")];
        let place = |question, own, body| place(question, (own, body), &others);
        assert_eq!(
            place("filing an invoice", &invoices, "Text"),
            2,
            "its copy is as good"
        );
        assert_eq!(place("write the release note", &notes, "Text"), 2);
        assert_eq!(place("write the release note", &notes, "releases"), 1);
        assert_eq!(place("write the release note", &invoices, "Text"), 0);
        assert_eq!(place("quantum chess", &notes, "Text"), 0);
        assert_eq!(super::place("notes", (&notes, "Text"), &[]), 1);
    }
}
