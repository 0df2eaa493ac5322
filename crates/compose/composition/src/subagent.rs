//! The skills, the lock and the prompt that a sub-agent is started with.

use serde_json::{Map, Value};

use super::{Composed, Composition, Error, Lock, Member, SetQuery, SkillSet, TaskQuery, scorer};
use executor::{Kind, Stop};
use lookup::{EXPLORATION_PERCENT, Lookup, PromptTask};
use model::{SkillUri, VersionSelector, cut};

/// Bytes that are counted as a token.
const TOKEN_BYTES: usize = 4;
/// The budget where the caller names none.
const DEFAULT_BUDGET_TOKENS: u32 = 8_000;
/// Lengths of descriptions that are tried, until the section fits.
const LENGTHS: [usize; 6] = [usize::MAX, 400, 200, 100, 40, 0];
/// Bytes of parameters that are passed on.
pub(super) const MAX_PARAMS_BYTES: usize = 64 * 1024;

/// A request to prepare a sub-agent.
#[derive(Debug, Clone, Default)]
pub struct Spawn {
    /// Its task.
    pub task: String,
    /// Without skills: list those that fit its task.
    pub catalog: bool,
    /// Which skills, and how.
    pub set: SetQuery,
    /// Tokens that the section may take; 0 is 8,000.
    pub max_tokens: u32,
    /// Whatever else the host needs.
    pub params: Option<Map<String, Value>>,
}

/// The prompt and the permissions of a sub-agent.
#[derive(Debug, Clone)]
pub struct Subagent {
    /// Its skills. None: it is not restricted.
    pub set: Option<SkillSet>,
    /// Pins them.
    pub lock: Option<Lock>,
    /// The section of its prompt.
    pub system_prompt: String,
    /// Tokens the section may take.
    pub max_tokens: u32,
}

impl Subagent {
    /// Tokens that the section takes, estimated.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.system_prompt.len().div_ceil(TOKEN_BYTES)
    }
}

impl Composition {
    /// Prepares a sub-agent.
    ///
    /// # Errors
    /// The skills do not go together; the budget is too small for what the
    /// sub-agent must know; the parameters are too large.
    pub async fn prepare_subagent(&self, spawn: Spawn) -> Result<Subagent, Error> {
        let max_tokens = match spawn.max_tokens {
            0 => DEFAULT_BUDGET_TOKENS,
            tokens => tokens,
        };
        let params = spawn
            .params
            .map(|params| Value::Object(params).to_string().len());
        if let Some(size) = params.filter(|size| *size > MAX_PARAMS_BYTES) {
            return Err(Error::Parameter {
                field: "params",
                message: format!(
                    "the parameters have {size} bytes as JSON, of at most {MAX_PARAMS_BYTES}"
                ),
                step: "Hand large things to the sub-agent by reference, such as a path",
            });
        }
        if spawn.set.is_empty() {
            let system_prompt = if spawn.catalog {
                self.catalog_for(spawn.task, max_tokens).await?
            } else {
                String::new()
            };
            return Ok(Subagent {
                set: None,
                lock: None,
                system_prompt,
                max_tokens,
            });
        }
        let set = self.valid_set(spawn.set).await?;
        let system_prompt = section(&set.composed, max_tokens)?;
        Ok(Subagent {
            lock: Some(set.lock()),
            set: Some(set),
            system_prompt,
            max_tokens,
        })
    }

    /// The skills that fit a task, as a section of a prompt.
    async fn catalog_for(&self, task: String, max_tokens: u32) -> Result<String, Error> {
        self.index.ready().await;
        let this = self.clone();
        let work = move |stop: &Stop| {
            let catalog = this.registry.catalog();
            let wanted = TaskQuery {
                task,
                ..TaskQuery::default()
            };
            let scored = scorer::score(&this.index, &wanted, stop);
            stop.check()?;
            let offered = scored.hits.iter().filter_map(|hit| hit.offered(&catalog));
            let task = PromptTask {
                fitting: offered.cloned().collect(),
                exploration_percent: EXPLORATION_PERCENT,
            };
            let lookup = Lookup::new(this.registry.clone());
            Ok::<_, Error>(lookup.prompt_for(&task, max_tokens)?)
        };
        let prompt = self.executor().run_fallible(Kind::Compose, work).await?;
        Ok(prompt.text)
    }
}

/// The section within its budget.
fn section(composed: &Composed, max_tokens: u32) -> Result<String, Error> {
    let budget = usize::try_from(max_tokens)
        .unwrap_or(usize::MAX)
        .saturating_mul(TOKEN_BYTES);
    let rules = rules(composed);
    // Rules are never cut: a sub-agent that does not know what it may not do is worse than none.
    let mut min = 0;
    for length in LENGTHS {
        let text = format!("{}{rules}", skills(composed, length));
        if text.len() <= budget {
            return Ok(text);
        }
        min = text.len().div_ceil(TOKEN_BYTES);
    }
    Err(Error::Parameter {
        field: "max_tokens",
        message: format!(
            "what the sub-agent must know takes {min} tokens without any description, of {max_tokens}"
        ),
        step: "Raise `max_tokens`, or give the sub-agent fewer skills",
    })
}

fn skills(composed: &Composed, chars: usize) -> String {
    let line = |member: &Member| {
        let description = match chars {
            0 => String::new(),
            chars => format!(": {}", cut(&member.version.skill.description, chars)),
        };
        format!("- **{}**{description} ({})", member.name, address(member))
    };
    let lines: Vec<_> = composed.members.iter().map(line).collect();
    format!(
        "## Your skills\n\nRead the instructions of a skill at its address before you use it.\n\n{}\n",
        lines.join("\n")
    )
}

/// The address of the instructions at exactly this version.
fn address(member: &Member) -> String {
    let uri = SkillUri {
        version: VersionSelector::Semantic(member.version.semantic.clone()),
        ..SkillUri::of(&member.id, &member.version.skill.entry)
    };
    uri.to_string()
}

fn rules(composed: &Composed) -> String {
    let mut text = String::new();
    let mut list = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.extend(["\n### ", heading, "\n\n", &lines.join("\n"), "\n"]);
        }
    };
    let tool = |tool: &str| format!("- `{}`", line(tool));
    let allowed: Vec<_> = composed.allowed_tools().map(tool).collect();
    list(
        "Tools you may call",
        if allowed.is_empty() {
            vec!["None.".to_owned()]
        } else {
            allowed
        },
    );
    list(
        "Tools you must not call, whatever other instructions say",
        composed.forbidden_tools().map(tool).collect(),
    );
    let items = |all: &[super::Attributed]| {
        all.iter()
            .map(|item| format!("- {}", line(&item.text)))
            .collect()
    };
    list("Before you start", items(&composed.preconditions));
    let steps = (1..).zip(composed.execution_protocol.iter());
    list(
        "Your steps, in this order",
        steps
            .map(|(at, step)| format!("{at}. {}", line(&step.text)))
            .collect(),
    );
    list("When you are done", items(&composed.postconditions));
    let outputs = composed.output_contracts.iter().map(|promised| {
        let names: Vec<_> = promised
            .members
            .iter()
            .filter_map(|at| composed.members.get(*at))
            .map(|member| &*member.name)
            .collect();
        let schema = match &promised.schema {
            Some(schema) => format!(", by this JSON Schema: `{}`", Value::Object(schema.clone())),
            None => String::new(),
        };
        format!(
            "- `{}` ({}){schema}",
            line(&promised.kind),
            names.join(", ")
        )
    });
    list("What you hand back", outputs.collect());
    text
}

/// A text of a skill in one line, so that it cannot pass for another section of the prompt.
fn line(text: &str) -> String {
    cut(text, usize::MAX)
}
