//! Projects and solutions of .NET.

use roxmltree::{Document, Node};

use super::super::text::{self, Broken};
use super::{Manifest, Purpose};

/// `*.csproj` and those of other languages.
pub(super) fn project(text: &str, language: &'static str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    let property = |name: &'static str| property(&document, name);
    let sdk = document.root_element().attribute("Sdk").unwrap_or_default();
    let name = property("AssemblyName").or_else(|| property("PackageId"));
    let web = sdk.eq_ignore_ascii_case("Microsoft.NET.Sdk.Web");
    let kind = property("OutputType").unwrap_or_default();
    let target = property("TargetFramework").or_else(|| property("TargetFrameworks"));
    let target = target.or_else(|| property("TargetFrameworkVersion"));
    let mut manifest = Manifest {
        name: name
            .filter(|name| !name.contains("$("))
            .and_then(text::name),
        version: property("Version").and_then(text::name),
        description: property("Description").and_then(text::sentence),
        purpose: if web || kind.to_lowercase().ends_with("exe") {
            Some(Purpose::Application)
        } else {
            (!sdk.is_empty()).then_some(Purpose::Library)
        },
        platforms: vec![(language, None), ("dotnet", target.map(framework))],
        ..Manifest::default()
    };
    let imported = named(&document, "Sdk").filter_map(|node| node.attribute("Name"));
    for sdk in sdk.split(';').chain(imported).filter(|sdk| !sdk.is_empty()) {
        let (name, version) = sdk.split_once('/').unwrap_or((sdk, ""));
        let version = Some(version).filter(|version| !version.is_empty());
        manifest.needs(
            &format!("sdk:{}", name.trim().to_lowercase()),
            version,
            false,
        );
    }
    for switch in ["UseWPF", "UseWindowsForms"] {
        if property(switch).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            manifest.needs(&format!("property:{}", switch.to_lowercase()), None, false);
        }
    }
    for tag in ["PackageReference", "FrameworkReference"] {
        for node in named(&document, tag) {
            // `PrivateAssets="all"`: a tool for building, which users of the package do not get.
            let development = ["PrivateAssets", "privateAssets"]
                .into_iter()
                .any(|key| value(node, key).is_some_and(|value| value.eq_ignore_ascii_case("all")));
            let name = node
                .attribute("Include")
                .or_else(|| node.attribute("Update"));
            let name = name.unwrap_or_default().to_lowercase();
            manifest.needs(&name, value(node, "Version"), development);
        }
    }
    Ok(manifest)
}

/// `Directory.Packages.props`: versions for the projects below.
pub(super) fn packages(text: &str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    let mut manifest = Manifest::default();
    for node in named(&document, "PackageVersion") {
        if let (Some(name), Some(version)) = (node.attribute("Include"), value(node, "Version")) {
            manifest
                .offers
                .insert(name.to_lowercase(), version.to_owned());
        }
    }
    Ok(manifest)
}

/// `packages.config`.
pub(super) fn config(text: &str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    let mut manifest = Manifest::default();
    for node in named(&document, "package") {
        let name = node.attribute("id").unwrap_or_default().to_lowercase();
        let development = node.attribute("developmentDependency") == Some("true");
        manifest.needs(&name, node.attribute("version"), development);
    }
    Ok(manifest)
}

/// `*.sln`: one of several projects holds them together.
pub(super) fn solution(text: &str) -> Result<Manifest, Broken> {
    let projects = text
        .lines()
        .filter(|line| line.trim_start().starts_with("Project("))
        .filter(|line| line.contains("proj\""));
    Ok(Manifest {
        workspace: projects.count() > 1,
        platforms: vec![("dotnet", None)],
        ..Manifest::default()
    })
}

/// `*.slnx`.
pub(super) fn solution_xml(text: &str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    Ok(Manifest {
        workspace: named(&document, "Project").count() > 1,
        platforms: vec![("dotnet", None)],
        ..Manifest::default()
    })
}

fn named<'a, 'input>(
    document: &'a Document<'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    document
        .descendants()
        .filter(move |node| node.tag_name().name() == name)
}

fn property<'a>(document: &'a Document<'_>, name: &'static str) -> Option<&'a str> {
    named(document, name)
        .find_map(|node| node.text())
        .map(str::trim)
}

/// An attribute, or the element of that name inside.
fn value<'a>(node: Node<'a, '_>, key: &str) -> Option<&'a str> {
    let inside = || node.children().find(|child| child.tag_name().name() == key);
    node.attribute(key).or_else(|| inside()?.text())
}

/// `net8.0` is version 8.0; other names (`netstandard2.0`, `net48`) stay.
fn framework(name: &str) -> String {
    let bare = name.strip_prefix("net").filter(|rest| {
        let modern = rest.contains('.');
        modern && rest.starts_with(|c: char| c.is_ascii_digit())
    });
    let bare = bare.and_then(|rest| rest.split('-').next());
    bare.filter(|_| !name.contains(';'))
        .unwrap_or(name)
        .to_owned()
}
