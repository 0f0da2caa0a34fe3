//! The prose files, held to the code where they can be.

use payonce::operation::{Namespace, OperationKind, Reference};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "DESIGN.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
];

#[test]
fn links_and_paths_lead_to_files() {
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = read(document);
        let links = between(&text, "](", ")").filter(|link| !link.contains("://"));
        let paths = between(&text, "`", "`").filter(|code| {
            let path = code.starts_with("src/") || code.starts_with("tests/") || code.starts_with(".ci/");
            path && !code.contains(['<', '*', ' '])
        });
        for path in links.chain(paths) {
            let path = path.split('#').next().unwrap_or_default();
            if !project().join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_map_shows_every_module() {
    let text = read("ARCHITECTURE.md");
    let map = between(&text, "```text", "```").next().unwrap();
    let mut missing = Vec::new();
    for entry in fs::read_dir(project().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let shown = if path.is_dir() {
            format!("  {name}/ ")
        } else {
            format!("  {name} ")
        };
        if !map.lines().any(|line| line.starts_with(&shown)) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "not on the map: {missing:?}");
}

#[test]
fn the_golden_vectors_of_the_design_are_what_the_code_derives() {
    let text = read("DESIGN.md");
    let mut seen = 0;
    for line in text.lines() {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let ["", namespace, kind, reference, attempt, key, ""] = cells[..] else {
            continue;
        };
        let (Some(kind), Ok(attempt)) = (OperationKind::parse(kind), attempt.parse()) else {
            continue;
        };
        let derived = Namespace::new(namespace)
            .unwrap()
            .key(kind, &Reference::new(reference).unwrap(), attempt);
        assert_eq!(derived.to_string(), key, "{line}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn every_feature_is_in_the_readme() {
    let manifest = read("Cargo.toml");
    let readme = read("README.md");
    let features = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    for line in features.take_while(|line| !line.starts_with('[')) {
        let Some((name, _)) = line.split_once(" = ") else {
            continue;
        };
        assert!(
            name == "default" || readme.contains(&format!("`{name}`")),
            "{name} is not in README.md"
        );
    }
}

#[test]
fn every_name_that_is_logged_is_in_the_table() {
    let text = read("ARCHITECTURE.md");
    let table = between(&text, "| `payonce.", "` |")
        .map(str::to_owned)
        .collect::<BTreeSet<_>>();
    let mut logged = BTreeSet::new();
    let mut folders = vec![project().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(path).unwrap();
                logged.extend(between(&text, "\"payonce.", "\"").map(str::to_owned));
            }
        }
    }
    assert_eq!(table, logged);
}

/// The pieces of `text` between `open` and `close`, none over the end of a line unless `open` is a fence.
fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    let fence = open.starts_with("```");
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(open)? + open.len();
            let length = rest[start..].find(close)?;
            let piece = &rest[start..start + length];
            if fence || !piece.contains('\n') {
                rest = &rest[start + length + close.len()..];
                return Some(piece);
            }
            rest = &rest[start..];
        }
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(project().join(path)).unwrap()
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
