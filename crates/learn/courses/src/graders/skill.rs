//! Skills, judged by the server's own reader, rules and composition.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use composition::{Call, Member, SkillSet, ToolPolicy, alone};
use executor::Stop;
use jiff::Timestamp;
use model::{
    Digest, FilePath, Principal, Problem, Skill, SkillId, Version, VersionNumber, bundle_digest,
    stated_version,
};
use serde_json::{Value, json};
use skill_md::ReadOptions;

use super::question::{Answer, broken, judge};
use super::ranking;
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Ask, Case, Fixtures, Question};
use crate::{Solution, limits};

/// The namespace of the skills of an exercise.
// Any would do: nothing is published, but the composition compares ids.
const NAMESPACE: &str = "local/global";

type SkillFiles = BTreeMap<FilePath, Bytes>;

/// A skill that could be read.
struct SkillRead {
    skill: Skill,
    slug: String,
    files: SkillFiles,
    /// Instructions, as the server hands them out.
    body: String,
}

/// Grades a skill by its cases.
pub(super) fn grade(
    fixtures: &Fixtures,
    cases: &[Case<Question>],
    solution: &Solution,
    stop: &Stop,
) -> Result<Vec<CaseOutcome>, Stuck> {
    let files = match files(solution) {
        Ok(files) => files,
        Err(reason) => {
            let plain = "A file of the solution has a name that is not taken";
            let wrong = WrongCase::error(reason, plain);
            return Ok(vec![CaseOutcome::Wrong(wrong); cases.len()]);
        }
    };
    let mut others = BTreeMap::new();
    for (name, files) in fixtures {
        let read = read(files.clone(), Some(name))?.0.ok_or_else(|| {
            Stuck(format!(
                "The fixture `{name}` is no skill; the exercise's author must fix it"
            ))
        })?;
        others.insert(name.as_str(), read);
    }
    let (skill, problems) = read(files, None)?;
    if let Some(reason) = skill.as_ref().and_then(too_many_tools) {
        let wrong = WrongCase::error(reason, "It names more tools than are looked at");
        return Ok(vec![CaseOutcome::Wrong(wrong); cases.len()]);
    }
    let found = cases.iter().map(|case| {
        if stop.is_set() {
            return Err(nobody_waits());
        }
        let ask = &case.check.ask;
        match (&skill, ask) {
            (_, Ask::Problems(min)) => {
                let found = judge(&case.check, &Some(broken(&problems, *min)));
                // An exercise may ask for a skill that cannot be read.
                let is_unread = skill.is_none() && found != CaseOutcome::Right;
                Ok(if is_unread {
                    CaseOutcome::Wrong(unread(&problems))
                } else {
                    found
                })
            }
            (None, _) => Ok(CaseOutcome::Wrong(unread(&problems))),
            (Some(skill), ask) => Ok(judge(&case.check, &answer(skill, ask, &others, stop)?)),
        }
    });
    found.collect()
}

/// The files of a solution; a single text is a `SKILL.md`, whatever it is called.
fn files(solution: &Solution) -> Result<SkillFiles, String> {
    if let Some(text) = solution.text() {
        let text = Bytes::from(text.to_owned());
        return Ok(SkillFiles::from([(FilePath::skill_md(), text)]));
    }
    let files = solution.files.iter().map(|(path, text)| {
        let path = path
            .parse::<FilePath>()
            .map_err(|error| error.to_string())?;
        Ok((path, Bytes::from(text.clone())))
    });
    files.collect()
}

/// Reads a skill.
fn read(
    files: SkillFiles,
    folder: Option<&str>,
) -> Result<(Option<SkillRead>, Vec<Problem>), Stuck> {
    let options = ReadOptions {
        strict: false,
        folder,
        ..ReadOptions::default()
    };
    let reading = skill_md::read(&files, &options);
    let Some(skill) = reading.skill else {
        return Ok((None, reading.problems));
    };
    // A skill without its own entry has no text to judge, and this costs the learner nothing.
    let entry = files.get(&skill.entry);
    let entry = entry.ok_or_else(|| Stuck(format!("The skill has no `{}`", skill.entry)))?;
    let body = skill_md::body(&String::from_utf8_lossy(entry)).to_owned();
    let read = SkillRead {
        body,
        slug: reading.slug.unwrap_or_else(|| "skill".to_owned()),
        skill,
        files,
    };
    Ok((Some(read), reading.problems))
}

/// The refusal of a skill with more, or longer, tools than are compared.
fn too_many_tools(read: &SkillRead) -> Option<String> {
    let Skill {
        allowed_tools,
        forbidden_tools,
        tool_configs,
        ..
    } = &read.skill;
    let patterns = || allowed_tools.iter().chain(forbidden_tools);
    let count = patterns().count() + tool_configs.len();
    if count > limits::MAX_TOOLS {
        let most = limits::MAX_TOOLS;
        return Some(format!(
            "It names {count} tools; at most {most} are looked at"
        ));
    }
    let longest = patterns().map(|pattern| pattern.chars().count()).max();
    let longest = longest.filter(|length| *length > limits::MAX_TOOL_CHARS)?;
    let most = limits::MAX_TOOL_CHARS;
    Some(format!(
        "One of its tools has {longest} characters; at most {most} are looked at"
    ))
}

fn nobody_waits() -> Stuck {
    Stuck("There was no time left for it".to_owned())
}

/// Why there is no skill to ask about.
fn unread(problems: &[Problem]) -> WrongCase {
    let errors = problems
        .iter()
        .filter(|p| p.severity == model::Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    let error = format!("It cannot be read as a skill: {}", errors.join("; "));
    WrongCase::error(error, "It cannot be read as a skill")
}

fn answer(
    skill: &SkillRead,
    ask: &Ask,
    others: &BTreeMap<&str, SkillRead>,
    stop: &Stop,
) -> Result<Answer, Stuck> {
    Ok(match ask {
        Ask::Pointer(pointer) => json_of(skill)?.pointer(pointer).cloned(),
        // Answered by `grade`, since it needs no skill.
        Ask::Problems(_) => None,
        Ask::Lines => Some(json!(skill.body.trim().lines().count())),
        Ask::FoundFor(question) => {
            let others: Vec<_> = others
                .values()
                .map(|o| (&o.skill, o.body.as_str()))
                .collect();
            let own = (&skill.skill, skill.body.as_str());
            Some(json!(ranking::place(question, own, &others)))
        }
        Ask::Compose { fixtures, policy } => {
            let set = compose(skill, fixtures, *policy, others, stop)?;
            Some(composed(&set))
        }
        Ask::CheckTool {
            tool,
            arguments,
            fixtures,
            policy,
        } => {
            let set = compose(skill, fixtures, *policy, others, stop)?;
            let call = Call::new(tool, arguments);
            let allows = set.composed.check(&call).rule.allows();
            Some(json!(if allows { "allowed" } else { "denied" }))
        }
    })
}

/// A skill as JSON, with the values that the server would hand out with it.
fn json_of(read: &SkillRead) -> Result<Value, Stuck> {
    let mut value = serde_json::to_value(&read.skill)
        .map_err(|error| Stuck(format!("The skill cannot be written as JSON: {error}")))?;
    if let Some(map) = value.as_object_mut() {
        let files: Vec<&str> = read.files.keys().map(FilePath::as_str).collect();
        if let Some(metadata) = read.skill.front_matter.get("metadata") {
            map.insert("metadata".to_owned(), metadata.clone());
        }
        map.insert("slug".to_owned(), json!(read.slug));
        map.insert("instructions".to_owned(), json!(read.body.trim()));
        map.insert("outline".to_owned(), json!(headings(&read.body)));
        map.insert("files".to_owned(), json!(files));
    }
    Ok(value)
}

/// Headings of a text, outside of blocks of code.
fn headings(body: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut headings = Vec::new();
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        if !in_code && (1..=6).contains(&level) && text.starts_with(' ') {
            headings.push(text.trim().trim_end_matches('#').trim_end());
        }
    }
    headings
}

fn member(read: &SkillRead) -> Result<Member, Stuck> {
    let id = format!("{NAMESPACE}/{}", read.slug).parse::<SkillId>();
    let id = id.map_err(|error| Stuck(format!("The skill cannot be composed: {error}")))?;
    let stated = read.skill.version.as_deref().unwrap_or_default();
    let semantic = stated_version(stated).ok().flatten();
    let files = read.files.iter();
    let digests = files.map(|(path, content)| (path, Digest::of(content)));
    Ok(Member {
        name: id.slug().into(),
        id,
        version: Arc::new(Version {
            // Fixed values where a published version has its own: the same solution must always
            // get the same.
            number: VersionNumber::FIRST,
            semantic: semantic.unwrap_or(semver::Version::new(1, 0, 0)),
            digest: bundle_digest(digests),
            skill: read.skill.clone(),
            files: Vec::new(),
            problems: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Principal::system(),
            change_summary: String::new(),
        }),
    })
}

fn compose(
    skill: &SkillRead,
    fixtures: &[String],
    policy: ToolPolicy,
    others: &BTreeMap<&str, SkillRead>,
    stop: &Stop,
) -> Result<SkillSet, Stuck> {
    let mut members = vec![member(skill)?];
    for name in fixtures {
        members.extend(others.get(name.as_str()).map(member).transpose()?);
    }
    alone(&members, policy, stop).map_err(|error| match error {
        composition::Error::Work(_) => nobody_waits(),
        error => Stuck(format!("The skills cannot be composed: {error}")),
    })
}

fn composed(set: &SkillSet) -> Value {
    let codes = |errors: bool| -> std::collections::BTreeSet<&str> {
        let findings = set.findings.iter().filter(|f| f.is_error() == errors);
        findings.map(|finding| finding.code.name()).collect()
    };
    let composed = &set.composed;
    let texts = |all: &[composition::Attributed]| -> Vec<String> {
        all.iter().map(|one| one.text.to_string()).collect()
    };
    json!({
        "valid": set.is_valid(),
        "errors": codes(true),
        "warnings": codes(false),
        "allowed_tools": composed.allowed_tools().collect::<Vec<_>>(),
        "forbidden_tools": composed.forbidden_tools().collect::<Vec<_>>(),
        "execution_protocol": texts(&composed.execution_protocol),
        "preconditions": texts(&composed.preconditions),
        "postconditions": texts(&composed.postconditions),
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::grading::{CaseInfo, Matcher};

    fn graded(front: &str, stop: &Stop) -> Result<Vec<CaseOutcome>, Stuck> {
        let text = format!("---\nname: a\ndescription: Helps\n{front}\n---\nText\n");
        let files = BTreeMap::from([("SKILL.md".to_owned(), text)]);
        let ask = Ask::Compose {
            fixtures: Vec::new(),
            policy: ToolPolicy::Union,
        };
        let case = Case {
            info: CaseInfo {
                description: String::new(),
                hidden: false,
                weight: 1.0,
                look_at: None,
                input: None,
                expected: None,
                line: 1,
            },
            check: Question {
                ask,
                at: "/valid".to_owned(),
                matcher: Matcher::Expected(json!(true)),
            },
        };
        grade(&Fixtures::new(), &[case], &Solution { files }, stop)
    }

    fn tools(count: usize, length: usize) -> String {
        let tool = |number| format!("Bash({number}{:a<1$})", "", length - 6 - digits(number));
        let tools: Vec<String> = (0..count).map(tool).collect();
        format!("allowed-tools: {}", tools.join(" "))
    }

    fn digits(number: usize) -> usize {
        number.to_string().len()
    }

    #[test]
    fn tools_are_looked_at_up_to_a_number_and_a_length() {
        let of = |count, length| graded(&tools(count, length), &Stop::never());
        assert_eq!(
            of(limits::MAX_TOOLS, limits::MAX_TOOL_CHARS),
            Ok(vec![CaseOutcome::Right])
        );
        for (count, length, said) in [
            (
                limits::MAX_TOOLS + 1,
                20,
                "It names 101 tools; at most 100 are looked at",
            ),
            (
                1,
                limits::MAX_TOOL_CHARS + 1,
                "One of its tools has 201 characters; at most 200 are looked at",
            ),
        ] {
            let plain = "It names more tools than are looked at";
            let told = WrongCase::error(said, plain);
            assert_eq!(of(count, length), Ok(vec![CaseOutcome::Wrong(told)]));
        }
    }

    #[test]
    fn nothing_is_asked_of_a_skill_that_nobody_waits_for() {
        let now = Stop::at(Instant::now());
        assert_eq!(graded("license: MIT", &now), Err(nobody_waits()));
    }
}
