//! `pom.xml`.

use roxmltree::Node;

use super::super::report::PackageManager;
use super::super::text::{self, Broken};
use super::{Manifest, Purpose};

/// Properties that name the version of Java, the most reliable first.
const JAVA: &[&str] = &[
    "java.version",
    "maven.compiler.release",
    "maven.compiler.source",
];

/// `pom.xml`, with the versions that it manages for itself and for the modules below.
pub(super) fn read(text: &str) -> Result<Manifest, Broken> {
    let document = text::xml(text)?;
    let project = document.root_element();
    if project.tag_name().name() != "project" {
        return Err(Broken::whole("not a pom.xml: its root is no <project>"));
    }
    let parent = child(project, "parent");
    // `name` is a title for people, and often missing.
    let name = value(project, "artifactId").or_else(|| value(project, "name"));
    let versioned = child(project, "version").map_or(parent, |_| Some(project));
    let version = versioned.and_then(|node| value(node, "version"));
    let mut manifest = Manifest {
        name: name.and_then(text::name),
        version: version.and_then(text::name),
        description: value(project, "description").and_then(text::sentence),
        workspace: child(project, "modules")
            .is_some_and(|node| node.children().any(|m| m.is_element())),
        manager: Some(PackageManager::Maven),
        ..Manifest::default()
    };
    if value(project, "packaging") == Some("war") {
        manifest.purpose = Some(Purpose::Application);
    }
    if let Some(parent) = parent {
        // A parent such as `spring-boot-starter-parent` says what a project is built on.
        add(&mut manifest, parent, "", false);
    }
    for node in listed(Some(project), "dependencies", "dependency") {
        let development = value(node, "scope") == Some("test");
        add(&mut manifest, node, "", development);
    }
    let managed = child(project, "dependencyManagement");
    for node in listed(managed, "dependencies", "dependency") {
        let name =
            [value(node, "groupId"), value(node, "artifactId")].map(Option::unwrap_or_default);
        if let Some(version) = value(node, "version") {
            manifest.offers.insert(name.join(":"), version.to_owned());
        }
        // An imported BOM tells the framework, as `spring-boot-dependencies` does.
        if value(node, "scope") == Some("import") {
            add(&mut manifest, node, "", false);
        }
    }
    for node in listed(child(project, "build"), "plugins", "plugin") {
        add(&mut manifest, node, "plugin:", true);
        if value(node, "artifactId") == Some("spring-boot-maven-plugin") {
            manifest.purpose = Some(Purpose::Application);
        }
    }
    let properties = child(project, "properties");
    let version = JAVA.iter().find_map(|key| value(properties?, key));
    manifest
        .platforms
        .push(("java", version.map(str::to_owned)));
    Ok(manifest)
}

/// The text of an element inside. One with a property in it is none: properties are not
/// resolved, and their names are no versions.
fn value<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let text = child(node, name)?.text()?.trim();
    (!text.contains("${")).then_some(text)
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

fn add(manifest: &mut Manifest, node: Node<'_, '_>, prefix: &str, development: bool) {
    // Plugins of Maven itself may go without a group.
    let group = value(node, "groupId").unwrap_or("org.apache.maven.plugins");
    if let Some(artifact) = value(node, "artifactId") {
        let name = format!("{prefix}{group}:{artifact}");
        manifest.needs(&name, value(node, "version"), development);
    }
}
