//! What a program takes on with the crate: counted, so that a new dependency is a decision and not an accident.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Crates in the normal tree of the default features, without the crate itself.
const HEAVIEST: usize = 120;

/// A second TLS or crypto stack, or a system library that the user's image may not have.
const UNWANTED: &[&str] = &[
    "native-tls",
    "openssl",
    "openssl-sys",
    "ring",
    "schannel",
    "security-framework-sys",
];

#[test]
fn the_default_tree_stays_light_and_has_one_tls_stack() {
    let crates = tree(&[]);
    assert!(crates.iter().any(|name| name.starts_with("reqwest ")), "{crates:#?}");
    assert_eq!(too_heavy(&crates), Vec::<String>::new());
}

#[test]
fn without_the_feature_nothing_unmaintained_is_left() {
    let crates = tree(&["--no-default-features", "--features", "rustls,stripe,twoc2p,sqlite"]);
    for gone in ["backoff ", "instant "] {
        assert!(
            !crates.iter().any(|name| name.starts_with(gone)),
            "{gone}is still there"
        );
    }
}

#[test]
fn a_heavy_tree_is_found_out() {
    let many: BTreeSet<String> = (0..121).map(|number| format!("crate{number} v1.0.0")).collect();
    assert_eq!(too_heavy(&many), ["121 crates, at most 120"]);
    let unwanted = BTreeSet::from([
        "openssl v0.10.1".to_owned(),
        "ring v0.17.14".to_owned(),
        "rings v1.0.0".to_owned(),
    ]);
    assert_eq!(
        too_heavy(&unwanted),
        ["openssl v0.10.1 is unwanted", "ring v0.17.14 is unwanted"]
    );
}

fn too_heavy(crates: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    if crates.len() > HEAVIEST {
        complaints.push(format!("{} crates, at most {HEAVIEST}", crates.len()));
    }
    let unwanted = |name: &&String| UNWANTED.iter().any(|unwanted| name.split(' ').next() == Some(unwanted));
    complaints.extend(crates.iter().filter(unwanted).map(|name| format!("{name} is unwanted")));
    complaints
}

/// Names with versions, each once, without this crate.
fn tree(features: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"])
        .args(features);
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || done.send(command.output()));
    let output = waiting.recv_timeout(Duration::from_secs(120)).unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(name_and_version)
        .filter(|name| !name.is_empty() && !name.starts_with("payonce "))
        .collect()
}
