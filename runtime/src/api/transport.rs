//! Where requests go and with which credential: the HTTP client, made on first use, and the secret,
//! which never leaves this file but in a header.
//!
//! Redirects are not followed: a redirect could carry the key to another host.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};

use super::ApiError;
use crate::redact::Redactor;
use crate::sequences::strip_sequences;

/// Longest provider message that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// A key or token. Its Debug shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// White space around it is not part of a key.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into().trim().to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How a request proves who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// In the header `x-api-key`.
    ApiKey(Secret),
    /// In the header `authorization`, as a bearer token.
    AuthToken(Secret),
    /// No proof: servers on this machine want none.
    None,
}

impl Credential {
    fn secret(&self) -> Option<&str> {
        match self {
            Self::ApiKey(Secret(secret)) | Self::AuthToken(Secret(secret)) => Some(secret),
            Self::None => None,
        }
    }
}

/// Every wait of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may say nothing before it counts as cut. There is no limit to its length.
    pub idle_timeout: Duration,
    /// How long nothing may come before it is told.
    pub stall_notice_after: Duration,
    /// How often it is told again while it lasts.
    pub stall_notice_every: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(2),
            stall_notice_after: Duration::from_secs(5),
            stall_notice_every: Duration::from_secs(1),
        }
    }
}

impl Timing {
    /// The defaults, changed by `CLAW_API_CONNECT_TIMEOUT` and `CLAW_API_REQUEST_TIMEOUT`, both in
    /// seconds. The second one is the idle limit: a whole answer has none.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, default: Duration| {
            let Some(value) = get(name) else { return default };
            match value.trim().parse::<u64>() {
                Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
                _ => {
                    tracing::warn!("{name} is not a number of seconds; using {default:?}");
                    default
                }
            }
        };
        let default = Self::default();
        Self {
            connect_timeout: seconds("CLAW_API_CONNECT_TIMEOUT", default.connect_timeout),
            idle_timeout: seconds("CLAW_API_REQUEST_TIMEOUT", default.idle_timeout),
            ..default
        }
    }
}

/// A provider's address, the credential for it, and the client that reaches it.
pub(super) struct Endpoint {
    url: Url,
    credential: Credential,
    /// Where the credential comes from, for messages.
    variable: &'static str,
    /// Knows the credential, and what keys look like: a provider may repeat one.
    redactor: Redactor,
    client: OnceLock<reqwest::Client>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.name())
    }
}

impl Endpoint {
    /// `path` goes after the base URL, which may or may not end in a slash or in `/v1`.
    pub fn new(
        base_url: &str,
        path: &str,
        credential: Credential,
        variable: &'static str,
    ) -> Result<Self, ApiError> {
        let base = base_url.trim().trim_end_matches('/');
        let base = if path.starts_with("/v1/") { base.trim_end_matches("/v1") } else { base };
        let url = Url::parse(&format!("{base}{path}")).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            return Err(ApiError::Transport {
                endpoint: "the provider".to_owned(),
                message: "the base URL is not an http(s) address, like https://host or \
                          http://127.0.0.1:8080; correct it and start again"
                    .to_owned(),
            });
        };
        let redactor = Redactor::new(credential.secret());
        Ok(Self { url, credential, variable, redactor, client: OnceLock::new() })
    }

    /// Scheme, host and port: never a user name, password or query.
    pub fn name(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// The client, built on first use: reading the system's certificates takes milliseconds that
    /// the first frame does not have, and plain HTTP must work where there are none.
    pub fn client(&self, timing: &Timing) -> Result<reqwest::Client, ApiError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let builder = client_builder(&self.url, timing.connect_timeout)
            .user_agent(concat!("claw/", env!("CARGO_PKG_VERSION")));
        let client = builder.build().map_err(|error| self.unreachable(&format!(
            "the HTTPS client could not start ({}). If this machine has no CA certificates, install \
             the package ca-certificates or point SSL_CERT_FILE at a bundle",
            innermost(&error)
        )))?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    /// A request that sends this JSON with the credential and wants a stream of events back.
    pub fn post(&self, body: serde_json::Result<Vec<u8>>) -> Result<Request, ApiError> {
        let body = body.map_err(|error| {
            self.unexpected(&format!("the request could not be written: {error}"))
        })?;
        let mut request = Request::new(Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.authorise(headers)?;
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    /// Adds the credential, marked so that no Debug of a request can show it.
    fn authorise(&self, headers: &mut HeaderMap) -> Result<(), ApiError> {
        let (name, value) = match &self.credential {
            Credential::ApiKey(Secret(key)) => (HeaderName::from_static("x-api-key"), key.clone()),
            Credential::AuthToken(Secret(token)) => (AUTHORIZATION, format!("Bearer {token}")),
            Credential::None => return Ok(()),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            self.unreachable(&format!(
                "{} holds characters that cannot be sent in a header; set it again",
                self.variable
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    /// No connection, or none that lasted until an answer.
    pub fn unreachable(&self, message: &str) -> ApiError {
        ApiError::Transport { endpoint: self.name(), message: self.clean(message) }
    }

    /// What came is not the protocol.
    pub fn unexpected(&self, message: &str) -> ApiError {
        ApiError::Protocol { endpoint: self.name(), message: self.clean(message) }
    }

    /// A text from outside, made fit for a message: one line, bounded, without the credential.
    pub fn clean(&self, text: &str) -> String {
        // Without sequences first: one inside a key would hide it.
        let text = strip_sequences(text);
        let text = self.redactor.redact(&text);
        let mut cleaned = String::new();
        let words = text.split(|c: char| c.is_whitespace() || c.is_control());
        for word in words.filter(|word| !word.is_empty()) {
            if !cleaned.is_empty() {
                cleaned.push(' ');
            }
            cleaned.push_str(word);
        }
        if let Some((end, _)) = cleaned.char_indices().nth(MAX_MESSAGE_CHARS) {
            cleaned.truncate(end);
            cleaned.push('…');
        }
        cleaned
    }
}

/// The beginnings of a client that reaches this address as all of ours do: no redirects, no need for
/// certificates where none are used, and no proxy on the way to this machine. Building it
/// fails for `https` where there are no CA certificates.
pub fn client_builder(url: &Url, connect_timeout: Duration) -> reqwest::ClientBuilder {
    // An error means that another client has installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none());
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder
}

/// The last cause of an error: the outer layers only say which layer they are.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whether a host is this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether an address points at this machine.
pub(super) fn is_this_machine(base_url: &str) -> bool {
    Url::parse(base_url).is_ok_and(|url| is_loopback(&url))
}

/// A variable that is set and not blank.
pub(super) fn set(get: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// An address for a person, without what may be a secret in it: a user's name, a password, a query.
pub fn address_without_secrets(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return "an address that is none".to_owned() };
    // Refused only for addresses that have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base: &str, path: &str) -> Endpoint {
        let credential = Credential::ApiKey(Secret::new(" marker-key \n"));
        Endpoint::new(base, path, credential, "ANTHROPIC_API_KEY").unwrap()
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_a_secret() {
        for (address, shown) in [
            ("https://api.example.org/v1", "https://api.example.org/v1"),
            ("https://me:secret@api.example.org/?key=secret#secret", "https://api.example.org"),
            ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
            ("secret", "an address that is none"),
        ] {
            assert_eq!(address_without_secrets(address), shown);
        }
    }

    #[test]
    fn base_urls_are_taken_with_or_without_slash_and_version() {
        let check = |base: &str, path: &str, url: &str| {
            assert_eq!(endpoint(base, path).url.as_str(), url, "{base}");
        };
        check("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages");
        check("http://127.0.0.1:1/", "/v1/messages", "http://127.0.0.1:1/v1/messages");
        check("http://host/proxy/v1/", "/v1/messages", "http://host/proxy/v1/messages");
        check("http://host/v1", "/chat/completions", "http://host/v1/chat/completions");
    }

    #[test]
    fn a_base_url_that_is_none_is_refused_with_the_way_out() {
        for base in ["", "api.anthropic.com", "ftp://host", "file:///tmp"] {
            let error = Endpoint::new(base, "/v1/messages", Credential::None, "X").unwrap_err();
            assert!(error.to_string().contains("not an http(s) address"), "{base}: {error}");
        }
    }

    #[test]
    fn the_credential_is_in_no_debug_and_in_no_message() {
        let endpoint = endpoint("http://name:password@host:9/x?q=marker-key", "/v1/messages");
        let mut headers = HeaderMap::new();
        endpoint.authorise(&mut headers).unwrap();
        assert_eq!(headers["x-api-key"], "marker-key");
        let shown = [
            format!("{endpoint:?}"),
            format!("{:?}", endpoint.credential),
            format!("{headers:?}"),
            format!("{:?}", endpoint.unreachable("refused marker-key")),
            endpoint.unexpected("marker-key\u{1b}[31m\nis wrong").to_string(),
        ];
        for text in shown {
            assert!(!text.contains("marker-key") && !text.contains("password"), "{text}");
        }
        assert_eq!(endpoint.clean("a\r\n\u{7}b   marker-key"), "a b [redacted]");
        assert_eq!(endpoint.clean("\u{1b}[31mmark\u{1b}[0mer-key\u{1b}]0;x\u{7}!"), "[redacted]!");
    }

    #[test]
    fn a_long_message_is_bounded() {
        let cleaned = endpoint("http://h", "/v1/messages").clean(&"é".repeat(100_000));
        assert_eq!(cleaned.chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn timeouts_come_from_the_environment_and_nonsense_is_ignored() {
        let get = |name: &str| match name {
            "CLAW_API_CONNECT_TIMEOUT" => Some("7".to_owned()),
            "CLAW_API_REQUEST_TIMEOUT" => Some("soon".to_owned()),
            _ => None,
        };
        let timing = Timing::from_env(&get);
        assert_eq!(timing.connect_timeout, Duration::from_secs(7));
        assert_eq!(timing.idle_timeout, Timing::default().idle_timeout);
    }

    #[test]
    fn loopback_is_recognised_in_every_spelling() {
        for (url, expected) in [
            ("http://localhost:1/", true),
            ("http://127.0.0.2/", true),
            ("http://[::1]:8/", true),
            ("http://10.0.0.1/", false),
            ("https://localhost.example.org/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
