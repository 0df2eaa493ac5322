//! What is said of namespaces, kept in the store.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::namespace_index::{NamespaceIndex, key};
use crate::{Change, Error, Namespace, NamespacesConfig, NewVisibility, Visibility};
use access::{Access, Action, Caller};
use model::{Principal, SkillId};
use store::{Batch, Store, StoreError, Stored, Table, TableId, to_the_end};

/// By name in lower case.
pub(crate) const NAMESPACES: Table<str, Namespace> = Table::new(TableId::Namespaces);
/// Namespaces of which something may be said: all are in memory.
pub(crate) const MAX: usize = 100_000;
/// Owners of one.
pub(crate) const MAX_OWNERS: usize = 64;
/// Bytes of the name of an owner.
const MAX_OWNER: usize = 320;

/// What is said of namespaces. Cheap to clone.
#[derive(Clone)]
pub struct Namespaces(Arc<Inner>);

struct Inner {
    store: Store,
    known: ArcSwap<NamespaceIndex>,
    /// One change at a time.
    writing: Mutex<()>,
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespaces").finish_non_exhaustive()
    }
}

/// A namespace, spelled as `source/author`.
fn check_name(name: &str) -> Result<(), Error> {
    let id = format!("{name}/x").parse::<SkillId>();
    if id.is_ok_and(|id| id.namespace() == name && !id.is_builtin()) {
        return Ok(());
    }
    Err(Error::Parameter {
        field: "namespace",
        message: format!(
            "`{name}` is no namespace of skills: write `source/author`, such as github/acme"
        ),
    })
}

/// An owner, by the name that callers are told they have.
fn owner(field: &'static str, name: &str) -> Result<Principal, Error> {
    let rest = |kind: &str| name.strip_prefix(kind).filter(|rest| !rest.is_empty());
    let owner = if name.len() > MAX_OWNER {
        None
    } else if let Some(rest) = rest("token:") {
        Some(Principal::token(rest))
    } else if let Some(rest) = rest("certificate:") {
        Some(Principal::certificate(rest))
    } else {
        let of_issuer = rest("oidc:").and_then(|rest| rest.split_once('/'));
        of_issuer.map(|(issuer, name)| Principal::oidc(issuer, name))
    };
    owner.ok_or_else(|| Error::Parameter {
        field,
        message: format!(
            "`{name}` is no caller that can own a namespace: write what `repertoire whoami` says of it, such as token:ada, certificate:ci or oidc:acme/1234"
        ),
    })
}

impl Namespaces {
    /// What is said in a store, and what the settings say of all others.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn open(store: Store, config: NamespacesConfig) -> Result<Self, Error> {
        let mut by_key = OrdMap::new();
        for entry in store.scan(&NAMESPACES, b"") {
            let said = entry?.1.value;
            by_key.insert(key(&said.name), Arc::new(said));
        }
        Ok(Self(Arc::new(Inner {
            store,
            known: ArcSwap::from_pointee(NamespaceIndex::default().with(config, by_key)),
            writing: Mutex::new(()),
        })))
    }

    /// Has other settings hold for namespaces of which nothing is said, from the next call on.
    pub fn configure(&self, config: NamespacesConfig) {
        let known = &self.0.known;
        known.rcu(|known| known.with(config, known.by_key.clone()));
    }

    /// What is said now.
    pub(crate) fn known(&self) -> Arc<NamespaceIndex> {
        self.0.known.load_full()
    }

    /// Who sees the skills of a namespace.
    #[must_use]
    pub fn visibility(&self, name: &str) -> Visibility {
        self.known().levels.of(name)
    }

    /// What is said of namespaces that a caller sees, by name, after one.
    #[must_use]
    pub fn list(&self, caller: &Caller, after: &str, size: usize) -> Vec<Arc<Namespace>> {
        let known = self.known();
        let sight = crate::visibility_key::VisibilityKey::of(caller, &known);
        let range = (
            std::ops::Bound::Excluded(key(after)),
            std::ops::Bound::Unbounded,
        );
        let said = known.by_key.range(range).map(|(_, said)| said);
        let seen = said.filter(|said| {
            sight
                .as_ref()
                .is_none_or(|sight| sight.sees_into(&said.name, &known.levels))
        });
        seen.take(size).cloned().collect()
    }

    /// Says something of a namespace.
    ///
    /// # Errors
    /// It is none, or an owner is none; the caller may not; the store cannot be written.
    pub async fn change(
        &self,
        name: &str,
        change: Change,
        access: &Access,
        now: Timestamp,
    ) -> Result<Namespace, Error> {
        check_name(name)?;
        let (this, name, access) = (self.clone(), name.to_owned(), access.clone());
        to_the_end(async move { this.write(&name, change, &access, now).await }).await
    }

    async fn write(
        &self,
        name: &str,
        change: Change,
        access: &Access,
        now: Timestamp,
    ) -> Result<Namespace, Error> {
        let _writing = self.0.writing.lock().await;
        let key = key(name);
        let stored = self.stored(&key)?;
        let revision = stored.as_ref().map(|stored| stored.revision);
        let caller = &access.caller.principal;
        let is_administrator = access.caller.rights.allow(Action::Administer);
        let mut said = stored.map_or_else(
            || Namespace {
                name: name.to_owned(),
                visibility: None,
                owners: Vec::new(),
                updated_at: now,
                updated_by: caller.clone(),
            },
            |stored| stored.value,
        );
        if !is_administrator && !said.is_of(caller) {
            return Err(Error::NotOwner {
                caller: caller.clone(),
                namespace: name.to_owned(),
            });
        }
        change.apply(&mut said)?;
        if said.owners.is_empty() && !is_administrator {
            return Err(Error::Parameter {
                field: "remove_owners",
                message: format!(
                    "{name} would have no owner: add another owner first, or ask an administrator"
                ),
            });
        }
        (said.updated_at, said.updated_by) = (now, caller.clone());
        if revision.is_none() && self.known().by_key.len() >= MAX {
            return Err(Error::TooMany { max: MAX });
        }
        let mut batch = Batch::new();
        batch.expect(&NAMESPACES, &key, revision.into());
        if said.is_empty() {
            batch.delete(&NAMESPACES, &key);
        } else {
            batch.put(&NAMESPACES, &key, &said);
        }
        self.0.store.commit(batch).await?;
        self.read_again(name)?;
        Ok(said)
    }

    /// What the store has of a namespace, by key.
    pub(crate) fn stored(&self, key: &str) -> Result<Option<Stored<Namespace>>, StoreError> {
        self.0.store.get(&NAMESPACES, key)
    }

    /// Takes in what the store has of a namespace.
    pub(crate) fn read_again(&self, name: &str) -> Result<(), Error> {
        let key = key(name);
        let mut read = Ok(());
        // Read each time that it starts over, so that what is newer is not forgotten.
        self.0.known.rcu(|known| {
            let mut by_key = known.by_key.clone();
            match self.stored(&key) {
                Ok(Some(stored)) => {
                    by_key.insert(key.clone(), Arc::new(stored.value));
                }
                Ok(None) => {
                    by_key.remove(&key);
                }
                Err(error) => read = Err(error),
            }
            known.with(known.config, by_key)
        });
        Ok(read?)
    }
}

impl Change {
    fn apply(self, said: &mut Namespace) -> Result<(), Error> {
        match self.visibility {
            NewVisibility::Unchanged => {}
            NewVisibility::BySettings => said.visibility = None,
            NewVisibility::Set(visibility) => said.visibility = Some(visibility),
        }
        for name in &self.remove_owners {
            let owner = owner("remove_owners", name)?;
            if !said.is_of(&owner) {
                return Err(Error::Parameter {
                    field: "remove_owners",
                    message: format!("{name} does not own {}", said.name),
                });
            }
            said.owners.retain(|other| *other != owner);
        }
        for name in &self.add_owners {
            let owner = owner("add_owners", name)?;
            if !said.is_of(&owner) {
                said.owners.push(owner);
            }
        }
        if said.owners.len() > MAX_OWNERS {
            return Err(Error::Parameter {
                field: "add_owners",
                message: format!("a namespace has {MAX_OWNERS} owners at most"),
            });
        }
        Ok(())
    }
}
