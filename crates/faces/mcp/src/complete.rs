//! Completion of the names in addresses.

use rmcp::ErrorData;
use rmcp::model::{ArgumentInfo, CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

use super::error::protocol;
use super::handler::Handler;
use super::resources::{FILE_OF_ID, SKILL_OF_NAME};
use contract::v1;
use gateway::Refusal;

impl Handler {
    /// Completes a variable of an address; anything else has no values.
    pub(super) async fn completion(
        &self,
        params: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let Reference::Resource(template) = params.r#ref else {
            return answer(Vec::new(), false);
        };
        let known = params.context.and_then(|context| context.arguments);
        let known = known.unwrap_or_default();
        let of = |name: &str| known.get(name).map(String::as_str).unwrap_or_default();
        let ArgumentInfo { name, value, .. } = params.argument;
        let id = template.uri == FILE_OF_ID;
        if !id && template.uri != SKILL_OF_NAME {
            return answer(Vec::new(), false);
        }
        let (source, author) = (of("source"), of("author"));
        let prefix = match (name.as_str(), id) {
            ("source", true) | ("name", false) => value,
            ("author", true) => format!("{source}/{value}"),
            ("name", true) => format!("{source}/{author}/{value}"),
            ("path", true) => {
                let skill_id = format!("{source}/{author}/{}", of("name"));
                return self.paths(skill_id, &value).await;
            }
            _ => return answer(Vec::new(), false),
        };
        let form = if id {
            v1::NameForm::Id
        } else {
            v1::NameForm::Short
        };
        self.names(prefix, form).await
    }

    async fn names(&self, prefix: String, form: v1::NameForm) -> Result<CompleteResult, ErrorData> {
        let request = v1::CompleteNameRequest {
            prefix,
            form: form.into(),
            limit: 0,
        };
        let found = self.lookup().complete_name(request).await;
        let found = found.map_err(|status| protocol(&Refusal::from(status)))?;
        let v1::CompleteNameResponse { names, has_more } = found.into_inner();
        // Names are whole ids, but a variable stands for one segment of the address.
        let names = names.into_iter().map(|name| {
            let last = name.trim_end_matches('/').rsplit('/').next();
            last.map(str::to_owned).unwrap_or_default()
        });
        answer(names.collect(), has_more)
    }

    async fn paths(&self, skill_id: String, prefix: &str) -> Result<CompleteResult, ErrorData> {
        let request = v1::ListFilesRequest {
            skill_id,
            ..Default::default()
        };
        let listed = self.lookup().list_files(request).await;
        let files = match listed.map_err(Refusal::from) {
            Ok(files) => files.into_inner().files.into_iter(),
            // The client asks while its user types, so an incomplete id is no error.
            Err(refusal) if refusal.is_missing() || refusal.is_invalid() => {
                return answer(Vec::new(), false);
            }
            Err(refusal) => return Err(protocol(&refusal)),
        };
        let mut paths: Vec<_> = files
            .map(|file| file.path)
            .filter(|path| path.starts_with(prefix))
            .collect();
        let more = paths.len() > CompletionInfo::MAX_VALUES;
        paths.truncate(CompletionInfo::MAX_VALUES);
        answer(paths, more)
    }
}

fn answer(values: Vec<String>, more: bool) -> Result<CompleteResult, ErrorData> {
    let info = CompletionInfo::with_pagination(values, None, more);
    let info = info.map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(info))
}
