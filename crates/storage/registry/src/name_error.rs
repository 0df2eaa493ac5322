//! Errors about short names, and the failure that a caller gets for each.

use model::{Code, Failure, SkillId};

/// A short name belongs to another skill.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// The skill that holds the name was deleted.
    #[error("'{name}' was {holder}, which was deleted; the name is reserved")]
    OfDeleted {
        /// The name.
        name: String,
        /// The deleted skill.
        holder: SkillId,
    },
    /// The name belongs to a skill of a namespace that has other owners.
    #[error("'{name}' is the name of {holder}, whose namespace belongs to others")]
    OfOthers {
        /// The name.
        name: String,
        /// The skill that holds it.
        holder: SkillId,
    },
    /// Another skill holds the name.
    #[error("'{name}' does not lead to {id}, but to {holder}")]
    NotHeld {
        /// The name.
        name: String,
        /// The skill that was said to hold it.
        id: SkillId,
        /// The skill that holds it.
        holder: SkillId,
    },
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        let message = error.to_string();
        match error {
            // No other skill of the name is suggested: a caller that follows the suggestion would
            // load the skill of a stranger that the reservation keeps from it.
            NameError::OfDeleted { name, holder } => {
                Self::new(Code::SkillNotFound, message)
                    .detail("skill_id", name)
                    .detail("holder_id", &holder)
                    .suggest("Search for the task to find another skill")
                    .suggest("The owner of its namespace or the operator can give the name to another skill (`repertoire namespace give`)")
            }
            NameError::OfOthers { name, holder } => Self::new(Code::NameHeld, message)
                .detail("name", name)
                .detail("holder_id", &holder)
                .suggest("Publish the skill under another slug"),
            NameError::NotHeld { name, holder, .. } => Self::new(Code::NameHeld, message)
                .detail("name", name)
                .detail("holder_id", &holder)
                .suggest(format!("Name {holder} as the holder: its owners and the operator can give the name away")),
        }
    }
}
