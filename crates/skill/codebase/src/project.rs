//! The project as a whole: its name, its kind, its package managers.

use std::collections::BTreeSet;

use super::inventory::{Inventory, depth, folder};
use super::lock;
use super::manifest::{Ecosystem, ManifestFacts, Purpose};
use super::report::{PackageManager, Project, ProjectKind, Source};
use super::stack::{aside, is_above};
use technologies::{Fact, Technology, TechnologyKind, table};

/// The order in which manifests of one folder describe the project, where files
/// do not decide: those for building assets or tools come last.
const ORDER: &[Ecosystem] = &[
    Ecosystem::Cargo,
    Ecosystem::Go,
    Ecosystem::Jvm,
    Ecosystem::Dotnet,
    Ecosystem::Php,
    Ecosystem::Ruby,
    Ecosystem::Elixir,
    Ecosystem::Dart,
    Ecosystem::Swift,
    Ecosystem::Python,
    Ecosystem::Npm,
];

/// Describes the project.
pub(super) fn project(
    manifests: &[ManifestFacts],
    inventory: &Inventory,
    languages: &[(&'static Technology, usize)],
) -> Project {
    let mut packages: Vec<&ManifestFacts> = manifests
        .iter()
        .filter(|found| !matches!(found.source, Source::ContainerImage | Source::VersionFile))
        .filter(|found| !aside(&found.path))
        .collect();
    let files = |ecosystem: Ecosystem| -> usize {
        let own = ecosystem.languages();
        let of = languages
            .iter()
            .filter(|(language, _)| own.contains(&language.id));
        of.map(|(_, count)| count).sum()
    };
    let order = |ecosystem: Ecosystem| ORDER.iter().position(|found| *found == ecosystem);
    packages.sort_by_key(|found| {
        // By files rather than by a fixed order: a Rails project has a `package.json` for its
        // assets, and a site in TypeScript a `requirements.txt` for a script.
        let share = std::cmp::Reverse(files(found.ecosystem));
        (
            depth(&found.path),
            share,
            order(found.ecosystem),
            !names(found),
            &found.path,
        )
    });
    let main = packages.first().copied();
    // Several packages without one at the root have no name in common.
    let folders: BTreeSet<&str> = packages.iter().map(|found| folder(&found.path)).collect();
    let scattered = folders.len() > 1 && !folders.contains("");
    let workspace = packages.iter().any(|found| {
        found.manifest.workspace && (folder(&found.path).is_empty() || Some(*found) == main)
    });
    let siblings: Vec<&ManifestFacts> = packages
        .iter()
        .copied()
        .filter(|found| {
            main.is_some_and(|main| {
                main.ecosystem == found.ecosystem && folder(&main.path) == folder(&found.path)
            })
        })
        .filter(|_| !scattered)
        .collect();
    let stated = |of: fn(&ManifestFacts) -> Option<&String>| {
        siblings.iter().find_map(|found| of(found)).cloned()
    };
    Project {
        name: stated(|found| found.manifest.name.as_ref()),
        version: stated(|found| found.manifest.version.as_ref()).or_else(|| {
            bequeathed(&siblings, manifests, |found| {
                found.manifest.bequeaths.0.as_ref()
            })
        }),
        description: stated(|found| found.manifest.description.as_ref()).or_else(|| {
            bequeathed(&siblings, manifests, |found| {
                found.manifest.bequeaths.1.as_ref()
            })
        }),
        kind: match main {
            None => ProjectKind::Unknown,
            Some(_) if workspace || scattered => ProjectKind::Monorepo,
            Some(main) => match purpose(main, &siblings, inventory) {
                Some(Purpose::Application) => ProjectKind::Application,
                Some(Purpose::Library) => ProjectKind::Library,
                None => ProjectKind::Single,
            },
        },
        package_manager: main.and_then(|main| manager(main, &siblings, inventory)),
        package_managers: managers(&packages, inventory),
    }
}

fn names(found: &ManifestFacts) -> bool {
    found.manifest.name.is_some()
}

/// Returns what a workspace states for its members, or for itself where it is no package.
fn bequeathed(
    siblings: &[&ManifestFacts],
    all: &[ManifestFacts],
    of: fn(&ManifestFacts) -> Option<&String>,
) -> Option<String> {
    let main = siblings.first()?;
    let mut above = all
        .iter()
        .filter(|found| found.ecosystem == main.ecosystem && is_above(&found.path, &main.path));
    above.find_map(of).cloned()
}

/// The purpose of the project: by its manifest, else by the files in its folder, else by
/// a framework that makes applications.
fn purpose(
    main: &ManifestFacts,
    siblings: &[&ManifestFacts],
    inventory: &Inventory,
) -> Option<Purpose> {
    let stated = |purpose: Purpose| {
        siblings
            .iter()
            .any(|found| found.manifest.purpose == Some(purpose))
    };
    let location = folder(&main.path);
    let at = |name: &str| {
        let path = format!("{location}/{name}");
        inventory.files.contains_key(path.trim_start_matches('/'))
    };
    let below = |name: &str| {
        let path = format!("{location}/{name}");
        let path = path.trim_start_matches('/');
        let mut from = inventory.files.range(path.to_owned()..);
        from.next()
            .is_some_and(|(found, _)| found.starts_with(path))
    };
    let (runs, is_used) = match main.ecosystem {
        Ecosystem::Cargo => (at("src/main.rs") || below("src/bin/"), at("src/lib.rs")),
        Ecosystem::Go => (at("main.go") || below("cmd/"), false),
        Ecosystem::Python => (
            ["manage.py", "app.py", "main.py", "wsgi.py"]
                .into_iter()
                .any(at),
            false,
        ),
        Ecosystem::Ruby => (at("config.ru"), false),
        Ecosystem::Php => (at("artisan") || at("public/index.php"), false),
        _ => (false, false),
    };
    let framed = || {
        let mut used = siblings.iter().flat_map(|found| {
            let direct = found
                .manifest
                .dependencies
                .iter()
                .filter(|needed| !needed.development);
            direct.flat_map(|needed| table().dependency(found.ecosystem.registry(), &needed.name))
        });
        used.any(|shown| {
            let facts = &shown.technology.facts;
            let framework = shown.technology.kind == TechnologyKind::Framework;
            framework && (facts.contains(&Fact::Frontend) || facts.contains(&Fact::Backend))
        })
    };
    // A package can be both, as many Rust programs have a library for their tests. What can be run
    // decides.
    if stated(Purpose::Application) || runs {
        Some(Purpose::Application)
    } else if stated(Purpose::Library) || is_used {
        Some(Purpose::Library)
    } else {
        framed().then_some(Purpose::Application)
    }
}

/// The manager that the manifest names, else that of the nearest lockfile, else the
/// one that comes with the ecosystem.
fn manager(
    main: &ManifestFacts,
    siblings: &[&ManifestFacts],
    inventory: &Inventory,
) -> Option<PackageManager> {
    let named = main.manifest.manager;
    let named = named.or_else(|| siblings.iter().find_map(|found| found.manifest.manager));
    named
        .or_else(|| {
            let locks = inventory
                .files
                .keys()
                .filter(|path| is_above(path, &main.path));
            let own = locks.filter_map(|path| {
                let (ecosystem, manager) = lock::manager(path)?;
                (ecosystem == main.ecosystem).then_some((depth(path), manager))
            });
            // The nearest lockfile. Of several in one folder the first manager of the list: which
            // one is stale cannot be seen.
            own.max_by_key(|(depth, manager)| (*depth, std::cmp::Reverse(*manager)))
                .map(|(_, manager)| manager)
        })
        .or_else(|| main.ecosystem.manager())
}

/// All managers: those that manifests and lockfiles name, and the one of an
/// ecosystem for which nothing names any.
fn managers(packages: &[&ManifestFacts], inventory: &Inventory) -> Vec<PackageManager> {
    let mut found: BTreeSet<(Ecosystem, PackageManager)> = BTreeSet::new();
    for path in inventory.files.keys().filter(|path| !aside(path)) {
        found.extend(lock::manager(path));
    }
    for package in packages {
        let pip = matches!(package.source, Source::Requirements | Source::Setup);
        let named = package
            .manifest
            .manager
            .or(pip.then_some(PackageManager::Pip));
        found.extend(named.map(|manager| (package.ecosystem, manager)));
    }
    let named: BTreeSet<Ecosystem> = found.iter().map(|(ecosystem, _)| *ecosystem).collect();
    let others = packages.iter().map(|package| package.ecosystem);
    let others = others.filter(|ecosystem| !named.contains(ecosystem));
    found.extend(others.filter_map(|ecosystem| Some((ecosystem, ecosystem.manager()?))));
    let managers: BTreeSet<PackageManager> =
        found.into_iter().map(|(_, manager)| manager).collect();
    managers.into_iter().collect()
}
