use std::collections::BTreeMap; use bytes::Bytes; use crate::model::*;
pub struct Reading { pub skill: Option<Skill>, pub slug: Option<String>, pub problems: Vec<Problem> }
pub struct Options<'a> { pub strict: bool, pub folder: Option<&'a str> }
pub fn read(_files: &BTreeMap<FilePath, Bytes>, _options: &Options<'_>) -> Reading { Reading{skill:None,slug:None,problems:vec![]} }
pub fn body(text: &str) -> &str { text }
#[derive(Default, PartialEq)] pub struct Draft { pub name: String, pub description: String, pub category: String, pub version: Option<String>, pub author: Option<String>, pub core_content: String, pub tool_configs: Vec<ToolConfig>, pub resource_configs: Vec<ResourceConfig> }
pub fn render(_d: &Draft) -> String { String::new() }
