//! Tips for having an agent use a skill that was installed.

use model::{Skill, SkillId, inert_line, one_of, shown};

/// Phrases that a tip names.
const MAX_PHRASES: usize = 3;
/// Characters of an author's text in a tip.
const CHARS: usize = 120;

/// An author's text, on one line and inert.
fn inert(text: &str) -> String {
    shown(&inert_line(text), CHARS)
}

/// Returns tips for having an agent use it; `missing` are its requirements that are not installed.
#[must_use]
pub fn tips(id: &SkillId, skill: &Skill, missing: &[String]) -> Vec<String> {
    let phrases: Vec<_> = skill
        .triggers
        .iter()
        .take(MAX_PHRASES)
        .map(|t| format!("'{}'", inert(t)))
        .collect();
    let mut tips = Vec::new();
    if skill.disable_model_invocation {
        tips.push(format!("Only people call it up: /{}", id.slug()));
    } else {
        tips.push(match one_of(&phrases) {
            Some(phrases) => format!("This skill activates when you mention {phrases}"),
            None => format!(
                "This skill activates when a task fits its description: {}",
                inert(&skill.description)
            ),
        });
        tips.push(format!("Call it up by its name: /{}", id.slug()));
    }
    if !missing.is_empty() {
        let missing: Vec<_> = missing
            .iter()
            .take(MAX_PHRASES)
            .map(|named| inert(named))
            .collect();
        tips.push(format!(
            "It requires what is not installed yet: {}",
            missing.join(", ")
        ));
    }
    tips
}
