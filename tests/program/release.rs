//! What a release is handed out as: the archive, the package for Debian, the SBOM.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::setup::{commands, system, told};

const BINARY: &str = env!("CARGO_BIN_EXE_repertoire");

/// Writes a program that stands for another one.
fn stand_in(folder: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join(name), format!("#!/bin/sh\n{script}")).expect("a file");
    system(folder, "chmod", &["755", name]);
}

#[test]
#[ignore = "nightly: it packs the program"]
fn the_archive_of_a_release_is_whole_and_the_same_each_time() {
    let place = TempDir::new().expect("a folder");
    let place = place.path();
    // The binary of tests is huge: one that runs it stands for it.
    stand_in(place, "repertoire", &format!("exec '{BINARY}' \"$@\"\n"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/dist");
    let dist = |folder: &str, umask: &str| {
        // What it says where there is no SBOM is for a person.
        let command =
            format!("umask {umask}; REPERTOIRE_BIN=$PWD/repertoire '{script}' {folder} 2>said");
        let path = system(place, "sh", &["-c", &command]);
        place.join(path.trim_end())
    };
    let (first, second) = (dist("first", "022"), dist("second", "077"));
    let bytes = |path: &Path| std::fs::read(path).expect("an archive");
    assert!(bytes(&first) == bytes(&second), "two runs differ");

    let archive = first.file_name().expect("a name").to_string_lossy();
    let name = archive.strip_suffix(".tar.gz").expect("a tar.gz");
    assert!(name.starts_with(concat!("repertoire-", env!("CARGO_PKG_VERSION"), "-")));
    let folder = place.join("first");
    system(
        &folder,
        "sha256sum",
        &["--check", "--quiet", &format!("{archive}.sha256")],
    );
    system(&folder, "tar", &["xzf", &archive]);
    let root = folder.join(name);
    system(
        &root,
        "sha256sum",
        &["--check", "--quiet", "--strict", "SHA256SUMS"],
    );

    let found = system(&root, "find", &[".", "-type", "f", "-printf", "%m %P\\n"]);
    let found: BTreeSet<String> = found.lines().map(str::to_owned).collect();
    let docs = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).expect("docs");
    let docs = docs.map(|page| page.expect("a page").file_name());
    // Without the script that draws a picture.
    let mut expected: BTreeSet<String> = docs
        .filter(|page| Path::new(page).extension().is_some())
        .map(|page| format!("644 docs/{}", page.to_string_lossy()))
        .collect();
    expected.extend(
        commands()
            .iter()
            .map(|name| format!("644 man/man1/{name}.1")),
    );
    let files = [
        "644 CHANGELOG.md",
        "644 LICENSE",
        "644 README.md",
        "644 SECURITY.md",
        "644 SHA256SUMS",
        "644 completions/_repertoire",
        "644 completions/repertoire.bash",
        "644 completions/repertoire.elv",
        "644 completions/repertoire.fish",
        "644 completions/repertoire.ps1",
        "644 helm/repertoire/.helmignore",
        "644 helm/repertoire/Chart.yaml",
        "644 helm/repertoire/templates/NOTES.txt",
        "644 helm/repertoire/templates/_helpers.tpl",
        "644 helm/repertoire/templates/ingress.yaml",
        "644 helm/repertoire/templates/networkpolicy.yaml",
        "644 helm/repertoire/templates/secret.yaml",
        "644 helm/repertoire/templates/service.yaml",
        "644 helm/repertoire/templates/serviceaccount.yaml",
        "644 helm/repertoire/templates/statefulset.yaml",
        "644 helm/repertoire/values.schema.json",
        "644 helm/repertoire/values.yaml",
        "644 repertoire.service",
        "755 repertoire",
    ];
    expected.extend(files.map(str::to_owned));
    if sbom(&place.join("sbom")).is_some() {
        expected.insert("644 repertoire.cdx.json".to_owned());
    }
    assert_eq!(found, expected);
    let sums = std::fs::read_to_string(root.join("SHA256SUMS")).expect("checksums");
    assert_eq!(
        sums.lines().count(),
        expected.len() - 1,
        "it lists all but itself"
    );
    assert_eq!(
        system(&root, "./repertoire", &["-V"]),
        concat!("repertoire ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn the_package_for_debian_is_made_from_any_folder_and_named_alone() {
    let place = TempDir::new().expect("a folder");
    let place = place.path();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/deb");
    // What packs for minutes: one that only writes where it is told to stands for it.
    let tool = format!(
        "[ \"$1\" = --version ] && exec sed -n 's/^CARGO_DEB_VERSION=/cargo-deb /p' '{script}'\n\
         while [ \"$1\" != --output ]; do shift; done\n\
         [ -x \"$CARGO_TARGET_DIR/release/repertoire\" ] || exit 1\n\
         echo package >\"$2/repertoire_2.0.0-1_amd64.deb\"\n"
    );
    stand_in(&place.join("built/tools/bin"), "cargo-deb", &tool);
    let dist = place.join("built/dist");
    std::fs::create_dir_all(&dist).expect("a folder");
    let old = dist.join("repertoire_1.0.0-1_amd64.deb");
    std::fs::write(&old, "old").expect("a file");
    let command = format!("CARGO_TARGET_DIR=built REPERTOIRE_BIN='{BINARY}' '{script}'");
    let new = dist.join("repertoire_2.0.0-1_amd64.deb");
    // Again over what it made.
    for _ in 0..2 {
        let listed = system(place, "sh", &["-c", &command]);
        assert_eq!(listed, format!("{}\n", new.display()));
    }
    assert_eq!(std::fs::read(&old).expect("a file"), b"old");
    let left = std::fs::read_dir(&dist).expect("a folder").count();
    assert_eq!(left, 2, "nothing but packages is left");
}

#[test]
fn the_sbom_is_written_by_the_tool_of_the_folder_that_cargo_would_take() {
    let place = TempDir::new().expect("a folder");
    let place = place.path();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/sbom");
    let tool = format!(
        "[ \"$2\" = --version ] && exec sed -n 's/^CYCLONEDX_VERSION=/cargo-cyclonedx-cyclonedx /p' '{script}'\n\
         echo written >sbom.json\n"
    );
    stand_in(&place.join("built/tools/bin"), "cargo-cyclonedx", &tool);
    let command = format!("CARGO_TARGET_DIR=built '{script}' here");
    system(place, "sh", &["-c", &command]);
    let written = std::fs::read_to_string(place.join("here"));
    assert_eq!(written.expect("an SBOM"), "written\n");
}

/// What `deploy/sbom` writes. None: it has not what it needs.
fn sbom(file: &Path) -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/sbom");
    let output = Command::new(script).arg(file).output().expect("a script");
    if output.status.code() == Some(3) {
        testing::skip("there is no cargo-cyclonedx (`deploy/sbom --install`)");
        return None;
    }
    assert_eq!(told(&output), (Some(0), String::new(), String::new()));
    Some(std::fs::read_to_string(file).expect("an SBOM"))
}

#[test]
#[ignore = "nightly: it needs cargo-cyclonedx"]
fn the_sbom_names_every_crate_in_the_program_with_licence_and_checksum() {
    let place = TempDir::new().expect("a folder");
    let Some(text) = sbom(&place.path().join("sbom")) else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "whose machine");
    let sbom: Value = serde_json::from_str(&text).expect("JSON");
    let program = &sbom["metadata"]["component"];
    assert_eq!(
        (
            &sbom["bomFormat"],
            &sbom["specVersion"],
            &program["name"],
            &program["version"]
        ),
        (
            &json!("CycloneDX"),
            &json!("1.5"),
            &json!("repertoire"),
            &json!(env!("CARGO_PKG_VERSION"))
        )
    );

    // What cargo locked: checksums by name and version; none for crates of the project.
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).expect("a lock file");
    let line = |package: &str, key: &str| {
        let mut lines = package.lines();
        let value = lines.find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        value.map(|value| value.trim_end_matches('"').to_owned())
    };
    let locked: BTreeMap<String, Option<String>> = lock
        .split("[[package]]")
        .skip(1)
        .map(|package| {
            let of = |key| line(package, key).expect("a package");
            (
                format!("{} v{}", of("name"), of("version")),
                line(package, "checksum"),
            )
        })
        .collect();
    let mut listed = BTreeSet::new();
    for component in sbom["components"].as_array().expect("components") {
        let of = |key: &str| component[key].as_str().expect("text");
        let crate_name = format!("{} v{}", of("name"), of("version"));
        let hash = component["hashes"][0]["content"].as_str();
        assert_eq!(hash, locked[&crate_name].as_deref(), "{crate_name}");
        assert!(component["licenses"][0].is_object(), "{crate_name}");
        listed.insert(crate_name);
    }

    let tree = "tree --quiet --locked --offline --package repertoire --edges normal --prefix none --format {p}";
    let tree = system(root, env!("CARGO"), &tree.split(' ').collect::<Vec<_>>());
    let crate_name = |line: &str| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut needed: BTreeSet<String> = tree.lines().skip(1).map(crate_name).collect();
    needed.retain(|name| !name.is_empty() && !name.starts_with("repertoire v"));
    assert!(needed.len() > 100 && needed.contains("repertoire-store v0.1.0"));
    let missing: Vec<_> = needed.difference(&listed).collect();
    assert_eq!(missing, Vec::<&String>::new());
    // Nothing that only builds or tests it.
    for other in [
        "protox",
        "tonic-prost-build",
        "proptest",
        "repertoire-testing",
    ] {
        assert!(
            !listed
                .iter()
                .any(|name| name.starts_with(&format!("{other} "))),
            "{other}"
        );
    }
}
