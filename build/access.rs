//! Reads who may call each rpc, and what the audit trail records of it.

use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, Value,
};

use super::PACKAGE;

/// The access rules of all rpcs.
pub(super) struct Access(Vec<MethodAccess>);

/// Fields, each with some of its values.
type FieldValues<T> = Vec<(String, Vec<T>)>;

struct MethodAccess {
    /// As in the path of a call.
    path: String,
    /// Name of the action, as the enum of the contract writes it.
    action: String,
    /// Name of the request.
    request: String,
    /// The field of the request that names a skill, with the messages that it is in; empty
    /// where none does.
    skill: Vec<String>,
    /// It is done to every skill.
    every_skill: bool,
    /// Fields of the request with those of their values that are about every skill.
    every_skill_values: FieldValues<i32>,
    /// The fields that the audit trail names, in the same way.
    names: Vec<String>,
    /// The audit trail has an event of each call.
    recorded: bool,
}

/// Actions that change nothing.
const READING: [&str; 4] = [
    "ACTION_ANYTHING",
    "ACTION_READ",
    "ACTION_LOAD",
    "ACTION_AUDIT",
];

impl Access {
    /// Reads the options. Fails for an rpc without an action: none is open because somebody forgot.
    pub(super) fn read(pool: &DescriptorPool) -> Result<Self, Box<dyn Error>> {
        let option = pool
            .get_extension_by_name("repertoire.v1.access")
            .ok_or("no extension repertoire.v1.access")?;
        let every = pool
            .get_extension_by_name("repertoire.v1.every_skill")
            .ok_or("no extension repertoire.v1.every_skill")?;
        let actions = pool
            .get_enum_by_name("repertoire.v1.Action")
            .ok_or("no enum repertoire.v1.Action")?;
        let mut all = Vec::new();
        for service in pool.services().filter(|s| s.package_name() == PACKAGE) {
            for method in service.methods() {
                let options = method.options();
                let access = options.get_extension(&option);
                let access = access.as_message().ok_or("access is a message")?;
                let field = |name: &str| access.get_field_by_name(name);
                let number = field("action").and_then(|action| action.as_enum_number());
                let action = actions
                    .get_value(number.unwrap_or(0))
                    .filter(|action| action.number() != 0)
                    .ok_or_else(|| {
                        format!(
                            "{}: say what its caller must be allowed to do, with the option (repertoire.v1.access).action",
                            method.full_name()
                        )
                    })?;
                let text = |name: &str| {
                    let text = field(name).and_then(|text| text.as_str().map(str::to_owned));
                    text.unwrap_or_default()
                };
                let (skill, listed) = (text("skill"), text("names"));
                let listed = if listed.is_empty() {
                    skill.clone()
                } else {
                    listed
                };
                let names = listed.split(',').filter(|name| !name.is_empty());
                let names: Vec<String> = names.map(str::to_owned).collect();
                // A misspelled field would leave the skill unchecked, so it fails the build.
                for path in names.iter().chain(Some(&skill)) {
                    let mut message = Some(method.input());
                    for part in path.split('.').filter(|part| !part.is_empty()) {
                        let known = message.and_then(|message| message.get_field_by_name(part));
                        let known = known.ok_or_else(|| {
                            format!("{}: its request has no field {path}", method.full_name())
                        })?;
                        message = known.kind().as_message().cloned();
                    }
                }
                let flag = |name: &str| field(name).and_then(|it| it.as_bool()) == Some(true);
                let unrecorded = flag("unrecorded");
                let reads = READING.contains(&action.name());
                if unrecorded && reads {
                    return Err(format!(
                        "{}: its action is not recorded anyway",
                        method.full_name()
                    )
                    .into());
                }
                all.push(MethodAccess {
                    path: format!("/{}/{}", service.full_name(), method.name()),
                    action: action.name().to_owned(),
                    request: method.input().name().to_owned(),
                    skill: skill
                        .split('.')
                        .filter(|part| !part.is_empty())
                        .map(str::to_owned)
                        .collect(),
                    every_skill: flag("every_skill"),
                    every_skill_values: every_skill_values(&method, &every, &skill)?,
                    names,
                    recorded: !reads && !unrecorded,
                });
            }
        }
        Ok(Self(all))
    }

    /// The field of a request that names the skill of its rpc.
    pub(super) fn skill_of(&self, request: &str) -> Option<String> {
        let method = self.0.iter().find(|method| method.request == request)?;
        (!method.skill.is_empty()).then(|| method.skill.join("."))
    }

    /// The action of each rpc, by its path, what it is bound to, and whether its calls are
    /// recorded.
    pub(super) fn table(&self) -> Result<String, std::fmt::Error> {
        let mut code = String::from("&[\n");
        for method in &self.0 {
            let (path, action) = (&method.path, action_name(&method.action));
            let bound = method.every_skill || !method.skill.is_empty();
            let recorded = method.recorded;
            writeln!(code, "({path:?}, {action:?}, {recorded}, {bound}),")?;
        }
        code.push(']');
        Ok(code)
    }

    /// The body of `Checked::authorize` of a message.
    pub(super) fn of(&self, request: &str) -> Option<String> {
        let method = self.0.iter().find(|method| method.request == request)?;
        let action = action_name(&method.action);
        let every = format!("allowed(authorizer, {action:?}, EVERY_SKILL)");
        if method.every_skill {
            return Some(every);
        }
        let mut code = String::from("let v = self;");
        for (field, values) in &method.every_skill_values {
            let check = format!("if {values:?}.contains(&v.{field}) {{ return {every}; }}");
            code.push_str(&check);
        }
        let (name, messages) = method.skill.split_last()?;
        let mut of_skill = format!("allowed(authorizer, {action:?}, &v.{name})");
        for message in messages.iter().rev() {
            of_skill =
                format!("match &v.{message} {{ Some(v) => {{ {of_skill} }} None => Ok(()) }}");
        }
        Some(code + &of_skill)
    }

    /// The body of `Checked::names` of a message.
    pub(super) fn names_of(&self, request: &MessageDescriptor) -> Option<String> {
        let mut methods = self.0.iter();
        let method = methods
            .find(|it| it.recorded && it.request == request.name() && !it.names.is_empty())?;
        let mut code = String::new();
        for path in &method.names {
            let parts: Vec<_> = path.split('.').collect();
            let (last, messages) = parts.split_last()?;
            let mut message = Some(request.clone());
            for part in messages {
                let field = message?.get_field_by_name(part)?;
                message = field.kind().as_message().cloned();
            }
            let field = message?.get_field_by_name(last)?;
            let mut push = if field.is_list() {
                format!(
                    "names.extend(v.{last}.iter().map(|v| std::borrow::Cow::from(v.as_str())));"
                )
            } else if field.kind() == Kind::Uint32 {
                // 0 is a number that the request leaves out.
                format!("if v.{last} > 0 {{ names.push(v.{last}.to_string().into()); }}")
            } else {
                format!("names.push(v.{last}.as_str().into());")
            };
            for part in messages.iter().rev() {
                push = format!("if let Some(v) = &v.{part} {{ {push} }}");
            }
            code.push_str(&push);
        }
        Some(format!("let v = self; {code} true"))
    }
}

/// The body of `Checked::item` of an answer that a stream gives to each of its messages: the
/// code where it is a refusal.
pub(super) fn item_of(answer: &MessageDescriptor) -> Option<String> {
    let pool = answer.parent_pool();
    let mut methods = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.find(|it| it.is_client_streaming() && it.output() == *answer)?;
    let is_refusal =
        |field: &FieldDescriptor| matches!(field.kind(), Kind::Message(m) if m.name() == "Refusal");
    let field = answer.fields().find(is_refusal)?;
    let oneof = field.containing_oneof()?;
    let (module, oneof) = (snake(answer.name()), oneof.name());
    let (kind, variant) = (camel(oneof), camel(field.name()));
    Some(format!(
        "use super::v1::{module}::{kind} as Item;
         let item = self.{oneof}.as_ref()?;
         Some(if let Item::{variant}(v) = item {{ Some(v.code.as_str()) }} else {{ None }})"
    ))
}

/// The fields of a request with those of their values that are about every skill.
fn every_skill_values(
    method: &MethodDescriptor,
    option: &ExtensionDescriptor,
    skill: &str,
) -> Result<FieldValues<i32>, Box<dyn Error>> {
    let found = valued(&method.input(), option).into_iter();
    let numbers = |values: Vec<(i32, Value)>| values.into_iter().map(|(number, _)| number);
    let found = found.map(|(field, values)| (field, numbers(values).collect()));
    let found: FieldValues<i32> = found.collect();
    // The check is written into that of the skill.
    if found
        .iter()
        .any(|(field, _)| field.contains('.') || skill.is_empty())
    {
        let name = method.full_name();
        return Err(format!(
            "{name}: `every_skill` is known for plain fields of requests that name a skill"
        )
        .into());
    }
    Ok(found)
}

/// The fields of a request whose values have an option, each with these values. The checks that
/// the build writes know plain fields alone, and a path with a `.` is none.
pub(super) fn valued(
    message: &MessageDescriptor,
    option: &ExtensionDescriptor,
) -> FieldValues<(i32, Value)> {
    let mut found = Vec::new();
    for field in message.fields() {
        match field.kind() {
            Kind::Enum(kind) => {
                let values = kind.values().filter_map(|value| {
                    let options = value.options();
                    let has = options.has_extension(option);
                    has.then(|| (value.number(), options.get_extension(option).into_owned()))
                });
                let values: Vec<_> = values.collect();
                if !values.is_empty() {
                    let list = if field.is_list() { ".list" } else { "" };
                    found.push((format!("{}{list}", field.name()), values));
                }
            }
            Kind::Message(inner) if inner.package_name() == PACKAGE && inner != *message => {
                let inner = valued(&inner, option).into_iter();
                found.extend(
                    inner.map(|(name, values)| (format!("{}.{name}", field.name()), values)),
                );
            }
            _ => {}
        }
    }
    found
}

/// The name of a field of a message in Rust.
pub(super) fn member(field: &FieldDescriptor) -> String {
    let name = field.name();
    // Keywords of Rust that the contract has as names of fields.
    let is_keyword = matches!(name, "match" | "ref" | "type");
    format!("{}{name}", if is_keyword { "r#" } else { "" })
}

/// `OneName` as `one_name`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// `one_name` as `OneName`.
pub(super) fn camel(name: &str) -> String {
    let words = name.split('_').filter_map(|word| word.split_at_checked(1));
    words
        .map(|(first, rest)| first.to_ascii_uppercase() + rest)
        .collect()
}

/// `ACTION_READ` as `read`.
pub(super) fn action_name(action: &str) -> String {
    action.trim_start_matches("ACTION_").to_ascii_lowercase()
}
