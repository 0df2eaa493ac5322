//! Whether a composition permits a call.
//!
//! What is forbidden comes first; what cannot be decided is not permitted.

use super::pattern::ToolPattern;
use super::proof::Statement;
use super::uncertainty::Uncertainty;
use super::{Call, Composed, ToolRule};
use model::shown;

/// Characters that a sentence repeats of a tool's name or a pattern.
const MAX_SHOWN_CHARS: usize = 200;

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Why; it also says whether.
    pub rule: ToolRule,
    /// What decided: the statement of a member.
    pub by: Option<&'a Statement>,
    /// Why it cannot be decided, where it cannot.
    pub doubt: Option<Uncertainty>,
}

impl Composed {
    /// Whether a call is permitted, and what decides it.
    #[must_use]
    pub fn check(&self, call: &Call<'_>) -> Decision<'_> {
        let mut undecided = None;
        // All of them, and not only up to the first doubt: one that surely forbids says more
        // than one that may.
        for pattern in &self.forbidden {
            match pattern.touches(call) {
                Ok(true) => return self.decision(ToolRule::Forbidden, pattern),
                Ok(false) => {}
                Err(doubt) => undecided = undecided.or(Some((pattern, doubt))),
            }
        }
        if let Some((pattern, doubt)) = undecided {
            return self.undecided(pattern, doubt);
        }
        // A doubt about what allows is no refusal yet: another pattern may allow the call for
        // sure.
        for pattern in &self.allowed {
            // Few patterns match a call, so the cheap comparison comes before the search for
            // the proof.
            match pattern.permits(call) {
                Ok(false) => {}
                _ if !self.is_permitted(pattern) => {}
                Ok(true) => return self.decision(ToolRule::Granted, pattern),
                Err(doubt) => undecided = undecided.or(Some((pattern, doubt))),
            }
        }
        if let Some(pattern) = self.jointly(call) {
            return self.decision(ToolRule::Granted, pattern);
        }
        if let Some((pattern, doubt)) = undecided {
            return self.undecided(pattern, doubt);
        }
        // What the policy took away explains itself.
        let matching = self.allowed.iter();
        let matching = matching.filter(|pattern| pattern.permits(call) == Ok(true));
        let lost = matching
            .filter_map(|pattern| self.proof(pattern))
            .filter(|proof| proof.rule == ToolRule::NotGrantedByAll)
            .min_by(|a, b| a.tool.cmp(&b.tool));
        Decision {
            rule: lost.map_or(ToolRule::NotGranted, |proof| proof.rule),
            by: lost.and_then(|proof| proof.grants.first()),
            doubt: None,
        }
    }

    /// The first of the patterns that together permit all commands of a line.
    fn jointly(&self, call: &Call<'_>) -> Option<&ToolPattern> {
        // A line of several commands is allowed where each of them is: no pattern needs to
        // allow the whole line. The forbidding patterns have seen all of it by now.
        let commands = call.commands().ok()?;
        let mut by = None;
        for command in commands {
            let pattern = self.allowed.iter().find(|pattern| {
                pattern.permits_command(call, command) && self.is_permitted(pattern)
            })?;
            by = by.or(Some(pattern));
        }
        by
    }

    /// The answer by what became of a pattern.
    fn decision(&self, rule: ToolRule, pattern: &ToolPattern) -> Decision<'_> {
        let by = self.proof(pattern).and_then(|proof| {
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

    fn undecided(&self, pattern: &ToolPattern, doubt: Uncertainty) -> Decision<'_> {
        Decision {
            doubt: Some(doubt),
            ..self.decision(ToolRule::Undecided, pattern)
        }
    }

    /// The answer as a sentence.
    #[must_use]
    pub fn reason(&self, call: &Call<'_>, decision: &Decision<'_>) -> String {
        let tool = shown(call.tool, MAX_SHOWN_CHARS);
        let named = decision.by.and_then(|statement| {
            let member = self.members.get(statement.member)?;
            Some((&*member.name, shown(&statement.pattern, MAX_SHOWN_CHARS)))
        });
        match (decision.rule, named) {
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
