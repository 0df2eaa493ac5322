//! Stand-ins for the handlers that this build leaves out.

#![expect(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "it is called as what it stands for"
)]

use std::future::ready;
use std::sync::Arc;

use super::super::{Feature, SettingError};
use handler::{Handler, Invocation, LOAD_CORE, Output, ToolError, ToolErrorKind, Work};
use model::SkillId;

/// Says of the tools of a bundled skill that nothing runs them here. The skill stays: its
/// text is as useful as before.
#[derive(Debug)]
struct NotBuilt {
    feature: Feature,
    skill: &'static str,
}

impl NotBuilt {
    fn handler(feature: Feature, skill: &'static str) -> Arc<dyn Handler> {
        Arc::new(Self { feature, skill })
    }

    fn run(&self, method: &str) -> Result<Output, ToolError> {
        let missing = self.feature.missing();
        // Loading still works, as the text of a skill helps without its tools.
        if method == LOAD_CORE {
            return Ok(Output::text(format!(
                "{}: the tools of `{}` cannot be called here.",
                missing.message, self.skill
            )));
        }
        let mut error = ToolError::new(ToolErrorKind::NotBuilt, missing.message);
        error.suggestions = missing.suggestions;
        Err(error)
    }
}

impl Handler for NotBuilt {
    fn serves(&self, skill: &SkillId, _method: &str) -> bool {
        self.skills().iter().any(|known| known.key() == skill.key())
    }

    fn skills(&self) -> Vec<SkillId> {
        let id = SkillId::new(SkillId::BUILTIN, "repertoire", self.skill);
        id.into_iter().collect()
    }

    fn unavailable(&self) -> Option<String> {
        Some(self.feature.missing().message)
    }

    fn call(&self, invocation: Invocation) -> Work<'_, Result<Output, ToolError>> {
        Box::pin(ready(self.run(&invocation.method)))
    }
}

#[cfg(not(feature = "databases"))]
impl super::SqlConfig {
    /// Returns a handler that refuses each call.
    pub(super) fn handler(&self) -> Result<Arc<dyn Handler>, SettingError> {
        Ok(NotBuilt::handler(Feature::Databases, "write_sql"))
    }
}

#[cfg(not(feature = "jira"))]
impl super::JiraConfig {
    /// Returns a handler that refuses each call.
    pub(super) fn handler(&self) -> Result<Arc<dyn Handler>, SettingError> {
        Ok(NotBuilt::handler(Feature::Jira, "jira"))
    }
}
