//! The pages of reference, rendered from the contract: calls, messages, routes, tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use contract::FILE_DESCRIPTOR_SET;
use gateway::{Contract, Method, RouteBody, Tool};
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Value,
};
use serde_json::{Map, Value as Json};

use super::check;

const PACKAGE: &str = "repertoire.v1";

/// A line of Markdown that says what a page is made from.
const RENDERED: &str =
    "<!-- Rendered from the contract (proto/repertoire/v1) with the golden files. -->";

/// The contract with its comments, by full name.
struct Reference {
    contract: Contract,
    pool: DescriptorPool,
    comments: BTreeMap<String, String>,
}

impl Reference {
    fn load() -> Self {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
        let mut comments = BTreeMap::new();
        for file in pool.files().filter(|file| file.package_name() == PACKAGE) {
            let proto = file.file_descriptor_proto();
            let mut by_path = BTreeMap::new();
            for place in proto.source_code_info.iter().flat_map(|it| &it.location) {
                by_path.insert(place.path.clone(), place.leading_comments());
            }
            let mut say = |path: &[i32], name: &str| {
                let text = by_path.get(path).copied().unwrap_or_default();
                comments.insert(name.to_owned(), paragraphs(text));
            };
            for service in file.services() {
                say(service.path(), service.full_name());
                for method in service.methods() {
                    say(method.path(), method.full_name());
                }
            }
            let of_file = |message: &MessageDescriptor| message.parent_file() == file;
            for message in pool.all_messages().filter(of_file) {
                say(message.path(), message.full_name());
                for field in message.fields() {
                    say(field.path(), field.full_name());
                }
            }
            for names in pool.all_enums().filter(|it| it.parent_file() == file) {
                say(names.path(), names.full_name());
                for value in names.values() {
                    say(value.path(), value.full_name());
                }
            }
        }
        Self {
            contract: contract::load().expect("the contract"),
            pool,
            comments,
        }
    }

    fn comment(&self, full_name: &str) -> &str {
        self.comments.get(full_name).expect("a comment")
    }

    fn messages(&self) -> BTreeMap<String, MessageDescriptor> {
        let all = self.pool.all_messages();
        let ours = all.filter(|it| it.package_name() == PACKAGE && !it.is_map_entry());
        ours.map(|it| (short(it.full_name()).to_owned(), it))
            .collect()
    }

    fn enums(&self) -> BTreeMap<String, EnumDescriptor> {
        let all = self.pool.all_enums();
        let ours = all.filter(|it| it.package_name() == PACKAGE);
        ours.map(|it| (short(it.full_name()).to_owned(), it))
            .collect()
    }

    /// What `buf.validate` wants of a field.
    fn rules(&self, field: &FieldDescriptor) -> Vec<String> {
        let rules = self.pool.get_extension_by_name("buf.validate.field");
        let options = field.options();
        let mut told = Vec::new();
        let rules = options.get_extension(&rules.expect("the option"));
        tell(rules.as_message().expect("rules"), "", &mut told);
        told
    }
}

/// The rules that are set, one a line of text.
fn tell(rules: &DynamicMessage, of: &str, told: &mut Vec<String>) {
    for (field, value) in rules.fields() {
        let name = field.name();
        match value {
            Value::Message(rules) if name == "items" => tell(rules, "each: ", told),
            Value::Message(rules) => tell(rules, of, told),
            Value::Bool(true) => told.push(format!("{of}{name}")),
            Value::String(text) => told.push(format!("{of}{name} `{text}`")),
            Value::U32(number) => told.push(format!("{of}{name} {number}")),
            Value::U64(number) => told.push(format!("{of}{name} {number}")),
            Value::I32(number) => told.push(format!("{of}{name} {number}")),
            Value::I64(number) => told.push(format!("{of}{name} {number}")),
            Value::F32(number) => told.push(format!("{of}{name} {number}")),
            Value::F64(number) => told.push(format!("{of}{name} {number}")),
            // When a rule does not count, which the others say by themselves.
            Value::EnumNumber(_) if name == "ignore" => {}
            other => panic!("{name}: how is this told? {other:?}"),
        }
    }
}

fn short(full_name: &str) -> &str {
    let prefix = full_name.strip_prefix(PACKAGE);
    prefix
        .and_then(|it| it.strip_prefix('.'))
        .unwrap_or(full_name)
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace('.', "")
}

/// A comment with a paragraph a line; what is no code is no HTML either.
fn paragraphs(comment: &str) -> String {
    let paragraphs = comment.trim().split("\n\n");
    let plain = paragraphs.map(|it| {
        it.lines()
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect::<Vec<_>>()
            .join(if it.contains("\n - ") || it.contains("\n * ") {
                "\n"
            } else {
                " "
            })
    });
    plain
        .map(|it| no_html(&it))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn no_html(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| {
        if at % 2 == 0 {
            part.replace('<', "&lt;").replace('>', "&gt;")
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}

/// The type of a field, with a link where it is one of ours.
fn type_of(field: &FieldDescriptor) -> String {
    if field.is_map() {
        let Kind::Message(entry) = field.kind() else {
            unreachable!("a map is a list of entries");
        };
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        return format!("map of {} to {}", type_of(&key), type_of(&value));
    }
    let name = match field.kind() {
        Kind::Message(message) => link_to_message(message.full_name()),
        Kind::Enum(names) => link("enums", names.full_name()),
        plain => format!("{plain:?}").to_lowercase(),
    };
    if field.is_list() {
        format!("list of {name}")
    } else {
        name
    }
}

fn link_to_message(full_name: &str) -> String {
    let is_of_a_call = is_of_a_call(full_name);
    link(if is_of_a_call { "messages" } else { "types" }, full_name)
}

fn link(page: &str, full_name: &str) -> String {
    let name = short(full_name);
    if name == full_name {
        return name.rsplit('.').next().unwrap_or(name).to_owned();
    }
    format!("[{name}]({page}.md#{})", anchor(name))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(", ")
}

fn of_service<'a>(contract: &'a Contract, service: &str) -> Vec<&'a Method> {
    let methods = contract.methods().iter().map(AsRef::as_ref);
    methods.filter(|it| it.service == service).collect()
}

#[test]
fn the_page_of_calls_says_what_each_does() {
    let reference = Reference::load();
    let mut out = format!(
        "# Calls\n\n{RENDERED}\n\n\
         Every call of the contract, by service: what it does, which action its caller must be allowed ([access.md](access.md)), and its\n\
         routes ([routes.md](routes.md)) and tools ([mcp-tools.md](mcp-tools.md)). In gRPC, `repertoire.v1.SERVICE/CALL`.\n"
    );
    let services = reference.pool.services();
    for service in services.filter(|it| it.package_name() == PACKAGE) {
        let comment = reference.comment(service.full_name());
        write!(out, "\n## {}\n\n{comment}\n", service.name()).expect("text");
        for method in of_service(&reference.contract, service.name()) {
            let mut of = service.methods();
            let descriptor = of.find(|it| it.name() == method.name).expect("the rpc");
            let stream = |streams: bool| if streams { "a stream of " } else { "" };
            let comment = reference.comment(descriptor.full_name());
            write!(
                out,
                "\n### {}\n\n{comment}\n\n* takes {}{}, answers {}{}\n* action: `{}`\n",
                method.name,
                stream(method.client_streaming),
                link_to_message(descriptor.input().full_name()),
                stream(method.server_streaming),
                link_to_message(descriptor.output().full_name()),
                method.action,
            )
            .expect("text");
            let routes = method.routes.iter();
            let routes = joined(routes.map(|it| code(&format!("{} {}", it.verb, it.template))));
            let tools: BTreeSet<String> = method.tool_names().map(code).collect();
            for (of, told) in [("routes", routes), ("tools", joined(tools))] {
                if !told.is_empty() {
                    writeln!(out, "* {of}: {told}").expect("text");
                }
            }
        }
    }
    check("docs/rpcs.md", &out);
}

/// What calls take and answer has names of its own (`buf lint`).
fn is_of_a_call(name: &str) -> bool {
    name.ends_with("Request") || name.ends_with("Response")
}

#[test]
fn the_pages_of_messages_and_types_say_what_each_field_is() {
    let reference = Reference::load();
    let mut messages = format!(
        "# Messages\n\n{RENDERED}\n\n\
         What calls take and answer, by name; [types](types.md) are the messages inside of these. In JSON, fields have the names that stand here.\n\
         `required` and the other limits are those of `buf.validate`; a message that breaks one is refused before anything is done.\n"
    );
    let mut types = format!(
        "# Types\n\n{RENDERED}\n\nWhat [messages](messages.md) are made of, by name, and the values of their [enums](enums.md).\n"
    );
    for (name, message) in reference.messages() {
        let comment = reference.comment(message.full_name());
        let out = if is_of_a_call(&name) {
            &mut messages
        } else {
            &mut types
        };
        write!(out, "\n## {name}\n\n{comment}\n").expect("text");
        if message.fields().len() > 0 {
            out.push_str("\n| field | type | what |\n|---|---|---|\n");
        }
        for field in message.fields() {
            let mut what = reference.comment(field.full_name()).to_owned();
            let rules = reference.rules(&field);
            if !rules.is_empty() {
                write!(what, "\n\nLimits: {}", rules.join(", ")).expect("text");
            }
            if let Some(one) = field.containing_oneof().filter(|it| it.fields().len() > 1) {
                let others = one.fields().filter(|it| it.name() != field.name());
                let others = joined(others.map(|it| code(it.name())));
                write!(what, "\n\nNot together with {others}").expect("text");
            }
            let (field, kind) = (field.name(), type_of(&field));
            writeln!(out, "| `{field}` | {kind} | {} |", cell(&what)).expect("text");
        }
    }
    check("docs/messages.md", &messages);
    check("docs/types.md", &types);
}

#[test]
fn the_page_of_enums_says_what_each_value_is() {
    let reference = Reference::load();
    let mut out =
        format!("# Enums\n\n{RENDERED}\n\nThe values of fields that are one of a few, by name.\n");
    for (name, names) in reference.enums() {
        let comment = reference.comment(names.full_name());
        write!(out, "\n## {name}\n\n{comment}\n\n").expect("text");
        out.push_str("| value | number | what |\n|---|---|---|\n");
        for value in names.values() {
            let what = cell(reference.comment(value.full_name()));
            writeln!(out, "| `{}` | {} | {what} |", value.name(), value.number()).expect("text");
        }
    }
    check("docs/enums.md", &out);
}

#[test]
fn the_page_of_routes_lists_every_route() {
    let reference = Reference::load();
    let mut out = format!(
        "# Routes\n\n{RENDERED}\n\n\
         Every route of REST and the call that it is. `{{skill_id=*/*/*}}` in a path is an id of three segments. Fields of the request that are not in the\n\
         path are in the query, or in the body where there is one. [rest.md](rest.md) explains how routes behave, and lists the other pages.\n"
    );
    let services = reference.pool.services();
    for service in services.filter(|it| it.package_name() == PACKAGE) {
        let methods = of_service(&reference.contract, service.name());
        if methods.iter().all(|it| it.routes.is_empty()) {
            continue;
        }
        write!(
            out,
            "\n## {}\n\n| route | body | call |\n|---|---|---|\n",
            service.name()
        )
        .expect("text");
        for method in methods {
            for route in &method.routes {
                let body = match &route.body {
                    RouteBody::None => String::new(),
                    RouteBody::All => "the request".to_owned(),
                    RouteBody::Field(field) => code(field),
                };
                let (name, anchor) = (&method.name, anchor(&method.name));
                let route = cell(&format!("{} {}", route.verb, route.template));
                writeln!(out, "| `{route}` | {body} | [{name}](rpcs.md#{anchor}) |").expect("text");
            }
        }
    }
    check("docs/routes.md", &out);
}

/// The type of an argument, as its JSON Schema has it.
fn schema_type(schema: &Map<String, Json>) -> String {
    let text = |key| schema.get(key).and_then(Json::as_str);
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        let values = values.iter().filter_map(Json::as_str);
        return format!("one of {}", joined(values.map(code)));
    }
    match (text("type"), schema.get("items").and_then(Json::as_object)) {
        (Some("array"), Some(items)) => format!("list of {}", schema_type(items)),
        (Some(kind), _) => kind.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

fn tool_of(tool: &Tool, sets: &[&str], calls: &str) -> String {
    let mut out = format!(
        "\n{}\n\n* {}\n* tool sets: {}\n* calls: {calls}\n",
        paragraphs(&tool.description),
        [
            (tool.hints.read_only, "changes nothing"),
            (!tool.hints.read_only, "changes something"),
            (tool.hints.destructive, "may remove or replace something"),
            (
                tool.hints.idempotent,
                "the same call twice changes nothing more"
            ),
            (
                tool.hints.open_world,
                "may reach what is outside of the server"
            ),
        ]
        .into_iter()
        .filter_map(|(is, told)| is.then_some(told))
        .collect::<Vec<_>>()
        .join("; "),
        joined(sets.iter().map(|it| code(it))),
    );
    let properties = tool.input.get("properties").and_then(Json::as_object);
    let properties = properties.into_iter().flatten();
    let required = tool.input.get("required").and_then(Json::as_array);
    let required: BTreeSet<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let mut rows = String::new();
    for (name, schema) in properties {
        let schema = schema.as_object().expect("a schema");
        let description = schema.get("description").and_then(Json::as_str);
        let is_required = required.contains(name.as_str());
        let must = if is_required { ", required" } else { "" };
        writeln!(
            rows,
            "| `{name}` | {}{must} | {} |",
            cell(&schema_type(schema)),
            cell(&no_html(description.unwrap_or_default())),
        )
        .expect("text");
    }
    if !rows.is_empty() {
        write!(out, "\n| argument | type | what |\n|---|---|---|\n{rows}").expect("text");
    }
    out
}

/// A tool that looks different in two sets stands there once for each look.
#[test]
fn the_page_of_tools_says_what_each_takes() {
    let reference = Reference::load();
    let contract = &reference.contract;
    let mut tools = BTreeMap::<String, Vec<(std::sync::Arc<Tool>, Vec<String>)>>::new();
    for set in contract.toolsets().into_keys() {
        for tool in contract.tools(Some(&set)) {
            let looks = tools.entry(tool.name.clone()).or_default();
            let same = looks
                .iter_mut()
                .find(|(it, _)| (&it.description, &it.input) == (&tool.description, &tool.input));
            match same {
                Some((_, sets)) => sets.push(set.clone()),
                None => looks.push((tool, vec![set.clone()])),
            }
        }
    }
    let mut out = format!(
        "# MCP tools\n\n{RENDERED}\n\n\
         Every tool that the server offers over MCP, with its arguments. A tool belongs to sets; `/mcp/SET` offers those of a set ([mcp.md](mcp.md)).\n\n\
         | set | tools |\n|---|---|\n"
    );
    for set in contract.toolsets().into_keys() {
        let of_set = contract.tools(Some(&set));
        let links = of_set.iter().map(|it| {
            let name = &it.name;
            format!("[`{name}`](#{name})")
        });
        writeln!(out, "| `{set}` | {} |", joined(links)).expect("text");
    }
    for (name, looks) in &tools {
        for (at, (tool, sets)) in looks.iter().enumerate() {
            let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
            let methods = contract.methods().iter();
            let calls: BTreeSet<String> = methods
                .filter(|it| it.tool_names().any(|it| it == name))
                .map(|it| format!("[{}](rpcs.md#{})", it.name, anchor(&it.name)))
                .collect();
            // One heading a name, so that its anchor leads to the first.
            if at == 0 {
                write!(out, "\n## {name}\n").expect("text");
            } else {
                let sets = joined(sets.iter().map(|it| code(it)));
                write!(out, "\nIn {sets}:\n").expect("text");
            }
            out.push_str(&tool_of(tool, &sets, &joined(calls)));
        }
    }
    check("docs/mcp-tools.md", &out);
}
