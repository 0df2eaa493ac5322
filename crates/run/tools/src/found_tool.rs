//! The tool that a call means, by whatever spelling.
//!
//! What a caller wrote ends here: the verdict, the record, the audit trail and the handler get
//! the name that the skill declares.

use std::sync::Arc;

use super::gate::ToolCall;
use super::session::{Loaded, Session};
use super::{Error, Tools, shown};
use model::{Reference, SkillId, ToolConfig, ToolName, VersionSelector, find_tool, inert_line};
use registry::{Head, Near, nearest_names};

/// The tool that a call means.
pub(super) struct FoundTool {
    pub(super) loaded: Loaded,
    pub(super) name: ToolName,
    pub(super) config: ToolConfig,
}

impl Tools {
    /// The tool among those of the loaded skills.
    pub(super) fn find(&self, state: &Session, call: &ToolCall) -> Result<FoundTool, Error> {
        let wanted = call
            .skill
            .as_ref()
            .map(|skill| self.loaded_head(state, skill));
        let wanted = wanted.transpose()?.map(|head| head.id.key());
        let mut found: Vec<FoundTool> = Vec::new();
        let mut gone = None;
        for loaded in &state.skills {
            let key = loaded.skill.key();
            if wanted.as_ref().is_some_and(|wanted| *wanted != key) {
                continue;
            }
            match self.version(loaded) {
                Ok((_, version)) => {
                    let tools = &version.skill.tool_configs;
                    if let Some((name, config)) = find_tool(tools, &call.tool)
                        && self.is_meant(&loaded.skill, &name, &call.tool)
                    {
                        found.push(FoundTool {
                            loaded: loaded.clone(),
                            name,
                            config: config.clone(),
                        });
                    }
                }
                Err(error) => {
                    if let Some(error) = self.changed(loaded, &call.tool) {
                        return Err(error);
                    }
                    gone = Some(error);
                }
            }
        }
        // The names of the server's own tools are reserved.
        let own = found.iter().position(|tool| tool.loaded.skill.is_builtin());
        let only = own.or((found.len() == 1).then_some(0));
        if let Some(only) = only {
            return Ok(found.swap_remove(only));
        }
        if found.is_empty() {
            return Err(match (gone, &wanted) {
                // The skill that was asked for was deleted.
                (Some(error), Some(_)) => error,
                _ => self.locked(&call.tool, call.skill.as_ref()),
            });
        }
        let ids = found.iter().map(|tool| tool.loaded.skill.to_string());
        Err(Error::Ambiguous {
            tool: shown(&call.tool),
            skills: ids.collect(),
        })
    }

    /// Whether a call may mean the tool of this name. One that passes for a tool of the server's
    /// gets no call but those that spell its own name.
    pub(super) fn is_meant(&self, skill: &SkillId, name: &ToolName, spelled: &str) -> bool {
        skill.is_builtin() || name.as_str() == spelled || !self.registry.is_imitation(name.as_str())
    }

    /// Why a tool that no loaded skill has cannot be called: the skill that has
    /// it is not loaded, or there is none.
    pub(super) fn locked(&self, tool: &str, skill: Option<&Reference>) -> Error {
        let mut candidates: Vec<Arc<Head>> = match skill {
            Some(skill) => match self.lookup.resolve(skill) {
                Ok(resolved) => vec![resolved.head],
                Err(error) => return error.into(),
            },
            None => self.served(),
        };
        candidates.sort_by_key(|head| !head.id.is_builtin());
        let mut there: Vec<(String, &Head)> = Vec::new();
        for head in &candidates {
            let version = self.registry.version(head, &VersionSelector::Active);
            let Ok(version) = version else { continue };
            let tools = &version.skill.tool_configs;
            if let Some((name, _)) = find_tool(tools, tool)
                && self.is_meant(&head.id, &name, tool)
            {
                return self.not_loaded(name.as_str(), head);
            }
            let tools = tools.iter();
            there.extend(tools.map(|config| (config.name.clone(), &**head)));
        }
        let catalog = self.registry.catalog();
        let near = nearest_names(tool, there.iter().map(|(name, _)| name.as_str()));
        let near = near.into_iter().map(|name| {
            let of = there.iter().find(|(known, _)| known == name);
            let skill = of.map_or("", |(_, head)| catalog.short_name(head));
            Near {
                name: inert_line(name),
                about: format!("a tool of `{}`", inert_line(skill)),
            }
        });
        Error::NoTool {
            near: near.collect(),
            tool: shown(tool),
        }
    }

    pub(super) fn not_loaded(&self, tool: &str, head: &Head) -> Error {
        Error::NotLoaded {
            tool: shown(tool),
            skill: self.registry.catalog().short_name(head).to_owned(),
            id: head.id.clone(),
        }
    }

    /// The skill that a reference means in a session: one of its own before any
    /// other of the name.
    pub(super) fn loaded_head(
        &self,
        state: &Session,
        skill: &Reference,
    ) -> Result<Arc<Head>, Error> {
        let catalog = self.registry.catalog();
        if let Reference::Name(name) = skill {
            let loaded = |head: &&Arc<Head>| state.loaded(&head.id.key()).is_some();
            if let Some(head) = catalog.named(name).find(loaded) {
                return Ok(Arc::clone(head));
            }
        }
        Ok(self.lookup.resolve(skill)?.head)
    }
}
