//! What goes wrong between a client and a gateway, as data.

use super::server::Route;
use std::collections::VecDeque;
use std::fmt;

/// One thing that goes wrong with one request.
///
/// A connection that is refused cannot be had from a server that listens: `stop_listening` and `listen_again` of the
/// fake servers do that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The request is read, nothing is done, and the connection is closed.
    CloseAfterReading,
    /// The request is read, nothing is done, and the connection is reset.
    ResetAfterReading,
    /// The request is read, nothing is done, and no answer ever comes.
    StallAfterReading,
    /// The request is executed, and the connection is closed without an answer.
    CloseAfterEffect,
    /// The request is executed, and the connection is reset.
    ResetAfterEffect,
    /// The request is executed, and no answer ever comes.
    StallAfterEffect,
    /// The request is executed; half of the answer's headers come, then the connection is closed.
    HalfHeadersAfterEffect,
    /// The request is executed; the headers and half of the answer's body come, then the connection is closed.
    HalfBodyAfterEffect,
    /// HTTP 500 before anything was done. Nothing is stored under an idempotency key.
    ErrorBeforeEffect,
    /// The request is executed and answered with HTTP 500. Stripe stores that 500 and replays it.
    ErrorAfterEffect,
    /// A box in front of the gateway answers 502 with an HTML page; the gateway never saw the request.
    HtmlBeforeEffect,
    /// The request is executed, and a box in front of the gateway answers 502 with an HTML page.
    HtmlAfterEffect,
    /// Turned away by a rate limiter: HTTP 429, nothing done, nothing stored.
    Throttle,
    /// HTTP 409, as if an earlier request with the same key were still running; nothing done. 2C2P's
    /// payment API, which has no such answer, says 503; its maintenance API says respCode 51.
    StillRunning,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 14] = [
        Self::CloseAfterReading,
        Self::ResetAfterReading,
        Self::StallAfterReading,
        Self::CloseAfterEffect,
        Self::ResetAfterEffect,
        Self::StallAfterEffect,
        Self::HalfHeadersAfterEffect,
        Self::HalfBodyAfterEffect,
        Self::ErrorBeforeEffect,
        Self::ErrorAfterEffect,
        Self::HtmlBeforeEffect,
        Self::HtmlAfterEffect,
        Self::Throttle,
        Self::StillRunning,
    ];

    /// Is the request executed all the same?
    #[must_use]
    pub const fn has_effect(self) -> bool {
        match self {
            Self::CloseAfterEffect
            | Self::ResetAfterEffect
            | Self::StallAfterEffect
            | Self::HalfHeadersAfterEffect
            | Self::HalfBodyAfterEffect
            | Self::ErrorAfterEffect
            | Self::HtmlAfterEffect => true,
            Self::CloseAfterReading
            | Self::ResetAfterReading
            | Self::StallAfterReading
            | Self::ErrorBeforeEffect
            | Self::HtmlBeforeEffect
            | Self::Throttle
            | Self::StillRunning => false,
        }
    }

    /// Does it cost the client its whole time-out, in real time?
    #[must_use]
    pub const fn stalls(self) -> bool {
        matches!(self, Self::StallAfterReading | Self::StallAfterEffect)
    }
}

/// Which requests a fake server treats badly, and how.
///
/// Without more being said only requests that can move money are counted and hit. Faults for one route go before the
/// script, and the script before the seeded ones.
///
/// ```
/// use payonce::testing::{Fault, FaultPlan};
///
/// // The first request that can move money loses its answer, the second works, the third is throttled.
/// let script = FaultPlan::script([Some(Fault::CloseAfterEffect), None, Some(Fault::Throttle)]);
///
/// // The next capture is executed and loses its answer, whatever comes before it.
/// let capture = FaultPlan::none().on("POST /v1/payment_intents/*/capture", Fault::ResetAfterEffect);
///
/// // Three of ten requests that can move money go wrong; the same ones for the same seed.
/// let seeded = FaultPlan::seeded(42, 300);
/// assert!(format!("{seeded:?}").contains("seeded(42, 300)"));
/// ```
#[derive(Clone, Default)]
pub struct FaultPlan {
    routes: Vec<(Route, Option<Fault>)>,
    script: VecDeque<Option<Fault>>,
    seeded: Option<Seeded>,
    inquiries_too: bool,
}

#[derive(Clone)]
struct Seeded {
    seed: u64,
    per_mille: u16,
    choices: Vec<Fault>,
    number: u64,
    in_a_row: u32,
}

/// After so many faults one after the other a request gets through, so that no plan goes on for ever.
const MOST_IN_A_ROW: u32 = 3;

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// One entry for each request, in the order in which they come; `None` lets one through. When the script is at
    /// its end nothing more goes wrong.
    #[must_use]
    pub fn script<T: Into<Option<Fault>>>(faults: impl IntoIterator<Item = T>) -> Self {
        Self {
            script: faults.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// `per_mille` of a thousand requests go wrong: which and how follows from `seed` and the number of the request.
    /// At most three in a row do.
    ///
    /// All faults but the stalls are chosen from, since a stall costs the client its whole time-out in real time:
    /// see [`FaultPlan::choosing`].
    #[must_use]
    pub fn seeded(seed: u64, per_mille: u16) -> Self {
        let seeded = Seeded {
            seed,
            per_mille,
            choices: Fault::ALL.into_iter().filter(|fault| !fault.stalls()).collect(),
            number: 0,
            in_a_row: 0,
        };
        Self {
            seeded: Some(seeded),
            ..Self::default()
        }
    }

    /// Lets a seeded plan choose from these faults alone.
    #[must_use]
    pub fn choosing(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        if let Some(seeded) = &mut self.seeded {
            seeded.choices = faults.into_iter().collect();
        }
        self
    }

    /// The next request of this route, inquiry or not, gets this fault (`None`: is let through). Several for one
    /// route are used up in their order. The route is written as in [`Route`].
    ///
    /// # Panics
    /// When the route is not in that form.
    #[must_use]
    #[track_caller]
    pub fn on(mut self, route: &str, fault: impl Into<Option<Fault>>) -> Self {
        self.routes.push((Route::new(route), fault.into()));
        self
    }

    /// Inquiries are counted and hit as well, by the script and by the seed.
    #[must_use]
    pub fn inquiries_too(mut self) -> Self {
        self.inquiries_too = true;
        self
    }

    /// Decides about one request, and uses up what was planned for it.
    pub(crate) fn next(&mut self, method: &str, path: &str, inquiry: bool) -> Option<Fault> {
        if let Some(at) = self.routes.iter().position(|(route, _)| route.matches(method, path)) {
            return self.routes.remove(at).1;
        }
        if inquiry && !self.inquiries_too {
            return None;
        }
        if let Some(entry) = self.script.pop_front() {
            return entry;
        }
        self.seeded.as_mut()?.next()
    }
}

impl Seeded {
    fn next(&mut self) -> Option<Fault> {
        let chance = mix(self.seed ^ mix(self.number));
        self.number += 1;
        let hit = chance % 1000 < u64::from(self.per_mille) && self.in_a_row < MOST_IN_A_ROW;
        if !hit || self.choices.is_empty() {
            self.in_a_row = 0;
            return None;
        }
        self.in_a_row += 1;
        let choice = mix(chance) % u64::try_from(self.choices.len()).unwrap_or(1);
        usize::try_from(choice)
            .ok()
            .and_then(|at| self.choices.get(at).copied())
    }
}

/// The finalizer of SplitMix64: neighbouring numbers give unrelated ones.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Debug for FaultPlan {
    /// Names the seed, so that a failure can be replayed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultPlan")?;
        if let Some(seeded) = &self.seeded {
            write!(f, "::seeded({}, {})", seeded.seed, seeded.per_mille)?;
            write!(f, ".choosing({:?})", seeded.choices)?;
        } else if self.script.is_empty() {
            f.write_str("::none()")?;
        } else {
            write!(f, "::script({:?})", self.script)?;
        }
        for (route, fault) in &self.routes {
            write!(f, ".on(\"{route}\", {fault:?})")?;
        }
        if self.inquiries_too {
            f.write_str(".inquiries_too()")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(plan: &mut FaultPlan, count: usize) -> Vec<Option<Fault>> {
        (0..count).map(|_| plan.next("POST", "/v1/refunds", false)).collect()
    }

    #[test]
    fn a_script_is_used_up_in_order_by_requests_that_move_money() {
        let mut plan = FaultPlan::script([Some(Fault::Throttle), None, Some(Fault::CloseAfterEffect)]);
        assert_eq!(plan.next("GET", "/v1/refunds", true), None);
        assert_eq!(
            take(&mut plan, 4),
            [Some(Fault::Throttle), None, Some(Fault::CloseAfterEffect), None]
        );
        let mut plan = FaultPlan::script([Fault::Throttle]).inquiries_too();
        assert_eq!(plan.next("GET", "/v1/refunds", true), Some(Fault::Throttle));
    }

    #[test]
    fn a_fault_for_a_route_waits_for_that_route() {
        let mut plan = FaultPlan::none()
            .on("POST /v1/payment_intents/*/capture", Fault::ResetAfterEffect)
            .on("GET /v1/events", Fault::HtmlBeforeEffect);
        assert_eq!(plan.next("POST", "/v1/payment_intents", false), None);
        let capture = "/v1/payment_intents/pi_1/capture";
        assert_eq!(plan.next("POST", capture, false), Some(Fault::ResetAfterEffect));
        assert_eq!(plan.next("POST", capture, false), None);
        assert_eq!(
            plan.next("GET", "/v1/events?limit=1", true),
            Some(Fault::HtmlBeforeEffect)
        );
    }

    #[test]
    fn a_seed_gives_the_same_faults_again_at_about_the_rate_asked_for() {
        let faults = take(&mut FaultPlan::seeded(7, 300), 2000);
        assert_eq!(faults, take(&mut FaultPlan::seeded(7, 300), 2000));
        assert_ne!(faults, take(&mut FaultPlan::seeded(8, 300), 2000));
        let hits = faults.iter().flatten().count();
        assert!((500..700).contains(&hits), "{hits}");
        for fault in Fault::ALL {
            assert_eq!(faults.contains(&Some(fault)), !fault.stalls(), "{fault:?}");
        }
    }

    #[test]
    fn even_the_worst_seed_lets_a_request_through_now_and_then() {
        let faults = take(&mut FaultPlan::seeded(1, 1000), 40);
        let lets_through = |window: &[Option<Fault>]| window.iter().any(Option::is_none);
        assert!(faults.windows(4).all(lets_through), "{faults:?}");
        assert!(
            FaultPlan::seeded(1, 1000)
                .choosing([Fault::Throttle])
                .next("POST", "/", false)
                == Some(Fault::Throttle)
        );
    }

    #[test]
    fn the_plan_prints_how_to_make_it_again() {
        let plan = FaultPlan::seeded(99, 250)
            .choosing([Fault::Throttle])
            .on("POST /a", Fault::Throttle);
        assert_eq!(
            format!("{plan:?}"),
            "FaultPlan::seeded(99, 250).choosing([Throttle]).on(\"POST /a\", Some(Throttle))"
        );
    }
}
