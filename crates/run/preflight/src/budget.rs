//! Characters that all installed skills may have together.

use std::collections::BTreeMap;

use install::Placed;
use model::{SkillId, SkillKey, Version};

/// Percent of the budget from which on little is left.
const LITTLE_LEFT_PERCENT: u64 = 80;

/// The effect of a skill on the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Characters of what is installed without it.
    pub current: u64,
    /// Its own.
    pub size: u64,
    /// The limit for all.
    pub limit: u64,
}

/// Characters of installed skills, each once, wherever it is.
#[must_use]
pub(crate) fn used(installed: &[Placed], but: Option<&SkillKey>) -> u64 {
    let chars: BTreeMap<SkillKey, u64> = installed
        .iter()
        .map(|placed| (placed.record.id.key(), placed.record.chars))
        .collect();
    let counted = chars.iter().filter(|(key, _)| Some(*key) != but);
    counted.map(|(_, chars)| chars).sum()
}

impl Budget {
    pub(crate) fn with(installed: &[Placed], id: &SkillId, version: &Version, limit: u64) -> Self {
        Self {
            current: used(installed, Some(&id.key())),
            size: version.skill.chars,
            limit,
        }
    }

    /// Characters of all.
    #[must_use]
    pub fn projected(&self) -> u64 {
        self.current.saturating_add(self.size)
    }

    /// Whether all have more than the limit.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.projected() > self.limit
    }

    /// Characters of all in percent of the limit, rounded up.
    #[must_use]
    pub fn percent(&self) -> u32 {
        checks::percent(self.projected(), self.limit)
    }

    /// Warns that little is left, or nothing; none: there is enough.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.is_exceeded() {
            let over = self.projected() - self.limit;
            return Some(format!(
                "{over} characters more than installed skills may have"
            ));
        }
        let left = self.limit - self.projected();
        (u64::from(self.percent()) >= LITTLE_LEFT_PERCENT)
            .then(|| format!("{left} characters are left"))
    }
}
