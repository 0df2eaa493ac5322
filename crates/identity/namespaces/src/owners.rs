//! Who may write where: the rights of a caller, and the owners of a namespace.

use std::sync::Arc;

use crate::namespace_index::key;
use crate::{FirstPublish, Namespaces};
use access::{Access, Action, Authorize};
use model::{Code, Failure, SkillId};

/// Decides by rights and owners.
struct Owners {
    access: Access,
    namespaces: Namespaces,
}

/// Tells whether only owners may do an action.
const fn is_of_owners(action: Action) -> bool {
    matches!(action, Action::Publish | Action::Activate | Action::Delete)
}

impl Namespaces {
    /// Returns what decides for which skills a caller may do an action. `None`: for all.
    #[must_use]
    pub fn authorizer(&self, access: &Access, action: Action) -> Option<Arc<dyn Authorize>> {
        let known = self.known();
        // Most servers have no owners. Their calls then cost no read of the store.
        let is_free = !is_of_owners(action)
            || !known.has_owners && known.config.first_publish == FirstPublish::Open
            || access.caller.rights.allow(Action::Administer);
        if is_free {
            return access.authorizer(action);
        }
        Some(Arc::new(Owners {
            access: access.clone(),
            namespaces: self.clone(),
        }))
    }
}

impl Authorize for Owners {
    fn allow(&self, action: Action, skill: &str) -> Result<(), Failure> {
        self.access.allow(action, skill)?;
        let caller = &self.access.caller.principal;
        // A short name is resolved later, and could then lead into a namespace that was not
        // checked.
        let Ok(id) = skill.parse::<SkillId>() else {
            return Err(Failure::new(
                Code::PermissionDenied,
                "Namespaces have owners here, so the skill has to be named by its id",
            )
            .detail("action", action)
            .suggest("Name the skill as `source/author/slug`"));
        };
        let namespace = id.namespace();
        // From the store: memory follows a commit a moment later, and a namespace that was just
        // claimed must not take a stranger's publish in between.
        let stored = self.namespaces.stored(&key(namespace))?;
        let owners = stored.map_or_else(Vec::new, |stored| stored.value.owners);
        if owners.contains(caller) {
            return Ok(());
        }
        let first_publish = self.namespaces.known().config.first_publish;
        let must_own = action == Action::Publish && first_publish == FirstPublish::Refused;
        if owners.is_empty() && !must_own {
            return Ok(());
        }
        let message = if owners.is_empty() {
            format!("{namespace} has no owner, and only owners publish skills")
        } else {
            format!(
                "{namespace} belongs to others, so {caller} may not publish, activate or delete in it"
            )
        };
        Err(Failure::new(Code::NamespaceNotOwned, message)
            .detail("namespace", namespace)
            .suggest(format!(
                "Ask an owner or the operator: `repertoire namespace set {namespace} --add-owner {caller}`"
            ))
            .suggest("Or publish in a namespace of your own"))
    }
}
