//! Whether a composition permits a call.
//!
//! What is forbidden is looked at first; what cannot be told is not permitted.

use super::call::Commands;
use super::pattern::Answer;
use super::proof::Statement;
use super::{Call, Composed, ToolRule};

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Why; it also says whether.
    pub rule: ToolRule,
    /// What decided: the statement of a member.
    pub by: Option<Statement<'a>>,
}

impl Composed {
    /// Whether a call is permitted, and what decides it.
    #[must_use]
    pub fn check(&self, call: &Call<'_>) -> Decision<'_> {
        let proof = &self.proof;
        let mut undecided = None;
        for (at, pattern) in proof.forbidding() {
            match pattern.touches(call) {
                Answer::Yes => return self.decision(ToolRule::Forbidden, at),
                Answer::Undecided => undecided = undecided.or(Some(at)),
                Answer::No => {}
            }
        }
        if let Some(at) = undecided {
            return self.decision(ToolRule::Undecided, at);
        }
        for (at, pattern) in proof.allowed() {
            // Few patterns are of a call, so that is asked first.
            match pattern.permits(call) {
                Answer::No => {}
                _ if !proof.is_permitted(at) => {}
                Answer::Yes => return self.decision(ToolRule::Granted, at),
                Answer::Undecided => undecided = undecided.or(Some(at)),
            }
        }
        if let Some(at) = self.jointly(call) {
            return self.decision(ToolRule::Granted, at);
        }
        if let Some(at) = undecided {
            return self.decision(ToolRule::Undecided, at);
        }
        // What the policy took away explains itself.
        let lost = proof.proven().find(|(pattern, proof)| {
            proof.rule == ToolRule::NotGrantedByAll && pattern.permits(call) == Answer::Yes
        });
        match lost {
            Some((_, proof)) => Decision {
                rule: ToolRule::NotGrantedByAll,
                by: proof.grants.first(),
            },
            None => Decision {
                rule: ToolRule::NotGranted,
                by: None,
            },
        }
    }

    /// Commands of one line, each permitted by a pattern of its own.
    fn jointly(&self, call: &Call<'_>) -> Option<usize> {
        let Commands::Plain(commands) = call.commands() else {
            return None;
        };
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
        Decision { rule, by }
    }

    /// The answer as a sentence.
    #[must_use]
    pub fn reason(&self, call: &Call<'_>, decision: Decision<'_>) -> String {
        let tool = call.tool;
        let said = decision.by.and_then(|statement| {
            let member = self.members.get(statement.member)?;
            Some((&*member.name, statement.pattern))
        });
        match (decision.rule, said) {
            (ToolRule::Granted | ToolRule::GrantedExcept, Some((skill, pattern))) => {
                format!("'{tool}' is allowed by '{skill}' as `{pattern}`")
            }
            (ToolRule::Forbidden, Some((skill, pattern))) => {
                format!("'{tool}' is forbidden by '{skill}' as `{pattern}`")
            }
            (ToolRule::Undecided, Some((skill, pattern))) => format!(
                "Whether `{pattern}` of '{skill}' covers this call of '{tool}' cannot be told, so it is \
                 not permitted"
            ),
            (ToolRule::NotGrantedByAll, Some((skill, pattern))) => format!(
                "'{tool}' is allowed by '{skill}' as `{pattern}`, but not by every skill, as the \
                 intersection demands"
            ),
            _ => format!("No skill of the composition allows this call of '{tool}'"),
        }
    }
}
