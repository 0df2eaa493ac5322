//! What skills cost the context of an agent.

use model::{Skill, SkillId, tokens};

/// Share of the budget from which on a skill is heavy, in percent.
// Of 510 public skills 76 reach this share of the default, 12,500 characters.
pub(super) const HEAVY_PERCENT: u32 = 25;
/// Share from which on a report suggests loading it later.
const LARGE_PERCENT: u32 = 15;
/// Skills that a report names, the largest first.
const MAX_LARGEST_SKILLS: usize = 5;

/// The cost of one skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Characters of its name and description, which an agent reads of each skill, used or not.
    pub listed_chars: u64,
    /// The same in tokens, estimated.
    pub listed_tokens: u64,
    /// Characters of its instructions, front matter included: what loading it takes, and
    /// what counts towards the budget.
    pub chars: u64,
    /// The same in tokens, estimated.
    pub tokens: u64,
}

impl Cost {
    /// The cost of a skill whose instructions are this text.
    #[must_use]
    pub fn of(skill: &Skill, text: &str) -> Self {
        let chars = |text: &str| text.chars().count() as u64;
        Self {
            listed_chars: chars(&skill.name) + chars(&skill.description),
            listed_tokens: (tokens(&skill.name) + tokens(&skill.description)) as u64,
            chars: skill.chars,
            tokens: tokens(text) as u64,
        }
    }
}

/// A skill and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The skill.
    pub id: SkillId,
    /// Name, as its front matter writes it.
    pub name: String,
    /// Its cost.
    pub cost: Cost,
    /// It is installed, so that it is paid for already.
    pub installed: bool,
}

/// The addition of skills to what is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Characters of all that is installed; 0 where that does not count.
    pub current: u64,
    /// Characters that the skills add.
    pub addition: u64,
    /// Both together.
    pub projected: u64,
    /// Characters that all skills together may have.
    pub limit: u64,
    /// The projection in percent of the limit, rounded up; more than 100 where it does not fit.
    pub percent: u32,
    /// Each skill that was asked for.
    pub items: Vec<Item>,
    /// The characters over the limit; none: it fits.
    pub overflow: Option<u64>,
    /// Characters of names and descriptions of all of them, which are always paid.
    pub listed_chars: u64,
    /// Tokens that the skills add, estimated.
    pub added_tokens: u64,
    /// What to do where it does not fit.
    pub recommendations: Vec<String>,
}

/// What skills add to what is installed. Without `current` all of them count as new, whether
/// they are installed or not.
#[must_use]
pub fn estimate(asked: Vec<Item>, current: Option<&[Item]>, limit: u64) -> Estimate {
    let is_new = |item: &&Item| current.is_none() || !item.installed;
    let sum = |items: &[Item]| items.iter().map(|item| item.cost.chars).sum::<u64>();
    let paid = current.map_or(0, sum);
    let added: Vec<&Item> = asked.iter().filter(is_new).collect();
    let addition: u64 = added.iter().map(|item| item.cost.chars).sum();
    let listed = |items: &mut dyn Iterator<Item = &Item>| -> u64 {
        items.map(|item| item.cost.listed_chars).sum()
    };
    let listed_chars =
        listed(&mut current.unwrap_or_default().iter()) + listed(&mut added.iter().copied());
    let added_tokens = added.iter().map(|item| item.cost.tokens).sum();
    let projected = paid + addition;
    let overflow = projected.checked_sub(limit).filter(|over| *over > 0);
    let mut recommendations = Vec::new();
    if let Some(over) = overflow {
        let largest = current.unwrap_or_default().iter().chain(added);
        recommendations = too_much(over, largest.collect());
    }
    Estimate {
        current: paid,
        addition,
        projected,
        limit,
        percent: percent(projected, limit),
        overflow,
        listed_chars,
        added_tokens,
        recommendations,
        items: asked,
    }
}

/// What to do where skills have `over` characters too many.
fn too_much(over: u64, mut items: Vec<&Item>) -> Vec<String> {
    items.sort_by(|a, b| (b.cost.chars, a.id.key()).cmp(&(a.cost.chars, b.id.key())));
    let mut steps = Vec::new();
    // The smallest skill that is large enough: with it gone the least is lost.
    if let Some(enough) = items.iter().rev().find(|item| item.cost.chars >= over) {
        steps.push(format!(
            "Without {} ({} characters) it fits",
            enough.id, enough.cost.chars
        ));
    } else if let Some(largest) = items.first() {
        steps.push(format!(
            "Begin with {}, which has {} of the {over} characters that are too many",
            largest.id, largest.cost.chars
        ));
    }
    steps.push("Move what a skill does not always need from SKILL.md into other files".to_owned());
    steps.push("Raise the budget (`install.budget_chars` of the server)".to_owned());
    steps
}

/// How much of the budget is used, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReport {
    /// Characters that all skills together may have.
    pub total: u64,
    /// Characters that they have.
    pub used: u64,
    /// The same in percent.
    pub percent: u32,
    /// The largest, each with its share of the budget in percent.
    pub largest: Vec<(Item, u32)>,
    /// What would make it less.
    pub suggestions: Vec<String>,
}

/// How much of a budget skills use.
#[must_use]
pub fn report(mut items: Vec<Item>, total: u64) -> BudgetReport {
    let used = items.iter().map(|item| item.cost.chars).sum();
    items.sort_by(|a, b| (b.cost.chars, a.id.key()).cmp(&(a.cost.chars, b.id.key())));
    let mut suggestions: Vec<String> = items
        .iter()
        .map(|item| (item, percent(item.cost.chars, total)))
        .take_while(|(_, share)| *share >= LARGE_PERCENT)
        .take(MAX_LARGEST_SKILLS)
        .map(|(item, share)| {
            let slug = item.id.slug();
            format!("{slug} uses {share}% of budget - consider lazy loading")
        })
        .collect();
    if used > total {
        suggestions.extend(too_much(used - total, items.iter().collect()));
    }
    items.truncate(MAX_LARGEST_SKILLS);
    let largest = items.into_iter().map(|item| {
        let share = percent(item.cost.chars, total);
        (item, share)
    });
    BudgetReport {
        total,
        used,
        percent: percent(used, total),
        largest: largest.collect(),
        suggestions,
    }
}

/// Characters in percent of a budget, rounded up, so that only what fits has 100 or less.
#[must_use]
pub fn percent(some: u64, budget: u64) -> u32 {
    // In 128 bits: nothing bounds a size here, and a hundred times as much could overflow.
    let percent = (u128::from(some) * 100).div_ceil(u128::from(budget.max(1)));
    u32::try_from(percent).unwrap_or(u32::MAX)
}
