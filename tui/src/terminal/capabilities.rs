//! What the environment says about the terminal. Pure: the variables are passed in.

use crate::theme::ColourDepth;

/// Facts about the terminal and the desktop around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked for by name")]
pub struct Capabilities {
    /// None where the person or the terminal wants none.
    pub colours: ColourDepth,
    /// Known only where the terminal says it in `COLORFGBG`.
    pub light_background: Option<bool>,
    /// Cannot move its cursor: a full screen is impossible.
    pub dumb: bool,
    pub tmux: bool,
    pub ssh: bool,
    pub wayland: bool,
    pub x11: bool,
}

/// Why a full screen is impossible here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoScreen {
    #[error(
        "claw needs a terminal for its full screen, and {0} is not one; run `claw -p \"...\"` for plain output without a screen"
    )]
    NotATerminal(&'static str),
    #[error(
        "the terminal says TERM=dumb and cannot show a full screen; set TERM to what it really is, or run `claw -p \"...\"` for plain output"
    )]
    Dumb,
}

impl Capabilities {
    /// Reads them from variables, for instance `|name| std::env::var(name).ok()`.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).is_some_and(|value| !value.is_empty());
        let term = lookup("TERM").unwrap_or_default();
        let dumb = term.is_empty() || term == "dumb";
        Self {
            colours: if dumb || set("NO_COLOR") {
                ColourDepth::None
            } else {
                colours(&term, &lookup)
            },
            light_background: lookup("COLORFGBG").and_then(|value| light_background(&value)),
            dumb,
            tmux: set("TMUX"),
            ssh: set("SSH_TTY") || set("SSH_CONNECTION"),
            wayland: set("WAYLAND_DISPLAY"),
            x11: set("DISPLAY"),
        }
    }

    /// Whether a full screen is possible with these ends.
    pub fn check_screen(&self, stdin_is_tty: bool, stdout_is_tty: bool) -> Result<(), NoScreen> {
        if !stdin_is_tty {
            return Err(NoScreen::NotATerminal("its standard input"));
        }
        if !stdout_is_tty {
            return Err(NoScreen::NotATerminal("its standard output"));
        }
        if self.dumb { Err(NoScreen::Dumb) } else { Ok(()) }
    }
}

fn colours(term: &str, lookup: &impl Fn(&str) -> Option<String>) -> ColourDepth {
    let colorterm = lookup("COLORTERM").unwrap_or_default();
    if colorterm == "truecolor" || colorterm == "24bit" || term.ends_with("-direct") {
        ColourDepth::TrueColour
    } else if term.contains("256color") {
        ColourDepth::Indexed
    } else {
        ColourDepth::Ansi16
    }
}

/// `COLORFGBG` is `foreground;background` or `foreground;other;background`, as palette numbers.
fn light_background(value: &str) -> Option<bool> {
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    match background {
        0..=6 | 8 => Some(false),
        7 | 9..=15 => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Capabilities {
        Capabilities::from_environment(|name| {
            let found = variables.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn colours_follow_what_the_person_and_the_terminal_say() {
        let check = |variables: &[(&str, &str)], expected| {
            assert_eq!(from(variables).colours, expected, "{variables:?}");
        };
        check(&[("TERM", "xterm")], ColourDepth::Ansi16);
        check(&[("TERM", "xterm-256color")], ColourDepth::Indexed);
        check(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], ColourDepth::TrueColour);
        check(
            &[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")],
            ColourDepth::None,
        );
        check(&[("TERM", "xterm"), ("NO_COLOR", "")], ColourDepth::Ansi16);
        check(&[("TERM", "dumb"), ("COLORTERM", "truecolor")], ColourDepth::None);
    }

    #[test]
    fn the_background_is_known_only_where_it_is_said() {
        let check = |value, expected| {
            let seen = from(&[("TERM", "xterm"), ("COLORFGBG", value)]).light_background;
            assert_eq!(seen, expected, "{value}");
        };
        check("15;0", Some(false));
        check("0;15", Some(true));
        check("0;default;7", Some(true));
        check("12;8", Some(false));
        check("0;default", None);
        check("", None);
        assert_eq!(from(&[("TERM", "xterm")]).light_background, None);
    }

    #[test]
    fn without_a_terminal_the_program_says_so_and_offers_the_plain_mode() {
        let good = from(&[("TERM", "xterm")]);
        assert_eq!(good.check_screen(true, true), Ok(()));
        for (capabilities, stdin, stdout) in
            [(good, false, true), (good, true, false), (from(&[("TERM", "dumb")]), true, true)]
        {
            let refused = capabilities.check_screen(stdin, stdout).unwrap_err().to_string();
            assert!(refused.contains("claw -p"), "{refused}");
        }
    }
}
