//! The grammars: lines of code to roles of their pieces. Runs on a thread of its own, see
//! `highlight`; it loads on first use and keeps its place in the block it did last, so that a block
//! that grows is not worked through again from its start.

use std::str::FromStr;

use syntect::highlighting::{
    Color, HighlightState, Highlighter, RangedHighlightIterator, ScopeSelectors, StyleModifier,
    Theme, ThemeItem, ThemeSettings,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::ColouredCode;
use super::highlight::Engine;
use crate::theme::CodeRole;

/// Longer lines stay plain: a minified file is not read for its colours.
const LONGEST_LINE: usize = 2048;

/// Names that people write and the grammars do not know.
const ALIASES: &[(&str, &str)] = &[
    ("shell", "sh"),
    ("zsh", "sh"),
    ("console", "sh"),
    ("shell-session", "sh"),
    ("terminal", "sh"),
    ("golang", "go"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("jsonl", "json"),
    ("c#", "cs"),
    ("csharp", "cs"),
    // The grammar of the full name hangs on `x /*`; the one of the ending does not.
    ("javascript", "js"),
    ("node", "js"),
    ("mjs", "js"),
    ("docker", "dockerfile"),
    ("patch", "diff"),
    ("udiff", "diff"),
    ("python3", "py"),
];

/// What the scopes of the grammars mean. Later rows win where they are as specific.
const ROLES: &[(&str, CodeRole)] = &[
    ("punctuation", CodeRole::Punctuation),
    (
        "keyword, storage, variable.language, entity.name.tag, support.type.property-name, \
      keyword.control",
        CodeRole::Keyword,
    ),
    (
        "keyword.operator.assignment, keyword.operator.arithmetic, keyword.operator.comparison, \
      keyword.operator.logical",
        CodeRole::Punctuation,
    ),
    (
        "entity.name.function, support.function, variable.function, entity.other.attribute-name, \
      markup.heading, entity.name.section, meta.diff.header",
        CodeRole::Name,
    ),
    (
        "entity.name.type, entity.name.class, entity.name.struct, entity.name.enum, \
      entity.name.trait, entity.name.impl, entity.name.namespace, support.type, support.class",
        CodeRole::Type,
    ),
    ("constant", CodeRole::Number),
    (
        "string, punctuation.definition.string, constant.character.escape, markup.raw",
        CodeRole::Text,
    ),
    ("comment, punctuation.definition.comment", CodeRole::Comment),
    ("markup.inserted", CodeRole::Inserted),
    ("markup.deleted", CodeRole::Deleted),
];

/// All grammars, and the block that was done last.
pub(super) struct Grammars {
    syntaxes: SyntaxSet,
    roles: Theme,
    last: Option<Progress>,
}

/// How far a block was worked through.
struct Progress {
    language: String,
    code: String,
    parse: ParseState,
    highlight: HighlightState,
    lines: Vec<Vec<(u32, CodeRole)>>,
}

impl Grammars {
    pub fn load() -> Self {
        Self { syntaxes: two_face::syntax::extra_newlines(), roles: roles(), last: None }
    }

    fn syntax(&self, language: &str) -> Option<&SyntaxReference> {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == language);
        self.syntaxes.find_syntax_by_token(alias.map_or(language, |(_, name)| name))
    }
}

impl Engine for Grammars {
    fn colour(&mut self, language: &str, code: &str, line_done: &dyn Fn()) -> Option<ColouredCode> {
        let fresh = ParseState::new(self.syntax(language)?);
        let highlighter = Highlighter::new(&self.roles);
        let continued = self
            .last
            .take()
            .filter(|last| last.language == language && code.starts_with(&last.code));
        let mut progress = continued.unwrap_or_else(|| Progress {
            language: language.to_owned(),
            code: String::new(),
            parse: fresh,
            highlight: HighlightState::new(&highlighter, ScopeStack::new()),
            lines: Vec::new(),
        });
        for line in code[progress.code.len()..].split_inclusive('\n') {
            let mut pieces: Vec<(u32, CodeRole)> = Vec::new();
            if line.len() <= LONGEST_LINE {
                let changes = progress.parse.parse_line(line, &self.syntaxes).ok()?;
                let shown = line.trim_end_matches('\n').len();
                let styles = RangedHighlightIterator::new(
                    &mut progress.highlight,
                    &changes,
                    line,
                    &highlighter,
                );
                for (style, _, range) in styles {
                    let len = range.end.min(shown).saturating_sub(range.start);
                    let len = u32::try_from(len).ok()?;
                    let role = role(style.foreground);
                    match pieces.last_mut() {
                        Some((last, same)) if *same == role => *last += len,
                        _ if len > 0 => pieces.push((len, role)),
                        _ => {}
                    }
                }
            }
            progress.lines.push(pieces);
            line_done();
        }
        code.clone_into(&mut progress.code);
        let lines = progress.lines.clone();
        self.last = Some(progress);
        Some(ColouredCode { lines })
    }
}

/// A theme whose colours are the numbers of the roles, so that what is found out does not depend on
/// the theme of the program.
fn roles() -> Theme {
    let scopes = ROLES
        .iter()
        .filter_map(|(scope, role)| {
            Some(ThemeItem {
                scope: ScopeSelectors::from_str(scope).ok()?,
                style: StyleModifier {
                    foreground: Some(Color { r: *role as u8, g: 0, b: 0, a: 255 }),
                    background: None,
                    font_style: None,
                },
            })
        })
        .collect();
    Theme {
        settings: ThemeSettings {
            foreground: Some(Color { r: CodeRole::Plain as u8, g: 0, b: 0, a: 255 }),
            ..ThemeSettings::default()
        },
        scopes,
        ..Theme::default()
    }
}

fn role(colour: Color) -> CodeRole {
    CodeRole::ALL.get(usize::from(colour.r)).copied().unwrap_or(CodeRole::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colour(grammars: &mut Grammars, language: &str, code: &str) -> ColouredCode {
        grammars.colour(language, code, &|| ()).unwrap()
    }

    #[test]
    fn all_selectors_are_understood() {
        assert_eq!(roles().scopes.len(), ROLES.len());
    }

    #[test]
    fn a_growing_block_gets_the_same_colours_as_a_whole_one() {
        let code = "/* a\n b */ fn main() {\n    let s = \"x\n y\"; // end\n}\n";
        let whole = colour(&mut Grammars::load(), "rust", code);
        let mut grammars = Grammars::load();
        let mut at = 0;
        for line in code.split_inclusive('\n') {
            at += line.len();
            let grown = colour(&mut grammars, "rust", &code[..at]);
            assert_eq!(grown.lines, whole.lines[..grown.lines.len()]);
        }
        assert_eq!(whole.lines[0], [(4, CodeRole::Comment)]);
    }

    #[test]
    fn a_very_long_line_stays_plain_and_the_rest_goes_on() {
        let code = format!("let a = 1;\nlet b = \"{}\";\nlet c = 2;\n", "x".repeat(LONGEST_LINE));
        let coloured = colour(&mut Grammars::load(), "rust", &code);
        assert!(coloured.lines[1].is_empty());
        assert_eq!(coloured.lines[0], coloured.lines[2]);
        assert!(coloured.lines[0].len() > 1);
    }
}
