//! REST: a request to a route becomes a call, its answer JSON.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request};

use super::body::{ReadBody, read_json};
use super::pages::CachedPage;
use super::problem::refused;
use super::routes::{RouteMatch, Routes, RpcRoute};
use super::stream;
use admission::Peer;
use contract::INDEX_VERSION;
use gateway::{Context, Gateway, Parts, Refusal, TemplateError, UrlPath, decode_part};
use model::{Code, Failure};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// REST over a gateway.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) gateway: Gateway,
    routes: Routes,
    /// The `OpenAPI` document.
    pub(super) document: CachedPage,
}

impl Rest {
    /// # Errors
    /// A route of the contract cannot be read.
    pub(super) fn new(gateway: Gateway) -> Result<Self, TemplateError> {
        Ok(Self {
            routes: Routes::new(gateway.contract())?,
            document: CachedPage::json(&gateway.contract().openapi()),
            gateway,
        })
    }

    async fn call(
        &self,
        way: &RpcRoute,
        path: Vec<(String, String)>,
        request: request::Parts,
        body: Body,
        context: Context,
    ) -> Result<Response, Refusal> {
        let headers = &request.headers;
        // Held by name until the answer is ready: `_` alone would release it here.
        let peer = Peer::of(&request.extensions);
        let ReadBody {
            json,
            memory: _memory,
        } = read_json(&peer, headers, body).await?;
        let mut parts = Parts {
            path,
            query: query(request.uri.query().unwrap_or_default())?,
            body: json,
        };
        resume(way, headers, &mut parts);
        let method = &way.method;
        let json = self.gateway.contract().merge(method, &way.route, parts)?;
        let ask = self.gateway.read(method, json)?;
        if method.server_streaming {
            let answers = self.gateway.stream(method, ask, context).await?;
            let field = way.route.response_body.as_deref();
            return match field.filter(|field| method.gives_bytes(field)) {
                Some(field) if !wants_events(headers) => {
                    stream::download(answers, field, headers).await
                }
                _ => Ok(stream::events(answers)),
            };
        }
        let answer = self.gateway.call(method, ask, context).await?;
        let json = HeaderValue::from_static("application/json");
        let mut response = ([(header::CONTENT_TYPE, json)], answer.text()).into_response();
        if let Some(version) = answer.index_version() {
            let headers = response.headers_mut();
            headers.insert(INDEX_VERSION, version.clone());
        }
        Ok(response)
    }
}

/// Answers a request to any path.
pub(super) async fn answer(State(rest): State<Arc<Rest>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut context = Context::of(&parts);
    let id = HeaderValue::from_str(&context.request_id());
    let path = UrlPath::parse(parts.uri.path());
    let found = path.map(|path| rest.routes.find(&parts.method, &path));
    let mut answer = match found {
        Ok(RouteMatch::Rpc(way, path)) => {
            let answered = rest.call(way, path, parts, body, context).await;
            // The access log names the route of a refused call too.
            let mut answer = answered.unwrap_or_else(refused);
            answer.extensions_mut().insert(way.name.clone());
            answer
        }
        Ok(RouteMatch::Verbs(mut verbs)) => {
            verbs.push("OPTIONS");
            wrong_verb(&parts.method, &verbs.join(", "))
        }
        Ok(RouteMatch::Nothing) => nowhere(parts.uri.path()),
        Err(refusal) => refused(refusal),
    };
    if let Ok(id) = id {
        answer.headers_mut().insert(REQUEST_ID, id);
    }
    answer
}

/// Answers another method than those of a page that is only read.
pub async fn no_such_method(request: Request) -> Response {
    wrong_verb(request.method(), "GET, HEAD, OPTIONS")
}

/// Answers a method that the path does not take.
fn wrong_verb(verb: &http::Method, allowed: &str) -> Response {
    let mut answer = if *verb == http::Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let sentence = format!("This path takes {allowed}, not {}", shown(verb.as_str()));
        refused(
            Failure::new(Code::MethodNotAllowed, sentence)
                .suggest("Read /openapi.json, which lists all paths with their methods"),
        )
    };
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    answer
}

pub(super) fn nowhere(path: &str) -> Response {
    let sentence = format!("This server has no path {}", shown(path));
    refused(
        Failure::new(Code::RouteNotFound, sentence)
            .suggest("Read /openapi.json, which lists all paths")
            .suggest(
                "Write the slashes of an id as %2F where the path takes it for something else",
            ),
    )
}

/// Shortens a caller's text for a sentence.
fn shown(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Parses the pairs of a query.
pub(super) fn query(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let part = |text: &str| decode_part(&text.replace('+', " "), "query");
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((part(name)?, part(value)?))
        })
        .collect()
}

/// Continues a stream of server-sent events after the event that its client saw last.
fn resume(way: &RpcRoute, headers: &HeaderMap, parts: &mut Parts) {
    let last = headers.get("last-event-id");
    let Some(last) = last.and_then(|value| value.to_str().ok()) else {
        return;
    };
    let given = parts.query.iter().any(|(name, _)| name == stream::RESUME);
    if way.method.server_streaming && way.method.takes(stream::RESUME) && !given && !last.is_empty()
    {
        let pair = (stream::RESUME.to_owned(), last.to_owned());
        parts.query.push(pair);
    }
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|media| media.split(';').next())
        .any(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_forms_write_it() {
        let read = |text: &str| query(text).expect("a query");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read("a=1&b=x+y%2Bz&&c&a=%C3%A9=2"),
            [
                pair("a", "1"),
                pair("b", "x y+z"),
                pair("c", ""),
                pair("a", "é=2")
            ]
        );
        for bad in ["a=%ff", "%=1", "a=%2"] {
            let refused = query(bad).expect_err("a refusal");
            assert_eq!(refused.code, "INVALID_PARAMETER", "{bad}");
        }
    }

    #[test]
    fn a_refusal_repeats_no_path_at_length() {
        assert_eq!(shown("/é"), "/é");
        assert_eq!(shown(&"é".repeat(201)).chars().count(), 201);
    }
}
