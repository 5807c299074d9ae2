//! How text reaches the clipboard, as bytes and as words.
//!
//! Two ways exist: asking the terminal (OSC 52; works through ssh, never confirmed) and a program
//! of the desktop (confirms by its exit status). Success is claimed only for the second.

use std::path::PathBuf;

use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;

use super::capabilities::Capabilities;

/// The longest text, in bytes, that terminals commonly take through OSC 52: 100,000 characters of
/// base64 at most.
pub const MAX_TERMINAL_BYTES: usize = 74_000;

/// A program that puts its standard input on the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgram {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
}

/// What came of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// This program took it and said so.
    ByProgram(&'static str),
    /// The terminal was asked; it does not say whether it did.
    AskedTerminal,
    /// It was too long for the terminal and stands in this file.
    InFile(PathBuf),
    /// Nothing worked, for this reason.
    Failed(String),
}

impl Copied {
    /// One line for the person. Claims nothing that was not confirmed.
    pub fn message(&self) -> String {
        match self {
            Self::ByProgram(program) => format!("copied with {program}"),
            Self::AskedTerminal => {
                "sent to the terminal's clipboard (OSC 52; the terminal does not confirm it)"
                    .to_owned()
            }
            Self::InFile(path) => {
                format!("too long for the terminal's clipboard; written to {}", path.display())
            }
            Self::Failed(reason) => format!("could not copy: {reason}"),
        }
    }
}

/// The bytes that ask the terminal: plain, and under tmux also wrapped to pass through it, because
/// tmux by default takes the plain form and drops the wrapped one, or the other way round. None
/// when the text is too long.
pub fn ask_terminal(text: &str, tmux: bool) -> Option<String> {
    if text.len() > MAX_TERMINAL_BYTES {
        return None;
    }
    let mut plain = String::new();
    CopyToClipboard::to_clipboard_from(text).write_ansi(&mut plain).ok()?;
    if !tmux {
        return Some(plain);
    }
    let wrapped = format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b"));
    Some(plain + &wrapped)
}

/// The programs worth trying on this machine, best first. None over ssh: they would fill the
/// clipboard of the machine at the other end.
pub fn programs(capabilities: &Capabilities) -> Vec<CopyProgram> {
    const fn program(name: &'static str, arguments: &'static [&'static str]) -> CopyProgram {
        CopyProgram { name, arguments }
    }
    let mut programs = Vec::new();
    if capabilities.ssh {
        return programs;
    }
    if cfg!(target_os = "macos") {
        programs.push(program("pbcopy", &[]));
    }
    if capabilities.wayland {
        programs.push(program("wl-copy", &[]));
    }
    if capabilities.x11 {
        programs.push(program("xclip", &["-selection", "clipboard", "-in"]));
        programs.push(program("xsel", &["--clipboard", "--input"]));
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> Capabilities {
        Capabilities::from_environment(|_| None)
    }

    #[test]
    fn the_terminal_is_asked_plainly_and_under_tmux_in_both_forms() {
        assert_eq!(ask_terminal("hi", false).unwrap(), "\x1b]52;c;aGk=\x1b\\");
        assert_eq!(
            ask_terminal("hi", true).unwrap(),
            "\x1b]52;c;aGk=\x1b\\\x1bPtmux;\x1b\x1b]52;c;aGk=\x1b\x1b\\\x1b\\"
        );
    }

    #[test]
    fn a_text_too_long_for_the_terminal_is_not_cut() {
        assert_eq!(ask_terminal(&"x".repeat(MAX_TERMINAL_BYTES + 1), false), None);
    }

    #[test]
    fn programs_are_those_of_the_desktop_at_hand_and_none_over_ssh() {
        let names = |capabilities: Capabilities| {
            programs(&capabilities).iter().map(|program| program.name).collect::<Vec<_>>()
        };
        let x11 = Capabilities { x11: true, ..bare() };
        let both = Capabilities { wayland: true, ..x11 };
        let ssh = Capabilities { ssh: true, ..both };
        if cfg!(not(target_os = "macos")) {
            assert_eq!(names(both), ["wl-copy", "xclip", "xsel"]);
            assert_eq!(names(x11), ["xclip", "xsel"]);
            assert!(names(bare()).is_empty());
        }
        assert!(names(ssh).is_empty());
    }

    #[test]
    fn only_a_program_that_confirmed_is_called_copied() {
        assert_eq!(Copied::ByProgram("xclip").message(), "copied with xclip");
        for unproven in [Copied::AskedTerminal, Copied::InFile("f".into())] {
            assert!(!unproven.message().starts_with("copied"));
        }
    }
}
