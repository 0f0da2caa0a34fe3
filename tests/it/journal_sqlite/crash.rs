//! Processes that die, and processes that share a file. The child is this test binary, started again.

use super::{SHOP, bounded, folder};
use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, Replaced, Reservation, Wanted};
use payonce::outcome::Outcome;
use payonce::record::State;
use payonce::testing::conformance::sample::{Sample, answered, outcomes};
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The child's line on its standard output begins with this, so that the test runner's own are told apart.
const MARK: &str = "payonce-child:";

/// More than any child comes to before it is killed, and a bound for one that is not.
const MANY: usize = 100_000;

/// Runs one of the tests below in a process of its own, on the journal at `path`.
fn child(test: &str, path: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("journal_sqlite::crash::{test}"), "--nocapture"])
        .env("PAYONCE_JOURNAL_OF_CHILD", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, output)
}

fn said(line: &str) -> Option<&str> {
    line.split_once(MARK).map(|(_, said)| said)
}

/// The journal that this process was started for, when it is a child.
fn journal_of_child() -> Option<SqliteJournal> {
    std::env::var_os("PAYONCE_JOURNAL_OF_CHILD").map(|path| SqliteJournal::open(path).unwrap())
}

fn reference(number: usize) -> String {
    format!("order-{number}")
}

/// In a child: reserves and settles one operation after the other, and says what has been acknowledged.
#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Some(journal) = journal_of_child() else { return };
    for number in 0..MANY {
        let sample = Sample::charge(SHOP, &reference(number));
        let answer = journal.reserve(&sample.record(), &sample.line()).await.unwrap();
        let Reservation::New(record) = answer else {
            panic!("{answer:?}");
        };
        println!("{MARK}reserved {number}");
        let (next, line) = answered(&record, outcomes().remove(0));
        let event = format!("evt_{number}");
        let answer = journal
            .replace(record.version(), &next, &line, Some(&event))
            .await
            .unwrap();
        assert!(matches!(answer, Replaced::Stored));
        println!("{MARK}settled {number}");
    }
}

#[tokio::test]
async fn c20_what_was_acknowledged_survives_a_kill_and_half_a_step_does_not_exist() {
    for patience in [1, 7, 40, 150] {
        let folder = folder();
        let path = folder.path().join("journal.sqlite3");
        let (reserved, settled) = kill_after(patience, &path);
        let journal = SqliteJournal::open(&path).unwrap();
        check_survivors(&journal, reserved, settled).await;
    }
}

/// Kills the child in the middle of its work; how many operations it has said to be reserved, and settled.
fn kill_after(lines: usize, path: &Path) -> (usize, usize) {
    let (mut child, output) = child("child_that_writes_until_it_is_killed", path);
    let (mut reserved, mut settled) = (0, 0);
    for line in output.map_while(Result::ok) {
        match said(&line).and_then(|said| said.split_once(' ')) {
            Some(("reserved", _)) => reserved += 1,
            Some(("settled", _)) => settled += 1,
            _ => continue,
        }
        if reserved + settled == lines {
            // SIGKILL; what it had said until then is still read.
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success(), "it was killed");
    assert!(reserved + settled >= lines && reserved < MANY);
    (reserved, settled)
}

async fn check_survivors(journal: &SqliteJournal, reserved: usize, settled: usize) {
    for number in 0..reserved + 2 {
        let sample = Sample::charge(SHOP, &reference(number));
        let stored = journal.load(sample.key()).await.unwrap();
        let history = journal.history(sample.key()).await.unwrap();
        let Some(stored) = stored else {
            assert!(number >= reserved, "{number} was acknowledged");
            assert!(history.is_empty(), "a line without its row");
            continue;
        };
        assert!(number <= reserved, "at most one step was under way");
        assert_eq!(u64::try_from(history.len()).unwrap(), stored.version());
        let done = matches!(stored.state(), State::Known(Outcome::Succeeded(_)));
        assert!(done || number >= settled, "{number} was acknowledged");
        // The notification comes again: seen if and only if the state is there.
        let (next, line) = answered(&sample.record(), outcomes().remove(0));
        let event = format!("evt_{number}");
        let again = journal.replace(1, &next, &line, Some(&event)).await.unwrap();
        assert_eq!(matches!(again, Replaced::Seen), done, "{number}: {again:?}");
        assert_eq!(matches!(again, Replaced::Stored), !done, "{number}: {again:?}");
    }
}

const SHARED: usize = 60;

/// In a child, and in its parent at the same time.
async fn reserve_all(journal: &SqliteJournal) -> Vec<usize> {
    let mut mine = Vec::new();
    for number in 0..SHARED {
        let sample = Sample::charge(SHOP, &reference(number));
        match journal.reserve(&sample.record(), &sample.line()).await.unwrap() {
            Reservation::New(_) => mine.push(number),
            Reservation::Existing(_) => {}
            other @ (Reservation::Blocked(_) | Reservation::IdentityTaken(_)) => panic!("{other:?}"),
        }
    }
    mine
}

#[tokio::test]
async fn child_that_reserves_what_its_parent_reserves() {
    let Some(journal) = journal_of_child() else { return };
    println!("{MARK}ready");
    for number in reserve_all(&journal).await {
        println!("{MARK}mine {number}");
    }
}

#[tokio::test]
async fn two_processes_reserve_each_operation_once() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    let (mut child, mut output) = child("child_that_reserves_what_its_parent_reserves", &path);
    let ready = output
        .by_ref()
        .map_while(Result::ok)
        .any(|line| said(&line) == Some("ready"));
    assert!(ready);
    let ours = bounded(reserve_all(&journal)).await;
    let theirs: Vec<usize> = output
        .map_while(Result::ok)
        .filter_map(|line| said(&line)?.strip_prefix("mine ")?.parse().ok())
        .collect();
    assert!(child.wait().unwrap().success());
    let mut all = [ours, theirs].concat();
    all.sort_unstable();
    assert_eq!(all, (0..SHARED).collect::<Vec<_>>());
    let open = Wanted::Open {
        namespace: SHOP.to_owned(),
    };
    assert_eq!(journal.find(&open, MANY).await.unwrap().len(), SHARED);
}
