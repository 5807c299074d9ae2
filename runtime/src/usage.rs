//! Token counts, cost and the context meter. Sums are u64 and saturate.

use serde::{Deserialize, Serialize};

/// Tokens of one message or a sum of them. Names as on the Anthropic wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
}

impl TokenUsage {
    /// Size of the context that this call carried: input, cache reads and cache writes.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }

    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &TokenUsage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(other.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(other.cache_read_input_tokens);
    }
}

/// What the status line shows about usage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageReport {
    /// Sum over the session.
    pub total: TokenUsage,
    /// Size of the current context in tokens: the last call's input side plus its output.
    pub context_tokens: u64,
    /// The model's window, if the model table knows it.
    pub context_window: Option<u64>,
    /// Cost of the session in US dollars; none when a model's price is unknown.
    pub cost_usd: Option<f64>,
}
