//! `repertoire status`.

use std::process::ExitCode;

use serde_json::json;

use super::output::{self, Exit, GOOD, Output};
use contract::v1::admin_client::AdminClient;
use contract::v1::{GetStatusRequest, GetStatusResponse};
use server::{Settings, connect_local};
use store::Holder;

pub(super) async fn status(settings: Settings, output: &Output) -> Exit {
    let data = settings.data;
    let Some(channel) = connect_local(&data).await else {
        let holder = store::holder(&data).unwrap_or(Holder::None);
        let at = data.display().to_string();
        output.value(&match holder {
            Holder::None => json!({"running": false, "data_directory": at}),
            Holder::Process(process) => {
                json!({"running": false, "data_directory": at, "in_use_by_process": process})
            }
        })?;
        let by = by(holder).map(|by| format!(", but {by} does"));
        output.line(&format!(
            "no server has {} open{}",
            data.display(),
            by.unwrap_or_default()
        ))?;
        return Ok(ExitCode::FAILURE);
    };
    let mut admin = AdminClient::new(channel);
    let status = admin.get_status(GetStatusRequest {}).await?.into_inner();
    if output.is_json() {
        let mut value = output::json_of(&status)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("running".to_owned(), true.into());
        }
        output.value(&value)?;
    }
    output.line(&format!(
        "{GOOD}serving{GOOD:#} {} {}",
        status.data_directory,
        place(&status)
    ))?;
    output.line(&format!(
        "version {}, process {}, started {}, {} skills, {} connected here",
        status.version,
        status.process_id,
        output::time(status.started_at),
        status.skills,
        // All but this command.
        status.connections.saturating_sub(1)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Describes where a server can be reached.
pub(super) fn place(status: &GetStatusResponse) -> String {
    if status.background {
        "for the windows and commands of this machine, until none is connected".to_owned()
    } else {
        format!("at {}", status.url)
    }
}

/// Describes the process that has a directory open; none where none has.
pub(super) fn by(holder: Holder) -> Option<String> {
    match holder {
        Holder::None => None,
        Holder::Process(None) => Some("another process".to_owned()),
        Holder::Process(Some(process)) => Some(format!("process {process}")),
    }
}
