//! One table of what is known about models: limits, provider, how thinking is asked for.
//!
//! Adding a model is adding a row. Prices are not here (they change on their own days, see the
//! price table), and nothing here is guessed: a model without a row gets limits that every model of
//! its provider accepts, an unknown window, and no thinking parameter.

/// Which wire and which credential a model is reached with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    Anthropic,
    OpenAi,
    Xai,
    DashScope,
    /// A server of the person's own that speaks chat completions.
    Local,
}

/// How a model is asked to think, and what it wants to see of its earlier thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingStyle {
    /// Nothing is asked for.
    None,
    /// `thinking: adaptive`: the model decides how much. Fixed budgets are refused or deprecated.
    Adaptive,
    /// As `Adaptive`, and each thinking block is bound to everything that stood before it. A session
    /// that goes on another day (or after a change of instructions) would be refused as a whole, so
    /// blocks that no longer fit are to be dropped by the provider.
    Bound,
    /// `thinking: enabled` with a budget of tokens.
    Budget { tokens: u32 },
    /// Thinks unasked and streams it as `reasoning_content`, which must be sent back with its tool
    /// calls.
    RoundTrip,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelInfo {
    /// The id on the wire, without a date.
    pub id: &'static str,
    pub provider: Provider,
    /// Tokens of input and output together.
    pub context_window: u64,
    /// The most tokens that one answer can have.
    pub max_output: u32,
    pub thinking: ThinkingStyle,
    /// Short names that mean this model.
    pub aliases: &'static [&'static str],
}

/// What Claude models are asked for when nothing is known about them: every Claude model in service
/// can write this much.
const UNKNOWN_MAX_OUTPUT: u32 = 32_000;

/// The default of the Anthropic backend, as in claw-code.
pub const DEFAULT_MODEL: &str = "claude-opus-4-7";

const ADAPTIVE: ThinkingStyle = ThinkingStyle::Adaptive;
const BOUND: ThinkingStyle = ThinkingStyle::Bound;
const BUDGET: ThinkingStyle = ThinkingStyle::Budget { tokens: 16_000 };
const NONE: ThinkingStyle = ThinkingStyle::None;
const ROUND_TRIP: ThinkingStyle = ThinkingStyle::RoundTrip;

const fn row(
    id: &'static str,
    provider: Provider,
    context_window: u64,
    max_output: u32,
    thinking: ThinkingStyle,
    aliases: &'static [&'static str],
) -> ModelInfo {
    ModelInfo { id, provider, context_window, max_output, thinking, aliases }
}

/// Limits as the providers publish them (Anthropic: models overview, November 2026; the others as in
/// claw-code's table).
pub const MODELS: &[ModelInfo] = &[
    row("claude-opus-4-7", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &["opus"]),
    row("claude-sonnet-4-6", Provider::Anthropic, 1_000_000, 64_000, ADAPTIVE, &["sonnet"]),
    row("claude-haiku-4-5", Provider::Anthropic, 200_000, 64_000, BUDGET, &["haiku"]),
    row("claude-fable-5-1", Provider::Anthropic, 1_000_000, 128_000, BOUND, &[]),
    row("claude-fable-5", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &[]),
    row("claude-sonnet-5-5", Provider::Anthropic, 1_000_000, 128_000, BOUND, &[]),
    row("claude-haiku-5-5", Provider::Anthropic, 1_000_000, 128_000, BOUND, &[]),
    row("claude-opus-5-5", Provider::Anthropic, 1_000_000, 128_000, BOUND, &[]),
    row("claude-opus-5", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &[]),
    row("claude-sonnet-5", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &[]),
    row("claude-opus-4-8", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &[]),
    row("claude-opus-4-6", Provider::Anthropic, 1_000_000, 128_000, ADAPTIVE, &[]),
    row("claude-opus-4-5", Provider::Anthropic, 200_000, 64_000, BUDGET, &[]),
    row("claude-sonnet-4-5", Provider::Anthropic, 200_000, 64_000, BUDGET, &[]),
    row("claude-opus-4-1", Provider::Anthropic, 200_000, 32_000, BUDGET, &[]),
    row("grok-3", Provider::Xai, 131_072, 64_000, NONE, &["grok"]),
    row("grok-3-mini", Provider::Xai, 131_072, 64_000, NONE, &["grok-mini"]),
    row("grok-2", Provider::Xai, 131_072, 64_000, NONE, &[]),
    row("kimi-k2.5", Provider::DashScope, 256_000, 16_384, ROUND_TRIP, &["kimi"]),
    row("qwen-max", Provider::DashScope, 131_072, 8_192, NONE, &[]),
    row("qwen-plus", Provider::DashScope, 131_072, 8_192, NONE, &[]),
    row("gpt-4.1", Provider::OpenAi, 1_047_576, 32_768, NONE, &[]),
    row("gpt-5.4", Provider::OpenAi, 1_000_000, 128_000, NONE, &[]),
    row("gpt-5.4-mini", Provider::OpenAi, 400_000, 128_000, NONE, &[]),
    row("gpt-5.4-nano", Provider::OpenAi, 400_000, 128_000, NONE, &[]),
];

/// The full id for a short name; anything else is returned as it is, trimmed.
///
/// Names are compared without regard to case. Aliases from settings are the caller's, and go first.
pub fn resolve_alias(name: &str) -> &str {
    let name = name.trim();
    MODELS
        .iter()
        .find(|row| row.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name)))
        .map_or(name, |row| row.id)
}

/// The row of a model, named by id (with or without a date or a provider prefix) or by alias.
pub fn find(model: &str) -> Option<&'static ModelInfo> {
    let id = undated(bare(resolve_alias(model)));
    MODELS.iter().find(|row| row.id.eq_ignore_ascii_case(id))
}

/// The context window in tokens, if it is known.
pub fn context_window(model: &str) -> Option<u64> {
    find(model).map(|row| row.context_window)
}

/// The most tokens to ask for in one answer.
pub fn max_output(model: &str) -> u32 {
    find(model).map_or(UNKNOWN_MAX_OUTPUT, |row| row.max_output)
}

/// How the model is asked to think.
pub fn thinking_style(model: &str) -> ThinkingStyle {
    let name = bare(resolve_alias(model)).to_ascii_lowercase();
    // Families whose every member wants its reasoning back with tool calls.
    let round_trip = ["deepseek", "kimi"].iter().any(|family| name.contains(family));
    match find(model) {
        Some(row) => row.thinking,
        None if round_trip => ThinkingStyle::RoundTrip,
        None => ThinkingStyle::None,
    }
}

/// Which provider a model belongs to, by its prefix, its row or its family; none when only the
/// configured backends can tell.
pub fn provider_of(model: &str) -> Option<Provider> {
    let model = resolve_alias(model);
    if let Some((prefix, _)) = model.split_once('/') {
        let named = PREFIXES.iter().find(|(name, _)| prefix.eq_ignore_ascii_case(name));
        if let Some((_, provider)) = named {
            return Some(*provider);
        }
    }
    if let Some(row) = find(model) {
        return Some(row.provider);
    }
    let name = model.to_ascii_lowercase();
    FAMILIES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, provider)| *provider)
}

/// Whether two ids mean the same model: an answer names the dated snapshot of what was asked for.
pub fn same_model(one: &str, other: &str) -> bool {
    let normal = |model| undated(bare(resolve_alias(model))).to_ascii_lowercase();
    normal(one) == normal(other)
}

/// `anthropic/claude-opus-4-7` without the part that only routes.
pub(super) fn bare(model: &str) -> &str {
    match model.split_once('/') {
        Some((prefix, rest))
            if PREFIXES.iter().any(|(name, _)| prefix.eq_ignore_ascii_case(name)) =>
        {
            rest
        }
        _ => model,
    }
}

/// Prefixes that route and do not belong to the id.
const PREFIXES: &[(&str, Provider)] = &[
    ("anthropic", Provider::Anthropic),
    ("openai", Provider::OpenAi),
    ("xai", Provider::Xai),
    ("dashscope", Provider::DashScope),
    ("qwen", Provider::DashScope),
    ("kimi", Provider::DashScope),
    ("local", Provider::Local),
    ("ollama", Provider::Local),
];

const FAMILIES: &[(&str, Provider)] = &[
    ("claude", Provider::Anthropic),
    ("gpt-", Provider::OpenAi),
    ("grok", Provider::Xai),
    ("qwen-", Provider::DashScope),
    ("kimi-", Provider::DashScope),
];

/// The id without the date of its snapshot: `-20251001` or `@20251001`.
fn undated(id: &str) -> &str {
    match id.len().checked_sub(9).and_then(|at| id.split_at_checked(at)) {
        Some((head, date))
            if date.starts_with(['-', '@'])
                && date[1..].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            head
        }
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_mean_the_models_that_claw_code_users_expect() {
        let check = |alias: &str, id: &str| assert_eq!(resolve_alias(alias), id, "{alias}");
        check("opus", "claude-opus-4-7");
        check(" Sonnet ", "claude-sonnet-4-6");
        check("haiku", "claude-haiku-4-5");
        check("grok", "grok-3");
        check("grok-mini", "grok-3-mini");
        check("grok-2", "grok-2");
        check("kimi", "kimi-k2.5");
        check("some-model", "some-model");
    }

    #[test]
    fn a_dated_or_prefixed_id_finds_its_row() {
        let check = |model: &str, id: Option<&str>| {
            assert_eq!(find(model).map(|row| row.id), id, "{model}");
        };
        check("claude-haiku-4-5-20251001", Some("claude-haiku-4-5"));
        check("claude-haiku-4-5@20251001", Some("claude-haiku-4-5"));
        check("anthropic/claude-opus-4-7", Some("claude-opus-4-7"));
        check("claude-opus-4-1-20250805", Some("claude-opus-4-1"));
        check("claude-opus-4", None);
        check("claude-opus-4-77", None);
        check("naïve-ééééé", None);
        check("", None);
    }

    #[test]
    fn ids_and_aliases_are_unique_and_the_default_has_a_row() {
        let mut names: Vec<&str> =
            MODELS.iter().flat_map(|row| row.aliases.iter().copied().chain([row.id])).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(find(DEFAULT_MODEL).is_some());
    }

    #[test]
    fn an_unknown_model_gets_no_guess() {
        assert_eq!(context_window("claude-unheard-of"), None);
        assert_eq!(max_output("claude-unheard-of"), UNKNOWN_MAX_OUTPUT);
        assert_eq!(thinking_style("claude-unheard-of"), ThinkingStyle::None);
        assert_eq!(thinking_style("deepseek-v4-pro"), ThinkingStyle::RoundTrip);
        assert_eq!(provider_of("claude-unheard-of"), Some(Provider::Anthropic));
        assert_eq!(provider_of("llama3.2"), None);
        assert_eq!(provider_of("local/llama3.2"), Some(Provider::Local));
        assert_eq!(provider_of("openai/gpt-oss"), Some(Provider::OpenAi));
    }

    #[test]
    fn an_answer_of_the_dated_snapshot_is_of_the_same_model() {
        assert!(same_model("haiku", "claude-haiku-4-5-20251001"));
        assert!(!same_model("claude-opus-4-6", "claude-opus-4-7"));
    }
}
