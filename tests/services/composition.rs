//! Sets of skills over the services in process: the worked example and the rules
//! of the specification, locks, calls of tools, sub-agents, selection.

mod locks;
mod proof;
mod requirements;
mod selection;
mod spawn;

use contract::v1;
use contract::v1::composition_client::CompositionClient;
use gateway::Transport;
use serde_json::Value;
use tonic::Status;
use tonic_types::StatusExt as _;

use crate::support::{self, reason, skill};

/// The services, and a client of the compositions.
struct World {
    client: CompositionClient<Transport>,
    services: support::World,
}

impl World {
    async fn new() -> Self {
        let services = support::World::new().await;
        Self {
            client: CompositionClient::new(services.transport.clone()),
            services,
        }
    }

    /// Publishes a skill with more front matter; its version is what that says.
    async fn with(mut self, id: &str, front_matter: &str) -> Self {
        self.publish(id, front_matter).await;
        self
    }

    async fn publish(&mut self, id: &str, front_matter: &str) {
        let skill = skill(id, &format!("{front_matter}\n"), &format!("Body of {id}."));
        self.services.publish(skill).await;
    }

    async fn yank(&mut self, id: &str, number: u32) {
        let request = v1::YankVersionRequest {
            skill_id: id.to_owned(),
            version_number: number,
            reason: "wrong".to_owned(),
            ..Default::default()
        };
        self.services
            .registry
            .yank_version(request)
            .await
            .expect("withdrawn");
    }

    async fn activate(&mut self, id: &str, number: u32) {
        let request = v1::ActivateVersionRequest {
            skill_id: id.to_owned(),
            version_number: number,
            ..Default::default()
        };
        self.services
            .registry
            .activate_version(request)
            .await
            .expect("active");
    }

    async fn compose(&mut self, skills: &[&str]) -> Result<v1::ComposeSkillsResponse, Status> {
        let request = v1::ComposeSkillsRequest {
            skills: texts(skills),
            ..Default::default()
        };
        Ok(self.client.compose_skills(request).await?.into_inner())
    }

    async fn composed(&mut self, request: v1::ComposeSkillsRequest) -> v1::ComposeSkillsResponse {
        let answer = self.client.compose_skills(request).await;
        answer.expect("a composition").into_inner()
    }

    async fn refused(&mut self, request: v1::ComposeSkillsRequest) -> Vec<String> {
        let refused = self
            .client
            .compose_skills(request)
            .await
            .expect_err("a refusal");
        assert_eq!(reason(&refused), "SKILL_SET_INVALID", "{refused:?}");
        problems(&refused)
    }

    async fn validate(&mut self, skills: &[&str], resolve: bool) -> v1::ValidateSkillSetResponse {
        let request = v1::ValidateSkillSetRequest {
            skills: texts(skills),
            resolve,
            ..Default::default()
        };
        let answer = self.client.validate_skill_set(request).await;
        answer.expect("an answer").into_inner()
    }

    async fn check(
        &mut self,
        skills: &[&str],
        tool: &str,
        arguments: Value,
    ) -> v1::CheckToolResponse {
        let request = v1::CheckToolRequest {
            tool: tool.to_owned(),
            arguments: Some(object(arguments)),
            skills: texts(skills),
            ..Default::default()
        };
        let answer = self.client.check_tool(request).await;
        answer.expect("an answer").into_inner()
    }

    async fn select(&mut self, task: &str) -> v1::SelectSkillsResponse {
        self.services.domain.follow().await;
        self.services.domain.search().complete().await;
        let request = v1::SelectSkillsRequest {
            task: task.to_owned(),
            ..Default::default()
        };
        let answer = self.client.select_skills(request).await;
        answer.expect("a selection").into_inner()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Texts of a flat object, which is all that arguments here need.
fn object(value: Value) -> prost_types::Struct {
    let Value::Object(fields) = value else {
        panic!("not an object: {value}");
    };
    let text = |value: Value| prost_types::Value {
        kind: Some(prost_types::value::Kind::StringValue(
            value.as_str().expect("a text").to_owned(),
        )),
    };
    prost_types::Struct {
        fields: fields
            .into_iter()
            .map(|(name, value)| (name, text(value)))
            .collect(),
    }
}

fn problems(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let bad = details
        .bad_request()
        .map(|bad| bad.field_violations.clone());
    let bad = bad.unwrap_or_default().into_iter();
    bad.map(|problem| format!("{} {}", problem.field, problem.description))
        .collect()
}

/// `CODE about chain` of each finding.
fn findings(findings: &[v1::Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let chain = if finding.chain.is_empty() {
                String::new()
            } else {
                format!(": {}", finding.chain.join(" > "))
            };
            format!("{} {}{chain}", finding.code, finding.skills.join(" "))
        })
        .collect()
}

const PAIR: [&str; 2] = ["specification-engine", "opencode-implementer"];
