//! Lists of tools.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::gate::LOAD_DETAILS;
use super::{Error, Tools, arguments};
use model::{Principal, Reference, ToolConfig, Version, VersionNumber, VersionSelector, fold_tool};
use registry::Head;

/// Whose tools to list.
#[derive(Debug, Clone)]
pub struct ToolQuery {
    /// Session whose skills have them; empty: of no session.
    pub session: String,
    /// The caller.
    pub caller: Principal,
    /// Skill that declares them; none: any.
    pub skill: Option<Reference>,
}

/// A tool that a skill unlocks.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// As its skill declares it.
    pub config: ToolConfig,
    /// The skill.
    pub skill: model::SkillId,
    /// Shortest name that leads to the skill.
    pub skill_name: String,
    /// The version that declares it.
    pub version: VersionNumber,
    /// JSON Schema of its arguments.
    pub schema: Map<String, Value>,
    /// The skill is loaded in the session.
    pub is_loaded: bool,
    /// Why nothing runs it now; none: a handler does.
    pub unavailable: Option<String>,
}

impl Tools {
    /// Tools by name, then by skill.
    ///
    /// # Errors
    /// There is no such session or skill, or a version cannot be read.
    pub fn list(&self, query: &ToolQuery) -> Result<Vec<ListedTool>, Error> {
        let inner = &*self.inner;
        let session = match query.session.as_str() {
            "" => None,
            session => Some(inner.sessions.get(session, &query.caller)?),
        };
        let mut tools = Vec::new();
        let mut add = |head: &Arc<Head>, version: &Arc<Version>, is_loaded: bool| {
            for (at, config) in version.skill.tool_configs.iter().enumerate() {
                let before = version.skill.tool_configs.iter().take(at);
                // Of two tools of one name, however spelled, the first is called.
                let name = fold_tool(&config.name);
                if !before
                    .into_iter()
                    .any(|other| fold_tool(&other.name) == name)
                {
                    tools.push(self.listed(head, version, config, is_loaded));
                }
            }
        };
        match (&session, &query.skill) {
            (Some(session), None) => {
                for loaded in &session.skills {
                    if let Ok((head, version)) = self.usable(loaded) {
                        add(&head, &version, true);
                    }
                }
            }
            (Some(session), Some(skill)) => {
                let head = self.loaded_head(session, skill)?;
                if let Some(loaded) = session.loaded(&head.id.key()) {
                    let (head, version) = self.usable(loaded)?;
                    add(&head, &version, true);
                } else {
                    let version = self.registry.version(&head, &VersionSelector::Active)?;
                    add(&head, &version, false);
                }
            }
            (None, Some(skill)) => {
                let found = self.lookup.get(skill, &VersionSelector::Active)?;
                add(&found.described.head, &found.described.version, false);
            }
            (None, None) => {
                for head in self.served() {
                    if let Ok(version) = self.registry.version(&head, &VersionSelector::Active) {
                        add(&head, &version, false);
                    }
                }
            }
        }
        tools.sort_by_cached_key(|tool| (tool.config.name.clone(), tool.skill.key()));
        Ok(tools)
    }

    fn listed(
        &self,
        head: &Head,
        version: &Version,
        config: &ToolConfig,
        is_loaded: bool,
    ) -> ListedTool {
        let unavailable = match self.inner.handler(&head.id, &config.method) {
            _ if config.method == LOAD_DETAILS => None,
            Some(handler) => handler.unavailable(),
            None => Some(super::gate::unserved(&head.id, &config.method)),
        };
        ListedTool {
            schema: arguments::schema(config),
            config: config.clone(),
            skill: head.id.clone(),
            skill_name: self.registry.catalog().short_name(head).to_owned(),
            version: version.number,
            is_loaded,
            unavailable,
        }
    }
}
