//! The command that checks this machine for a server.

use serde_json::json;
use std::path::Path;

use super::args::Global;
use super::connect::settings;
use super::output::{Exit, Failed, List, Output, exit};
use super::{grading, status};
use contract::v1::GetStatusRequest;
use contract::v1::admin_client::AdminClient;
use model::{Clock as _, SystemClock};
use server::{self, Config, connect_local};

/// The result of one check.
pub(super) struct Finding {
    /// Stable name.
    pub(super) check: &'static str,
    pub(super) status: CheckStatus,
    /// The state that was found.
    pub(super) found: String,
    /// What to do about it.
    pub(super) next: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckStatus {
    Ok,
    Warning,
    Failed,
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

const FINDINGS: List<Finding> = List::wrapped(&[
    ("check", |it| it.check.to_owned()),
    ("state", |it| it.status.word().to_owned()),
    ("found", |it| it.found.clone()),
]);

/// Checks the machine. Exits with 1 where something that the settings demand does not hold.
pub(super) async fn doctor(global: &Global, config: &Config, output: &Output) -> Exit {
    let mut findings = vec![features()];
    findings.extend(grading::confinement(config).await?);
    findings.extend(certificate(config).await?);
    findings.extend(secrets(config));
    // With --server the directory of this machine is not the one that is meant.
    if global.server.is_none() {
        findings.push(directory(&settings(global, config).data).await);
    }
    let checks = findings.iter().map(|it| {
        json!({"check": it.check, "state": it.status.word(), "found": it.found, "next": it.next})
    });
    output.value(&json!({"checks": checks.collect::<Vec<_>>()}))?;
    output.list(&FINDINGS, &findings)?;
    for it in findings.iter().filter(|it| it.status != CheckStatus::Ok) {
        output.hint(&format!("{}: {}", it.check, it.next));
    }
    let failed = findings.iter().any(|it| it.status == CheckStatus::Failed);
    Ok(exit(!failed, 1))
}

/// Lists the features of this program.
fn features() -> Finding {
    Finding {
        check: "features",
        status: CheckStatus::Ok,
        found: format!(
            "{}; left out: {}",
            server::features(true),
            server::features(false)
        ),
        next: "",
    }
}

/// Checks when the certificate of the server expires.
async fn certificate(config: &Config) -> Result<Option<Finding>, Failed> {
    let tls = config.tls.clone();
    let report = tokio::task::spawn_blocking(move || tls.report(SystemClock.now()));
    let (status, found) = match report.await.map_err(Failed::fault)? {
        Ok(None) => return Ok(None),
        Ok(Some(it)) if it.is_urgent => (CheckStatus::Warning, it.found),
        Ok(Some(it)) => (CheckStatus::Ok, it.found),
        Err(mistake) => (CheckStatus::Failed, mistake.to_string()),
    };
    Ok(Some(Finding {
        check: "tls.certificate",
        status,
        found,
        next: "fix what is reported, or replace the files by a valid certificate and its key: the server loads them on its own",
    }))
}

/// Reports secrets of the config file that others on this machine may read.
fn secrets(config: &Config) -> Option<Finding> {
    Some(Finding {
        check: "config.secrets",
        status: CheckStatus::Warning,
        found: tokio::task::block_in_place(|| config.places.exposed_secrets())?,
        next: "change the mode of the config file; who read a secret in it has it, so replace that too",
    })
}

/// Finds the process that has the data directory open.
async fn directory(data: &Path) -> Finding {
    let finding = |status, found| Finding {
        check: "data.server",
        status,
        found,
        next: "a command waits for it, then says DATA_IN_USE; end that process if it hangs",
    };
    let at = data.display();
    if let Some(channel) = connect_local(data).await {
        let mut admin = AdminClient::new(channel);
        return match admin.get_status(GetStatusRequest {}).await {
            Ok(status) => {
                let status = status.into_inner();
                let (process, version) = (status.process_id, &status.version);
                let place = status::place(&status);
                let found = format!("process {process} (version {version}) serves {at} {place}");
                finding(CheckStatus::Ok, found)
            }
            Err(error) => {
                let found = format!("a server has {at} open: {}", error.message());
                finding(CheckStatus::Warning, found)
            }
        };
    }
    match store::holder(data).map(status::by) {
        Ok(None) => finding(CheckStatus::Ok, format!("no process has {at} open")),
        Ok(Some(by)) => {
            let found = format!("{by} has {at} open, and does not serve");
            finding(CheckStatus::Warning, found)
        }
        Err(error) => {
            let found = format!("{at} cannot be looked at: {error}");
            finding(CheckStatus::Warning, found)
        }
    }
}
