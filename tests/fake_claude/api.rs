//! The client of the Messages API: one request, its stream of events, its failures.

use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::version::Version;

/// Why a request brought no whole reply.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    pub status: Option<u16>,
    /// The API's own class.
    pub kind: String,
    pub message: String,
    pub request_id: Option<String>,
    pub retry_after: Option<Duration>,
    /// The stream broke off after it had begun.
    pub cut: bool,
    /// State of the account, from the headers of a refusal.
    pub quota: Option<Value>,
}

pub struct Api {
    client: Client,
    base_url: String,
    key: std::cell::RefCell<Option<String>>,
    bearer: Option<String>,
    agent: String,
}

impl Api {
    pub fn from_environment(version: Version, config_dir: &std::path::Path) -> Self {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()
            .expect("a client for plain HTTP");
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let login = || {
            let text = std::fs::read_to_string(config_dir.join(".credentials.json")).ok()?;
            let file: Value = serde_json::from_str(&text).ok()?;
            file["claudeAiOauth"]["accessToken"].as_str().map(str::to_owned)
        };
        Self {
            client,
            base_url: variable("ANTHROPIC_BASE_URL")
                .unwrap_or_else(|| "http://127.0.0.1:9".to_owned()),
            key: std::cell::RefCell::new(variable("ANTHROPIC_API_KEY")),
            bearer: variable("ANTHROPIC_AUTH_TOKEN")
                .or_else(|| variable("CLAUDE_CODE_OAUTH_TOKEN"))
                .or_else(login),
            agent: format!("claude-cli/{} (external, cli)", version.number()),
        }
    }

    pub fn key(&self) -> Option<String> {
        self.key.borrow().clone()
    }

    pub fn has_account(&self) -> bool {
        self.bearer.is_some() && self.key.borrow().is_none()
    }

    /// The person did not want this key to be used.
    pub fn reject_key(&self) {
        *self.key.borrow_mut() = None;
    }

    /// What 197 does first.
    pub async fn knock(&self) {
        let _ = self.client.head(&self.base_url).send().await;
    }

    /// Sends a request; the reply's head has come and was a success.
    pub async fn send(
        &self,
        session: &str,
        agent: Option<&str>,
        body: &Value,
    ) -> Result<Response, Failure> {
        let url = format!("{}/v1/messages?beta=true", self.base_url.trim_end_matches('/'));
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("user-agent", &self.agent)
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14")
            .header("x-app", "cli")
            .header("x-claude-code-session-id", session);
        if let Some(agent) = agent {
            request = request.header("x-claude-code-agent-id", agent);
        }
        if let Some(key) = self.key() {
            request = request.header("x-api-key", key);
        } else if let Some(bearer) = &self.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        let sent = request.body(body.to_string()).send().await;
        let response = sent.map_err(|error| Failure {
            kind: "connection_error".to_owned(),
            message: error.to_string(),
            ..Failure::default()
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(response).await)
    }
}

async fn refused(response: Response) -> Failure {
    let header = |name: &str| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let request_id = header("request-id");
    let retry_after = header("retry-after").and_then(|text| text.parse().ok());
    let limit = |name: &str| header(&format!("anthropic-ratelimit-unified-{name}"));
    let quota = limit("status").map(|status| {
        json!({
            "status": status,
            "resetsAt": limit("reset").and_then(|text| text.parse::<i64>().ok()),
            "unifiedRateLimitFallbackAvailable": false,
            "rateLimitType": limit("representative-claim").unwrap_or("five_hour".to_owned()),
            "overageStatus": limit("overage-status").unwrap_or("rejected".to_owned()),
            "isUsingOverage": false,
        })
    });
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    Failure {
        status: Some(status),
        kind: body["error"]["type"].as_str().unwrap_or_default().to_owned(),
        message: body["error"]["message"].as_str().unwrap_or(&text).to_owned(),
        request_id: request_id.or_else(|| body["request_id"].as_str().map(str::to_owned)),
        retry_after: retry_after.map(Duration::from_secs),
        cut: false,
        quota,
    }
}

/// The events of a streamed reply, cut anywhere on the wire.
pub struct Events {
    response: Response,
    buffer: Vec<u8>,
}

impl Events {
    pub fn new(response: Response) -> Self {
        Self { response, buffer: Vec::new() }
    }

    /// The next event's data; none at the end of the body.
    pub async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(data) = self.take() {
                return Ok(Some(data));
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.buffer.extend_from_slice(&bytes),
                Ok(None) => return Ok(None),
                Err(error) => {
                    return Err(Failure {
                        kind: "connection_error".to_owned(),
                        message: error.to_string(),
                        cut: true,
                        ..Failure::default()
                    });
                }
            }
        }
    }

    fn take(&mut self) -> Option<Value> {
        while let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&event);
            let data: String = text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            if let Ok(value) = serde_json::from_str(data.trim()) {
                return Some(value);
            }
        }
        None
    }
}
