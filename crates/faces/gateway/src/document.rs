//! The routes of a contract as an `OpenAPI` 3.1 document.
//!
//! Paths, parameters, schemas and texts are those of the descriptors. What a path
//! parameter of several segments is in `google.api.http` (`{skill_id=*/*/*}`) is one
//! parameter for each segment here (`{skill_id_1}/{skill_id_2}/{skill_id_3}`), since
//! `OpenAPI` has no other; `{path=**}` is one parameter whose slashes may be encoded.

use std::collections::BTreeMap;

use prost_reflect::Kind;
use serde_json::{Map, Value as Json, json};

use super::comment::Comments;
use super::components::{SCHEMAS, as_input, components, differing, for_each_request};
use super::schema::{Direction, Schemas};
use super::shape::{Field, Special};
use super::{Contract, Method, Route, RouteBody};

const DESCRIPTION: &str = "Every call of the gRPC contract that is no stream of the caller's. \
Answers and refusals are those of gRPC, as JSON. A call may bring `grpc-timeout` (such as `500m`), \
`traceparent`, and a name of its own in `X-Request-Id`, which every answer repeats. What was found in \
the index says in `Index-Version` which state of it.\n\n\
A skill is named by its short name (`refunds`), by its id in three segments (`github/acme/refunds`), or \
by its id in one segment with encoded slashes (`github%2Facme%2Frefunds`), which is right whatever the \
id reads like.";

/// The schema of a refusal (RFC 9457). The contract's own `Problem` is something else.
const PROBLEM: &str = "ProblemDetails";

impl Contract {
    /// Returns the document, made anew at each call.
    #[must_use]
    pub fn openapi(&self) -> Json {
        Document {
            contract: self,
            requests: Schemas::new(self, Direction::Request, Some(SCHEMAS)),
            answers: Schemas::new(self, Direction::Answer, Some(SCHEMAS)),
        }
        .write()
    }
}

struct Document<'a> {
    contract: &'a Contract,
    requests: Schemas<'a>,
    answers: Schemas<'a>,
}

/// A path as `OpenAPI` writes it, and its parameters.
struct PathItem {
    template: String,
    parameters: Vec<Json>,
    /// Fields that it holds, by proto name.
    fields: Vec<String>,
}

impl Document<'_> {
    fn write(mut self) -> Json {
        let mut paths = Map::new();
        for method in self.contract.methods() {
            for (at, route) in method.routes.iter().enumerate() {
                let path = self.path(method, route);
                let operation = self.operation(method, route, at, &path);
                let item = paths
                    .entry(path.template)
                    .or_insert_with(|| Json::Object(Map::new()));
                if let Json::Object(item) = item {
                    item.insert(route.verb.to_ascii_lowercase(), operation);
                }
            }
        }
        let (requests, answers) = (
            components(&mut self.requests),
            components(&mut self.answers),
        );
        let differing = differing(&requests, &answers);
        let mut schemas: BTreeMap<String, Json> = answers;
        let mut paths = Json::Object(paths);
        for (name, mut schema) in requests {
            as_input(&mut schema, &differing);
            let name = if differing.contains(&name) {
                format!("{name}Input")
            } else {
                name
            };
            schemas.entry(name).or_insert(schema);
        }
        for_each_request(&mut paths, &mut |schema| as_input(schema, &differing));
        schemas.insert(PROBLEM.to_owned(), problem());
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Repertoire",
                "version": env!("CARGO_PKG_VERSION"),
                "description": DESCRIPTION,
                "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
            },
            "servers": [{"url": "/"}],
            "tags": self.tags(),
            "paths": paths,
            // Either: a server without sign-in needs no token.
            "security": [{}, {"token": []}],
            "components": {
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token that `CreateToken` or `repertoire token create` made, where the server wants sign-in. `x-action` of an operation says what it has to allow.",
                    },
                },
                "schemas": schemas,
                "responses": {
                    "Problem": {
                        "description": "The call is refused, or failed.",
                        "content": {"application/problem+json": {"schema": reference(PROBLEM)}},
                    },
                },
            },
        })
    }

    fn tags(&self) -> Json {
        let pool = &self.contract.inner.pool;
        let comments = Comments::read(pool);
        let routed = |name: &str| {
            let mut methods = self.contract.methods().iter();
            methods.any(|method| method.service == name && !method.routes.is_empty())
        };
        let services = pool.services().filter(|service| routed(service.name()));
        let tags = services.map(|service| {
            let comment = comments.of(&service.parent_file(), service.path());
            json!({"name": service.name(), "description": comment})
        });
        tags.collect()
    }

    /// The path of a route, with a parameter for each segment that is not fixed.
    fn path(&mut self, method: &Method, route: &Route) -> PathItem {
        let mut item = PathItem {
            template: String::new(),
            parameters: Vec::new(),
            fields: Vec::new(),
        };
        let mut rest = route.template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            item.template.push_str(before);
            let (variable, after) = after.split_once('}').unwrap_or((after, ""));
            let (name, pattern) = variable.split_once('=').unwrap_or((variable, "*"));
            item.fields.push(name.to_owned());
            self.variable(method, name, pattern, &mut item);
            rest = after;
        }
        item.template.push_str(rest);
        item
    }

    fn variable(&mut self, method: &Method, name: &str, pattern: &str, item: &mut PathItem) {
        let shape = self.contract.shape(&method.input);
        let field = shape.and_then(|shape| shape.proto_field(name));
        let (schema, comment) = match field {
            Some(field) => apart(self.requests.field(field)),
            None => (json!({"type": "string"}), String::new()),
        };
        let mut say = |name: &str, schema: Json, description: String| {
            item.parameters.push(json!({
                "name": name, "in": "path", "required": true,
                "description": description, "schema": schema,
            }));
        };
        let parts: Vec<_> = pattern.split('/').collect();
        match parts.as_slice() {
            ["*"] => say(name, schema, comment),
            ["**"] => {
                let note = format!("{comment}\n\nIts slashes may stand as they are, or as `%2F`.");
                say(name, schema, note);
            }
            parts => {
                let all = parts.len();
                for at in 1..=all {
                    let schema = json!({"type": "string", "minLength": 1});
                    let note = format!("Segment {at} of {all} of `{name}`. {comment}");
                    say(&format!("{name}_{at}"), schema, note);
                }
                let names = (1..=all).map(|at| format!("{{{name}_{at}}}"));
                item.template.push_str(&names.collect::<Vec<_>>().join("/"));
                return;
            }
        }
        item.template.extend(["{", name, "}"]);
    }

    fn operation(&mut self, method: &Method, route: &Route, at: usize, path: &PathItem) -> Json {
        let mut operation = Map::new();
        let mut say = |key: &str, value: Json| operation.insert(key.to_owned(), value);
        say("tags", json!([method.service]));
        let id = match at {
            0 => method.name.clone(),
            at => format!("{}_{}", method.name, at + 1),
        };
        say("operationId", json!(id));
        say("summary", json!(method.summary.trim_end_matches('.')));
        say("description", json!(method.description));
        let contract = self.contract;
        let shape = contract.shape(&method.input);
        let fields = shape.map(|shape| &*shape.fields).unwrap_or_default();
        let in_path = |field: &Field| path.fields.iter().any(|n| n == field.descriptor.name());
        let left = fields.iter().filter(|field| !in_path(field));
        let mut parameters = path.parameters.clone();
        match &route.body {
            RouteBody::All => {
                let names: Vec<_> = left.map(|field| field.json.clone()).collect();
                let schema = self.requests.object(&method.input, Some(&names));
                let required = schema.get("required").is_some();
                say("requestBody", body(&schema, required));
            }
            other => {
                for field in left {
                    if *other == RouteBody::Field(field.json.clone()) {
                        let schema = self.requests.field(field);
                        say("requestBody", body(&schema, field.required));
                    } else {
                        self.queries("", field, &mut parameters);
                    }
                }
            }
        }
        if !parameters.is_empty() {
            say("parameters", Json::Array(parameters));
        }
        say("responses", self.responses(method, route));
        if !method.action.is_empty() {
            say("x-action", json!(method.action));
        }
        Json::Object(operation)
    }

    /// The parameters of a field: itself, or those of the message that it holds, by names
    /// with dots.
    fn queries(&mut self, above: &str, field: &Field, parameters: &mut Vec<Json>) {
        let contract = self.contract;
        let name = format!("{above}{}", field.json);
        if in_query(contract, field) {
            parameters.push(self.query(&name, field));
        } else if let Some(shape) = contract.parts(field) {
            for inside in &shape.fields {
                self.queries(&format!("{name}."), inside, parameters);
            }
        }
    }

    fn query(&mut self, name: &str, field: &Field) -> Json {
        let (schema, comment) = apart(self.requests.field(field));
        let mut parameter = json!({
            "name": name, "in": "query", "required": field.required,
            "description": comment, "schema": schema,
        });
        if let Json::Object(parameter) = &mut parameter
            && field.descriptor.is_list()
        {
            parameter.insert("style".to_owned(), json!("form"));
            parameter.insert("explode".to_owned(), json!(true));
        }
        parameter
    }

    fn responses(&mut self, method: &Method, route: &Route) -> Json {
        let message = reference(method.output.name());
        if !self.answers.named.contains(&method.output) {
            self.answers.named.push(method.output.clone());
        }
        // Before `itemSchema` of OpenAPI 3.2, the schema of a stream is that of each event.
        let events = json!({
            "schema": {
                "type": "object",
                "description": format!(
                    "A server-sent event. One named `error` holds a `{PROBLEM}` and ends the stream."
                ),
                "properties": {
                    "event": {"type": "string"},
                    "id": {"type": "string", "description": "Where to go on after it."},
                    "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": message},
                },
                "required": ["data"],
            },
        });
        let download = route.response_body.as_deref();
        let download = download.filter(|field| method.gives_bytes(field));
        let fine = match (method.server_streaming, download) {
            (true, Some(_)) => json!({
                "description": "The file; with `Accept: text/event-stream`, the messages it comes in.",
                "headers": {
                    "Content-Disposition": {"description": "A name for the file.", "schema": {"type": "string"}},
                    "ETag": {"description": "Digest of the file.", "schema": {"type": "string"}},
                },
                // What generators know as bytes, though to OpenAPI 3.1 a file needs no schema.
                "content": {
                    "*/*": {"schema": {"type": "string", "format": "binary"}},
                    "text/event-stream": events,
                },
            }),
            (true, None) => json!({
                "description": "What happens, as it happens.",
                "content": {"text/event-stream": events},
            }),
            (false, _) => json!({
                "description": self.contract.shape(&method.output).map_or("", |shape| &shape.comment),
                "content": {"application/json": {"schema": message}},
            }),
        };
        let mut responses = Map::new();
        responses.insert("200".to_owned(), fine);
        if download.is_some() {
            let unchanged = "The file that `If-None-Match` names is the one there is.";
            responses.insert("304".to_owned(), json!({"description": unchanged}));
        }
        let problem = json!({"$ref": "#/components/responses/Problem"});
        for statuses in ["4XX", "5XX"] {
            responses.insert(statuses.to_owned(), problem.clone());
        }
        Json::Object(responses)
    }
}

/// A field that has a form in the query: text, numbers, lists of them.
fn in_query(contract: &Contract, field: &Field) -> bool {
    match field.descriptor.kind() {
        Kind::Message(message) => {
            let shape = contract.shape(&message);
            shape.and_then(|shape| shape.special) == Some(Special::Timestamp)
        }
        _ => true,
    }
}

fn body(schema: &Json, required: bool) -> Json {
    json!({"required": required, "content": {"application/json": {"schema": schema}}})
}

fn reference(name: &str) -> Json {
    json!({"$ref": format!("{SCHEMAS}{name}")})
}

/// A schema without its description, and the description.
fn apart(mut schema: Json) -> (Json, String) {
    let described = schema.as_object_mut();
    let text = described.and_then(|schema| schema.shift_remove("description"));
    let text = text.and_then(|text| text.as_str().map(str::to_owned));
    (schema, text.unwrap_or_default())
}

/// RFC 9457, with what this server adds.
fn problem() -> Json {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": "Why a call failed (RFC 9457).",
        "properties": {
            "type": text("`/errors#` and the code."),
            "title": text("What the code means."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status."},
            "detail": text("What happened to the caller's things."),
            "code": text("Stable code, such as `SKILL_NOT_FOUND`. Act on this."),
            "number": {"type": "integer", "description": "Number of the code."},
            "details": {"type": "object", "additionalProperties": true, "description": "Facts for programs, by name."},
            "errors": {
                "type": "array",
                "description": "Fields of the request, or places in a skill's files, that are wrong.",
                "items": {
                    "type": "object",
                    "properties": {"field": text("The field."), "message": text("What is wrong with it.")},
                    "required": ["field", "message"],
                },
            },
            "recovery_suggestions": {
                "type": "array", "items": {"type": "string"},
                "description": "What to do next, most useful first.",
            },
            "retry_after_ms": {"type": "integer", "minimum": 0, "description": "When to try again."},
        },
        "required": ["type", "title", "status", "detail", "code", "recovery_suggestions"],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::components::for_each_reference;
    use super::super::tests::contract;
    use super::*;

    fn document() -> Json {
        contract().openapi()
    }

    /// Every operation: its path, its verb, and what it says.
    fn operations(document: &Json) -> Vec<(String, String, Json)> {
        let paths = document["paths"].as_object().expect("paths");
        let items = paths.iter().flat_map(|(path, item)| {
            let verbs = item.as_object().expect("an item").iter();
            verbs.map(|(verb, operation)| (path.clone(), verb.clone(), operation.clone()))
        });
        items.collect()
    }

    #[test]
    fn every_route_is_an_operation_with_a_name_of_its_own() {
        let contract = contract();
        let routes: usize = contract.methods().iter().map(|m| m.routes.len()).sum();
        let document = document();
        let operations = operations(&document);
        assert_eq!(operations.len(), routes);
        let names: BTreeSet<_> = operations
            .iter()
            .map(|(_, _, operation)| operation["operationId"].to_string())
            .collect();
        assert_eq!(names.len(), routes);
    }

    #[test]
    fn the_parameters_of_a_path_are_those_of_its_template() {
        for (path, verb, operation) in operations(&document()) {
            let in_template: Vec<_> = path
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}'))
                .map(|(name, _)| name.to_owned())
                .collect();
            let parameters = operation["parameters"].as_array().cloned();
            let in_path: Vec<_> = parameters
                .unwrap_or_default()
                .iter()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().expect("a name").to_owned())
                .collect();
            assert_eq!(in_path, in_template, "{verb} {path}");
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema_and_every_schema_is_referred_to() {
        let mut document = document();
        let schemas = document["components"]["schemas"].clone();
        let schemas: BTreeSet<_> = schemas.as_object().expect("schemas").keys().collect();
        let mut referred = BTreeSet::new();
        for_each_reference(&mut document, &mut |name| {
            referred.insert(name.clone());
        });
        assert_eq!(referred.iter().collect::<BTreeSet<_>>(), schemas);
    }

    #[test]
    fn the_schema_of_a_refusal_takes_the_name_of_no_message() {
        let contract = contract();
        let mut messages = contract.inner.pool.all_messages();
        assert!(messages.all(|message| message.name() != PROBLEM));
        let schemas = &document()["components"]["schemas"];
        assert!(schemas["Problem"]["properties"]["rule"].is_object());
        assert!(schemas[PROBLEM]["properties"]["status"].is_object());
    }

    #[test]
    fn a_message_that_goes_both_ways_has_a_form_for_each_where_they_differ() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        // Sent with all fields, accepted with few.
        assert_eq!(
            schemas["ToolConfig"]["required"],
            json!(["name", "description", "method", "args"])
        );
        assert_eq!(schemas["ToolConfigInput"]["required"], json!(["name"]));
        let args = &schemas["ToolConfigInput"]["properties"]["args"];
        assert_eq!(args["items"], reference("ToolArgumentInput"));
        let publish = &document["paths"]["/api/v1/skills"]["post"]["requestBody"];
        let properties = &publish["content"]["application/json"]["schema"]["properties"];
        let configs = &properties["tool_configs"]["items"];
        assert_eq!(*configs, reference("ToolConfigInput"));
        assert_eq!(properties["files"]["items"], reference("File"));
    }
}
