//! Compiles the contract: Rust types, services, the traits of their handlers, the descriptor
//! set with its comments, and the code that checks requests against their validation rules.
//!
//! `protox` reads the `.proto` files, so no `protoc` is needed. Cargo runs this in
//! `crates/faces/contract`, the package that is made of it.

#[path = "build/access.rs"]
mod access;
#[path = "build/handlers.rs"]
mod handlers;
#[path = "build/resources.rs"]
mod resources;
#[path = "build/withheld.rs"]
mod withheld;

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use access::{Access, item_of, member};
use prost_reflect::{Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, Value};
use resources::Resources;
use withheld::Withheld;

/// Where the `.proto` files are.
const PROTO: &str = "../../../proto";
/// Where the contract is, below them: every file there is a part of it.
const CONTRACT: &str = "repertoire/v1";
/// The files that come first, in the order in which agents and documents see their rpcs.
/// A new file needs no entry here: it comes after them.
const FIRST: [&str; 5] = [
    "admin.proto",
    "registry.proto",
    "lookup.proto",
    "composition.proto",
    "tool_host.proto",
];
const PACKAGE: &str = "repertoire.v1";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let out = PathBuf::from(env::var("OUT_DIR")?);

    let mut compiler = protox::Compiler::new([PROTO])?;
    compiler
        .include_source_info(true)
        .include_imports(true)
        .open_files(files()?)?;
    let descriptors = compiler.encode_file_descriptor_set();
    fs::write(out.join("contract.bin"), &descriptors)?;

    // A message knows its name, by which the gateway finds its descriptor.
    let mut config = prost_build::Config::new();
    config.enable_type_names();
    tonic_prost_build::configure()
        .bytes(".repertoire.v1")
        // Maps with an order: the same answer is the same bytes each time.
        .btree_map(".repertoire.v1")
        .codec_path("crate::CheckedCodec")
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;

    let pool = DescriptorPool::decode(descriptors.as_slice())?;
    let access = Access::read(&pool)?;
    fs::write(out.join("access.rs"), access.table()?)?;
    let withheld = Withheld::read(&pool)?;
    let handlers = handlers::generate(&pool, &access, &withheld)?;
    fs::write(out.join("handlers.rs"), handlers)?;
    let checks = Checks::new(&pool, access, withheld, Resources::read(&pool)?)?;
    fs::write(out.join("checks.rs"), checks.generate()?)?;
    Ok(())
}

/// The files of the contract: the first ones, then the others by name.
fn files() -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(PathBuf::from(PROTO).join(CONTRACT))?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort_by_cached_key(|name| {
        let first = FIRST.iter().position(|first| name == first);
        (first.unwrap_or(FIRST.len()), name.clone())
    });
    let files = names.into_iter();
    Ok(files
        .map(|name| PathBuf::from(CONTRACT).join(name))
        .collect())
}

/// Writes `impl Checked` for every message of the contract.
///
/// Turns each `buf.validate` rule that occurs into a direct check of the field;
/// fails the build on a rule that it does not know, so that none is passed over.
struct Checks {
    pool: DescriptorPool,
    rules: prost_reflect::ExtensionDescriptor,
    words: prost_reflect::ExtensionDescriptor,
    access: Access,
    withheld: Withheld,
    resources: Resources,
}

/// The number of a rule, as Rust writes it.
fn number(value: &Value) -> Option<String> {
    let text = match value {
        Value::F64(n) => format!("{n:?}"),
        Value::U64(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::U32(n) => n.to_string(),
        Value::I32(n) => n.to_string(),
        _ => return None,
    };
    // In groups of three, as clippy wants long literals.
    let mut grouped = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    Some(grouped)
}

impl Checks {
    fn new(
        pool: &DescriptorPool,
        access: Access,
        withheld: Withheld,
        resources: Resources,
    ) -> Result<Self, Box<dyn Error>> {
        let extension = |name: &str| {
            pool.get_extension_by_name(name)
                .ok_or_else(|| format!("no extension {name}"))
        };
        Ok(Self {
            pool: pool.clone(),
            rules: extension("buf.validate.field")?,
            words: extension("repertoire.v1.field")?,
            access,
            withheld,
            resources,
        })
    }

    fn generate(&self) -> Result<String, Box<dyn Error>> {
        let mut code = String::new();
        for message in self
            .pool
            .all_messages()
            .filter(|m| m.package_name() == PACKAGE && !m.is_map_entry())
        {
            let mut body = String::new();
            for field in message.fields() {
                self.field(&field, &mut body)?;
            }
            let out = if body.is_empty() { "_" } else { "out" };
            let request = message.name().ends_with("Request");
            writeln!(
                code,
                "impl Checked for super::v1::{} {{\nconst REQUEST: bool = {request};\n\
                 fn check(&self, {out}: &mut Vec<Violation>) {{\n{body}}}",
                message.name()
            )?;
            if let Some(body) = self.access.of(message.name()) {
                writeln!(
                    code,
                    "fn authorize(&self, authorizer: &dyn Authorize) -> Result<(), Failure> {{\n{body}\n}}"
                )?;
            }
            if let Some(body) = self.access.names_of(&message) {
                writeln!(
                    code,
                    "fn names<'a>(&'a self, names: &mut Vec<std::borrow::Cow<'a, str>>) -> bool {{\n{body}\n}}"
                )?;
            }
            if let Some(body) = self.withheld.body(&message)? {
                writeln!(code, "fn withhold(&mut self, lacked: &[&str]) {{\n{body}}}")?;
            }
            if let Some(body) = self.resources.of(&message)? {
                writeln!(
                    code,
                    "fn resources<'a>(&'a self, out: &mut Vec<NamedResource<'a>>) {{\n{body}}}"
                )?;
            }
            if let Some(body) = item_of(&message) {
                writeln!(
                    code,
                    "fn item(&self) -> Option<Option<&str>> {{\n{body}\n}}"
                )?;
            }
            code.push_str("}\n");
        }
        Ok(code)
    }

    fn field(&self, field: &FieldDescriptor, code: &mut String) -> Result<(), Box<dyn Error>> {
        let options = field.options();
        let rules = options.get_extension(&self.rules);
        let rules = rules.as_message().ok_or("rules are a message")?;
        let words = options.get_extension(&self.words);
        let word = |name: &str| {
            let words = words.as_message()?;
            Some(words.get_field_by_name(name)?.as_str()?.to_owned())
        };
        let empty = word("empty_message").unwrap_or_default();
        let hint = word("hint").unwrap_or_default();
        let ignored = rules
            .get_field_by_name("ignore")
            .and_then(|v| v.as_enum_number())
            // `IGNORE_ALWAYS`.
            == Some(3);
        if ignored {
            return Ok(());
        }
        let name = field.name();
        let access = format!("self.{}", member(field));
        let one = matches!(
            field.cardinality(),
            Cardinality::Optional | Cardinality::Required
        );
        if !hint.is_empty() {
            writeln!(code, "let start = out.len();")?;
        }
        let required = rules
            .get_field_by_name("required")
            .and_then(|v| v.as_bool())
            == Some(true);
        if required {
            if !matches!(field.kind(), Kind::String) || !one || field.supports_presence() {
                return Err(format!(
                    "{}: `required` is known for plain strings only",
                    field.full_name()
                )
                .into());
            }
            let sentence = if empty.is_empty() {
                "Required".to_owned()
            } else {
                empty
            };
            writeln!(
                code,
                "if {access}.trim().is_empty() {{ out.push(Violation::required(\"{name}\", {sentence:?})); }}"
            )?;
        }
        // prost keeps the fields of a oneof in an enum of its own, where `self.NAME` does not lead.
        let in_oneof = field
            .containing_oneof()
            .is_some_and(|oneof| !oneof.is_synthetic());
        let mut checks = String::new();
        Self::rules(
            field,
            rules,
            "v",
            &format!("\"{name}\".to_owned()"),
            field.is_list(),
            &mut checks,
        )?;
        let nested = !field.is_map()
            && matches!(field.kind(), Kind::Message(inner) if inner.package_name() == PACKAGE);
        if in_oneof && (!checks.is_empty() || required) {
            return Err(
                format!("{}: rules inside a oneof are not known", field.full_name()).into(),
            );
        }
        if !checks.is_empty() {
            match (field.is_list(), field.supports_presence()) {
                (false, true) => writeln!(code, "if let Some(v) = &{access} {{\n{checks}}}")?,
                _ => writeln!(code, "{{ let v = &{access};\n{checks}}}")?,
            }
        }
        if !hint.is_empty() {
            writeln!(code, "hint(out, start, {hint:?});")?;
        }
        if nested && !in_oneof {
            if field.is_list() {
                writeln!(
                    code,
                    "for (i, v) in {access}.iter().enumerate() {{ inside(out, |out| v.check(out), || format!(\"{name}[{{i}}].\")); }}"
                )?;
            } else {
                writeln!(
                    code,
                    "if let Some(v) = &{access} {{ inside(out, |out| v.check(out), || \"{name}.\".to_owned()); }}"
                )?;
            }
        }
        Ok(())
    }

    fn rules(
        field: &FieldDescriptor,
        rules: &DynamicMessage,
        value: &str,
        path: &str,
        list: bool,
        code: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        for (rule, of) in rules.fields() {
            let kind = rule.name();
            if matches!(kind, "required" | "ignore") {
                continue;
            }
            let of = of.as_message().ok_or("rules of a type are a message")?;
            for (bound, limit) in of.fields() {
                let function = match (kind, bound.name()) {
                    ("string", "max_len") => "max_chars",
                    ("string", "min_len") => "min_chars",
                    ("bytes", "max_len") => "max_bytes",
                    ("double" | "int32" | "int64" | "uint32", "lte") => "at_most",
                    ("double" | "int32" | "int64" | "uint32", "gte") => "at_least",
                    ("repeated", "max_items") if list => "max_items",
                    ("repeated", "min_items") if list => "min_items",
                    _ => "",
                };
                let argument = match function {
                    "at_most" | "at_least" => format!("*{value}"),
                    "max_items" | "min_items" => format!("{value}.len()"),
                    _ => value.to_owned(),
                };
                let check = match (kind, bound.name(), number(limit)) {
                    (_, _, Some(n)) if !function.is_empty() => {
                        format!("{function}({argument}, {n}, || {path}, out);")
                    }
                    ("repeated", "items", None) if list => {
                        let mut each = String::new();
                        let inner = limit.as_message().ok_or("item rules are a message")?;
                        let path = format!("format!(\"{}[{{i}}]\")", field.name());
                        Self::rules(field, inner, "item", &path, false, &mut each)?;
                        format!("for (i, item) in {value}.iter().enumerate() {{\n{each}}}")
                    }
                    ("enum", "defined_only", None) => {
                        let Kind::Enum(names) = field.kind() else {
                            return Err(format!(
                                "{}: enum rules on another type",
                                field.full_name()
                            )
                            .into());
                        };
                        format!(
                            "known(super::v1::{}::try_from(*{value}).is_ok(), || {path}, out);",
                            names.name()
                        )
                    }
                    _ => {
                        return Err(format!(
                            "{}: the rule {kind}.{} is not known here",
                            field.full_name(),
                            bound.name()
                        )
                        .into());
                    }
                };
                writeln!(code, "{check}")?;
            }
        }
        Ok(())
    }
}
