//! Chat completions as an [`ApiClient`]: OpenAI, the providers that copied its wire, and servers of
//! the person's own.
//!
//! A provider is a row in [`Preset`]: its variables and its address. `wire` says what is sent,
//! `stream` what the chunks mean; everything between is the exchange's.

mod stream;
mod wire;

use std::collections::HashSet;
use std::fmt;

use futures_util::future::BoxFuture;

use super::draft::Draft;
use super::exchange::Exchange;
use super::models::Provider;
use super::retry::RetryConfig;
use super::transport::{Credential, Endpoint, Secret, Timing, set};
use super::{ApiClient, ApiError, ApiRequest, AssistantTurn};
use crate::context::TurnContext;
use stream::ChunkReader;

/// A provider that speaks chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// OpenAI, or any server that `OPENAI_BASE_URL` names.
    OpenAi,
    Xai,
    DashScope,
    Ollama,
}

impl Preset {
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Xai, Self::DashScope, Self::Ollama];

    /// The name of the backend.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Xai => "xai",
            Self::DashScope => "dashscope",
            Self::Ollama => "ollama",
        }
    }

    /// Whose models it serves.
    pub fn provider(self) -> Provider {
        match self {
            Self::OpenAi => Provider::OpenAi,
            Self::Xai => Provider::Xai,
            Self::DashScope => Provider::DashScope,
            Self::Ollama => Provider::Local,
        }
    }

    /// What it is asked for when no model is named; none where only the server knows.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-5.4"),
            Self::Xai => Some("grok-3"),
            Self::DashScope => Some("qwen-max"),
            Self::Ollama => None,
        }
    }

    /// The variable of its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Xai => "XAI_API_KEY",
            Self::DashScope => "DASHSCOPE_API_KEY",
            Self::Ollama => "OLLAMA_API_KEY",
        }
    }

    /// The variable of the server's address.
    pub fn address_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Xai => "XAI_BASE_URL",
            Self::DashScope => "DASHSCOPE_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Xai => "https://api.x.ai/v1",
            Self::DashScope => "https://dashscope.aliyuncs.com/compatible-mode/v1",
            Self::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// Whether the environment names a key or an address for it.
    pub fn is_configured(self, get: &dyn Fn(&str) -> Option<String>) -> bool {
        set(get, self.key_variable()).is_some() || set(get, self.address_variable()).is_some()
    }
}

/// How to reach a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiConfig {
    pub preset: Preset,
    pub credential: Credential,
    /// Everything before `/chat/completions`.
    pub base_url: String,
    pub timing: Timing,
    pub retry: RetryConfig,
}

impl OpenAiConfig {
    /// The provider's own address and the default waits.
    pub fn new(preset: Preset, credential: Credential) -> Self {
        Self {
            preset,
            credential,
            base_url: preset.default_base_url().to_owned(),
            timing: Timing::default(),
            retry: RetryConfig::default(),
        }
    }

    /// Reads the preset's key and address, and the timeouts of [`Timing::from_env`]. A server of
    /// one's own may want no key; the provider's own address always does.
    pub fn from_env(
        preset: Preset,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ApiError> {
        let address = set(get, preset.address_variable());
        let credential = match set(get, preset.key_variable()) {
            Some(key) => Credential::AuthToken(Secret::new(key)),
            None if address.is_some() || preset == Preset::Ollama => Credential::None,
            None => return Err(ApiError::MissingCredential { variable: preset.key_variable() }),
        };
        let mut config = Self::new(preset, credential);
        match address {
            Some(host) if preset == Preset::Ollama => config.base_url = ollama_url(&host),
            Some(address) => config.base_url = address,
            None => {}
        }
        config.timing = Timing::from_env(get);
        Ok(config)
    }
}

/// `OLLAMA_HOST` is what the server binds: often without a scheme, a port, or a host to connect to.
fn ollama_url(host: &str) -> String {
    let host = host.trim_end_matches('/');
    let (scheme, host) = host.split_once("://").unwrap_or(("http", host));
    let host = host.strip_suffix("/v1").unwrap_or(host);
    let host = match host.strip_prefix("0.0.0.0") {
        Some(rest) => format!("127.0.0.1{rest}"),
        None if host.starts_with(':') => format!("127.0.0.1{host}"),
        None => host.to_owned(),
    };
    let port = if host.contains(':') || scheme == "https" { "" } else { ":11434" };
    format!("{scheme}://{host}{port}/v1")
}

/// The client. Connections are kept between turns; nothing is opened before the first request.
pub struct OpenAiClient {
    endpoint: Endpoint,
    /// The address is the provider's own, which knows no routing prefixes.
    at_home: bool,
    timing: Timing,
    retry: RetryConfig,
}

impl fmt::Debug for OpenAiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiClient").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl OpenAiClient {
    /// Fails only when the base URL is none.
    pub fn new(config: OpenAiConfig) -> Result<Self, ApiError> {
        let OpenAiConfig { preset, credential, base_url, timing, retry } = config;
        let at_home = base_url.trim_end_matches('/') == preset.default_base_url();
        let variable = preset.key_variable();
        let endpoint = Endpoint::new(&base_url, "/chat/completions", credential, variable)?;
        Ok(Self { endpoint, at_home, timing, retry })
    }
}

impl ApiClient for OpenAiClient {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        Box::pin(async move {
            let model = wire::model(&request.model, self.at_home);
            let http = self.endpoint.post(wire::body(model, &request))?;
            let used: HashSet<&str> = request
                .messages
                .iter()
                .flat_map(|message| message.tool_uses())
                .map(|(id, _, _)| id)
                .collect();
            let exchange = Exchange {
                endpoint: &self.endpoint,
                timing: &self.timing,
                retry: &self.retry,
                cx,
                model,
            };
            let reader = |draft| ChunkReader::new(draft, &used);
            exchange.run(&http, reader, |reader| -> Draft<'_> { reader.draft }).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(preset: Preset, pairs: &[(&str, &str)]) -> Result<OpenAiConfig, ApiError> {
        OpenAiConfig::from_env(preset, &|name: &str| {
            let pair = pairs.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_providers_own_address_needs_its_key_and_a_server_of_ones_own_does_not() {
        for preset in [Preset::OpenAi, Preset::Xai, Preset::DashScope] {
            let variable = preset.key_variable();
            let error = from(preset, &[]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{variable} is not set")), "{error}");
            let config = from(preset, &[(variable, "k")]).unwrap();
            assert_eq!(config.credential, Credential::AuthToken(Secret::new("k")));
            assert_eq!(config.base_url, preset.default_base_url());
        }
        let config = from(Preset::OpenAi, &[("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")]);
        assert_eq!(config.unwrap().credential, Credential::None);
        assert_eq!(from(Preset::Ollama, &[]).unwrap().base_url, "http://127.0.0.1:11434/v1");
    }

    #[test]
    fn the_ollama_host_is_read_in_every_form_that_ollama_takes() {
        let check = |host: &str, url: &str| {
            let config = from(Preset::Ollama, &[("OLLAMA_HOST", host)]).unwrap();
            assert_eq!(config.base_url, url, "{host}");
        };
        check("127.0.0.1:11434", "http://127.0.0.1:11434/v1");
        check("0.0.0.0", "http://127.0.0.1:11434/v1");
        check("0.0.0.0:5000", "http://127.0.0.1:5000/v1");
        check(":5000", "http://127.0.0.1:5000/v1");
        check("box.local", "http://box.local:11434/v1");
        check("https://ollama.example.org/", "https://ollama.example.org/v1");
        check("http://box:1/v1", "http://box:1/v1");
    }

    #[test]
    fn no_debug_shows_the_key() {
        let credential = Credential::AuthToken(Secret::new("marker-key"));
        let config = OpenAiConfig::new(Preset::Xai, credential);
        assert!(!format!("{config:?}").contains("marker-key"));
        let client = OpenAiClient::new(config).unwrap();
        let expected = "OpenAiClient { endpoint: Endpoint(https://api.x.ai), .. }";
        assert_eq!(format!("{client:?}"), expected);
    }
}
