//! Tests that a stranger wrote. They are registered and judged here: a test passes when its
//! function, and what runs before and after it, neither throws nor rejects, and settles.
//! `expect` only decides when to throw, so a stranger who changes it changes no verdict.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use rquickjs::{Ctx, Exception, Function, Object, Value};

use super::SOLUTION;
use super::realm::{Halt, Realm};
use super::show;
use super::value::Taking;
use crate::deadline::yield_processor;
use crate::job::{Outcome, Stopped, TestOutcome};

/// Bytes of a value that a message shows.
const MAX_SHOWN: usize = 1000;

/// Name of the error that `expect` throws. Its message needs no name before it.
const ASSERTION: &str = "AssertionError";

/// A `describe`, or the file.
#[derive(Default)]
struct Group<'js> {
    /// With those of what it is in.
    name: String,
    parent: Option<usize>,
    before_all: Vec<Function<'js>>,
    after_all: Vec<Function<'js>>,
    before_each: Vec<Function<'js>>,
    after_each: Vec<Function<'js>>,
    items: Vec<Item<'js>>,
    mode: Mode,
}

enum Item<'js> {
    Test(String, Function<'js>, Mode),
    Group(usize),
}

/// Which tests of a group or file are run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Plain,
    Only,
    Skip,
}

/// Tests that a file has registered.
struct Suite<'js> {
    groups: Vec<Group<'js>>,
    current: usize,
    /// The file is read, tests are running: nothing can be registered any more.
    closed: bool,
    around: Vec<Function<'js>>,
}

/// State of the functions that a stranger calls. They hold it weakly: the engine would not
/// see the cycle.
struct Shared<'js> {
    realm: Rc<Realm<'js>>,
    suite: RefCell<Suite<'js>>,
}

/// Gives the realm what a file of tests calls.
pub(super) struct Tests<'js>(Rc<Shared<'js>>);

impl<'js> Tests<'js> {
    pub(super) fn new(realm: &Rc<Realm<'js>>) -> Result<Self, Halt> {
        let context = &realm.context;
        let shared = Rc::new(Shared {
            realm: Rc::clone(realm),
            suite: RefCell::new(Suite {
                groups: vec![Group::new(String::new(), None, Mode::Plain)],
                current: 0,
                closed: false,
                around: Vec::new(),
            }),
        });
        let natives = Object::new(context.clone())?;
        let weak = || Rc::downgrade(&shared);
        let with = weak();
        let register =
            move |context: Ctx<'js>, name: Value<'js>, test: Value<'js>, mode: String| {
                with_suite(&with, &context, |shared| {
                    shared.register(&context, &name, test, &mode)
                })
            };
        natives.set("register", Function::new(context.clone(), register)?)?;
        let with = weak();
        let group = move |context: Ctx<'js>, name: Value<'js>, body: Value<'js>, mode: String| {
            with_suite(&with, &context, |shared| {
                shared.group(&context, &name, body, &mode)
            })
        };
        natives.set("group", Function::new(context.clone(), group)?)?;
        let with = weak();
        let hook = move |context: Ctx<'js>, kind: String, call: Value<'js>| {
            with_suite(&with, &context, |shared| shared.hook(&context, &kind, call))
        };
        natives.set("hook", Function::new(context.clone(), hook)?)?;
        for name in ["before", "after"] {
            let with = weak();
            let around = move |call: Function<'js>| {
                if let Some(shared) = with.upgrade() {
                    shared.suite.borrow_mut().around.push(call);
                }
            };
            natives.set(name, Function::new(context.clone(), around)?)?;
        }
        let with = weak();
        let show = move |value: Value<'js>| match with.upgrade() {
            Some(shared) => shared.show(&value),
            None => String::new(),
        };
        natives.set("show", Function::new(context.clone(), show)?)?;
        natives.set("timers", realm.timers.clone())?;
        let prelude: Function = context.eval(include_str!("expect.js"))?;
        yield_processor();
        prelude.call::<_, ()>((natives,))?;
        yield_processor();
        Ok(Self(shared))
    }

    /// Reads a file of tests and runs them.
    pub(super) fn run(self, solution: &str) -> Result<Vec<TestOutcome>, Halt> {
        let Self(shared) = self;
        let result = shared.realm.script(SOLUTION, solution).and_then(|()| {
            // The groups are taken out of the reach of strangers, so that a running test cannot
            // change which tests are run.
            let suite = {
                let mut suite = shared.suite.borrow_mut();
                suite.closed = true;
                Suite {
                    groups: std::mem::take(&mut suite.groups),
                    current: 0,
                    closed: true,
                    around: std::mem::take(&mut suite.around),
                }
            };
            let only = suite.groups.iter().any(Group::has_only);
            let mut running = Running {
                realm: &shared.realm,
                suite: &suite,
                only,
                left: shared.realm.limits.output_bytes,
                outcomes: Vec::new(),
            };
            running.group(0, !only, None)?;
            Ok(running.outcomes)
        });
        // The engine cannot collect functions that are held from here.
        let mut suite = shared.suite.borrow_mut();
        suite.groups.clear();
        suite.around.clear();
        result
    }
}

/// Does something with the suite, which is there as long as anything runs.
fn with_suite<'js>(
    shared: &Weak<Shared<'js>>,
    context: &Ctx<'js>,
    body: impl FnOnce(&Shared<'js>) -> rquickjs::Result<()>,
) -> rquickjs::Result<()> {
    match shared.upgrade() {
        Some(shared) => body(&shared),
        None => Err(Exception::throw_message(context, "the tests are over")),
    }
}

impl<'js> Shared<'js> {
    /// A value for a message, cut where it is long.
    fn show(&self, value: &Value<'js>) -> String {
        match Taking::new(&self.realm, MAX_SHOWN).take(value, 0) {
            Ok(taken) => show::show(&taken),
            Err(Halt::Stopped(_)) => "a value that is too large to show".to_owned(),
            Err(Halt::Thrown) => {
                drop(self.realm.context.catch());
                "a value that cannot be read".to_owned()
            }
        }
    }

    /// The name of what is registered, below the one that it is in.
    fn name(&self, name: &Value<'js>) -> String {
        let name = match self.realm.text(name) {
            Ok(text) if name.is_string() => text,
            _ => self.show(name),
        };
        let suite = self.suite.borrow();
        match suite.groups.get(suite.current).map(|group| &*group.name) {
            None | Some("") => name,
            Some(outer) => format!("{outer} › {name}"),
        }
    }

    fn check_open(&self, context: &Ctx<'js>, what: &str) -> rquickjs::Result<()> {
        if self.suite.borrow().closed {
            let message = format!("{what} cannot be called while tests run: tests do not nest");
            return Err(Exception::throw_message(context, &message));
        }
        Ok(())
    }

    fn register(
        &self,
        context: &Ctx<'js>,
        name: &Value<'js>,
        test: Value<'js>,
        mode: &str,
    ) -> rquickjs::Result<()> {
        self.check_open(context, "test")?;
        if mode == "todo" {
            return Ok(());
        }
        let test = function(context, test, "test(name, function) needs a function")?;
        let name = self.name(name);
        self.add(Item::Test(name, test, Mode::of(mode)));
        Ok(())
    }

    fn group(
        &self,
        context: &Ctx<'js>,
        name: &Value<'js>,
        body: Value<'js>,
        mode: &str,
    ) -> rquickjs::Result<()> {
        self.check_open(context, "describe")?;
        let body = function(context, body, "describe(name, function) needs a function")?;
        let name = self.name(name);
        let outer = {
            let mut suite = self.suite.borrow_mut();
            let (outer, inner) = (suite.current, suite.groups.len());
            suite
                .groups
                .push(Group::new(name, Some(outer), Mode::of(mode)));
            suite.current = inner;
            outer
        };
        // The suite must not be borrowed here: the body registers tests, which borrows it mutably.
        let result = body.call::<_, Value>(());
        let inner = {
            let mut suite = self.suite.borrow_mut();
            std::mem::replace(&mut suite.current, outer)
        };
        self.add(Item::Group(inner));
        result.map(drop)
    }

    fn add(&self, item: Item<'js>) {
        let mut suite = self.suite.borrow_mut();
        let current = suite.current;
        if let Some(group) = suite.groups.get_mut(current) {
            group.items.push(item);
        }
    }

    fn hook(&self, context: &Ctx<'js>, kind: &str, call: Value<'js>) -> rquickjs::Result<()> {
        self.check_open(context, kind)?;
        let call = function(context, call, &format!("{kind}(function) needs a function"))?;
        let mut suite = self.suite.borrow_mut();
        let current = suite.current;
        if let Some(group) = suite.groups.get_mut(current) {
            match kind {
                "beforeAll" => group.before_all.push(call),
                "afterAll" => group.after_all.push(call),
                "beforeEach" => group.before_each.push(call),
                _ => group.after_each.push(call),
            }
        }
        Ok(())
    }
}

fn function<'js>(
    context: &Ctx<'js>,
    value: Value<'js>,
    message: &str,
) -> rquickjs::Result<Function<'js>> {
    value
        .into_function()
        .ok_or_else(|| Exception::throw_type(context, message))
}

impl Mode {
    fn of(word: &str) -> Self {
        match word {
            "only" => Self::Only,
            "skip" => Self::Skip,
            _ => Self::Plain,
        }
    }
}

impl Group<'_> {
    fn new(name: String, parent: Option<usize>, mode: Mode) -> Self {
        Self {
            name,
            parent,
            mode,
            ..Self::default()
        }
    }

    fn has_only(&self) -> bool {
        let only = |item: &Item<'_>| matches!(item, Item::Test(_, _, Mode::Only));
        self.mode == Mode::Only || self.items.iter().any(only)
    }
}

/// The tests of a file, running.
struct Running<'a, 'js> {
    realm: &'a Realm<'js>,
    suite: &'a Suite<'js>,
    /// A test or group is marked `only`.
    only: bool,
    /// Bytes of output that are left.
    left: usize,
    outcomes: Vec<TestOutcome>,
}

impl<'js> Running<'_, 'js> {
    /// Runs a group. `chosen`: its plain tests are to be run. `broken`: the setup of a group
    /// around it failed, so its tests are reported and not run.
    fn group(&mut self, index: usize, chosen: bool, broken: Option<&str>) -> Result<(), Halt> {
        let Some(group) = self.suite.groups.get(index) else {
            return Ok(());
        };
        if group.mode == Mode::Skip {
            return Ok(());
        }
        let chosen = chosen || group.mode == Mode::Only;
        if !self.runs_any(group, chosen) {
            return Ok(());
        }
        let failed = match broken {
            Some(error) => Some(error.to_owned()),
            None => self.all(&group.before_all)?,
        };
        for item in &group.items {
            match item {
                Item::Group(inner) => self.group(*inner, chosen, failed.as_deref())?,
                Item::Test(name, test, mode) if self.is_chosen(*mode, chosen) => {
                    let error = match &failed {
                        Some(error) => Some(error.clone()),
                        None => self.test(index, test)?,
                    };
                    self.report(name.clone(), error)?;
                }
                Item::Test(..) => {}
            }
        }
        if broken.is_none()
            && let Some(error) = self.all(&group.after_all)?
        {
            let name = match group.name.as_str() {
                "" => "afterAll".to_owned(),
                name => format!("{name} › afterAll"),
            };
            self.report(name, Some(error))?;
        }
        Ok(())
    }

    fn is_chosen(&self, mode: Mode, chosen: bool) -> bool {
        match mode {
            Mode::Skip => false,
            Mode::Only => true,
            Mode::Plain => chosen || !self.only,
        }
    }

    /// Whether anything of a group is to be run.
    fn runs_any(&self, group: &Group<'js>, chosen: bool) -> bool {
        group.items.iter().any(|item| match item {
            Item::Test(_, _, mode) => self.is_chosen(*mode, chosen),
            Item::Group(inner) => self.suite.groups.get(*inner).is_some_and(|inner| {
                inner.mode != Mode::Skip && self.runs_any(inner, chosen || inner.mode == Mode::Only)
            }),
        })
    }

    fn report(&mut self, name: String, error: Option<String>) -> Result<(), Halt> {
        let bytes = 16 + name.len() + error.as_ref().map_or(0, String::len);
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(Halt::Stopped(Stopped::Output))?;
        self.outcomes.push(TestOutcome { name, error });
        Ok(())
    }

    /// Runs one test with its hooks; returns the first failure.
    fn test(&self, group: usize, test: &Function<'js>) -> Result<Option<String>, Halt> {
        let mut groups = Vec::new();
        let mut next = Some(group);
        while let Some(group) = next.and_then(|index| self.suite.groups.get(index)) {
            groups.push(group);
            next = group.parent;
        }
        // `expect.js` registers two functions in this order: one to run before each test, one
        // after it.
        let mut error = self.all(self.suite.around.get(..1).unwrap_or_default())?;
        for group in groups.iter().rev() {
            if error.is_none() {
                error = self.all(&group.before_each)?;
            }
        }
        if error.is_none() {
            error = self.one(test)?;
        }
        if error.is_none() {
            error = self.all(self.suite.around.get(1..).unwrap_or_default())?;
        }
        for group in &groups {
            // Cleanup runs even after a failure, or the next test would trip over what this one
            // left behind. The first error is reported.
            let after = self.all(&group.after_each)?;
            error = error.or(after);
        }
        Ok(error)
    }

    /// Calls one after the other, until one fails.
    fn all(&self, functions: &[Function<'js>]) -> Result<Option<String>, Halt> {
        for function in functions {
            if let Some(error) = self.one(function)? {
                return Ok(Some(error));
            }
        }
        Ok(None)
    }

    /// Calls a function; returns how it failed.
    fn one(&self, function: &Function<'js>) -> Result<Option<String>, Halt> {
        let settled = self
            .realm
            .call(function)
            .and_then(|result| self.realm.settle(result));
        let outcome = match settled {
            Ok(_) => return Ok(None),
            Err(Halt::Stopped(Stopped::Unsettled)) => {
                let waits = function.get::<_, String>("name");
                let is_done = waits.is_ok_and(|name| name == "waits for done");
                return Ok(Some(if is_done {
                    "it is handed `done`, which is never called".to_owned()
                } else {
                    "its promise never settles".to_owned()
                }));
            }
            Err(halt) => self.realm.outcome(&halt),
        };
        self.realm.check()?;
        Ok(Some(match outcome {
            Outcome::Stopped(Stopped::Stack) => "it calls itself without end".to_owned(),
            Outcome::Stopped(stopped) => return Err(Halt::Stopped(stopped)),
            Outcome::Thrown { name, message, .. } if name.is_empty() || name == ASSERTION => {
                message
            }
            Outcome::Thrown { name, message, .. } => format!("{name}: {message}"),
            // An error has no other outcome.
            _ => "it failed".to_owned(),
        }))
    }
}
