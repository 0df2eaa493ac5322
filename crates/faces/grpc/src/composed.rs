//! Compositions as messages of the contract.

use super::enums::same_variants;
use composition::{
    Attributed, Composed, Finding, Lock, LockEntry, Member, Promised, SetQuery, SkillSet,
    Statement, ToolPolicy, ToolProof, ToolRule,
};
use contract::json::to_struct;
use contract::v1;

same_variants!(fn wire_policy / known_policy(ToolPolicy) -> ToolPolicy { Union, Intersection });

same_variants!(pub(super) fn rule(ToolRule) -> ToolRule {
    Granted, GrantedExcept, Forbidden, NotGrantedByAll, NotGranted, Undecided
});

/// The policy of a request; none where the lock decides.
pub(super) fn policy(policy: i32) -> Option<ToolPolicy> {
    known_policy(v1::ToolPolicy::try_from(policy).unwrap_or_default())
}

pub(super) fn policy_of(policy: ToolPolicy) -> i32 {
    wire_policy(policy).into()
}

/// Builds the query for a set of skills.
pub(super) fn query(
    skills: Vec<String>,
    tool_policy: i32,
    resolve: bool,
    lock: Option<v1::Lock>,
) -> SetQuery {
    SetQuery {
        skills,
        policy: policy(tool_policy),
        resolve,
        lock: lock.map(locked),
    }
}

fn locked(lock: v1::Lock) -> Lock {
    let v1::Lock {
        tool_policy,
        entries,
        digest,
    } = lock;
    let entry = |entry: v1::LockEntry| {
        let v1::LockEntry {
            skill_id,
            version_number,
            semantic_version,
            digest,
            position,
        } = entry;
        LockEntry {
            skill_id,
            number: version_number,
            semantic: semantic_version,
            digest,
            position,
        }
    };
    // The digest is not recomputed here: the domain compares it, so an edited lock is refused.
    Lock {
        policy: policy(tool_policy).unwrap_or_default(),
        entries: entries.into_iter().map(entry).collect(),
        digest,
    }
}

pub(super) fn lock(lock: Lock) -> v1::Lock {
    let entry = |entry: LockEntry| v1::LockEntry {
        skill_id: entry.skill_id,
        version_number: entry.number,
        semantic_version: entry.semantic,
        digest: entry.digest,
        position: entry.position,
    };
    v1::Lock {
        tool_policy: policy_of(lock.policy),
        entries: lock.entries.into_iter().map(entry).collect(),
        digest: lock.digest,
    }
}

pub(super) fn finding(finding: &Finding) -> v1::Finding {
    v1::Finding {
        code: finding.code.name().to_owned(),
        severity: v1::Severity::from(finding.code.severity()).into(),
        message: finding.message.clone(),
        skills: finding.skills.iter().map(ToString::to_string).collect(),
        chain: finding.chain.clone(),
    }
}

pub(super) fn findings(findings: &[Finding]) -> Vec<v1::Finding> {
    findings.iter().map(finding).collect()
}

pub(super) fn warnings(findings: &[Finding]) -> Vec<String> {
    let warnings = findings.iter().filter(|finding| !finding.is_error());
    warnings.map(Finding::line).collect()
}

pub(super) fn errors(findings: &[Finding]) -> Vec<v1::ValidationError> {
    let errors = findings.iter().filter(|finding| finding.is_error());
    errors
        .map(|error| v1::ValidationError {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
            skill: error
                .skills
                .first()
                .cloned()
                .unwrap_or_default()
                .to_string(),
        })
        .collect()
}

pub(super) fn member(member: &Member) -> v1::SkillVersionRef {
    v1::SkillVersionRef {
        skill: member.name.to_string(),
        skill_id: member.id.to_string(),
        version_number: member.version.number.get(),
        semantic_version: member.version.semantic.to_string(),
        digest: member.version.digest.to_string(),
    }
}

pub(super) fn names(members: &[Member]) -> Vec<String> {
    members
        .iter()
        .map(|member| member.name.to_string())
        .collect()
}

pub(super) fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    texts.map(str::to_owned).collect()
}

pub(super) fn attributed(all: &[Attributed]) -> Vec<String> {
    texts(all.iter().map(|attributed| &*attributed.text))
}

fn origins(composed: &Composed, all: &[Attributed]) -> Vec<v1::Origin> {
    let origin = |attributed: &Attributed| v1::Origin {
        text: attributed.text.to_string(),
        skills: members(composed, attributed.members.iter().copied())
            .map(member)
            .collect(),
    };
    all.iter().map(origin).collect()
}

fn members(
    composed: &Composed,
    indexes: impl Iterator<Item = usize>,
) -> impl Iterator<Item = &Member> {
    indexes.filter_map(|at| composed.members.get(at))
}

fn statement(composed: &Composed, statement: &Statement) -> v1::ToolStatement {
    v1::ToolStatement {
        skill: composed.members.get(statement.member).map(member),
        pattern: statement.pattern.to_string(),
    }
}

fn tool(composed: &Composed, proof: &ToolProof) -> v1::ToolProof {
    let statements = |all: &[Statement]| all.iter().map(|s| statement(composed, s)).collect();
    let verdict = if proof.rule.allows() {
        v1::ToolVerdict::Allowed
    } else {
        v1::ToolVerdict::Denied
    };
    v1::ToolProof {
        tool: proof.tool.to_string(),
        verdict: verdict.into(),
        rule: rule(proof.rule).into(),
        grants: statements(&proof.grants),
        denials: statements(&proof.denials),
        exceptions: statements(&proof.exceptions),
    }
}

pub(super) fn contracts(composed: &Composed) -> Vec<v1::ComposedContract> {
    let contract = |promised: &Promised| v1::ComposedContract {
        output_contract: Some(v1::OutputContract {
            r#type: promised.kind.clone(),
            schema: promised.schema.clone().map(to_struct),
        }),
        skills: members(composed, promised.members.iter().copied())
            .map(|member| member.name.to_string())
            .collect(),
    };
    composed.output_contracts.iter().map(contract).collect()
}

/// Converts a composition with its proof and its lock.
pub(super) fn composed(set: &SkillSet) -> v1::ComposeSkillsResponse {
    let composed = &*set.composed;
    v1::ComposeSkillsResponse {
        skills: names(&composed.members),
        allowed_tools: texts(composed.allowed_tools()),
        forbidden_tools: texts(composed.forbidden_tools()),
        execution_protocol: attributed(&composed.execution_protocol),
        preconditions: attributed(&composed.preconditions),
        postconditions: attributed(&composed.postconditions),
        output_contracts: contracts(composed),
        tool_policy: policy_of(composed.policy),
        proof: Some(v1::CompositionProof {
            tools: composed
                .tools()
                .map(|proof| tool(composed, proof))
                .collect(),
            execution_protocol: origins(composed, &composed.execution_protocol),
            preconditions: origins(composed, &composed.preconditions),
            postconditions: origins(composed, &composed.postconditions),
        }),
        lock: Some(lock(set.lock())),
        warnings: warnings(&set.findings),
        findings: findings(&set.findings),
    }
}
