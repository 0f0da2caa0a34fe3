//! Which requests something is meant for.

use std::fmt;

/// A method and a path, written `POST /v1/payment_intents/*/capture`.
///
/// `*` stands for one segment of the path, `**` at the end for any number of them. The query does not count.
#[derive(Clone, PartialEq, Eq)]
pub struct Route {
    method: String,
    segments: Vec<String>,
}

impl Route {
    /// Reads a route.
    ///
    /// # Panics
    /// When `text` is not a method, one space, and a path that begins with a slash: a test that names a route wrongly
    /// would otherwise wait for it in vain.
    #[must_use]
    #[track_caller]
    pub fn new(text: &str) -> Self {
        let read = text
            .split_once(' ')
            .filter(|(method, path)| method.bytes().all(|b| b.is_ascii_uppercase()) && path.starts_with('/'));
        #[allow(clippy::panic, reason = "a wrongly written route must fail the test that wrote it")]
        let Some((method, path)) = read else {
            panic!("a route is written like `POST /v1/refunds`, not like `{text}`");
        };
        Self {
            method: method.to_owned(),
            segments: segments(path).map(str::to_owned).collect(),
        }
    }

    /// Is it meant for this request? `path` may have a query.
    #[must_use]
    pub fn matches(&self, method: &str, path: &str) -> bool {
        if method != self.method {
            return false;
        }
        let mut actual = segments(path);
        for wanted in &self.segments {
            if wanted == "**" {
                return true;
            }
            match actual.next() {
                Some(segment) if wanted == "*" || wanted == segment => {}
                _ => return false,
            }
        }
        actual.next().is_none()
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    path.split('/').filter(|segment| !segment.is_empty())
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /{}", self.method, self.segments.join("/"))
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_method_and_segments() {
        let capture = Route::new("POST /v1/payment_intents/*/capture");
        assert!(capture.matches("POST", "/v1/payment_intents/pi_1/capture?expand[]=a/b"));
        for (method, path) in [
            ("GET", "/v1/payment_intents/pi_1/capture"),
            ("POST", "/v1/payment_intents/pi_1"),
            ("POST", "/v1/payment_intents/pi_1/capture/more"),
            ("POST", "/v1/payment_intents/pi_1/cancel"),
        ] {
            assert!(!capture.matches(method, path), "{method} {path}");
        }
        assert!(Route::new("GET /v1/**").matches("GET", "/v1/events/evt_1"));
        assert!(Route::new("GET /v1/**").matches("GET", "/v1"));
        assert_eq!(capture.to_string(), "POST /v1/payment_intents/*/capture");
    }

    #[test]
    #[should_panic(expected = "a route is written like")]
    fn a_wrongly_written_route_is_loud() {
        let _ = Route::new("/v1/refunds");
    }
}
