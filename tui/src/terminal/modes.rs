//! The bytes that take a terminal and give it back.
//!
//! Everything switched on in [`enter`] is switched off in [`LEAVE`], in the opposite order. The
//! kitty keyboard protocol keeps one stack per screen, so its push and its pop happen on the
//! alternate screen. Nothing here clears the scrollback, ever.

/// Switches off whatever [`enter`] and [`MOUSE_ON`] may have switched on, ends an unfinished
/// frame, and returns to the main screen with a visible cursor and the old window title.
/// Harmless when a part of it was never on, so it also serves after a crash.
pub const LEAVE: &str = concat!(
    "\x1b[?2026l", // end of a frame that was cut
    "\x1b[0m",
    "\x1b[?1006l\x1b[?1002l\x1b[?1000l", // mouse
    "\x1b[<1u",                          // kitty keyboard: pop what was pushed
    "\x1b[?1004l\x1b[?2004l",            // focus, bracketed paste
    "\x1b[?25h",
    "\x1b[?1049l",
    "\x1b[23;2t", // title
);

/// Mouse presses, drags and the wheel. Plain motion is not asked for: it would wake the program
/// for every pixel the hand moves.
pub const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
pub const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";

/// Between these two a terminal that knows them shows nothing, so no frame is seen half drawn.
pub const FRAME_BEGIN: &str = "\x1b[?2026h";
pub const FRAME_END: &str = "\x1b[?2026l";

/// Clears the visible screen only.
pub const CLEAR: &str = "\x1b[0m\x1b[H\x1b[2J";

/// Takes the terminal: title saved and set, alternate screen, then the modes of this program. The
/// keyboard protocol is pushed unasked; terminals that do not know it ignore it.
pub fn enter(title: &str, mouse: bool) -> String {
    let mouse = if mouse { MOUSE_ON } else { "" };
    let title = window_title(title);
    format!("\x1b[22;2t{title}\x1b[?1049h{CLEAR}\x1b[?2004h\x1b[?1004h\x1b[>1u{mouse}")
}

/// Says the modes again where the terminal was never left, for instance after a stop that could not
/// be seen coming. Saves and pushes nothing, so that the way out stays balanced.
pub fn reassert(mouse: bool) -> String {
    let mouse = if mouse { MOUSE_ON } else { "" };
    format!("{CLEAR}\x1b[?2004h\x1b[?1004h\x1b[=1u{mouse}")
}

/// Sets the window title. Control characters would end the sequence, so they are left out.
pub fn window_title(title: &str) -> String {
    let title: String = title.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("\x1b]2;{title}\x1b\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_switched_on_is_switched_off() {
        let entered = enter("claw", true);
        for on in entered.split("\x1b[?").skip(1) {
            let number: String = on.chars().take_while(char::is_ascii_digit).collect();
            assert!(LEAVE.contains(&format!("\x1b[?{number}l")), "{number} stays on");
        }
        assert!(entered.contains("\x1b[>1u") && LEAVE.contains("\x1b[<1u"));
        assert!(entered.contains("\x1b[22;2t") && LEAVE.contains("\x1b[23;2t"));
    }

    #[test]
    fn the_keyboard_is_pushed_and_popped_on_the_alternate_screen() {
        let entered = enter("", false);
        assert!(entered.find("?1049h") < entered.find("[>1u"));
        assert!(LEAVE.find("[<1u") < LEAVE.find("?1049l"));
    }

    #[test]
    fn nothing_clears_the_scrollback() {
        for sequence in [&enter("t", true), &reassert(true), LEAVE, CLEAR] {
            assert!(!sequence.contains("[3J"));
        }
    }

    #[test]
    fn a_title_cannot_end_its_own_sequence() {
        assert_eq!(window_title("a\x1b\\b\x07c\u{9c}d"), "\x1b]2;a\\bcd\x1b\\");
    }
}
