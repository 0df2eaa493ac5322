//! What codebases come to. Each case compares whole outcomes.

mod ecosystems;
mod hostile;
mod paths;
mod projects;
mod tables;
mod texts;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{Analysis, InlineFile, Inventory, ScanOptions, analyze, walk};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in files {
        write(folder.path(), path, content);
    }
    folder
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, content).expect("a file");
}

fn seen(root: &Path, options: &ScanOptions) -> Analysis {
    let inventory = walk(root, options, &|| false).expect("a walk");
    analyze(&inventory, options)
}

/// Files of a folder, analysed as usual.
fn of(files: &[(&str, &str)]) -> Analysis {
    seen(folder(files).path(), &ScanOptions::default())
}

/// Files that a caller sends.
fn sent(files: &[(&str, &str)]) -> Analysis {
    let options = ScanOptions::default();
    let files = files.iter().map(|(path, content)| InlineFile {
        path: (*path).to_owned(),
        content: Some((*content).to_owned()),
    });
    let inventory = Inventory::inline(files.collect(), &options).expect("an inventory");
    analyze(&inventory, &options)
}

/// Items as `id version confidence source`.
fn stack(analysis: &Analysis) -> Vec<String> {
    analysis
        .stack
        .iter()
        .map(|item| {
            let version = item.version.as_deref().unwrap_or("-");
            format!(
                "{} {version} {:.1} {}",
                item.technology_id, item.confidence, item.source
            )
        })
        .collect()
}

/// Notes as `file:line message`.
fn notes(analysis: &Analysis) -> Vec<String> {
    let line = |line: Option<usize>| line.map_or(String::new(), |line| line.to_string());
    let note = |note: &super::Note| format!("{}:{} {}", note.file, line(note.line), note.message);
    analysis.notes.iter().map(note).collect()
}

/// The project as `name version kind manager`.
fn project(analysis: &Analysis) -> String {
    let project = &analysis.project;
    format!(
        "{} {} {} {}",
        project.name.as_deref().unwrap_or("-"),
        project.version.as_deref().unwrap_or("-"),
        project.kind,
        project
            .package_manager
            .map_or("-", super::PackageManager::name),
    )
}

fn facts(analysis: &Analysis) -> Vec<String> {
    let signals = analysis.signals.iter();
    signals
        .map(|signal| format!("{} {}", signal.fact, signal.file))
        .collect()
}
