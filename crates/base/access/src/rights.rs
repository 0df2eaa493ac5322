//! Sets of actions, and the skills that they may be done to.

use serde::{Deserialize, Serialize};
use strsim::normalized_damerau_levenshtein;

use crate::action::names;
use crate::{Action, Role};
use model::{SkillId, SkillPattern};

/// How like a name is to the one that was meant: two letters of eight may be wrong.
const MIN_LIKENESS_RATIO: f64 = 0.75;

/// A set of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
// Stored by name: the bits change their meaning with the order of the enum.
#[serde(from = "Vec<Action>", into = "Vec<Action>")]
pub struct Actions(u32);

impl Actions {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Action::ALL.iter().copied().collect()
    }

    /// Returns those of a name: of an action, or of a role. None: nothing has that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let role = name.parse::<Role>().ok().map(Role::actions);
        role.or_else(|| Some(Self::from_iter([name.parse::<Action>().ok()?])))
    }

    /// Returns those of a name that a person wrote.
    ///
    /// # Errors
    /// Nothing has that name; the message says what may be meant.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::of_name(name).ok_or_else(|| {
            let actions = Action::ALL.iter().map(|it| ("action", it.name()));
            let roles = Role::ALL.iter().map(|it| ("role", it.name()));
            let near = actions.chain(roles).map(|(kind, known)| {
                let likeness = normalized_damerau_levenshtein(name, known);
                (likeness, format!("did you mean the {kind} `{known}`?"))
            });
            let nearest = near.max_by(|a, b| a.0.total_cmp(&b.0));
            let nearest = nearest.filter(|(likeness, _)| *likeness >= MIN_LIKENESS_RATIO);
            let next = nearest.map_or_else(
                || {
                    let (actions, roles) = (
                        names(Action::ALL, Action::name),
                        names(Role::ALL, Role::name),
                    );
                    format!("actions are {actions}; roles are {roles}")
                },
                |(_, meant)| meant,
            );
            format!("unknown action or role `{name}`; {next}")
        })
    }

    /// The action is one of them.
    #[must_use]
    pub const fn has(self, action: Action) -> bool {
        self.0 & (1 << action as u32) != 0
    }

    /// Each, as the contract lists them.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        let all = Action::ALL.iter().copied();
        all.filter(move |action| self.has(*action))
    }

    /// There is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Action> for Actions {
    fn from_iter<T: IntoIterator<Item = Action>>(actions: T) -> Self {
        let bits = actions.into_iter().map(|action| 1 << action as u32);
        Self(bits.fold(0, |all, bit: u32| all | bit))
    }
}

impl From<Vec<Action>> for Actions {
    fn from(actions: Vec<Action>) -> Self {
        actions.into_iter().collect()
    }
}

impl From<Actions> for Vec<Action> {
    fn from(actions: Actions) -> Self {
        actions.iter().collect()
    }
}

/// The rights of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rights {
    /// The actions.
    pub actions: Actions,
    /// The skills that they may be done to, where they are done to one. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillPattern>,
    /// The skills of private namespaces that it sees, besides those that it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sees: Vec<SkillPattern>,
}

impl Rights {
    /// These actions, to all skills.
    #[must_use]
    pub fn to_all(actions: Actions) -> Self {
        Self {
            actions,
            ..Self::default()
        }
    }

    /// The action may be done to some skill, or to what is none.
    #[must_use]
    pub fn allow(&self, action: Action) -> bool {
        self.actions.has(action)
    }

    /// The action may be done to every skill.
    #[must_use]
    pub fn allow_to_all(&self, action: Action) -> bool {
        self.allow(action) && (self.skills.is_empty() || !action.is_by_skill())
    }

    /// The action may be done to this skill.
    #[must_use]
    pub fn allow_to(&self, action: Action, skill: &SkillId) -> bool {
        self.allow_to_all(action)
            || self.allow(action) && self.skills.iter().any(|pattern| pattern.covers(skill))
    }

    /// The caller sees every skill: it may change every one, or do what concerns the whole
    /// server, such as syncing its sources.
    #[must_use]
    pub fn see_all(&self) -> bool {
        use Action::{Administer, Operate, Sync};
        let mut of_server = [Sync, Operate, Administer].into_iter();
        of_server.any(|action| self.allow(action))
            || by_skill().any(|action| self.allow_to_all(action))
    }

    /// The skills of private namespaces that the caller sees, those that its rights are bound to
    /// included.
    pub fn seen(&self) -> impl Iterator<Item = &SkillPattern> {
        // A caller must see the skills that it may change, block or audit.
        let changed = if by_skill().any(|action| self.allow(action)) {
            self.skills.as_slice()
        } else {
            &[]
        };
        self.sees.iter().chain(changed)
    }
}

fn by_skill() -> impl Iterator<Item = Action> {
    let all = Action::ALL.iter().copied();
    all.filter(|action| action.is_by_skill())
}
