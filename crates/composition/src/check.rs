//! Whether a composition permits a call.
//!
//! What is forbidden is looked at first; what cannot be told is not permitted.

use super::doubt::Doubt;
use super::proof::Statement;
use super::{Call, Composed, ToolRule};
use model::shown;

/// Characters that a sentence repeats of a tool's name or a pattern.
const SHOWN: usize = 200;

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Why; it also says whether.
    pub rule: ToolRule,
    /// What decided: the statement of a member.
    pub by: Option<Statement<'a>>,
    /// Why it cannot be told, where it cannot.
    pub doubt: Option<Doubt>,
}

impl Composed {
    /// Whether a call is permitted, and what decides it.
    #[must_use]
    pub fn check(&self, call: &Call<'_>) -> Decision<'_> {
        let proof = &self.proof;
        let mut undecided = None;
        for (at, pattern) in proof.forbidding() {
            match pattern.touches(call) {
                Ok(true) => return self.decision(ToolRule::Forbidden, at),
                Ok(false) => {}
                Err(doubt) => undecided = undecided.or(Some((at, doubt))),
            }
        }
        if let Some((at, doubt)) = undecided {
            return self.undecided(at, doubt);
        }
        for (at, pattern) in proof.allowed() {
            // Few patterns are of a call, so that is asked first.
            match pattern.permits(call) {
                Ok(false) => {}
                _ if !proof.is_permitted(at) => {}
                Ok(true) => return self.decision(ToolRule::Granted, at),
                Err(doubt) => undecided = undecided.or(Some((at, doubt))),
            }
        }
        if let Some(at) = self.jointly(call) {
            return self.decision(ToolRule::Granted, at);
        }
        if let Some((at, doubt)) = undecided {
            return self.undecided(at, doubt);
        }
        // What the policy took away explains itself.
        let lost = proof.proven().find(|(pattern, proof)| {
            proof.rule == ToolRule::NotGrantedByAll && pattern.permits(call) == Ok(true)
        });
        match lost {
            Some((_, proof)) => Decision {
                rule: ToolRule::NotGrantedByAll,
                by: proof.grants.first(),
                doubt: None,
            },
            None => Decision {
                rule: ToolRule::NotGranted,
                by: None,
                doubt: None,
            },
        }
    }

    /// Commands of one line, each permitted by a pattern of its own.
    fn jointly(&self, call: &Call<'_>) -> Option<usize> {
        let commands = call.commands().ok()?;
        let proof = &self.proof;
        let mut by = None;
        for command in commands {
            let mut patterns = proof.allowed();
            let (at, _) = patterns.find(|(at, pattern)| {
                pattern.permits_command(call, command) && proof.is_permitted(*at)
            })?;
            by = by.or(Some(at));
        }
        by
    }

    /// The answer by what became of a pattern.
    fn decision(&self, rule: ToolRule, pattern: usize) -> Decision<'_> {
        let by = self.proof.tool(pattern).and_then(|proof| {
            let (denied, granted) = (proof.denials.first(), proof.grants.first());
            match rule {
                ToolRule::Granted => granted,
                ToolRule::Undecided => denied.or(granted),
                _ => denied,
            }
        });
        Decision {
            rule,
            by,
            doubt: None,
        }
    }

    fn undecided(&self, pattern: usize, doubt: Doubt) -> Decision<'_> {
        let doubt = Some(doubt);
        Decision {
            doubt,
            ..self.decision(ToolRule::Undecided, pattern)
        }
    }

    /// The answer as a sentence.
    #[must_use]
    pub fn reason(&self, call: &Call<'_>, decision: &Decision<'_>) -> String {
        let tool = shown(call.tool, SHOWN);
        let said = decision.by.and_then(|statement| {
            let member = self.members.get(statement.member)?;
            Some((&*member.name, shown(statement.pattern, SHOWN)))
        });
        match (decision.rule, said) {
            (ToolRule::Granted | ToolRule::GrantedExcept, Some((skill, pattern))) => {
                format!("'{tool}' is allowed by '{skill}' as `{pattern}`")
            }
            (ToolRule::Forbidden, Some((skill, pattern))) => {
                format!("'{tool}' is forbidden by '{skill}' as `{pattern}`")
            }
            (ToolRule::Undecided, Some((skill, pattern))) => {
                let why = decision.doubt.as_ref().map(|doubt| format!(", {doubt}"));
                format!(
                    "This call of '{tool}' is not permitted: whether `{pattern}` of '{skill}' covers it \
                     cannot be told{}",
                    why.unwrap_or_default()
                )
            }
            (ToolRule::NotGrantedByAll, Some((skill, pattern))) => format!(
                "'{tool}' is allowed by '{skill}' as `{pattern}`, but not by every skill, as the \
                 intersection demands"
            ),
            _ => format!("No skill of the composition allows this call of '{tool}'"),
        }
    }
}
