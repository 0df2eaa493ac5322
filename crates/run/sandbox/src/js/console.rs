//! `console`: dropped, or recorded as a terminal would show it. Error output is always
//! dropped.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::function::Rest;
use rquickjs::{Ctx, Function, Object, Value};

use super::realm::{Halt, Realm};
use super::show;
use crate::job::{Stopped, Value as Taken};

/// Functions that write to the output.
const WRITING: &[&str] = &["log", "info", "debug"];

/// Functions that do not, or whose output nobody reads.
const SILENT: &[&str] = &[
    "error", "warn", "trace", "table", "time", "timeEnd", "assert",
];

/// A console that drops all output.
pub(super) fn silent(context: &Ctx<'_>) -> Result<(), Halt> {
    let console = dropping(context, WRITING)?;
    Ok(context.globals().set("console", console)?)
}

/// A console that drops the output of these functions and of the silent ones.
fn dropping<'js>(context: &Ctx<'js>, names: &[&str]) -> Result<Object<'js>, Halt> {
    let console = Object::new(context.clone())?;
    for name in SILENT.iter().chain(names) {
        let drop = Function::new(context.clone(), |_: Rest<Value<'_>>| {})?;
        console.set(*name, drop.with_name(name)?)?;
    }
    Ok(console)
}

/// A console that records what a terminal would show.
pub(super) fn recorded<'js>(realm: &Rc<Realm<'js>>) -> Result<Rc<RefCell<String>>, Halt> {
    let context = &realm.context;
    let written = Rc::new(RefCell::new(String::new()));
    let console = dropping(context, &[])?;
    for name in WRITING {
        // The engine would not see that the realm holds the console that holds the realm.
        let (realm, written) = (Rc::downgrade(realm), Rc::clone(&written));
        let write = Function::new(
            context.clone(),
            move |values: Rest<Value<'js>>| -> rquickjs::Result<()> {
                let Some(realm) = realm.upgrade() else {
                    return Ok(());
                };
                match line(&realm, &values.0) {
                    Ok(line) => {
                        let mut written = written.borrow_mut();
                        if written.len() + line.len() >= realm.limits.output_bytes {
                            // An exception could be caught by the solution, which would go on
                            // writing.
                            realm.deadline.stop(Stopped::Output);
                        } else {
                            written.push_str(&line);
                            written.push('\n');
                        }
                        Ok(())
                    }
                    Err(Halt::Stopped(stopped)) => {
                        realm.deadline.stop(stopped);
                        Ok(())
                    }
                    Err(Halt::Thrown) => Err(rquickjs::Error::Exception),
                }
            },
        )?;
        console.set(*name, write.with_name(name)?)?;
    }
    context.globals().set("console", console)?;
    Ok(written)
}

/// The line that one call writes.
fn line<'js>(realm: &Realm<'js>, values: &[Value<'js>]) -> Result<String, Halt> {
    let mut taken = Vec::with_capacity(values.len());
    for value in values {
        taken.push(realm.take(value)?);
    }
    let (text, rest) = match taken.as_slice() {
        [Taken::Text(format), rest @ ..] if !rest.is_empty() => formatted(format, rest),
        all => (String::new(), all),
    };
    let mut parts = Vec::with_capacity(rest.len() + 1);
    if rest.len() < taken.len() {
        parts.push(text);
    }
    parts.extend(rest.iter().map(plain));
    Ok(parts.join(" "))
}

/// Replaces `%s` and its like by values; returns the text and the values that are left.
fn formatted<'a>(format: &str, mut values: &'a [Taken]) -> (String, &'a [Taken]) {
    let mut text = String::with_capacity(format.len());
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(kind) = letters.peek().copied().filter(|_| letter == '%') else {
            text.push(letter);
            continue;
        };
        let value = match kind {
            '%' => "%".to_owned(),
            's' | 'd' | 'i' | 'f' | 'o' | 'O' | 'c' => {
                let Some((value, rest)) = values.split_first() else {
                    text.push(letter);
                    continue;
                };
                values = rest;
                match kind {
                    's' => plain(value),
                    'd' | 'i' | 'f' => show::show(&number(value, kind == 'i')),
                    'c' => String::new(),
                    _ => show::show(value),
                }
            }
            _ => {
                text.push(letter);
                continue;
            }
        };
        letters.next();
        text.push_str(&value);
    }
    (text, values)
}

/// A value where a number is wanted.
fn number(value: &Taken, whole: bool) -> Taken {
    let number = match value {
        Taken::Number(number) => Some(*number),
        Taken::Text(text) => text.trim().parse().ok(),
        Taken::BigInt(_) => return value.clone(),
        _ => None,
    };
    match number {
        Some(number) if whole => Taken::Number(number.trunc()),
        Some(number) => Taken::Number(number),
        None => Taken::NotFinite("NaN".to_owned()),
    }
}

/// A value in a line: a text without quotes.
fn plain(value: &Taken) -> String {
    match value {
        Taken::Text(text) => text.clone(),
        value => show::show(value),
    }
}
