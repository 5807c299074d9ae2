//! The Messages API as an [`ApiClient`].
//!
//! `wire` says what is sent, `stream` what the events mean; sending, waiting, repeating and
//! cancelling are the exchange's. One request a call: tokens are not counted beforehand.

mod stream;
mod wire;

use std::fmt;

use futures_util::future::BoxFuture;
use reqwest::Request;
use reqwest::header::{HeaderName, HeaderValue};

use super::draft::Draft;
use super::exchange::Exchange;
use super::models::{self, ThinkingStyle};
use super::retry::RetryConfig;
use super::transport::{Credential, Endpoint, Secret, Timing, is_this_machine, set};
use super::{ApiClient, ApiError, ApiRequest, AssistantTurn};
use crate::context::TurnContext;
use stream::MessageReader;

/// The version of the API that is spoken.
const API_VERSION: &str = "2023-06-01";
/// Allows to say what becomes of thinking blocks whose conversation has changed.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";
const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
const KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
const TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
const ADDRESS_VARIABLE: &str = "ANTHROPIC_BASE_URL";

/// The variables that say how to reach it.
pub const VARIABLES: [&str; 3] = [KEY_VARIABLE, TOKEN_VARIABLE, ADDRESS_VARIABLE];

/// How to reach the Messages API, or a server that speaks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnthropicConfig {
    pub credential: Credential,
    pub base_url: String,
    pub timing: Timing,
    pub retry: RetryConfig,
}

impl AnthropicConfig {
    /// The API's own address and the default waits.
    pub fn new(credential: Credential) -> Self {
        Self {
            credential,
            base_url: DEFAULT_BASE_URL.to_owned(),
            timing: Timing::default(),
            retry: RetryConfig::default(),
        }
    }

    /// Reads `ANTHROPIC_API_KEY` or else `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL`, and the
    /// timeouts of [`Timing::from_env`]. Only a server on this machine may want no credential.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, ApiError> {
        let base_url = set(get, ADDRESS_VARIABLE);
        let credential = if let Some(key) = set(get, KEY_VARIABLE) {
            Credential::ApiKey(Secret::new(key))
        } else if let Some(token) = set(get, TOKEN_VARIABLE) {
            Credential::AuthToken(Secret::new(token))
        } else if base_url.as_deref().is_some_and(is_this_machine) {
            Credential::None
        } else {
            return Err(ApiError::MissingCredential { variable: KEY_VARIABLE });
        };
        Ok(Self {
            base_url: base_url.unwrap_or_else(|| DEFAULT_BASE_URL.to_owned()),
            timing: Timing::from_env(get),
            ..Self::new(credential)
        })
    }
}

/// The client. Connections are kept between turns; nothing is opened before the first request.
pub struct AnthropicClient {
    endpoint: Endpoint,
    timing: Timing,
    retry: RetryConfig,
}

impl fmt::Debug for AnthropicClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicClient").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl AnthropicClient {
    /// Fails only when the base URL is none.
    pub fn new(config: AnthropicConfig) -> Result<Self, ApiError> {
        let AnthropicConfig { credential, base_url, timing, retry } = config;
        let variable = match credential {
            Credential::AuthToken(_) => TOKEN_VARIABLE,
            Credential::ApiKey(_) | Credential::None => KEY_VARIABLE,
        };
        let endpoint = Endpoint::new(&base_url, "/v1/messages", credential, variable)?;
        Ok(Self { endpoint, timing, retry })
    }

    fn http_request(&self, request: &ApiRequest) -> Result<Request, ApiError> {
        let mut http = self.endpoint.post(wire::body(request))?;
        let headers = http.headers_mut();
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(version, HeaderValue::from_static(API_VERSION));
        let model = models::resolve_alias(&request.model);
        if request.thinking && models::thinking_style(model) == ThinkingStyle::Bound {
            let beta = HeaderName::from_static("anthropic-beta");
            headers.insert(beta, HeaderValue::from_static(BINDING_BETA));
        }
        Ok(http)
    }
}

impl ApiClient for AnthropicClient {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        Box::pin(async move {
            let http = self.http_request(&request)?;
            let exchange = Exchange {
                endpoint: &self.endpoint,
                timing: &self.timing,
                retry: &self.retry,
                cx,
                model: models::bare(models::resolve_alias(&request.model)),
            };
            exchange.run(&http, MessageReader::new, |reader| -> Draft<'_> { reader.draft }).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &'static [(&str, &str)]) -> Result<AnthropicConfig, ApiError> {
        AnthropicConfig::from_env(&|name: &str| {
            let pair = pairs.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_key_goes_before_the_token_and_blank_means_not_set() {
        let config = from(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]).unwrap();
        assert_eq!(config.credential, Credential::ApiKey(Secret::new("k")));
        assert_eq!(config.base_url, DEFAULT_BASE_URL);
        let config = from(&[
            ("ANTHROPIC_API_KEY", "  "),
            ("ANTHROPIC_AUTH_TOKEN", "t"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        ]);
        let config = config.unwrap();
        assert_eq!(config.credential, Credential::AuthToken(Secret::new("t")));
        assert_eq!(config.base_url, "http://127.0.0.1:9");
        for pairs in [&[][..], &[("ANTHROPIC_BASE_URL", "https://gateway.example.org")]] {
            let missing = from(pairs).unwrap_err();
            assert!(missing.to_string().contains("ANTHROPIC_API_KEY is not set"), "{missing}");
        }
        let local = from(&[("ANTHROPIC_BASE_URL", "http://localhost:8080")]).unwrap();
        assert_eq!(local.credential, Credential::None);
    }

    #[test]
    fn no_debug_shows_the_key() {
        let config = AnthropicConfig::new(Credential::ApiKey(Secret::new("marker-key")));
        assert!(!format!("{config:?}").contains("marker-key"));
        let client = AnthropicClient::new(config).unwrap();
        assert_eq!(
            format!("{client:?}"),
            "AnthropicClient { endpoint: Endpoint(https://api.anthropic.com), .. }"
        );
    }
}
