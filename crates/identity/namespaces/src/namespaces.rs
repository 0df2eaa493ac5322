//! The records of namespaces, in the store and in memory.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::namespace_index::{NamespaceIndex, key};
use crate::{Change, Error, Namespace, NamespacesConfig, NewVisibility, Visibility};
use access::{Access, Action, Caller};
use model::{Principal, SkillId};
use store::{Batch, CommitError, Mirror, Store, StoreError, Stored, Table, TableId, to_the_end};

/// By name in lower case.
pub(crate) const NAMESPACES: Table<str, Namespace> = Table::new(TableId::Namespaces);
/// The most namespaces with a record: all are in memory.
pub(crate) const MAX: usize = 100_000;
/// The most owners of one.
pub(crate) const MAX_OWNERS: usize = 64;
/// The most bytes of the name of an owner.
const MAX_OWNER: usize = 320;

/// The namespaces of a server. Cheap to clone.
#[derive(Clone)]
pub struct Namespaces(Arc<Inner>);

struct Inner {
    store: Store,
    known: Mirror<NamespaceIndex>,
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespaces").finish_non_exhaustive()
    }
}

/// Checks the spelling of a namespace, `source/author`.
fn check_name(name: &str) -> Result<(), Error> {
    // With a slug it is an id, so the rules of ids hold for namespaces, too.
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

/// Reads an owner by the name that `repertoire whoami` shows.
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

/// Checks that a caller may change a namespace.
fn permit(record: Option<&Namespace>, name: &str, access: &Access) -> Result<(), Error> {
    let caller = &access.caller.principal;
    let is_owner = record.is_some_and(|record| record.is_of(caller));
    if is_owner || access.caller.rights.allow(Action::Administer) {
        return Ok(());
    }
    Err(Error::NotOwner {
        caller: caller.clone(),
        namespace: name.to_owned(),
    })
}

impl Namespaces {
    /// Opens the records of a store; for all other namespaces the settings hold.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn open(store: Store, config: NamespacesConfig) -> Result<Self, Error> {
        let empty = NamespaceIndex::default();
        empty.settings.store(Arc::new(config));
        let known = store.follow_table(&NAMESPACES, &empty)?;
        Ok(Self(Arc::new(Inner { store, known })))
    }

    /// Applies other settings to namespaces without a record, from the next call on.
    pub fn configure(&self, config: NamespacesConfig) {
        self.known().settings.store(Arc::new(config));
        self.0.known.refold();
    }

    /// The snapshot of now.
    pub(crate) fn known(&self) -> Arc<NamespaceIndex> {
        self.0.known.load_full()
    }

    /// The visibility of a namespace.
    #[must_use]
    pub fn visibility(&self, name: &str) -> Visibility {
        self.known().levels.of(name)
    }

    /// Lists the records of namespaces that a caller sees, by name, after one.
    #[must_use]
    pub fn list(&self, caller: &Caller, after: &str, size: usize) -> Vec<Arc<Namespace>> {
        let known = self.known();
        let visibility = crate::visibility_key::VisibilityKey::of(caller, &known);
        let range = (
            std::ops::Bound::Excluded(key(after)),
            std::ops::Bound::Unbounded,
        );
        let records = known.by_key.range(range).map(|(_, record)| record);
        let seen = records.filter(|record| {
            visibility
                .as_ref()
                .is_none_or(|visibility| visibility.sees_into(&record.name, &known.levels))
        });
        seen.take(size).cloned().collect()
    }

    /// Changes the record of a namespace.
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
        let changed = async move {
            loop {
                match this.write(&name, change.clone(), &access, now).await {
                    // Another write of the record came between: this one starts from that.
                    Err(Error::Write(CommitError::Conflict { .. })) => {}
                    changed => return changed,
                }
            }
        };
        to_the_end(changed).await
    }

    /// Returns whether a change shows the skills of a namespace to more callers.
    ///
    /// # Errors
    /// It is none; the caller may not change it; the store cannot be read.
    pub fn widens(&self, name: &str, change: &Change, access: &Access) -> Result<bool, Error> {
        check_name(name)?;
        let stored = self.stored(&key(name))?.map(|stored| stored.value);
        permit(stored.as_ref(), name, access)?;
        let known = self.known();
        let after = match change.visibility {
            NewVisibility::Unchanged => return Ok(false),
            NewVisibility::BySettings => known.config.visibility,
            NewVisibility::Set(visibility) => visibility,
        };
        Ok(after < known.levels.of(name))
    }

    async fn write(
        &self,
        name: &str,
        change: Change,
        access: &Access,
        now: Timestamp,
    ) -> Result<Namespace, Error> {
        let key = key(name);
        let stored = self.stored(&key)?;
        let revision = stored.as_ref().map(|stored| stored.revision);
        let stored = stored.map(|stored| stored.value);
        // Before anything else is checked: a caller who may not change a namespace learns nothing
        // of its owners from a message.
        permit(stored.as_ref(), name, access)?;
        let caller = &access.caller.principal;
        let is_administrator = access.caller.rights.allow(Action::Administer);
        let mut record = stored.unwrap_or_else(|| Namespace {
            name: name.to_owned(),
            visibility: None,
            owners: Vec::new(),
            updated_at: now,
            updated_by: caller.clone(),
        });
        change.apply(&mut record)?;
        if record.owners.is_empty() && !is_administrator {
            return Err(Error::Parameter {
                field: "remove_owners",
                message: format!(
                    "{name} would have no owner: add another owner first, or ask an administrator"
                ),
            });
        }
        (record.updated_at, record.updated_by) = (now, caller.clone());
        // Only a new record takes memory. A full table can still be changed and emptied.
        if revision.is_none() && self.known().by_key.len() >= MAX {
            return Err(Error::TooMany { max: MAX });
        }
        let mut batch = Batch::new();
        batch.expect(&NAMESPACES, &key, revision.into());
        if record.is_empty() {
            batch.delete(&NAMESPACES, &key);
        } else {
            batch.put(&NAMESPACES, &key, &record);
        }
        self.0.store.commit(batch).await?;
        Ok(record)
    }

    /// Reads the record of a namespace from the store, by key.
    pub(crate) fn stored(&self, key: &str) -> Result<Option<Stored<Namespace>>, StoreError> {
        self.0.store.get(&NAMESPACES, key)
    }
}

impl Change {
    fn apply(self, record: &mut Namespace) -> Result<(), Error> {
        match self.visibility {
            NewVisibility::Unchanged => {}
            NewVisibility::BySettings => record.visibility = None,
            NewVisibility::Set(visibility) => record.visibility = Some(visibility),
        }
        for name in &self.remove_owners {
            let owner = owner("remove_owners", name)?;
            if !record.is_of(&owner) {
                return Err(Error::Parameter {
                    field: "remove_owners",
                    message: format!("{name} does not own {}", record.name),
                });
            }
            record.owners.retain(|other| *other != owner);
        }
        for name in &self.add_owners {
            let owner = owner("add_owners", name)?;
            if !record.is_of(&owner) {
                record.owners.push(owner);
            }
        }
        if record.owners.len() > MAX_OWNERS {
            return Err(Error::Parameter {
                field: "add_owners",
                message: format!("a namespace has {MAX_OWNERS} owners at most"),
            });
        }
        Ok(())
    }
}
