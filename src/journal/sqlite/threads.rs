//! The two threads that own the connections, and the desk in front of each where requests are handed in.

use super::fault::failed;
use super::tables::Tables;
use crate::error::JournalError;
use rusqlite::Connection;
use std::sync::mpsc;
use std::thread;
use tokio::sync::oneshot;

/// The most requests that share one transaction: what one flush to the disk is shared by, and what one caller may
/// have to wait for.
const GROUP: usize = 128;

/// Where requests for one thread are handed in. The thread ends when its desk is dropped, after the requests before.
pub(super) struct Desk {
    requests: mpsc::Sender<Box<dyn Request>>,
    ended: oneshot::Receiver<()>,
}

impl Desk {
    /// Starts a thread that serves requests on `connection`.
    pub(super) fn open(
        name: &str,
        connection: Connection,
        serve: fn(&Connection, &mpsc::Receiver<Box<dyn Request>>),
    ) -> Result<Self, JournalError> {
        let (requests, queue) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let run = move || {
            serve(&connection, &queue);
            drop(connection);
            let _ = end.send(());
        };
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .map_err(|error| JournalError::transient("the journal's thread could not be started").with_source(error))?;
        Ok(Self { requests, ended })
    }

    /// Has `work` done and waits for the answer. A caller that goes away does not undo it.
    pub(super) async fn ask<T, W>(&self, work: W) -> Result<T, JournalError>
    where
        T: Send + 'static,
        W: FnMut(&mut Tables<'_>) -> Result<T, JournalError> + Send + 'static,
    {
        let gone = || JournalError::permanent("the journal's thread has ended");
        let (request, answer) = request(work);
        self.requests.send(request).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Waits until the thread has ended and its connection is closed.
    pub(super) async fn close(self) {
        drop(self.requests);
        let _ = self.ended.await;
    }
}

/// One request at the desk.
pub(super) trait Request: Send {
    /// Does the work and keeps the answer. May be called again, when what was done has been rolled back.
    fn work(&mut self, tables: &mut Tables<'_>) -> Result<(), JournalError>;

    /// Gives the answer to whoever asked. `end` says what became of the transaction around it.
    fn answer(self: Box<Self>, end: Result<(), JournalError>);
}

/// Where the answer to a request arrives.
type Answer<T> = oneshot::Receiver<Result<T, JournalError>>;

fn request<T, W>(work: W) -> (Box<dyn Request>, Answer<T>)
where
    T: Send + 'static,
    W: FnMut(&mut Tables<'_>) -> Result<T, JournalError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let asked = Asked {
        work,
        done: None,
        reply,
    };
    (Box::new(asked), answer)
}

struct Asked<T, W> {
    work: W,
    done: Option<Result<T, JournalError>>,
    reply: oneshot::Sender<Result<T, JournalError>>,
}

impl<T, W> Request for Asked<T, W>
where
    T: Send,
    W: FnMut(&mut Tables<'_>) -> Result<T, JournalError> + Send,
{
    fn work(&mut self, tables: &mut Tables<'_>) -> Result<(), JournalError> {
        let (outcome, done) = match (self.work)(tables) {
            Ok(answer) => (Ok(()), Ok(answer)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        self.done = Some(done);
        outcome
    }

    fn answer(self: Box<Self>, end: Result<(), JournalError>) {
        let answer = match (self.done, end) {
            (Some(Err(own)), _) => Err(own),
            (_, Err(end)) => Err(end),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (None, Ok(())) => Err(JournalError::transient("the journal did not come to the step")),
        };
        // Whoever asked may have gone.
        let _ = self.reply.send(answer);
    }
}

/// Serves reads, each by itself: a single statement sees one state of the file.
pub(super) fn read(connection: &Connection, queue: &mpsc::Receiver<Box<dyn Request>>) {
    let mut tables = Tables::new(connection);
    for mut request in queue {
        let _ = request.work(&mut tables);
        request.answer(Ok(()));
    }
}

/// Serves writes. What has come in while the disk was busy shares the next transaction and its flush; nobody is
/// answered before the flush.
pub(super) fn write(connection: &Connection, queue: &mpsc::Receiver<Box<dyn Request>>) {
    let mut tables = Tables::new(connection);
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        group.extend(queue.try_iter().take(GROUP - 1));
        commit_group(connection, &mut tables, group);
    }
}

fn commit_group(connection: &Connection, tables: &mut Tables<'_>, mut group: Vec<Box<dyn Request>>) {
    match run_group(connection, tables, &mut group) {
        Ok(()) => group.into_iter().for_each(|request| request.answer(Ok(()))),
        // One request took the transaction down (a full disk does): the others get one of their own.
        Err(Lost::Midway(_)) if group.len() > 1 => {
            for request in group {
                commit_group(connection, tables, vec![request]);
            }
        }
        Err(Lost::Whole(error) | Lost::Midway(error)) => {
            group.into_iter().for_each(|request| request.answer(Err(error.clone())));
        }
    }
}

/// How a transaction was lost.
enum Lost {
    /// It did not begin, or its commit failed: the same would happen to each request alone, or nobody knows.
    Whole(JournalError),
    /// SQLite rolled it back within a request. Nothing of it is stored.
    Midway(JournalError),
}

fn run_group(connection: &Connection, tables: &mut Tables<'_>, group: &mut [Box<dyn Request>]) -> Result<(), Lost> {
    let run = |sql: &str| connection.execute_batch(sql).map_err(failed);
    // Takes the file's write lock at once, waiting for others as long as the busy time-out says.
    run("BEGIN IMMEDIATE").map_err(Lost::Whole)?;
    let done = tables.check_schema().map_err(Lost::Whole).and_then(|()| {
        for request in group {
            tables.run("SAVEPOINT request").map_err(Lost::Midway)?;
            if let Err(error) = request.work(tables) {
                if connection.is_autocommit() {
                    return Err(Lost::Midway(error));
                }
                tables.run("ROLLBACK TO request").map_err(Lost::Midway)?;
            }
            tables.run("RELEASE request").map_err(Lost::Midway)?;
        }
        run("COMMIT").map_err(Lost::Whole)
    });
    if done.is_err() && !connection.is_autocommit() {
        // Nothing more can be done when this fails; the next BEGIN then says so.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;
    use crate::journal::{Replaced, Reservation};
    use crate::record::Record;
    use crate::testing::conformance::sample::{Sample, lost};
    use std::path::Path;
    use std::time::Duration;

    fn sample(number: u32) -> Sample {
        Sample::charge("shop/test", &format!("order-{number}"))
    }

    fn open(folder: &tempfile::TempDir) -> (std::path::PathBuf, Connection) {
        let path = schema::create_file(&folder.path().join("journal.sqlite3")).unwrap();
        let connection = schema::open_for_writing(&path, Duration::from_secs(30)).unwrap();
        (path, connection)
    }

    fn reserve(number: u32) -> (Box<dyn Request>, Answer<Reservation>) {
        let sample = sample(number);
        request(move |tables| tables.reserve(&sample.record(), &sample.line()))
    }

    /// All of them lie at the desk before the thread comes to it: they share a transaction.
    fn write_at_once(connection: &Connection, requests: Vec<Box<dyn Request>>) {
        let (desk, queue) = mpsc::channel();
        for request in requests {
            desk.send(request).unwrap();
        }
        drop(desk);
        write(connection, &queue);
    }

    fn stored(path: &Path, number: u32) -> Option<Record> {
        let connection = schema::open_for_reading(path, Duration::from_secs(30)).unwrap();
        Tables::new(&connection).load(sample(number).key()).unwrap()
    }

    fn is_new(answer: &mut Answer<Reservation>) -> bool {
        matches!(answer.try_recv().unwrap(), Ok(Reservation::New(_)))
    }

    #[test]
    fn requests_share_a_transaction_and_are_answered_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = open(&folder);
        let (first, answer) = reserve(1);
        let (second, mut answer_of_second) = request(move |tables| {
            // The first one's work is done and seen in here, but not outside, and nobody has been told.
            assert!(tables.load(sample(1).key())?.is_some());
            Ok((stored(&path, 1).is_some(), answer.is_empty()))
        });
        write_at_once(&connection, vec![first, second]);
        assert_eq!(answer_of_second.try_recv().unwrap().unwrap(), (false, true));
        assert!(Tables::new(&connection).load(sample(1).key()).unwrap().is_some());
    }

    #[test]
    fn a_request_that_fails_leaves_nothing_and_does_not_fail_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = open(&folder);
        let (first, mut answer_of_first) = reserve(1);
        let (failing, mut answer_of_failing) = request(|tables| {
            tables.reserve(&sample(2).record(), &sample(2).line())?;
            Err::<(), _>(JournalError::permanent("half done"))
        });
        let (third, mut answer_of_third) = reserve(3);
        write_at_once(&connection, vec![first, failing, third]);
        assert!(is_new(&mut answer_of_first) && is_new(&mut answer_of_third));
        assert_eq!(
            answer_of_failing.try_recv().unwrap().unwrap_err().to_string(),
            "half done"
        );
        let there: Vec<_> = (1..=3).map(|number| stored(&path, number).is_some()).collect();
        assert_eq!(there, [true, false, true]);
    }

    #[test]
    fn a_request_that_takes_the_transaction_down_does_not_fail_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = open(&folder);
        let (first, mut answer_of_first) = reserve(1);
        let (breaking, mut answer_of_breaking) = request(|tables| tables.lose_transaction());
        let (third, mut answer_of_third) = reserve(3);
        write_at_once(&connection, vec![first, breaking, third]);
        assert!(is_new(&mut answer_of_first) && is_new(&mut answer_of_third));
        assert_eq!(
            answer_of_breaking.try_recv().unwrap().unwrap_err().to_string(),
            "taken down"
        );
        assert!(stored(&path, 1).is_some() && stored(&path, 3).is_some());
    }

    #[test]
    fn when_the_commit_fails_all_are_told_and_nothing_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = open(&folder);
        let (first, mut answer_of_first) = reserve(1);
        let (breaking, mut answer_of_breaking) = request(|tables| tables.leave_line_without_operation());
        write_at_once(&connection, vec![first, breaking]);
        assert!(answer_of_first.try_recv().unwrap().is_err());
        assert!(answer_of_breaking.try_recv().unwrap().is_err());
        assert!(stored(&path, 1).is_none());
        // And the thread goes on.
        let (again, mut answer) = reserve(1);
        write_at_once(&connection, vec![again]);
        assert!(is_new(&mut answer));
    }

    #[test]
    fn c77_a_full_disk_is_a_transient_error_for_what_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = open(&folder);
        let (request_1, _) = reserve(1);
        write_at_once(&connection, vec![request_1]);
        let before = stored(&path, 1).unwrap();
        let pages: i64 = connection.query_row("PRAGMA page_count", (), |row| row.get(0)).unwrap();
        let limit = |pages: i64| connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()));
        limit(pages + 8).unwrap();

        let write_much = || {
            let (next, mut line) = lost(&stored(&path, 1).unwrap());
            line.note = "x".repeat(1 << 20).into();
            request(move |tables| tables.replace(1, &next, &line, Some("evt_1")))
        };
        let (second, mut answer_of_second) = reserve(2);
        let (large, mut answer_of_large) = write_much();
        let (third, mut answer_of_third) = reserve(3);
        write_at_once(&connection, vec![second, large, third]);
        let error = answer_of_large.try_recv().unwrap().unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("no room"), "{error}");
        assert!(is_new(&mut answer_of_second) && is_new(&mut answer_of_third));
        assert_eq!(stored(&path, 1).unwrap().version(), before.version());
        assert_eq!(Tables::new(&connection).history(before.key()).unwrap().len(), 1);

        // With room again the same step succeeds: neither the state nor the event had been kept.
        limit(pages + 8000).unwrap();
        let (large, mut answer) = write_much();
        write_at_once(&connection, vec![large]);
        assert!(matches!(answer.try_recv().unwrap(), Ok(Replaced::Stored)));
    }
}
