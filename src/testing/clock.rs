//! A clock that only moves when a test moves it.

use crate::clock::{Clock, Timestamp};
use async_trait::async_trait;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A [`Clock`] under the control of a test. Clones show the same time.
///
/// By default `sleep` moves the clock by as much as was asked for and returns, after giving other tasks a turn: a test
/// of an hour of retries takes microseconds. A clock made by [`ManualClock::waiting`] lets sleepers wait until the
/// test has moved it far enough.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Tells sleepers, and those who wait for sleepers, that something changed.
    changed: watch::Sender<()>,
    waits: bool,
}

struct State {
    now: Timestamp,
    sleeps: Vec<Duration>,
    asleep: usize,
}

impl ManualClock {
    /// A clock at `now` on which a sleep passes at once.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self::build(now, false)
    }

    /// A clock at `now` on which sleepers wait until the test moves it.
    #[must_use]
    pub fn waiting(now: Timestamp) -> Self {
        Self::build(now, true)
    }

    fn build(now: Timestamp, waits: bool) -> Self {
        let state = State {
            now,
            sleeps: Vec::new(),
            asleep: 0,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: watch::Sender::new(()),
                waits,
            }),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.change(|state| state.now = state.now.after(duration));
    }

    /// Sets the clock, backward too: the clocks of real machines jump.
    pub fn set(&self, now: Timestamp) {
        self.change(|state| state.now = now);
    }

    /// Every sleep asked for so far, in the order in which they began.
    #[must_use]
    pub fn sleeps(&self) -> Vec<Duration> {
        self.state().sleeps.clone()
    }

    /// How many sleepers wait at present.
    #[must_use]
    pub fn asleep(&self) -> usize {
        self.state().asleep
    }

    /// Returns once at least `count` sleepers wait, on a clock made by [`ManualClock::waiting`]: then it is the
    /// test's turn to [`advance`](Self::advance). Waits for ever when they never come, so bound it.
    pub async fn until_asleep(&self, count: usize) {
        let mut changed = self.shared.changed.subscribe();
        while self.asleep() < count {
            // The sender lives in `self`, so that this cannot fail.
            let _ = changed.changed().await;
        }
    }

    fn change(&self, step: impl FnOnce(&mut State)) {
        step(&mut self.state());
        self.shared.changed.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    /// 2026-01-01T00:00:00Z, on which a sleep passes at once.
    fn default() -> Self {
        Self::at(Timestamp::from_unix_seconds(1_767_225_600))
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("now", &self.state().now)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    async fn sleep(&self, duration: Duration) {
        if !self.shared.waits {
            self.change(|state| {
                state.sleeps.push(duration);
                state.now = state.now.after(duration);
            });
            tokio::task::yield_now().await;
            return;
        }
        let mut changed = self.shared.changed.subscribe();
        let mut wakes_at = self.now();
        let _asleep = Asleep::begin(self, |state| {
            state.sleeps.push(duration);
            wakes_at = state.now.after(duration);
        });
        while self.now() < wakes_at {
            let _ = changed.changed().await;
        }
    }
}

/// Counts a sleeper for as long as it sleeps, also when its task is dropped meanwhile.
struct Asleep<'a>(&'a ManualClock);

impl<'a> Asleep<'a> {
    fn begin(clock: &'a ManualClock, step: impl FnOnce(&mut State)) -> Self {
        clock.change(|state| {
            step(state);
            state.asleep += 1;
        });
        Self(clock)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.asleep -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn by_default_a_sleep_passes_at_once_and_moves_the_clock() {
        let clock = ManualClock::default();
        let start = clock.now();
        clock.sleep(MINUTE).await;
        clock.sleep(MINUTE * 2).await;
        clock.advance(MINUTE);
        assert_eq!(clock.now().since(start), MINUTE * 4);
        assert_eq!(clock.sleeps(), [MINUTE, MINUTE * 2]);
    }

    #[tokio::test]
    async fn sleepers_of_a_waiting_clock_wake_when_their_time_has_come() {
        let clock = ManualClock::waiting(Timestamp::from_unix_seconds(0));
        let sleeper = |duration| {
            let clock = clock.clone();
            tokio::spawn(async move { clock.sleep(duration).await })
        };
        let (short, long) = (sleeper(MINUTE), sleeper(MINUTE * 2));
        let bounded = tokio::time::timeout(Duration::from_secs(10), async {
            clock.until_asleep(2).await;
            clock.advance(MINUTE);
            short.await.unwrap();
            assert!(!long.is_finished());
            assert_eq!(clock.asleep(), 1);
            long.abort();
            assert!(long.await.unwrap_err().is_cancelled());
            assert_eq!(clock.asleep(), 0);
        });
        bounded.await.unwrap();
    }
}
