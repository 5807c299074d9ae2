//! Token counts, cost and the context meter. Sums are u64 and saturate; a price that is not known
//! makes the cost unknown, it is never guessed.

mod price;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use price::{LongPromptPrice, Price, PriceTable};

use crate::session::{ConversationMessage, Session};

/// Tokens of one message or a sum of them. Names as on the Anthropic wire: `input_tokens` does not
/// contain what was read from or written to the cache.
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

/// Prompt lengths at which some provider changes its price. Calls are summed apart at these, so
/// that a sum can still be priced right.
const PRICE_STEPS: [u64; 4] = [0, 100_000, 200_000, 272_000];

/// Tokens of calls that one price applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpentUsage {
    /// None when no one wrote down which model it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Each of the calls had a prompt longer than this, and not longer than the next step.
    #[serde(default)]
    pub prompts_above: u64,
    #[serde(flatten)]
    pub usage: TokenUsage,
}

impl SpentUsage {
    fn of_call(model: Option<&str>, usage: &TokenUsage) -> Self {
        let prompt = usage.context_tokens();
        let above = PRICE_STEPS.iter().rev().find(|step| prompt > **step).copied().unwrap_or(0);
        Self { model: model.map(str::to_owned), prompts_above: above, usage: *usage }
    }

    /// Sums of these messages' calls. `model` is taken where a message does not say its own.
    pub fn of_messages<'m>(
        messages: impl IntoIterator<Item = &'m Arc<ConversationMessage>>,
        model: Option<&str>,
    ) -> Vec<Self> {
        let mut sums = Vec::new();
        for message in messages {
            if let Some(usage) = &message.usage {
                let call = Self::of_call(message.model.as_deref().or(model), usage);
                Self::merge(&mut sums, [call]);
            }
        }
        sums
    }

    /// Adds `more` to `sums`.
    pub fn merge(sums: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for spent in more {
            let same = sums
                .iter_mut()
                .find(|sum| sum.model == spent.model && sum.prompts_above == spent.prompts_above);
            match same {
                Some(sum) => sum.usage.add(&spent.usage),
                None => sums.push(spent),
            }
        }
    }
}

/// Sums over a session, by model, and the size of its current context.
#[derive(Debug, Clone)]
pub struct UsageTracker {
    prices: PriceTable,
    sums: Vec<SpentUsage>,
    context_tokens: u64,
}

impl Default for UsageTracker {
    fn default() -> Self {
        Self { prices: PriceTable::built_in(), sums: Vec::new(), context_tokens: 0 }
    }
}

impl UsageTracker {
    /// Sums up what the messages of a session say they used.
    pub fn from_session(session: &Session) -> Self {
        let mut tracker = Self::default();
        tracker.restart(session);
        tracker
    }

    /// The same sums with other prices.
    #[must_use]
    pub fn with_prices(mut self, prices: PriceTable) -> Self {
        self.prices = prices;
        self
    }

    /// Sums up another session; prices stay.
    pub fn restart(&mut self, session: &Session) {
        self.sums.clone_from(&session.spent);
        let calls = SpentUsage::of_messages(&session.messages, session.model.as_deref());
        SpentUsage::merge(&mut self.sums, calls);
        // Compaction takes the usage off the messages that it keeps: what it counted is no longer
        // the size of the context.
        let last = session.messages.iter().rev().find_map(|message| message.usage);
        self.context_tokens =
            last.map_or_else(|| session.estimated_tokens(), |usage| size_after(&usage));
    }

    /// Counts one call to the model.
    pub fn record(&mut self, model: &str, usage: &TokenUsage) {
        SpentUsage::merge(&mut self.sums, [SpentUsage::of_call(Some(model), usage)]);
        self.context_tokens = size_after(usage);
    }

    /// The context was compacted to about this size; sums stay.
    pub fn reset_context(&mut self, estimated_tokens: u64) {
        self.context_tokens = estimated_tokens;
    }

    /// Size of the current context: what the last call carried, plus what it answered.
    pub fn context_tokens(&self) -> u64 {
        self.context_tokens
    }

    pub fn total(&self) -> TokenUsage {
        let mut total = TokenUsage::default();
        for sum in &self.sums {
            total.add(&sum.usage);
        }
        total
    }

    /// Sums by model, in order of first use.
    pub fn by_model(&self) -> Vec<(Option<&str>, TokenUsage)> {
        let mut models: Vec<(Option<&str>, TokenUsage)> = Vec::new();
        for sum in &self.sums {
            let model = sum.model.as_deref();
            match models.iter_mut().find(|(name, _)| *name == model) {
                Some((_, usage)) => usage.add(&sum.usage),
                None => models.push((model, sum.usage)),
            }
        }
        models
    }

    /// US dollars; none as soon as one call's price is unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        // Folded from zero: an empty sum of floats is a negative zero, which would be shown.
        self.sums.iter().try_fold(0.0, |cost, sum| Some(cost + self.cost_of(sum)?))
    }

    fn cost_of(&self, sum: &SpentUsage) -> Option<f64> {
        if sum.usage == TokenUsage::default() {
            return Some(0.0);
        }
        let price = self.prices.price(sum.model.as_deref()?)?;
        price.cost_usd(&sum.usage, sum.prompts_above.saturating_add(1))
    }

    /// Where the prices come from, and which models have none.
    pub fn price_note(&self) -> String {
        let mut unknown: Vec<&str> = self
            .sums
            .iter()
            .filter(|sum| self.cost_of(sum).is_none())
            .map(|sum| sum.model.as_deref().unwrap_or("a model that is not on record"))
            .collect();
        unknown.dedup();
        let mut note = format!("Prices as of {}.", self.prices.as_of());
        if !unknown.is_empty() {
            note.push_str(" No price is known for ");
            note.push_str(&unknown.join(", "));
            note.push_str("; set it under \"prices\" in the user settings.");
        }
        note
    }

    pub fn report(&self, context_window: Option<u64>) -> UsageReport {
        UsageReport {
            total: self.total(),
            context_tokens: self.context_tokens,
            context_window,
            cost_usd: self.cost_usd(),
        }
    }
}

fn size_after(usage: &TokenUsage) -> u64 {
    usage.context_tokens().saturating_add(usage.output_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::MessageRole;

    fn usage(input: u64, output: u64, write: u64, read: u64) -> TokenUsage {
        TokenUsage {
            input_tokens: input,
            output_tokens: output,
            cache_creation_input_tokens: write,
            cache_read_input_tokens: read,
        }
    }

    fn answer(model: Option<&str>, usage: TokenUsage) -> Arc<ConversationMessage> {
        let mut message = ConversationMessage::new(MessageRole::Assistant, Vec::new());
        message.model = model.map(str::to_owned);
        message.usage = Some(usage);
        Arc::new(message)
    }

    fn close_to(cost: Option<f64>, expected: f64) {
        let cost = cost.expect("a known cost");
        assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    }

    #[test]
    fn context_is_the_last_call_and_cost_counts_the_cache() {
        let mut tracker = UsageTracker::default();
        tracker.record("claude-sonnet-4-6", &usage(100, 10, 2_000, 50_000));
        assert_eq!(tracker.context_tokens(), 52_110);
        close_to(tracker.cost_usd(), (300.0 + 150.0 + 7_500.0 + 15_000.0) / 1e6);
        tracker.record("claude-sonnet-4-6", &usage(5, 5, 0, 100));
        assert_eq!(tracker.context_tokens(), 110, "the current context, not the sum");
        tracker.reset_context(42);
        assert_eq!(tracker.context_tokens(), 42);
        assert_eq!(tracker.total(), usage(105, 15, 2_000, 50_100), "sums outlive compaction");
    }

    #[test]
    fn sums_saturate() {
        let mut tracker = UsageTracker::default();
        tracker.record("claude-opus-4-7", &usage(u64::MAX, 1, u64::MAX, 0));
        tracker.record("claude-opus-4-7", &usage(u64::MAX, 1, 1, 1));
        assert_eq!(tracker.total().input_tokens, u64::MAX);
        assert!(tracker.cost_usd().is_some_and(f64::is_finite));
    }

    #[test]
    fn resuming_gives_the_cost_that_was() {
        let mut session = Session::new("s", 0);
        session.model = Some("claude-opus-4-1".into());
        session.messages = vec![
            answer(Some("claude-haiku-4-5-20251001"), usage(1_000_000, 0, 0, 0)),
            answer(None, usage(0, 100_000, 0, 0)),
        ];
        let resumed = UsageTracker::from_session(&session);
        close_to(resumed.cost_usd(), 1.0 + 7.5);
        assert_eq!(resumed.context_tokens(), 100_000);
        assert_eq!(resumed.by_model().len(), 2);

        // Compaction removed both messages: their tokens stay on record.
        session.spent = SpentUsage::of_messages(&session.messages, session.model.as_deref());
        session.messages = vec![Arc::new(ConversationMessage::user("x".repeat(400)))];
        let compacted = UsageTracker::from_session(&session);
        close_to(compacted.cost_usd(), 8.5);
        assert_eq!(compacted.context_tokens(), 100, "the estimate, until the next call");
    }

    #[test]
    fn one_unknown_part_makes_the_cost_unknown_and_names_it() {
        let mut tracker = UsageTracker::default();
        close_to(tracker.cost_usd(), 0.0);
        tracker.record("claude-sonnet-4-6", &usage(1, 1, 0, 0));
        assert!(tracker.cost_usd().is_some());
        tracker.record("my-local-model", &usage(1, 1, 0, 0));
        assert_eq!(tracker.report(None).cost_usd, None);
        assert!(tracker.price_note().contains("my-local-model"), "{}", tracker.price_note());
    }

    #[test]
    fn prompts_on_both_sides_of_a_price_step_are_priced_apart() {
        let mut tracker = UsageTracker::default();
        for _ in 0..3 {
            tracker.record("claude-haiku-5-5", &usage(60_000, 0, 0, 0));
        }
        close_to(tracker.cost_usd(), 0.018);
        tracker.record("claude-haiku-5-5", &usage(100_001, 0, 0, 0));
        close_to(tracker.cost_usd(), 0.018 + 0.050_000_5);
    }
}
