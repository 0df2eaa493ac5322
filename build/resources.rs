//! Reads which fields of requests name a resource of the server: a path, an address, a secret, a
//! program.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
};

/// Words in the names of fields that name such resources.
const WORDS: &str = "address binary certificate cert command credential database dir directory \
    endpoint env environment executable file folder home hook host hostname location mount password \
    path pipe port program proxy root script secret server socket uri url variable webhook";

/// The fields that name resources.
pub(super) struct Resources {
    option: ExtensionDescriptor,
    /// Messages of requests with such a field, in them or in a message inside.
    messages: BTreeSet<String>,
}

impl Resources {
    /// Reads the options. Fails for a field of a request that sounds like a resource and does not
    /// say what permits it: none is open because somebody forgot.
    pub(super) fn read(pool: &DescriptorPool) -> Result<Self, Box<dyn Error>> {
        let option = pool.get_extension_by_name("repertoire.v1.field");
        let mut read = Self {
            option: option.ok_or("no extension repertoire.v1.field")?,
            messages: BTreeSet::new(),
        };
        for method in pool
            .services()
            .flat_map(|it| it.methods().collect::<Vec<_>>())
        {
            // The check sees a request before its handler, so not the messages of a stream.
            read.walk(
                &method.input(),
                !method.is_client_streaming(),
                &mut Vec::new(),
            )?;
        }
        Ok(read)
    }

    /// The setting that permits a field, and whether it says that it names no resource.
    fn mark(&self, field: &FieldDescriptor) -> (Option<String>, bool) {
        let options = field.options();
        let option = options.get_extension(&self.option);
        let value = |name: &str| option.as_message()?.get_field_by_name(name);
        let setting = value("permitted_by").and_then(|it| it.as_str().map(str::to_owned));
        let is_none = value("names_no_resource").and_then(|it| it.as_bool());
        (setting.filter(|it| !it.is_empty()), is_none == Some(true))
    }

    /// Checks the fields of a message, and returns whether one of them is marked. `is_seen`: the
    /// check at run time can see them.
    fn walk(
        &mut self,
        message: &MessageDescriptor,
        is_seen: bool,
        inside: &mut Vec<String>,
    ) -> Result<bool, String> {
        let name = message.full_name().to_owned();
        if inside.contains(&name) || name.starts_with("google.") {
            return Ok(false);
        }
        inside.push(name.clone());
        let mut is_marked = false;
        for field in message.fields() {
            let in_oneof = field
                .containing_oneof()
                .is_some_and(|it| !it.is_synthetic());
            let is_seen = is_seen && !in_oneof && !field.is_map();
            let mut is_below = false;
            match field.kind() {
                Kind::Message(inner) => {
                    is_below = self.walk(&inner, is_seen, inside)?;
                    if self.messages.contains(inner.full_name()) {
                        self.messages.insert(name.clone());
                    }
                }
                Kind::String | Kind::Bytes => {}
                // No number and no value of an enum names a path.
                _ => continue,
            }
            let wrong = match self.mark(&field) {
                (Some(_), true) => "it cannot both name a resource and name none",
                (Some(_), _) if !is_seen || field.kind() != Kind::String => {
                    "`permitted_by` is known for plain texts of one request"
                }
                (None, false) if !is_below && sounds_like_one(field.name()) => {
                    "it sounds like a path, an address, a secret or a program of the server: say with \
                     the option (repertoire.v1.field).permitted_by which setting permits callers on \
                     the network to name it, or that it `names_no_resource`"
                }
                (setting, is_none) => {
                    is_marked |= is_below || is_none || setting.is_some();
                    if setting.is_some() {
                        self.messages.insert(name.clone());
                    }
                    continue;
                }
            };
            return Err(format!("{}: {wrong}", field.full_name()));
        }
        inside.pop();
        Ok(is_marked)
    }

    /// The body of `Checked::resources` of a message.
    pub(super) fn of(&self, message: &MessageDescriptor) -> Result<Option<String>, Box<dyn Error>> {
        let is_named = |name: &str| self.messages.contains(name);
        let mut code = String::new();
        for field in message.fields().filter(|_| is_named(message.full_name())) {
            let name = field.name();
            let add = match (self.mark(&field).0, field.kind()) {
                (Some(setting), _) => format!("named(out, {name:?}, {setting:?}, v);"),
                (None, Kind::Message(inner)) if is_named(inner.full_name()) => {
                    format!("nested(out, {name:?}, v);")
                }
                _ => continue,
            };
            match (field.is_list(), field.supports_presence()) {
                (true, _) => writeln!(code, "for v in &self.{name} {{ {add} }}")?,
                (_, true) => writeln!(code, "if let Some(v) = &self.{name} {{ {add} }}")?,
                _ => writeln!(code, "let v = &self.{name}; {add}")?,
            }
        }
        Ok((!code.is_empty()).then_some(code))
    }
}

/// Returns whether the name of a field has a word for a resource. An id is a name of ours.
fn sounds_like_one(name: &str) -> bool {
    let singular = |word: &'static str| word.trim_end_matches('s');
    let mut words = name.split('_').map(|word| word.trim_end_matches('s'));
    let is_one = |word: &str| WORDS.split(' ').map(singular).any(|it| it == word);
    !matches!(name.rsplit('_').next(), Some("id" | "ids")) && words.any(is_one)
}
