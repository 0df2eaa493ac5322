//! Decides which tool calls over MCP are refused by HTTP, so that a client signs in, or signs in
//! again for more scopes: clients look for no challenge in the result of a tool.

use std::collections::HashMap;

use crate::Issuers;
use access::{Access, Action};
use model::Failure;

/// The actions that each tool needs.
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

    /// Checks a tool call before it is handled.
    ///
    /// # Errors
    /// Its caller may not call it, and may after a sign-in.
    pub fn check(&self, access: &Access, tool: &str) -> Result<(), Failure> {
        if !self.may_change(access) {
            return Ok(());
        }
        // The tools of a loaded skill are in no contract. They need the right to call tools.
        let unlocked = [Some(Action::Call)];
        let needs = self.tools.get(tool);
        let needs = needs.map_or(&unlocked[..], Vec::as_slice);
        let permitted = needs
            .iter()
            .map(|need| need.map_or(Ok(()), |action| access.require(action)));
        // A tool may call several rpcs, and one that is permitted is enough: the call layer refuses
        // the others. Of several refusals the first counts.
        let first = permitted.reduce(|first, next| next.or(first));
        // A sign-in brings nothing that only the operator can give. The model gets that refusal as
        // the tool's result, like any other.
        let sign_in_helps = |failure: &Failure| {
            access.caller.is_anonymous() || failure.details.iter().any(|(name, _)| name == "scope")
        };
        match first {
            Some(Err(failure)) if sign_in_helps(&failure) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Tells whether the caller could do more after a sign-in by an issuer.
    fn may_change(&self, access: &Access) -> bool {
        let bound = access.caller.scope.is_some() || access.caller.is_anonymous();
        access.signs_in && bound && self.issuers.resource().has_issuers()
    }
}
