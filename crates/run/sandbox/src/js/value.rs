//! Takes values apart: by the engine's own means and by functions that were taken before a
//! stranger came, within bounds. A getter or a proxy among them runs a stranger's code,
//! under the same limits as all of it.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::function::This;
use rquickjs::object::Filter;
use rquickjs::{Function, Object, Type, Value};

use super::realm::{Halt, Realm};
use crate::job::{Stopped, Value as Taken};

/// How deep a value may be: deeper than people write, and not too deep to be read again.
const MAX_DEPTH: usize = 32;

/// Bytes that a value counts, besides its text.
const NODE_BYTES: usize = 4;

/// A value that is being taken apart.
pub(super) struct Taking<'a, 'js> {
    realm: &'a Realm<'js>,
    /// Bytes that are left.
    left: usize,
    /// The objects that it is in.
    around: Vec<Value<'js>>,
}

impl<'a, 'js> Taking<'a, 'js> {
    pub(super) fn new(realm: &'a Realm<'js>, bytes: usize) -> Self {
        Self {
            realm,
            left: bytes,
            around: Vec::new(),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Halt> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(Halt::Stopped(Stopped::Output))?;
        Ok(())
    }

    fn text(&mut self, value: &Value<'js>) -> Result<String, Halt> {
        let text = self.realm.text(value)?;
        self.spend(text.len())?;
        Ok(text)
    }

    pub(super) fn take(&mut self, value: &Value<'js>, depth: usize) -> Result<Taken, Halt> {
        self.spend(NODE_BYTES)?;
        // Each level becomes up to three levels of JSON, and serde_json refuses to read more than
        // 128.
        if depth > MAX_DEPTH {
            return Err(Halt::Stopped(Stopped::Output));
        }
        Ok(match value.type_of() {
            Type::Null => Taken::Null,
            Type::Bool => Taken::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => number(value.as_number().unwrap_or(f64::NAN)),
            Type::String => Taken::Text(self.text(value)?),
            Type::BigInt => {
                let digits = self.realm.digits(value)?;
                self.spend(digits.len())?;
                Taken::BigInt(digits)
            }
            Type::Symbol => {
                let name = value.as_symbol().map(rquickjs::Symbol::description);
                let name = name.transpose()?;
                Taken::Symbol(match name {
                    Some(name) => self.text(&name)?,
                    None => String::new(),
                })
            }
            Type::Function | Type::Constructor => {
                let name = value.as_object().map(|object| object.get("name"));
                Taken::Function(match name.transpose()? {
                    Some(name) => self.text(&name)?,
                    None => String::new(),
                })
            }
            _ => match value.as_object() {
                None => Taken::Undefined,
                Some(object) => self.object(value, object, depth)?,
            },
        })
    }

    fn object(
        &mut self,
        value: &Value<'js>,
        object: &Object<'js>,
        depth: usize,
    ) -> Result<Taken, Halt> {
        if self.around.contains(value) {
            return Ok(Taken::Cycle);
        }
        self.around.push(value.clone());
        let taken = if value.is_array() {
            self.array(object, depth)
        } else if value.is_error() {
            self.error(value)
        } else {
            let kind: String = self.realm.kind.call((value.clone(),))?;
            match kind.as_str() {
                // A proxy of one.
                "array" => self.array(object, depth),
                "map" => self.map(value, depth),
                "set" => self.set(value, depth),
                "date" => {
                    let time: f64 = self.realm.get_time.call((This(value.clone()),))?;
                    Ok(Taken::Date(time.is_finite().then_some(time)))
                }
                _ => self.properties(object, depth),
            }
        };
        self.around.pop();
        taken
    }

    fn error(&mut self, value: &Value<'js>) -> Result<Taken, Halt> {
        let thrown = self.realm.error(value)?;
        self.spend(thrown.name.len() + thrown.message.len())?;
        Ok(Taken::Error(thrown.name, thrown.message))
    }

    fn array(&mut self, object: &Object<'js>, depth: usize) -> Result<Taken, Halt> {
        let length: f64 = object.get("length")?;
        // Each item will count at least that.
        let max = self.left / NODE_BYTES;
        #[expect(clippy::cast_precision_loss, reason = "compared, not counted")]
        if length > max as f64 {
            return Err(Halt::Stopped(Stopped::Output));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a length is whole, and bounded above; of a proxy it may be anything"
        )]
        let length = length.max(0.0) as u32;
        let mut items = Vec::new();
        for index in 0..length {
            let item: Value = object.get(index)?;
            items.push(self.take(&item, depth + 1)?);
        }
        Ok(Taken::Array(items))
    }

    fn properties(&mut self, object: &Object<'js>, depth: usize) -> Result<Taken, Halt> {
        let mut properties = Vec::new();
        for key in object.own_keys::<Value>(Filter::new().string().enum_only()) {
            let key = key?;
            let item: Value = object.get(key.clone())?;
            let name = self.text(&key)?;
            properties.push((name, self.take(&item, depth + 1)?));
        }
        Ok(Taken::Object(properties))
    }

    /// Collects the entries by a `forEach` that no stranger changed.
    fn each(
        &self,
        for_each: &Function<'js>,
        value: &Value<'js>,
    ) -> Result<Vec<(Value<'js>, Value<'js>)>, Halt> {
        let max = self.left / NODE_BYTES;
        let found = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&found);
        let collect = Function::new(
            self.realm.context.clone(),
            move |item: Value<'js>, key: Value<'js>| {
                let mut found = into.borrow_mut();
                // One more than can be paid for says that there are too many.
                if found.len() <= max {
                    found.push((key, item));
                }
            },
        )?;
        for_each.call::<_, ()>((This(value.clone()), collect))?;
        Ok(found.take())
    }

    fn map(&mut self, value: &Value<'js>, depth: usize) -> Result<Taken, Halt> {
        let for_each = self.realm.map_for_each.clone();
        let mut entries = Vec::new();
        for (key, item) in self.each(&for_each, value)? {
            entries.push((self.take(&key, depth + 1)?, self.take(&item, depth + 1)?));
        }
        Ok(Taken::Map(entries))
    }

    fn set(&mut self, value: &Value<'js>, depth: usize) -> Result<Taken, Halt> {
        let for_each = self.realm.set_for_each.clone();
        let mut items = Vec::new();
        for (_, item) in self.each(&for_each, value)? {
            items.push(self.take(&item, depth + 1)?);
        }
        Ok(Taken::Set(items))
    }
}

fn number(number: f64) -> Taken {
    if number.is_finite() {
        Taken::Number(number)
    } else {
        // Rust writes `inf` where JavaScript writes `Infinity`, and `NaN` as it does.
        Taken::NotFinite(number.to_string().replace("inf", "Infinity"))
    }
}
