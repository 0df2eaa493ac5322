//! The graders of learners' solutions: the sandbox, workers, and the server's own settings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::super::config::Config;
use super::super::window::own_program;
use super::super::{ConfigError, LearningConfig};
use ::tools::host::Host;
use courses::{Documents, Graders, Worker};
use handler::{Handler as _, Invocation, Work};
use model::{Principal, Problem, SkillId, VersionSelector};
use registry::Registry;
use sandbox::Sandbox;

/// The argument by which this program becomes the child that runs solutions.
pub(super) const SANDBOX: &str = "sandbox-child";

/// Returns the sandbox that runs solutions: this program, as a child of itself.
///
/// # Errors
/// The system does not say which file this program is.
pub fn sandbox(config: &LearningConfig) -> std::io::Result<Sandbox> {
    let sandbox = Sandbox::new(own_program()?, vec![OsString::from(SANDBOX)]);
    Ok(sandbox.require(config.require_confinement))
}

/// Returns the graders that need no server.
///
/// # Errors
/// As [`sandbox()`].
pub fn graders(config: &LearningConfig) -> std::io::Result<Graders> {
    let mut graders = Graders::new(sandbox(config)?);
    graders.documents = Some(Arc::new(Configs));
    Ok(graders)
}

/// Returns the same with the workers of a server, in the permits of its executor.
pub(super) fn of_server(
    config: &LearningConfig,
    host: &Host,
    registry: &Registry,
) -> std::io::Result<Graders> {
    let workers = Workers {
        host: host.clone(),
        registry: registry.clone(),
    };
    let mut graders = graders(config)?;
    graders.worker = Some(Arc::new(workers));
    graders.executor = registry.executor().clone();
    Ok(graders)
}

/// Reads configs of this server as the server does.
#[derive(Debug)]
struct Configs;

impl Documents for Configs {
    fn read(&self, text: &str) -> (Value, Vec<Problem>) {
        const FILE: &str = "config.yaml";
        let problems = match Config::parse(text, &PathBuf::from(FILE)) {
            Ok(_) => Vec::new(),
            Err(ConfigError::Wrong { mistakes, .. }) => {
                let problem = |it: config_file::Mistake| {
                    let message = format!("{} {}", it.key, it.message);
                    Problem::error("config-invalid", FILE, it.line, message.trim_start())
                };
                mistakes.into_iter().map(problem).collect()
            }
            Err(error) => vec![Problem::error("config-invalid", FILE, 0, error.to_string())],
        };
        // For what is no YAML there is the problem above, and no value.
        (serde_yaml::from_str(text).unwrap_or_default(), problems)
    }
}

/// Grades by workers that have connected, as they run the tools of their skills.
#[derive(Debug)]
struct Workers {
    host: Host,
    registry: Registry,
}

impl Worker for Workers {
    fn grade<'a>(
        &'a self,
        skill: &'a str,
        method: &'a str,
        request: Map<String, Value>,
        deadline: Duration,
    ) -> Work<'a, Result<Value, String>> {
        Box::pin(async move {
            let id: SkillId = skill.parse().map_err(|_| format!("'{skill}' is no id"))?;
            let described = self.registry.describe(&id, &VersionSelector::Active);
            let version = described.map_err(|error| error.to_string())?.version;
            if !self.host.serves(&id, method) {
                return Err(format!("no worker serves '{method}' of '{id}'"));
            }
            // A key of its own: a grading that is repeated must not get the first one's answer.
            let call = uuid::Uuid::new_v4().simple().to_string();
            let invocation = Invocation {
                idempotency_key: call.clone(),
                id: call,
                skill: id,
                version: version.number,
                digest: version.digest,
                tool: None,
                method: method.to_owned(),
                arguments: request,
                context: Map::new(),
                timeout: deadline,
                caller: Principal::system(),
                progress: None,
            };
            let output = self.host.call(invocation).await;
            let output = output.map_err(|error| error.to_string())?;
            match output.structured {
                Some(answer) => Ok(Value::Object(answer)),
                None => serde_json::from_str(&output.text)
                    .map_err(|error| format!("its answer is no JSON: {error}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use courses::Verdict;

    use super::*;

    /// Text by path below a folder.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = walkdir::WalkDir::new(folder).into_iter();
        let entries = entries.map(|entry| entry.expect("an entry"));
        let files = entries.filter(|entry| entry.file_type().is_file());
        let files = files.map(|entry| {
            let path = entry.path().strip_prefix(folder).expect("below it");
            let text = std::fs::read_to_string(entry.path()).expect("text");
            (path.to_str().expect("UTF-8").to_owned(), text)
        });
        files.collect()
    }

    /// Those of the other languages are graded in `courses`, which knows no config.
    #[tokio::test]
    async fn known_solutions_about_configs_get_their_verdicts() {
        let graders = graders(&LearningConfig::default()).expect("a program");
        let paths = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../skills/paths");
        let mut all = Vec::new();
        for folder in paths.read_dir().expect("paths") {
            let folder = folder.expect("a folder");
            let texts = files(&folder.path()).into_iter();
            let texts = texts.map(|(path, text)| (path, text.into())).collect();
            let name = folder.file_name().into_string().expect("UTF-8");
            let (path, problems) = courses::read(&name, &texts);
            let path = path.unwrap_or_else(|| panic!("{problems:?}"));
            for exercise in path.exercises.iter().filter(|it| it.is_about_configs()) {
                for known in testing::known_solutions(&exercise.id) {
                    all.push((Arc::clone(exercise), known));
                }
            }
        }
        assert!(all.len() >= 5, "{} solutions about configs", all.len());
        let rounds = std::env::var("REPERTOIRE_GRADING_ROUNDS");
        let rounds = rounds.ok().and_then(|rounds| rounds.parse().ok());
        for round in 0..rounds.unwrap_or(1) {
            // An order that nobody chose.
            all.sort_by_cached_key(|_| uuid::Uuid::new_v4());
            for (exercise, known) in &all {
                let solution = exercise.one_text(&known.files[""]);
                let said = graders.grade(exercise, &solution).await;
                let verdict = serde_json::from_value(known.verdict.as_str().into());
                let (id, name) = (&exercise.id, &known.name);
                let verdict: Verdict = verdict.expect("a verdict");
                assert_eq!(said.verdict, verdict, "{round}: {id}/{name}: {said:?}");
            }
        }
    }
}
