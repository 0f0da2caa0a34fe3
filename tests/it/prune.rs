//! What was settled long ago is forgotten, and nothing else.

use crate::shop::{Shop, assert_is, charge};
use payonce::journal::Pruned;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn what_is_old_and_over_is_forgotten_and_the_rest_is_not() {
    let shop = Shop::new();
    for number in 0..3 {
        shop.gateway.succeeds(&format!("old-{number}"));
        assert_is(
            &shop.payments.execute(&charge(&format!("old-{number}"))).await.unwrap(),
            "succeeded",
        );
    }
    shop.gateway.answer_lost_before_effect("open").inquiries_fail(50);
    assert_is(&shop.payments.execute(&charge("open")).await.unwrap(), "unknown");
    shop.clock.advance(DAY * 100);
    shop.gateway.succeeds("young");
    assert_is(&shop.payments.execute(&charge("young")).await.unwrap(), "succeeded");
    let pruned = shop.payments.prune(DAY * 90).await.unwrap();
    assert_eq!(pruned.operations, 3);
    let known = |reference: &str| shop.payments.look_up(shop.payments.key(&charge(reference)));
    assert!(known("old-0").await.unwrap().is_none());
    assert!(known("open").await.unwrap().is_some());
    assert!(known("young").await.unwrap().is_some());
    assert_eq!(shop.payments.prune(DAY * 90).await.unwrap(), Pruned::default());
}

#[tokio::test]
async fn nothing_is_forgotten_before_a_gateway_has_forgotten_its_key() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    shop.clock.advance(DAY - Duration::from_secs(60));
    assert_eq!(shop.payments.prune(Duration::ZERO).await.unwrap(), Pruned::default());
    shop.clock.advance(Duration::from_secs(120));
    assert_eq!(shop.payments.prune(Duration::ZERO).await.unwrap().operations, 1);
}
