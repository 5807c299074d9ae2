//! What a model costs. The table is data with a date (`assets/prices.json`); settings may add to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TokenUsage;

const BUILT_IN: &str = include_str!("../../../assets/prices.json");
const TOKENS_PER_UNIT: f64 = 1_000_000.0;

/// US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Without it, a call that wrote to the cache has no known cost.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Without it, a call that read from the cache has no known cost.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Longest prompt that these prices are for.
    #[serde(default)]
    pub up_to_prompt_tokens: Option<u64>,
    /// Other prices for longer prompts.
    #[serde(default)]
    pub above: Option<LongPromptPrice>,
}

/// Prices of all tokens of a call whose prompt is longer than `prompt_tokens`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrice {
    pub prompt_tokens: u64,
    pub input: f64,
    pub output: f64,
    #[serde(default)]
    pub cache_write: Option<f64>,
    #[serde(default)]
    pub cache_read: Option<f64>,
}

impl Price {
    /// Cost of calls whose prompts had about `prompt_tokens`; none where no price is known.
    pub fn cost_usd(&self, usage: &TokenUsage, prompt_tokens: u64) -> Option<f64> {
        if self.up_to_prompt_tokens.is_some_and(|most| prompt_tokens > most) {
            return None;
        }
        let (input, output, write, read) = match &self.above {
            Some(long) if prompt_tokens > long.prompt_tokens => {
                (long.input, long.output, long.cache_write, long.cache_read)
            }
            _ => (self.input, self.output, self.cache_write, self.cache_read),
        };
        Some(
            cost(usage.input_tokens, Some(input))?
                + cost(usage.output_tokens, Some(output))?
                + cost(usage.cache_creation_input_tokens, write)?
                + cost(usage.cache_read_input_tokens, read)?,
        )
    }
}

fn cost(tokens: u64, price: Option<f64>) -> Option<f64> {
    if tokens == 0 {
        return Some(0.0);
    }
    #[expect(clippy::cast_precision_loss, reason = "exact up to nine quadrillion tokens")]
    price.map(|price| tokens as f64 / TOKENS_PER_UNIT * price)
}

/// Prices by model id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceTable {
    as_of: String,
    built_in: BTreeMap<String, Price>,
    /// From settings; they win.
    own: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct PriceFile {
    as_of: String,
    models: BTreeMap<String, Price>,
}

impl PriceTable {
    /// The table that comes with the program.
    pub fn built_in() -> Self {
        // The file is embedded and a test reads it; were it broken, no cost is better than none at
        // all of the program.
        let file = serde_json::from_str::<PriceFile>(BUILT_IN).ok();
        file.map_or_else(Self::default, |file| Self {
            as_of: file.as_of,
            built_in: file.models,
            own: BTreeMap::new(),
        })
    }

    /// Prices that win over the built-in ones.
    #[must_use]
    pub fn with_own(mut self, own: impl IntoIterator<Item = (String, Price)>) -> Self {
        self.own.extend(own);
        self
    }

    /// Day of the built-in prices, year first.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// The price of a model; none rather than that of a model with a similar name.
    pub fn price(&self, model: &str) -> Option<&Price> {
        find(&self.own, model).or_else(|| find(&self.built_in, model))
    }
}

/// The longest id that `model` is, but for the maker's name before it and a date after it.
fn find<'t>(table: &'t BTreeMap<String, Price>, model: &str) -> Option<&'t Price> {
    if let Some(price) = table.get(model) {
        return Some(price);
    }
    let name = ["anthropic/", "openai/"]
        .iter()
        .find_map(|maker| model.strip_prefix(maker))
        .unwrap_or(model);
    table
        .iter()
        .filter(|(id, _)| name.strip_prefix(id.as_str()).is_some_and(is_version_suffix))
        .max_by_key(|(id, _)| id.len())
        .map(|(_, price)| price)
}

/// What may follow an id without making it another model: nothing, a date, `latest`, and the mark
/// for the long context.
fn is_version_suffix(suffix: &str) -> bool {
    let suffix = suffix.strip_suffix("[1m]").unwrap_or(suffix);
    if suffix.is_empty() || suffix == "-latest" {
        return true;
    }
    let Some(date) = suffix.strip_prefix(['-', '@']) else { return false };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && (date.len() == 8 || (date.len() == 10 && date.split('-').count() == 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_is_whole_and_dated() {
        let table = PriceTable::built_in();
        assert!(table.built_in.len() > 40);
        assert_eq!(table.as_of().len(), "2026-01-31".len());
        for (model, price) in &table.built_in {
            assert!(price.output >= price.input, "{model}");
            assert!(price.cache_read.is_some_and(|read| read < price.input), "{model}");
            assert!(price.cache_write.is_none_or(|write| write > price.input), "{model}");
        }
    }

    #[test]
    fn ids_match_with_a_date_and_never_a_similar_model() {
        let table = PriceTable::built_in();
        for (model, expected) in [
            ("claude-sonnet-4-6", Some((3.0, 15.0))),
            ("claude-sonnet-4-5-20250929", Some((3.0, 15.0))),
            ("claude-sonnet-4-20250514", Some((3.0, 15.0))),
            ("anthropic/claude-opus-4-7", Some((5.0, 25.0))),
            ("claude-opus-4-20250514", Some((15.0, 75.0))),
            ("claude-opus-4-6[1m]", Some((5.0, 25.0))),
            ("claude-haiku-4-5@20251001", Some((1.0, 5.0))),
            ("claude-3-5-haiku-latest", Some((0.8, 4.0))),
            ("gpt-4.1-2025-04-14", Some((2.0, 8.0))),
            ("openai/gpt-5-mini", Some((0.25, 2.0))),
            ("claude-opus-4-9", None),
            ("claude-opus-40", None),
            ("gpt-5-turbo", None),
            ("gpt-4.10", None),
            ("llama3", None),
            ("", None),
        ] {
            let price = table.price(model).map(|price| (price.input, price.output));
            assert_eq!(price, expected, "{model}");
        }
    }

    #[test]
    fn settings_win_over_the_table() {
        let own: Price = serde_json::from_str(r#"{"input":1,"output":2}"#).unwrap();
        let table = PriceTable::built_in()
            .with_own([("gpt-5".to_owned(), own.clone()), ("mine".to_owned(), own)]);
        for (model, expected) in [("gpt-5", 2.0), ("gpt-5-2025-08-07", 2.0), ("mine", 2.0)] {
            assert!((table.price(model).unwrap().output - expected).abs() < 1e-9, "{model}");
        }
    }

    #[test]
    fn no_price_for_a_kind_of_token_or_length_of_prompt_is_no_cost() {
        let table = PriceTable::built_in();
        let written = TokenUsage { cache_creation_input_tokens: 1, ..TokenUsage::default() };
        assert_eq!(table.price("gpt-5").unwrap().cost_usd(&written, 1), None);
        let read = TokenUsage { cache_read_input_tokens: 1, ..TokenUsage::default() };
        let price = table.price("gpt-5.5").unwrap();
        assert!(price.cost_usd(&read, 272_000).is_some());
        assert_eq!(price.cost_usd(&read, 272_001), None);
    }
}
