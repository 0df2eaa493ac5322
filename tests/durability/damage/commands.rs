//! What the commands make of a damaged directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::v1;
use model::{SystemClock, VersionNumber};
use registry::Registry;
use store::{Options, Store};
use tonic::Code;

use super::LIMIT;
use crate::harness::client::{Client, Everything, read_skill};
use crate::harness::model::{Files, Kept, State};
use crate::harness::{Ran, Server, repertoire, run};

/// What the commands made of a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// `verify` found the directory whole.
    pub(super) verified: bool,
    /// All that was read is all there was.
    pub(super) complete: bool,
    /// The server came up.
    pub(super) served: bool,
    /// Versions that `salvage` saved, and whether that is all there was.
    pub(super) saved: Option<(u64, bool)>,
    pub(super) said: String,
    pub(super) wrong: Vec<String>,
}

impl Outcome {
    pub(super) fn sort(&self) -> &'static str {
        match (self.verified, self.complete, self.served) {
            (true, true, _) => "whole",
            (true, false, _) => "LOST IN SILENCE",
            (false, _, false) => "refused",
            (false, true, true) => "reported, all read",
            (false, false, true) => "reported, some lost",
        }
    }
}

fn clear(ran: &Ran, what: &str, outcome: &mut Outcome) {
    if ran.status.is_none() {
        outcome.wrong.push(format!("{what} hangs"));
    }
    if ran.stderr.contains("panicked") || ran.stdout.contains("panicked") {
        outcome.wrong.push(format!("{what} panics: {}", ran.stderr));
    }
    let refused =
        ran.code() == Some(1) && (!ran.stderr.trim().is_empty() || !ran.stdout.trim().is_empty());
    if ran.code() != Some(0) && !refused {
        outcome.wrong.push(format!(
            "{what} ends with {:?} and says nothing",
            ran.status
        ));
    }
}

pub(super) fn verify(data: &Path, everything: &Everything, outcome: &mut Outcome) {
    let ran = run(repertoire(&["verify", "--json"], data), LIMIT);
    clear(&ran, "verify", outcome);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    outcome.verified = ran.code() == Some(0) && found["whole"] == true;
    let there: Vec<&State> = everything.skills.values().flatten().collect();
    let versions: usize = there.iter().map(|state| state.versions.len()).sum();
    if outcome.verified && (found["skills"] != there.len() || found["versions"] != versions) {
        outcome.complete = false;
        outcome.said = format!("verify is content with {}", ran.stdout);
    }
    if !outcome.verified {
        outcome.said = if ran.stderr.is_empty() {
            found["damage"].to_string()
        } else {
            ran.stderr
        };
    }
}

pub(super) fn list(data: &Path, everything: &Everything, outcome: &mut Outcome) {
    let ran = run(repertoire(&["list", "--json"], data), LIMIT);
    clear(&ran, "list", outcome);
    if ran.code() != Some(0) {
        return;
    }
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let ids = found["skills"]
        .as_array()
        .map(|skills| skills.iter().filter_map(|skill| skill["id"].as_str()));
    let ids: Vec<&str> = ids.into_iter().flatten().collect();
    let active = |state: &Option<State>| state.as_ref().is_some_and(|state| state.active != 0);
    let expected: Vec<&str> = everything
        .skills
        .iter()
        .filter(|(_, state)| active(state))
        .map(|(id, _)| id.as_str())
        .collect();
    if ids != expected {
        outcome.complete = false;
    }
}

/// Reads every byte of every skill of a directory, without a server.
fn saved_skills(data: &Path) -> Result<BTreeMap<String, State>, String> {
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(data, &options).map_err(|error| error.to_string())?;
    let registry =
        Registry::open(store, Arc::new(SystemClock)).map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    for head in registry.catalog().by_location() {
        let mut state = State {
            active: head.active.map_or(0, VersionNumber::get),
            ..State::default()
        };
        let mut token = String::new();
        loop {
            let page = registry.list_versions(&head.id, 100, &token);
            let page = page.map_err(|error| format!("{}: {error}", head.id))?;
            for described in &page.versions {
                let version = &described.version;
                let mut files = Files::new();
                for file in &version.files {
                    let content = registry.content(file);
                    let content =
                        content.map_err(|error| format!("{} {}: {error}", head.id, file.path))?;
                    files.insert(file.path.to_string(), content);
                }
                let kept = Kept {
                    semantic: version.semantic.to_string(),
                    digest: version.digest.to_string(),
                    summary: version.change_summary.clone(),
                    yanked: described.yank.as_ref().map(|yank| yank.reason.clone()),
                    files: Arc::new(files),
                };
                state.versions.insert(version.number.get(), kept);
            }
            match page.next {
                Some(next) => token = next,
                None => break,
            }
        }
        found.insert(head.id.to_string(), state);
    }
    Ok(found)
}

/// Compares a skill as it was read with what it was.
fn compare(id: &str, was: Option<&State>, found: Option<&State>, outcome: &mut Outcome) {
    if found == was {
        return;
    }
    outcome.complete = false;
    // What is shown must be what it was, even where something lacks.
    let known = was.into_iter().flat_map(|state| &state.versions);
    let known: BTreeMap<_, _> = known.map(|(number, kept)| (number, &kept.files)).collect();
    for (number, kept) in found.iter().flat_map(|state| &state.versions) {
        if known.get(number).is_some_and(|files| **files != kept.files) {
            outcome
                .wrong
                .push(format!("version {number} of '{id}' has other bytes"));
        }
    }
}

/// Saves what is whole of a directory that is refused, and reads every byte of it.
pub(super) async fn salvage(
    data: &Path,
    everything: &Everything,
    serves: bool,
    outcome: &mut Outcome,
) {
    let saved = data.with_file_name("saved");
    let ran = run(
        repertoire(
            &["salvage", saved.to_str().expect("a name"), "--json"],
            data,
        ),
        LIMIT,
    );
    clear(&ran, "salvage", outcome);
    if ran.code() != Some(0) {
        outcome
            .wrong
            .push(format!("nothing is saved: {}", ran.stderr));
        return;
    }
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let mut after = Outcome {
        complete: true,
        ..Outcome::default()
    };
    let ran = run(repertoire(&["verify", "--json"], &saved), LIMIT);
    if ran.code() != Some(0) {
        after.wrong.push(format!(
            "what is saved is not whole: {} {}",
            ran.stdout, ran.stderr
        ));
    }
    match saved_skills(&saved) {
        Ok(mut found) => {
            for (id, state) in &everything.skills {
                compare(id, state.as_ref(), found.remove(id).as_ref(), &mut after);
            }
        }
        Err(error) => after
            .wrong
            .push(format!("what is saved cannot be read: {error}")),
    }
    if serves {
        serve(&saved, everything, false, &mut after).await;
        assert!(after.served || !after.wrong.is_empty(), "it says why not");
    }
    let lost = said["lost"].as_array().is_none_or(|lost| !lost.is_empty());
    if !after.complete && said["whole"] == true && !lost {
        after
            .wrong
            .push(format!("salvage loses in silence: {}", after.said));
    }
    outcome.wrong.append(&mut after.wrong);
    outcome.saved = Some((said["versions"].as_u64().unwrap_or(0), after.complete));
}

/// Searches until a skill is found that is there; it has a name of its own.
async fn found(client: &Client, everything: &Everything) -> Result<(), String> {
    let is_found = |(id, state): &(&String, &Option<State>)| {
        id.starts_with("local/") && state.as_ref().is_some_and(|state| state.active != 0)
    };
    let (id, _) = everything.skills.iter().find(is_found).expect("a skill");
    let request = || v1::SearchRequest {
        query: id.rsplit('/').next().unwrap_or_default().to_owned(),
        ..Default::default()
    };
    let until = Instant::now() + LIMIT;
    loop {
        let answer = client.lookup.clone().search(request()).await;
        let said = match answer {
            Ok(answer) => {
                let results = answer.into_inner().results;
                if results.iter().any(|skill| skill.id == *id) {
                    return Ok(());
                }
                format!("'{id}' is not among {} results", results.len())
            }
            Err(status) if status.code() == Code::Unavailable => status.message().to_owned(),
            Err(status) => return Err(format!("{:?} {}", status.code(), status.message())),
        };
        if Instant::now() > until {
            return Err(said);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Serves the directory and reads every byte of it.
pub(super) async fn serve(
    data: &Path,
    everything: &Everything,
    searches: bool,
    outcome: &mut Outcome,
) {
    let mut server = Server::spawn(data);
    let Some(url) = server.listens(LIMIT) else {
        let (status, stderr) = server.ended(Duration::from_millis(500));
        let ran = Ran {
            status,
            stdout: String::new(),
            stderr,
        };
        return clear(&ran, "serve", outcome);
    };
    outcome.served = true;
    let client = Client::connect(&url).await.expect("a client");
    for (id, state) in &everything.skills {
        match read_skill(&client, id).await {
            Ok(found) => compare(id, state.as_ref(), found.as_ref(), outcome),
            Err(error) => {
                outcome.complete = false;
                outcome.said = error;
            }
        }
    }
    if searches && let Err(error) = found(&client, everything).await {
        outcome.wrong.push(format!("the search: {error}"));
    }
    let stderr = server.kill();
    if stderr.contains("panicked") {
        outcome.wrong.push(format!("the server panics: {stderr}"));
    }
}
