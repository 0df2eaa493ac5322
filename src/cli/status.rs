//! `repertoire status`.

use std::process::ExitCode;

use serde_json::json;

use super::args::Global;
use super::connect::settings;
use super::output::{self, Failed, GOOD, Output};
use crate::contract::v1::GetStatusRequest;
use crate::contract::v1::admin_client::AdminClient;
use crate::server::{Config, connect_local};

pub(super) async fn status(
    global: &Global,
    config: &Config,
    output: &Output,
) -> Result<ExitCode, Failed> {
    let data = settings(global, config).data;
    let Some(channel) = connect_local(&data).await else {
        if output.is_json() {
            output
                .value(&json!({"running": false, "data_directory": data.display().to_string()}))?;
        } else {
            output.line(&format!("no server has {} open", data.display()))?;
        }
        return Ok(ExitCode::FAILURE);
    };
    let mut admin = AdminClient::new(channel);
    let status = admin.get_status(GetStatusRequest {}).await?.into_inner();
    if output.is_json() {
        let mut value = output::json_of("GetStatusResponse", &status)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("running".to_owned(), true.into());
        }
        output.value(&value)?;
    } else {
        output.line(&format!(
            "{GOOD}serving{GOOD:#} {} at {}",
            status.data_directory, status.url
        ))?;
        output.line(&format!(
            "version {}, process {}, started {}, {} skills",
            status.version,
            status.process_id,
            output::time(status.started_at),
            status.skills
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
