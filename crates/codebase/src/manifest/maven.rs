//! `pom.xml`.

use std::collections::BTreeMap;

use roxmltree::Node;

use super::super::report::PackageManager;
use super::super::text::{self, Broken};
use super::{MAX_WORD, Manifest, Purpose};

/// Properties that name the version of Java, the most telling first.
const JAVA: &[&str] = &[
    "java.version",
    "maven.compiler.release",
    "maven.compiler.source",
];

/// `pom.xml`. Properties of the file itself are put in their places; those of a
/// parent are not.
pub(super) fn read(text: &str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    let project = document.root_element();
    if project.tag_name().name() != "project" {
        return Err(Broken {
            line: None,
            reason: "not a pom.xml: its root is no <project>".to_owned(),
        });
    }
    let properties: BTreeMap<&str, &str> = child(project, "properties")
        .into_iter()
        .flat_map(|node| node.children())
        .filter_map(|node| Some((node.tag_name().name(), node.text()?.trim())))
        .collect();
    let value = |node: Node<'_, '_>, key: &str| -> Option<String> {
        let text = child(node, key)?.text()?.trim();
        resolve(text, &properties)
    };
    let parent = child(project, "parent");
    let name = value(project, "artifactId").or_else(|| value(project, "name"));
    let mut manifest = Manifest {
        name: name.as_deref().and_then(text::name),
        version: value(project, "version").as_deref().and_then(text::name),
        description: value(project, "description")
            .as_deref()
            .and_then(text::sentence),
        workspace: child(project, "modules")
            .is_some_and(|node| node.children().any(|m| m.is_element())),
        manager: Some(PackageManager::Maven),
        ..Manifest::default()
    };
    if manifest.version.is_none() {
        let version = parent.and_then(|parent| value(parent, "version"));
        manifest.version = version.as_deref().and_then(text::name);
    }
    if value(project, "packaging").as_deref() == Some("war") {
        manifest.purpose = Some(Purpose::Application);
    }
    if let Some(parent) = parent {
        add(&mut manifest, parent, "", &value, false);
    }
    for node in listed(Some(project), "dependencies", "dependency") {
        let scope = value(node, "scope");
        let development = scope.as_deref() == Some("test");
        add(&mut manifest, node, "", &value, development);
    }
    let managed = child(project, "dependencyManagement");
    for node in listed(managed, "dependencies", "dependency") {
        let group = value(node, "groupId").unwrap_or_default();
        let artifact = value(node, "artifactId").unwrap_or_default();
        if let Some(version) = value(node, "version") {
            manifest
                .offers
                .insert(format!("{group}:{artifact}"), version);
        }
        // A list of versions that is imported is there for what it lists.
        if value(node, "scope").as_deref() == Some("import") {
            add(&mut manifest, node, "", &value, false);
        }
    }
    for node in listed(child(project, "build"), "plugins", "plugin") {
        add(&mut manifest, node, "plugin:", &value, true);
        if value(node, "artifactId").as_deref() == Some("spring-boot-maven-plugin") {
            manifest.purpose = Some(Purpose::Application);
        }
    }
    let version = JAVA.iter().find_map(|key| properties.get(*key));
    let version = version.and_then(|text| resolve(text, &properties));
    manifest.platforms.push(("java", version));
    Ok(manifest)
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|node| node.tag_name().name() == name)
}

fn listed<'a, 'input>(
    parent: Option<Node<'a, 'input>>,
    list: &str,
    item: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    let list = parent.and_then(|parent| child(parent, list));
    let items = list.into_iter().flat_map(|list| list.children());
    items.filter(move |node| node.tag_name().name() == item)
}

fn add(
    manifest: &mut Manifest,
    node: Node<'_, '_>,
    prefix: &str,
    value: &dyn Fn(Node<'_, '_>, &str) -> Option<String>,
    development: bool,
) {
    let group = value(node, "groupId");
    // Plugins of Maven itself may go without a group.
    let group = group.unwrap_or_else(|| "org.apache.maven.plugins".to_owned());
    if let Some(artifact) = value(node, "artifactId") {
        let version = value(node, "version");
        let name = format!("{prefix}{group}:{artifact}");
        manifest.needs(&name, version.as_deref(), development);
    }
}

/// A text with one property in its place; none where it is not known. One is
/// enough: a property may not grow into a longer text by naming others.
fn resolve(text: &str, properties: &BTreeMap<&str, &str>) -> Option<String> {
    let Some((before, rest)) = text.split_once("${") else {
        return Some(text.to_owned());
    };
    let (key, after) = rest.split_once('}')?;
    // A long one in many places would make a large file of a small one.
    let value = properties
        .get(key)
        .filter(|value| value.len() <= MAX_WORD)?;
    let whole = format!("{before}{value}{after}");
    (!whole.contains("${")).then_some(whole)
}
