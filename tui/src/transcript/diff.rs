//! Unified diffs, coloured.

use ratatui::text::{Line, Span};

use super::cell::Env;
use crate::markdown::wrap::wrap_hard;
use crate::sanitise;

/// Appends the lines of a diff in `width` columns behind two blanks, at most `limit` source lines.
/// Returns how many lines were left out.
pub fn lay_out(diff: &str, limit: usize, env: &Env<'_>, out: &mut Vec<Line<'static>>) -> usize {
    let diff = sanitise::text(diff);
    let mut left_out = 0;
    for (index, line) in diff.lines().enumerate() {
        if index >= limit {
            left_out += 1;
            continue;
        }
        let style = match line.as_bytes().first() {
            Some(b'+') => env.theme.diff_added,
            Some(b'-') => env.theme.diff_removed,
            Some(b'@') => env.theme.diff_hunk,
            _ => env.theme.text,
        };
        indented(&[Span::styled(line, style)], env.width, out);
    }
    left_out
}

/// Hard-wrapped text behind two blanks.
pub fn indented(spans: &[Span<'_>], width: u16, out: &mut Vec<Line<'static>>) {
    let from = out.len();
    wrap_hard(spans, usize::from(width).saturating_sub(2).max(1), out);
    for line in &mut out[from..] {
        line.spans.insert(0, Span::raw("  "));
    }
}
