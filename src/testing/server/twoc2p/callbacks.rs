//! POSTs from the gateway to the merchant. They never leave this machine.

use crate::transport::{Http, Method, Request, Transport as _};
use url::{Host, Url};

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// POSTs to an address on this machine, once. `false` when it is another machine's, or when the merchant did not
/// answer with a 2xx. 2C2P documents no repeats.
pub(super) async fn post(to: &str, content_type: &str, body: Vec<u8>) -> bool {
    if !is_local(to) {
        return false;
    }
    let Ok(http) = Http::new() else {
        return false;
    };
    let request = Request::new(Method::Post, to)
        .header("Content-Type", content_type)
        .body(body);
    http.exchange(request)
        .await
        .is_ok_and(|answer| (200..300).contains(&answer.status))
}

/// Is it an address on the loopback?
pub(super) fn is_local(address: &str) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false;
    };
    matches!(address.scheme(), "http" | "https")
        && match address.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn other_machines_are_never_called() {
        for local in ["http://127.0.0.1:9/x", "http://localhost/", "http://[::1]:80/"] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "https://merchant.example/",
            "http://localhost.example/",
            "http://127.0.0.1@merchant.example/",
            "http://10.0.0.1/",
            "file:///etc/hosts",
            "",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
