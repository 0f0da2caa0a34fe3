//! HTTP over reqwest, with every convenience that could send twice switched off.

use super::classify::{broken_body, classify};
use super::{Method, Request, Response, Transport};
use crate::failure::{Failure, FailureKind};
use crate::operation::Invalid;
use async_trait::async_trait;
use std::fmt;
use std::io::Read;
use std::time::Duration;

/// The default [`Transport`]: pooled connections, TLS by the feature chosen, no redirects, no retries of its own, no proxy unless asked.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    max_body: usize,
    timeout: Duration,
}

/// Settings of an [`Http`] transport.
#[derive(Clone)]
pub struct HttpBuilder {
    connect_timeout: Duration,
    timeout: Duration,
    max_body: usize,
    proxy: Option<String>,
    root_certificates: Vec<Vec<u8>>,
}

/// The transport could not be built: no root certificates on this machine, a bad proxy address, a bad certificate.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP transport could not be built: {detail}")]
pub struct HttpError {
    detail: &'static str,
    #[source]
    source: Option<reqwest::Error>,
}

impl Http {
    /// The defaults: 3 s to connect, 15 s an exchange, answers of at most 1 MiB.
    ///
    /// # Errors
    /// [`HttpError`] on a machine without root certificates; the feature `bundled-roots` brings some.
    pub fn new() -> Result<Self, HttpError> {
        Self::builder().build()
    }

    /// Settings to change before building.
    #[must_use]
    pub fn builder() -> HttpBuilder {
        HttpBuilder {
            connect_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(15),
            max_body: 1024 * 1024,
            proxy: None,
            root_certificates: Vec::new(),
        }
    }
}

impl HttpBuilder {
    /// How long a connection may take to come about: at most half of [`Self::timeout`], whatever is set. Only a
    /// failure to connect proves that nothing was sent, and an exchange that runs out of time while it still connects
    /// proves nothing; so keep the time-outs of single requests well above it, too.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an exchange may take when the request does not say.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The largest answer, in bytes after inflation.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sends everything through this proxy. Without it the proxies of the environment are ignored.
    #[must_use]
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Trusts this certificate authority, or these (PEM), besides the machine's own; with the feature `bundled-roots`
    /// besides the bundled ones, which stand in the place of the machine's.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates.push(pem.into());
        self
    }

    /// Builds the transport.
    ///
    /// # Errors
    /// [`HttpError`] without root certificates, or with an unusable proxy or certificate.
    pub fn build(self) -> Result<Http, HttpError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("payonce/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(self.connect_timeout.min(self.timeout / 2))
            .tcp_nodelay(true);
        builder = match self.proxy {
            Some(url) => builder.proxy(proxy(&url)?),
            None => builder.no_proxy(),
        };
        builder = trust(builder, &self.root_certificates)?;
        Ok(Http {
            client: builder
                .build()
                .map_err(failed("no usable TLS set-up, or no root certificates"))?,
            max_body: self.max_body,
            timeout: self.timeout,
        })
    }
}

/// Adds certificate authorities to the machine's own, or to the bundled ones.
#[cfg(any(feature = "rustls", feature = "native-tls"))]
fn trust(builder: reqwest::ClientBuilder, pems: &[Vec<u8>]) -> Result<reqwest::ClientBuilder, HttpError> {
    let mut certificates = Vec::new();
    for pem in pems {
        let found = reqwest::Certificate::from_pem_bundle(pem).map_err(failed("bad root certificate"))?;
        if found.is_empty() {
            return Err(HttpError {
                detail: "a root certificate is not PEM",
                source: None,
            });
        }
        certificates.extend(found);
    }
    #[cfg(feature = "bundled-roots")]
    {
        for der in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
            certificates.push(reqwest::Certificate::from_der(der).map_err(failed("bad bundled certificate"))?);
        }
        Ok(builder.tls_certs_only(certificates))
    }
    #[cfg(not(feature = "bundled-roots"))]
    Ok(builder.tls_certs_merge(certificates))
}

/// Without TLS there is nobody to trust, and only plain http to this machine.
#[cfg(not(any(feature = "rustls", feature = "native-tls")))]
fn trust(builder: reqwest::ClientBuilder, pems: &[Vec<u8>]) -> Result<reqwest::ClientBuilder, HttpError> {
    if pems.is_empty() {
        return Ok(builder);
    }
    Err(HttpError {
        detail: "a root certificate without one of the features rustls and native-tls",
        source: None,
    })
}

fn failed(detail: &'static str) -> impl FnOnce(reqwest::Error) -> HttpError {
    move |source| HttpError {
        detail,
        source: Some(source),
    }
}

/// Checked here, since reqwest takes nearly any text for the name of a proxy.
fn proxy(address: &str) -> Result<reqwest::Proxy, HttpError> {
    let bad = |source| HttpError {
        detail: "bad proxy address",
        source,
    };
    let url = url::Url::parse(address).map_err(|_| bad(None))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad(None));
    }
    reqwest::Proxy::all(url).map_err(|error| bad(Some(error.without_url())))
}

/// The proxy is not printed: its address may hold a password.
impl fmt::Debug for HttpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBuilder")
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("max_body", &self.max_body)
            .field("has_proxy", &self.proxy.is_some())
            .field("root_certificates", &self.root_certificates.len())
            .finish()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("timeout", &self.timeout)
            .field("max_body", &self.max_body)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for Http {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut builder = self
            .client
            .request(method, &request.url)
            .timeout(request.timeout.unwrap_or(self.timeout));
        for (name, value) in &request.headers {
            let mut value = reqwest::header::HeaderValue::from_str(value.expose()).map_err(|_| {
                Failure::not_executed(FailureKind::Unsupported, format!("header {name} cannot be sent"))
            })?;
            value.set_sensitive(true);
            builder = builder.header(*name, value);
        }
        if request.method == Method::Post {
            if request.body.is_empty() {
                // Not added by itself, and there are servers that refuse a POST without it.
                builder = builder.header(reqwest::header::CONTENT_LENGTH, "0");
            }
            builder = builder.body(request.body);
        }
        let response = builder.send().await.map_err(classify)?;
        self.read(response).await
    }
}

impl Http {
    async fn read(&self, mut response: reqwest::Response) -> Result<Response, Failure> {
        let status = response.status().as_u16();
        let headers: Vec<(String, String)> = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken_body(error, status))? {
            if body.len() + chunk.len() > self.max_body {
                return Err(too_large(status));
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(status, headers, body);
        if let Some(encoding) = response.header("content-encoding") {
            response.body = match encoding.trim().to_ascii_lowercase().as_str() {
                _ if response.body.is_empty() => response.body,
                "gzip" | "x-gzip" => inflate(&response.body, self.max_body, status)?,
                "identity" | "" => response.body,
                _ => {
                    let failure =
                        Failure::maybe_executed(FailureKind::Unreadable, "an encoding that was not asked for");
                    return Err(failure.with_http_status(status));
                }
            };
        }
        Ok(response)
    }
}

fn too_large(status: u16) -> Failure {
    Failure::maybe_executed(FailureKind::TooLarge, "the answer is larger than the limit").with_http_status(status)
}

/// We never ask for compression; some boxes compress all the same. The limit counts inflated bytes.
fn inflate(body: &[u8], limit: usize, status: u16) -> Result<Vec<u8>, Failure> {
    let mut inflated = Vec::new();
    let room = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let read = flate2::read::MultiGzDecoder::new(body)
        .take(room)
        .read_to_end(&mut inflated);
    if inflated.len() > limit {
        return Err(too_large(status));
    }
    read.map_err(|error| {
        Failure::maybe_executed(FailureKind::Unreadable, "the answer could not be inflated")
            .with_http_status(status)
            .with_source(error)
    })?;
    Ok(inflated)
}

/// Checks the base URL of a gateway: https, or plain http to this machine's own loopback addresses; no query, no
/// credentials. Returns it without a slash at its end.
///
/// # Errors
/// [`Invalid`], naming the field `base_url`.
pub fn base_url(text: &str) -> Result<String, Invalid> {
    let refuse = |reason: &str| Invalid::new("base_url", reason);
    let url = url::Url::parse(text).map_err(|_| refuse("is not an absolute URL"))?;
    let loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(refuse("has no host")),
    };
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        "http" => return Err(refuse("must be https, unless it is a loopback address")),
        _ => return Err(refuse("must be https")),
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("must have no credentials, query or fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
