//! Which calls of tools over MCP are refused by HTTP, so that a client signs in, or signs in
//! again for more: none looks for a challenge in the result of a tool.

use std::collections::HashMap;

use crate::Issuers;
use access::{Access, Action};
use model::Failure;

/// What each tool asks of its caller.
#[derive(Debug)]
pub struct StepUp {
    issuers: Issuers,
    /// By the name of the tool, what each rpc that it may call needs. None: nothing.
    tools: HashMap<String, Vec<Option<Action>>>,
}

impl StepUp {
    /// The tools of a contract, and the issuers of the server.
    pub fn new(
        issuers: Issuers,
        needs: impl IntoIterator<Item = (String, Option<Action>)>,
    ) -> Self {
        let mut tools: HashMap<_, Vec<_>> = HashMap::new();
        for (name, action) in needs {
            tools.entry(name).or_default().push(action);
        }
        Self { issuers, tools }
    }

    /// Looks at a call of a tool before it is handled.
    ///
    /// # Errors
    /// Its caller may not call it, and may after a sign-in.
    pub fn check(&self, access: &Access, tool: &str) -> Result<(), Failure> {
        if !self.may_change(access) {
            return Ok(());
        }
        // A tool of a loaded skill is in no contract.
        let unlocked = [Some(Action::Call)];
        let needs = self.tools.get(tool);
        let needs = needs.map_or(&unlocked[..], Vec::as_slice);
        let refusals = needs.iter().map(|need| match need {
            None => Ok(()),
            Some(action) => access.require(*action),
        });
        let mut first = Ok(());
        for refusal in refusals {
            match refusal {
                Ok(()) => return Ok(()),
                Err(failure) if first.is_ok() => first = Err(failure),
                Err(_) => {}
            }
        }
        // What no sign-in brings is told to the model, like any other refusal.
        let brings = |failure: &Failure| {
            access.caller.is_anonymous() || failure.details.iter().any(|(name, _)| name == "scope")
        };
        first.or_else(|failure| {
            if brings(&failure) {
                Err(failure)
            } else {
                Ok(())
            }
        })
    }

    /// The caller may do more after a sign-in by an issuer.
    fn may_change(&self, access: &Access) -> bool {
        let bound = access.caller.scope.is_some() || access.caller.is_anonymous();
        access.signs_in && bound && self.issuers.resource().has_issuers()
    }
}
