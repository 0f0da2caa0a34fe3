//! Stripe.
