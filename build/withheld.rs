//! Writes how fields of answers are cleared for callers that lack what these need.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};

use super::PACKAGE;
use super::access::{action_name, camel, member, snake};

/// The fields of answers that need an action of their own.
pub(super) struct Withheld(ExtensionDescriptor);

impl Withheld {
    pub(super) fn read(pool: &DescriptorPool) -> Result<Self, Box<dyn Error>> {
        let words = pool
            .get_extension_by_name("repertoire.v1.field")
            .ok_or("no extension repertoire.v1.field")?;
        Ok(Self(words))
    }

    /// The action that a field needs, as callers name it.
    fn of_field(&self, field: &FieldDescriptor) -> Option<String> {
        let options = field.options();
        let words = options.get_extension(&self.0);
        let needs = words.as_message()?.get_field_by_name("needs")?;
        let number = needs.as_enum_number().filter(|number| *number != 0)?;
        let words = self.0.kind().as_message()?.get_field_by_name("needs")?;
        let action = words.kind().as_enum()?.get_value(number)?;
        Some(action_name(action.name()))
    }

    /// The actions that fields of a message need, those of messages in it included.
    fn of(&self, message: &MessageDescriptor) -> BTreeSet<String> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![message.clone()];
        while let Some(message) = open.pop() {
            if message.package_name() != PACKAGE || !seen.insert(message.full_name().to_owned()) {
                continue;
            }
            for field in message.fields() {
                found.extend(self.of_field(&field));
                open.extend(field.kind().as_message().cloned());
            }
        }
        found
    }

    /// What is written around the call of a handler: nothing where its answers have no such field.
    pub(super) fn around(
        &self,
        method: &MethodDescriptor,
    ) -> Result<(String, &'static str), Box<dyn Error>> {
        let needed: Vec<_> = self.of(&method.output()).into_iter().collect();
        if needed.is_empty() {
            return Ok((String::new(), ""));
        }
        if method.is_server_streaming() {
            let name = method.full_name();
            return Err(format!("{name}: `needs` of a field is known for single answers").into());
        }
        let before = format!("let lacked = lacked_by(&request, &{needed:?});\n");
        Ok((before, ".map(|answer| withhold(answer, &lacked))"))
    }

    /// The body of `Checked::withhold` of a message.
    pub(super) fn body(
        &self,
        message: &MessageDescriptor,
    ) -> Result<Option<String>, Box<dyn Error>> {
        if self.of(message).is_empty() {
            return Ok(None);
        }
        let mut code = String::new();
        for field in message.fields() {
            let name = member(&field);
            let oneof = field
                .containing_oneof()
                .filter(|oneof| !oneof.is_synthetic());
            if let Some(action) = self.of_field(&field) {
                if oneof.is_some() {
                    return Err(
                        format!("{}: `needs` in a oneof is not known", field.full_name()).into(),
                    );
                }
                writeln!(
                    code,
                    "if lacked.contains(&{action:?}) {{ self.{name} = Default::default(); }}"
                )?;
                continue;
            }
            let Kind::Message(inner) = field.kind() else {
                continue;
            };
            if self.of(&inner).is_empty() {
                continue;
            }
            match oneof {
                Some(oneof) => writeln!(
                    code,
                    "if let Some(super::v1::{}::{}::{}(v)) = &mut self.{} {{ v.withhold(lacked); }}",
                    snake(message.name()),
                    camel(oneof.name()),
                    camel(field.name()),
                    oneof.name()
                )?,
                None if field.is_map() => {
                    return Err(format!("{}: a map is not known here", field.full_name()).into());
                }
                None if field.is_list() => {
                    writeln!(code, "for v in &mut self.{name} {{ v.withhold(lacked); }}")?;
                }
                None => writeln!(
                    code,
                    "if let Some(v) = &mut self.{name} {{ v.withhold(lacked); }}"
                )?,
            }
        }
        Ok(Some(code))
    }
}
