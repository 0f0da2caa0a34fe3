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
        let (reply, answer) = oneshot::channel();
        let gone = || JournalError::permanent("the journal's thread has ended");
        let request = Asked {
            work,
            done: None,
            reply,
        };
        self.requests.send(Box::new(request)).map_err(|_| gone())?;
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
            run("SAVEPOINT request").map_err(Lost::Midway)?;
            if let Err(error) = request.work(tables) {
                if connection.is_autocommit() {
                    return Err(Lost::Midway(error));
                }
                run("ROLLBACK TO request").map_err(Lost::Midway)?;
            }
            run("RELEASE request").map_err(Lost::Midway)?;
        }
        run("COMMIT").map_err(Lost::Whole)
    });
    if done.is_err() && !connection.is_autocommit() {
        // Nothing more can be done when this fails; the next BEGIN then says so.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}
