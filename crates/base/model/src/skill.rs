//! The contents of a `SKILL.md`, in one model.
//!
//! The fields of the Agent Skills standard, of skill definitions (permissions
//! and rules of composition), of progressive disclosure (tools and resources),
//! and of catalogs (tags, triggers, technologies). Unknown keys
//! stay in [`Skill::front_matter`].

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FilePath;

/// A skill as its author wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    /// Name, as written.
    pub name: String,
    /// Its purpose and when to use it.
    pub description: String,
    /// Path of the file this was read from; nearly always `SKILL.md`.
    #[serde(default = "FilePath::skill_md")]
    pub entry: FilePath,
    /// Version, as written: need not be a semantic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Group it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// Other groups it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_categories: Vec<String>,
    /// Its author, as it states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Licence, as it states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// Requirements it states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compatibility: String,
    /// Home page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub homepage: String,
    /// Repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Words it is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Phrases that should make an agent think of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Technologies it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<String>,
    /// Tools it permits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools it forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden_tools: Vec<String>,
    /// Steps in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execution_protocol: Vec<String>,
    /// The conditions before it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<String>,
    /// The conditions after it has run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub postconditions: Vec<String>,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// Skills it works with, or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatibility_rules: Vec<CompatibilityRule>,
    /// How it combines with others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composability_rules: Vec<ComposabilityRule>,
    /// Tools it unlocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_configs: Vec<ToolConfig>,
    /// Its resources of level 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_configs: Vec<ResourceConfig>,
    /// The name for people, where it is more than the name spelled otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Only people call it up (Claude Code's `disable-model-invocation`): agents do
    /// not see it unless they ask for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_model_invocation: bool,
    /// The description at length.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub long_description: String,
    /// First characters of the body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// Characters of the whole `SKILL.md`.
    #[serde(default)]
    pub chars: u64,
    /// The whole front matter, every key of it.
    pub front_matter: Map<String, Value>,
}

impl Skill {
    /// The skills that it requires, as its rules write them, each once.
    pub fn requirements(&self) -> impl Iterator<Item = &str> {
        let compatibility = self.compatibility_rules.iter();
        let compatibility = compatibility
            .filter(|rule| rule.kind == CompatibilityRuleType::Requires)
            .map(|rule| rule.skill.as_str());
        let composability = self.composability_rules.iter();
        let composability = composability
            .filter(|rule| rule.kind == ComposabilityRuleType::Requires)
            .map(|rule| rule.skill.as_str());
        let mut known = BTreeSet::new();
        compatibility
            .chain(composability)
            .filter(move |text| known.insert(*text))
    }

    /// Returns the targets of its rules that require another skill, to be replaced.
    pub fn requirements_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let compatibility = self.compatibility_rules.iter_mut();
        let compatibility = compatibility
            .filter(|rule| rule.kind == CompatibilityRuleType::Requires)
            .map(|rule| &mut rule.skill);
        let composability = self.composability_rules.iter_mut();
        let composability = composability
            .filter(|rule| rule.kind == ComposabilityRuleType::Requires)
            .map(|rule| &mut rule.skill);
        compatibility.chain(composability)
    }
}

/// The output of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputContract {
    /// Identifier of the output's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// JSON Schema of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
}

/// The demand of a compatibility rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompatibilityRuleType {
    /// The target must be present.
    Requires,
    /// The target must not be present.
    Incompatible,
}

/// Which other skill this skill can or cannot work with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatibilityRule {
    /// The demand.
    #[serde(rename = "type")]
    pub kind: CompatibilityRuleType,
    /// Id or short name of the target.
    pub skill: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The demand of a composability rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComposabilityRuleType {
    /// The target must be composed as well.
    Requires,
    /// The target must not be composed.
    Forbids,
}

/// How this skill behaves when it is combined with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComposabilityRule {
    /// The demand.
    #[serde(rename = "type")]
    pub kind: ComposabilityRuleType,
    /// Id or short name of the target.
    pub skill: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A tool that the skill unlocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolConfig {
    /// Name of the tool.
    pub name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Method of its handler.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Its arguments in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ToolArgument>,
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolArgument {
    /// Name of the argument.
    pub name: String,
    /// JSON Schema type.
    #[serde(rename = "type", default = "ToolArgument::kind")]
    pub kind: String,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The call is refused without it.
    #[serde(default)]
    pub required: bool,
    /// Value used when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl ToolArgument {
    /// The type of an argument that names none.
    pub const KIND: &'static str = "string";

    fn kind() -> String {
        Self::KIND.to_owned()
    }
}

/// A resource of level 3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceConfig {
    /// Name of the resource.
    pub name: String,
    /// Its contents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Path of its file; empty where it is dynamic.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// It is made on request.
    #[serde(default)]
    pub dynamic: bool,
    /// Method of the handler that makes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
}
