//! The Composition service.

use std::borrow::Cow;

use http::Extensions;
use tonic::{Request, Response};

use super::composed::{self, attributed, names, texts};
use super::installed::Installs;
use super::search::rounded;
use super::viewer::Viewer;
use super::{
    AGAINST_INSTALLED, RECOMMENDATIONS, WITH_CURRENT, checks, convert, given, installed, principal,
    trust,
};
use ::checks::Checks;
use composition::{Composition, Spawn, TaskQuery};
use contract::handlers::{self, Answer, View};
use contract::json::from_struct;
use contract::{NamedResource, v1};
use namespaces::VisibleSkills;
use preflight::Installer;
use tools::Tools;

/// The Composition service over the domain.
#[derive(Debug, Clone)]
pub struct CompositionService {
    composition: Composition,
    tools: Tools,
    installer: Installer,
    checks: Checks,
    viewer: Viewer,
}

impl CompositionService {
    /// Creates the service. `tools` has the sessions that `CheckTool` asks about.
    #[must_use]
    pub fn new(
        composition: Composition,
        tools: Tools,
        installer: Installer,
        checks: Checks,
    ) -> Self {
        Self {
            composition,
            tools,
            installer,
            checks,
            viewer: Viewer::default(),
        }
    }

    /// Sets what each caller sees.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }
}

impl View for CompositionService {
    async fn view<'a>(&'a self, call: &Extensions) -> Cow<'a, Self> {
        let Some(VisibleSkills { registry, search }) = self.viewer.sight(call).await.seen() else {
            return Cow::Borrowed(self);
        };
        let composition = self.composition.with_skills(registry.clone(), search);
        let tools = self
            .tools
            .with_skills(registry.clone(), composition.clone());
        let checks = self.checks.with_skills(registry.clone());
        let installer = self.installer.with_skills(registry);
        // `new` gives the view no viewer: what a caller sees is not narrowed a second time.
        Cow::Owned(Self::new(composition, tools, installer, checks))
    }

    fn permits(&self, named: &NamedResource<'_>, _: &[NamedResource<'_>]) -> bool {
        // Compared with the roots where the folder is opened, for every caller: only there a link
        // is seen.
        named.setting == "install.roots"
    }
}

impl handlers::Composition for CompositionService {
    async fn compose_skills(
        &self,
        request: Request<v1::ComposeSkillsRequest>,
    ) -> Answer<v1::ComposeSkillsResponse> {
        let v1::ComposeSkillsRequest {
            skills,
            tool_policy,
            resolve,
            lock,
        } = request.into_inner();
        let query = composed::query(skills, tool_policy, resolve, lock);
        let set = self.composition.valid_set(query).await?;
        Ok(Response::new(composed::composed(&set)))
    }

    async fn validate_skill_set(
        &self,
        request: Request<v1::ValidateSkillSetRequest>,
    ) -> Answer<v1::ValidateSkillSetResponse> {
        let v1::ValidateSkillSetRequest {
            skills,
            tool_policy,
            resolve,
            lock,
        } = request.into_inner();
        let query = composed::query(skills, tool_policy, resolve, lock);
        let set = self.composition.set(query).await?;
        let members = &set.composed.members;
        let valid = set.is_valid();
        Ok(Response::new(v1::ValidateSkillSetResponse {
            valid,
            errors: composed::errors(&set.findings),
            warnings: composed::warnings(&set.findings),
            findings: composed::findings(&set.findings),
            skills: names(members),
            // Skills that the solver added follow those that were asked for.
            added_skills: names(members.get(set.asked..).unwrap_or_default()),
            lock: valid.then(|| composed::lock(set.lock())),
        }))
    }

    async fn prepare_subagent(
        &self,
        request: Request<v1::PrepareSubagentRequest>,
    ) -> Answer<v1::PrepareSubagentResponse> {
        let v1::PrepareSubagentRequest {
            task,
            skills,
            label,
            model,
            thinking,
            params,
            tool_policy,
            resolve,
            lock,
            max_tokens,
            catalog,
        } = request.into_inner();
        let spawn = Spawn {
            task: task.clone(),
            catalog,
            set: composed::query(skills.clone(), tool_policy, resolve, lock),
            max_tokens: max_tokens.unsigned_abs(),
            params: params.clone().map(from_struct),
        };
        let subagent = self.composition.prepare_subagent(spawn).await?;
        let plan = v1::PrepareSubagentResponse {
            default_behavior: subagent.set.is_none(),
            tokens: convert::count(subagent.tokens()),
            max_tokens: subagent.max_tokens,
            system_prompt: subagent.system_prompt,
            lock: subagent.lock.map(composed::lock),
            spawn: Some(v1::SubagentSpawn {
                task,
                skills,
                label,
                model,
                thinking,
                params,
            }),
            ..Default::default()
        };
        // Without skills the subagent is not constrained, so the lists stay empty.
        let Some(set) = subagent.set else {
            return Ok(Response::new(plan));
        };
        let of = &*set.composed;
        Ok(Response::new(v1::PrepareSubagentResponse {
            skills: names(&of.members),
            allowed_tools: texts(of.allowed_tools()),
            forbidden_tools: texts(of.forbidden_tools()),
            execution_protocol: attributed(&of.execution_protocol),
            preconditions: attributed(&of.preconditions),
            postconditions: attributed(&of.postconditions),
            output_contracts: composed::contracts(of),
            tool_policy: composed::policy_of(of.policy),
            warnings: composed::warnings(&set.findings),
            findings: composed::findings(&set.findings),
            ..plan
        }))
    }

    async fn check_tool(
        &self,
        request: Request<v1::CheckToolRequest>,
    ) -> Answer<v1::CheckToolResponse> {
        let caller = principal(&request);
        let v1::CheckToolRequest {
            tool,
            arguments,
            skills,
            tool_policy,
            lock,
            session_id,
        } = request.into_inner();
        let arguments = arguments.map(from_struct).unwrap_or_default();
        let set = composed::query(skills, tool_policy, false, lock);
        let session = (session_id.as_str(), &caller);
        let verdict = self.tools.check(session, set, &tool, &arguments).await;
        let verdict = verdict?;
        let (skill, pattern) = verdict.by.unzip();
        Ok(Response::new(v1::CheckToolResponse {
            allowed: verdict.rule.allows(),
            reason: verdict.reason,
            rule: composed::rule(verdict.rule).into(),
            skill: skill.as_ref().map(composed::member),
            pattern: pattern
                .map(|pattern| pattern.to_string())
                .unwrap_or_default(),
        }))
    }

    async fn select_skills(
        &self,
        request: Request<v1::SelectSkillsRequest>,
    ) -> Answer<v1::SelectSkillsResponse> {
        let v1::SelectSkillsRequest {
            task,
            context,
            limit,
            phrasings,
        } = request.into_inner();
        let limit = usize::try_from(limit).unwrap_or_default();
        let wanted = TaskQuery {
            task,
            phrasings,
            context,
        };
        let selection = self.composition.select(wanted, limit).await;
        let selection = selection?;
        Ok(Response::new(v1::SelectSkillsResponse {
            text: selection.text(),
            skills: selection
                .skills
                .iter()
                .map(|s| s.name.to_string())
                .collect(),
            considered: convert::count(selection.considered),
            findings: composed::findings(&selection.findings),
            selections: selection
                .skills
                .into_iter()
                .map(|selected| v1::SelectedSkill {
                    skill: selected.name.to_string(),
                    skill_id: selected.id.to_string(),
                    score: rounded(selected.score),
                    reasons: selected.reasons,
                    required_by: selected.required_by,
                    security_scan_status: trust::scan_status(selected.verdict).into(),
                })
                .collect(),
        }))
    }

    async fn install_skill(
        &self,
        request: Request<v1::InstallSkillRequest>,
    ) -> Answer<v1::InstallSkillResponse> {
        installed::install(&self.installer, request).await
    }

    async fn uninstall_skill(
        &self,
        request: Request<v1::UninstallSkillRequest>,
    ) -> Answer<v1::UninstallSkillResponse> {
        installed::uninstall(&self.installer, request).await
    }

    async fn list_installed(
        &self,
        request: Request<v1::ListInstalledRequest>,
    ) -> Answer<v1::ListInstalledResponse> {
        installed::list(&self.installer, request.into_inner()).await
    }

    async fn get_priorities(
        &self,
        request: Request<v1::GetPrioritiesRequest>,
    ) -> Answer<v1::GetPrioritiesResponse> {
        installed::priorities(&self.installer, request.into_inner()).await
    }

    async fn set_priority(
        &self,
        request: Request<v1::SetPriorityRequest>,
    ) -> Answer<v1::SetPriorityResponse> {
        installed::set_priority(&self.installer, request).await
    }

    async fn check_conflicts(
        &self,
        request: Request<v1::CheckConflictsRequest>,
    ) -> Answer<v1::CheckConflictsResponse> {
        let installs = Installs::of(Some(&self.installer), request.extensions()).await;
        let v1::CheckConflictsRequest {
            skill_id,
            against_installed,
            against_skills,
        } = request.into_inner();
        let against_installed = against_installed.unwrap_or(AGAINST_INSTALLED);
        let report = self
            .checks
            .conflicts(skill_id, against_skills, against_installed)
            .await?;
        let report = checks::conflicts(self.checks.registry(), report, &installs);
        Ok(Response::new(report))
    }

    async fn audit_activation(
        &self,
        request: Request<v1::AuditActivationRequest>,
    ) -> Answer<v1::AuditActivationResponse> {
        let v1::AuditActivationRequest {
            skill_id,
            generate_hooks,
            include_recommendations,
        } = request.into_inner();
        let skill = given(skill_id);
        let recommend = include_recommendations.unwrap_or(RECOMMENDATIONS);
        let activation = self.checks.audit(skill, generate_hooks, recommend).await;
        Ok(Response::new(checks::activation(activation?)))
    }

    async fn estimate_budget(
        &self,
        request: Request<v1::EstimateBudgetRequest>,
    ) -> Answer<v1::EstimateBudgetResponse> {
        let v1::EstimateBudgetRequest {
            skill_ids,
            include_current,
        } = request.into_inner();
        let include_current = include_current.unwrap_or(WITH_CURRENT);
        let estimate = self.checks.estimate(skill_ids, include_current).await;
        Ok(Response::new(checks::estimate(estimate?)))
    }
}
