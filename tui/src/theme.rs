//! Every style of the program, by what it means. Nobody else names a colour.
//!
//! A theme is a palette (a file under `assets/themes`, one row in `THEMES`) turned into styles
//! for what the terminal can show: true colour, 256 colours, 16 colours, or none at all, where only
//! bold, dim, underline and reverse are left. Normal text always keeps the terminal's own colours.

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// The themes on offer: name and palette. One row adds a theme.
const THEMES: &[(&str, &str)] = &[
    ("dark", include_str!("../../assets/themes/dark.json")),
    ("light", include_str!("../../assets/themes/light.json")),
];

/// Name of the theme without colours; it has no palette.
const PLAIN: &str = "plain";

/// The background that a theme is made for. Part of cache keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThemeKind {
    Dark,
    Light,
    /// `NO_COLOR`, or a terminal without colours.
    NoColour,
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourDepth {
    TrueColour,
    Indexed,
    Ansi16,
    None,
}

impl ColourDepth {
    /// The nearest that can be shown to a colour of the 256.
    pub fn indexed(self, index: u8) -> Color {
        match (self, index) {
            (Self::None, _) => Color::Reset,
            (_, 0..16) => ANSI[usize::from(index)].0,
            (Self::Ansi16, _) => {
                let (r, g, b) = indexed_rgb(index);
                nearest_ansi(r, g, b)
            }
            _ => Color::Indexed(index),
        }
    }

    /// The nearest that can be shown to a colour.
    pub fn rgb(self, r: u8, g: u8, b: u8) -> Color {
        match self {
            Self::None => Color::Reset,
            Self::Ansi16 => nearest_ansi(r, g, b),
            Self::Indexed => Color::Indexed(nearest(r, g, b)),
            Self::TrueColour => Color::Rgb(r, g, b),
        }
    }
}

/// What a piece of code is, for colouring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CodeRole {
    Plain,
    Keyword,
    Name,
    Type,
    Text,
    Number,
    Comment,
    Punctuation,
    Inserted,
    Deleted,
}

impl CodeRole {
    /// All roles; the position is the number that the highlighter works with.
    pub const ALL: [Self; 10] = [
        Self::Plain,
        Self::Keyword,
        Self::Name,
        Self::Type,
        Self::Text,
        Self::Number,
        Self::Comment,
        Self::Punctuation,
        Self::Inserted,
        Self::Deleted,
    ];
}

/// Styles by meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub kind: ThemeKind,
    pub name: String,
    /// Normal text: the terminal's own colours.
    pub text: Style,
    /// Secondary facts that may be overlooked.
    pub dim: Style,
    /// What draws the eye: the program's own marks.
    pub accent: Style,
    /// The person's own words in the transcript, and their marker.
    pub user: Style,
    pub user_marker: Style,
    pub thinking: Style,

    // Markdown
    headings: [Style; 3],
    pub emphasis: Style,
    pub strong: Style,
    pub strikethrough: Style,
    /// Code within a sentence.
    pub code: Style,
    /// Code in a block, where no language colours it.
    pub code_block: Style,
    /// The language's name above a block.
    pub code_label: Style,
    pub link: Style,
    pub link_address: Style,
    pub quote: Style,
    pub list_marker: Style,
    pub rule: Style,
    pub table_header: Style,
    pub table_rule: Style,
    code_roles: [Style; CodeRole::ALL.len()],

    // Tools
    pub tool_name: Style,
    pub tool_argument: Style,
    pub tool_output: Style,
    pub running: Style,
    pub diff_added: Style,
    pub diff_removed: Style,
    pub diff_hunk: Style,
    pub todo_done: Style,
    pub todo_active: Style,

    // Outcomes
    pub success: Style,
    pub info: Style,
    pub warning: Style,
    pub error: Style,

    // Frames, dialogs, lists, input
    pub border: Style,
    pub border_focused: Style,
    pub title: Style,
    pub button: Style,
    pub button_focused: Style,
    /// The row or cell that the keyboard is on.
    pub selected: Style,
    /// Characters that a search matched.
    pub matched: Style,
    pub key_hint: Style,
    pub placeholder: Style,
    pub status: Style,
    /// Share of the context in use: enough left, getting full, full.
    pub meter_low: Style,
    pub meter_high: Style,
    pub meter_full: Style,
}

impl Theme {
    /// The theme of this name for this terminal; none when there is no such theme.
    pub fn named(name: &str, depth: ColourDepth) -> Option<Self> {
        if name == PLAIN {
            return Some(Self::plain());
        }
        let (name, source) = THEMES.iter().find(|(known, _)| *known == name)?;
        if depth == ColourDepth::None {
            return Some(Self::plain());
        }
        let palette: Palette = serde_json::from_str(source).ok()?;
        Some(palette.theme(name, depth))
    }

    /// The dark theme in true colour.
    pub fn dark() -> Self {
        Self::named("dark", ColourDepth::TrueColour).unwrap_or_else(Self::plain)
    }

    /// The light theme in true colour.
    pub fn light() -> Self {
        Self::named("light", ColourDepth::TrueColour).unwrap_or_else(Self::plain)
    }

    /// Without any colour: for `NO_COLOR`.
    pub fn plain() -> Self {
        build(PLAIN, ThemeKind::NoColour, &Colours::default())
    }

    /// Names of all themes, for help and completion.
    pub fn names() -> impl Iterator<Item = &'static str> {
        THEMES.iter().map(|(name, _)| *name).chain([PLAIN])
    }

    /// Style of a heading; levels count from 1.
    pub fn heading(&self, level: usize) -> Style {
        self.headings[level.clamp(1, self.headings.len()) - 1]
    }

    /// Style of a piece of code.
    pub fn code_role(&self, role: CodeRole) -> Style {
        self.code_roles[role as usize]
    }

    /// Every style with its name, for tests that look at all of them.
    #[cfg(test)]
    fn all(&self) -> Vec<(&'static str, Style)> {
        let mut all = vec![
            ("text", self.text),
            ("dim", self.dim),
            ("accent", self.accent),
            ("user", self.user),
            ("user_marker", self.user_marker),
            ("thinking", self.thinking),
            ("emphasis", self.emphasis),
            ("strong", self.strong),
            ("strikethrough", self.strikethrough),
            ("code", self.code),
            ("code_block", self.code_block),
            ("code_label", self.code_label),
            ("link", self.link),
            ("link_address", self.link_address),
            ("quote", self.quote),
            ("list_marker", self.list_marker),
            ("rule", self.rule),
            ("table_header", self.table_header),
            ("table_rule", self.table_rule),
            ("tool_name", self.tool_name),
            ("tool_argument", self.tool_argument),
            ("tool_output", self.tool_output),
            ("running", self.running),
            ("diff_added", self.diff_added),
            ("diff_removed", self.diff_removed),
            ("diff_hunk", self.diff_hunk),
            ("todo_done", self.todo_done),
            ("todo_active", self.todo_active),
            ("success", self.success),
            ("info", self.info),
            ("warning", self.warning),
            ("error", self.error),
            ("border", self.border),
            ("border_focused", self.border_focused),
            ("title", self.title),
            ("button", self.button),
            ("button_focused", self.button_focused),
            ("selected", self.selected),
            ("matched", self.matched),
            ("key_hint", self.key_hint),
            ("placeholder", self.placeholder),
            ("status", self.status),
            ("meter_low", self.meter_low),
            ("meter_high", self.meter_high),
            ("meter_full", self.meter_full),
        ];
        all.extend(self.headings.iter().map(|style| ("heading", *style)));
        all.extend(self.code_roles.iter().map(|style| ("code role", *style)));
        all
    }
}

/// A palette file: the same roles in true colour and in the sixteen colours of the terminal.
#[derive(Deserialize)]
struct Palette {
    kind: ThemeKind,
    rgb: Names,
    ansi: Names,
}

/// Colour names or `#rrggbb`, by role.
#[derive(Deserialize)]
struct Names {
    dim: String,
    accent: String,
    user: String,
    heading: String,
    code: String,
    link: String,
    success: String,
    info: String,
    warning: String,
    error: String,
    added: String,
    removed: String,
    keyword: String,
    name: String,
    r#type: String,
    string: String,
    number: String,
    comment: String,
}

/// Colours by role, for one terminal. None is the terminal's own.
#[derive(Default)]
struct Colours {
    dim: Option<Color>,
    accent: Option<Color>,
    user: Option<Color>,
    heading: Option<Color>,
    code: Option<Color>,
    link: Option<Color>,
    success: Option<Color>,
    info: Option<Color>,
    warning: Option<Color>,
    error: Option<Color>,
    added: Option<Color>,
    removed: Option<Color>,
    keyword: Option<Color>,
    name: Option<Color>,
    r#type: Option<Color>,
    string: Option<Color>,
    number: Option<Color>,
    comment: Option<Color>,
}

impl Palette {
    fn theme(&self, name: &str, depth: ColourDepth) -> Theme {
        let names = if depth == ColourDepth::Ansi16 { &self.ansi } else { &self.rgb };
        let colour = |value: &str| {
            let colour: Color = value.parse().ok()?;
            Some(match (depth, colour) {
                (ColourDepth::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(nearest(r, g, b)),
                _ => colour,
            })
        };
        let colours = Colours {
            dim: colour(&names.dim),
            accent: colour(&names.accent),
            user: colour(&names.user),
            heading: colour(&names.heading),
            code: colour(&names.code),
            link: colour(&names.link),
            success: colour(&names.success),
            info: colour(&names.info),
            warning: colour(&names.warning),
            error: colour(&names.error),
            added: colour(&names.added),
            removed: colour(&names.removed),
            keyword: colour(&names.keyword),
            name: colour(&names.name),
            r#type: colour(&names.r#type),
            string: colour(&names.string),
            number: colour(&names.number),
            comment: colour(&names.comment),
        };
        build(name, self.kind, &colours)
    }
}

/// Turns colours into styles. With no colours the modifiers alone have to carry the meaning.
fn build(name: &str, kind: ThemeKind, colours: &Colours) -> Theme {
    let plain = kind == ThemeKind::NoColour;
    let base = Style::new();
    let coloured = |colour: Option<Color>| colour.map_or(base, |colour| base.fg(colour));
    // A colour where there is one, else the modifier.
    let either = |colour: Option<Color>, modifier: Modifier| {
        colour.map_or(base.add_modifier(modifier), |colour| base.fg(colour))
    };
    let dim = either(colours.dim, Modifier::DIM);
    let accent = either(colours.accent, Modifier::BOLD);
    let link = coloured(colours.link).add_modifier(Modifier::UNDERLINED);
    let bold = base.add_modifier(Modifier::BOLD);
    let italic = if plain { base } else { base.add_modifier(Modifier::ITALIC) };
    let reversed = base.add_modifier(Modifier::REVERSED);
    let heading = coloured(colours.heading).add_modifier(Modifier::BOLD);
    Theme {
        kind,
        name: name.to_owned(),
        text: base,
        dim,
        accent,
        user: coloured(colours.user),
        user_marker: coloured(colours.user).add_modifier(Modifier::BOLD),
        thinking: dim.patch(italic),
        headings: [heading.add_modifier(Modifier::UNDERLINED), heading, bold],
        emphasis: if plain { base.add_modifier(Modifier::UNDERLINED) } else { italic },
        strong: bold,
        strikethrough: if plain { base } else { base.add_modifier(Modifier::CROSSED_OUT) },
        code: coloured(colours.code),
        code_block: base,
        code_label: dim,
        link,
        link_address: dim,
        quote: dim,
        list_marker: accent,
        rule: dim,
        table_header: bold,
        table_rule: dim,
        code_roles: [
            base,
            either(colours.keyword, Modifier::BOLD),
            coloured(colours.name),
            coloured(colours.r#type),
            coloured(colours.string),
            coloured(colours.number),
            either(colours.comment, Modifier::DIM),
            base,
            coloured(colours.added),
            either(colours.removed, Modifier::DIM),
        ],
        tool_name: bold,
        tool_argument: base,
        tool_output: dim,
        running: accent,
        diff_added: coloured(colours.added),
        diff_removed: either(colours.removed, Modifier::DIM),
        diff_hunk: dim,
        todo_done: dim,
        todo_active: accent.add_modifier(Modifier::BOLD),
        success: coloured(colours.success),
        info: coloured(colours.info),
        warning: either(colours.warning, Modifier::BOLD),
        error: coloured(colours.error).add_modifier(Modifier::BOLD),
        border: dim,
        border_focused: accent,
        title: bold,
        button: base,
        button_focused: reversed.add_modifier(Modifier::BOLD),
        selected: reversed,
        matched: coloured(colours.accent).add_modifier(Modifier::UNDERLINED),
        key_hint: dim,
        placeholder: dim,
        status: dim,
        meter_low: dim,
        meter_high: either(colours.warning, Modifier::BOLD),
        meter_full: coloured(colours.error).add_modifier(Modifier::BOLD),
    }
}

/// The six levels of the colour cube that 256-colour terminals share.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The sixteen colours in the order of their numbers, with about what terminals make of them.
const ANSI: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// Index of the nearest colour among those that every 256-colour terminal draws alike.
fn nearest(r: u8, g: u8, b: u8) -> u8 {
    (16..=255u8).min_by_key(|&index| distance((r, g, b), indexed_rgb(index))).unwrap_or(15)
}

fn nearest_ansi(r: u8, g: u8, b: u8) -> Color {
    let nearest = ANSI.iter().min_by_key(|(_, there)| distance((r, g, b), *there));
    nearest.map_or(Color::Reset, |(colour, _)| *colour)
}

fn distance(one: (u8, u8, u8), other: (u8, u8, u8)) -> u32 {
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(one.0, other.0) + square(one.1, other.1) + square(one.2, other.2)
}

/// Red, green and blue of an index from 16 on.
fn indexed_rgb(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return (grey, grey, grey);
    }
    let cube = index.saturating_sub(16);
    (CUBE[usize::from(cube / 36)], CUBE[usize::from(cube / 6 % 6)], CUBE[usize::from(cube % 6)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTHS: [ColourDepth; 4] =
        [ColourDepth::TrueColour, ColourDepth::Indexed, ColourDepth::Ansi16, ColourDepth::None];

    fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
        let channel = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
    }

    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_theme_loads_at_every_depth() {
        for name in Theme::names() {
            for depth in DEPTHS {
                let theme = Theme::named(name, depth).unwrap();
                if name != PLAIN && depth != ColourDepth::None {
                    assert_eq!(theme.name, name);
                    assert!(theme.dim.fg.is_some() && theme.error.fg.is_some(), "{name} {depth:?}");
                }
            }
        }
        assert!(Theme::named("no such theme", ColourDepth::TrueColour).is_none());
    }

    #[test]
    fn every_colour_is_readable_on_its_background() {
        for (name, _) in THEMES {
            for depth in [ColourDepth::TrueColour, ColourDepth::Indexed] {
                let theme = Theme::named(name, depth).unwrap();
                let background =
                    if theme.kind == ThemeKind::Light { (255, 255, 255) } else { (0, 0, 0) };
                for (role, style) in theme.all() {
                    let rgb = match style.fg {
                        None => continue,
                        Some(Color::Rgb(r, g, b)) => (r, g, b),
                        Some(Color::Indexed(index)) => indexed_rgb(index),
                        Some(other) => panic!("{name} {role}: {other:?} depends on the terminal"),
                    };
                    let ratio = contrast(rgb, background);
                    assert!(ratio >= 4.5, "{name} {role} at {depth:?}: {ratio:.2}");
                }
            }
        }
    }

    #[test]
    fn without_colour_only_modifiers_are_left() {
        let allowed = Modifier::BOLD | Modifier::DIM | Modifier::UNDERLINED | Modifier::REVERSED;
        for (role, style) in Theme::plain().all() {
            assert!(style.fg.is_none() && style.bg.is_none(), "{role}");
            assert!(allowed.contains(style.add_modifier), "{role}");
        }
    }

    #[test]
    fn sixteen_colours_are_the_terminals_own() {
        for (name, _) in THEMES {
            let theme = Theme::named(name, ColourDepth::Ansi16).unwrap();
            for (role, style) in theme.all() {
                assert!(
                    !matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))),
                    "{name} {role}"
                );
            }
        }
    }
}
