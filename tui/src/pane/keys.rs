//! Keys, pastes and the mouse as the bytes that a terminal sends for them (xterm's).

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Rect;

use super::PaneModes;

const ESC: u8 = 0x1b;
/// Lines a turn of the wheel moves in a program that has the whole screen and no use for the mouse.
const WHEEL_LINES: usize = 3;

/// What a key press sends. Nothing for a release, and for keys that no program knows.
pub fn key_bytes(key: &KeyEvent, modes: PaneModes) -> Vec<u8> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let plain = match key.code {
        KeyCode::Char(c) => character(c, ctrl),
        // A new line within the input, as terminals without a key of its own for it are set up.
        KeyCode::Enter if shift => return vec![ESC, b'\r'],
        KeyCode::Enter => vec![b'\r'],
        KeyCode::Tab if shift => return b"\x1b[Z".to_vec(),
        KeyCode::Tab => vec![b'\t'],
        KeyCode::BackTab => return b"\x1b[Z".to_vec(),
        KeyCode::Backspace => vec![if ctrl { 0x08 } else { 0x7f }],
        KeyCode::Esc => vec![ESC],
        KeyCode::Null => vec![0],
        code => return function_key(code, modifier_number(shift, alt, ctrl), modes),
    };
    if alt && !plain.is_empty() { [vec![ESC], plain].concat() } else { plain }
}

fn character(c: char, ctrl: bool) -> Vec<u8> {
    let control = match c.to_ascii_lowercase() {
        _ if !ctrl => None,
        c @ 'a'..='z' => Some(c as u8 & 0x1f),
        ' ' | '@' | '2' => Some(0),
        '[' | '3' => Some(0x1b),
        '\\' | '4' => Some(0x1c),
        ']' | '5' => Some(0x1d),
        '^' | '6' => Some(0x1e),
        '_' | '/' | '7' => Some(0x1f),
        '?' | '8' => Some(0x7f),
        _ => None,
    };
    control.map_or_else(|| c.to_string().into_bytes(), |byte| vec![byte])
}

/// xterm's number for held keys: 1 for none.
fn modifier_number(shift: bool, alt: bool, ctrl: bool) -> u8 {
    1 + u8::from(shift) + 2 * u8::from(alt) + 4 * u8::from(ctrl)
}

fn function_key(code: KeyCode, held: u8, modes: PaneModes) -> Vec<u8> {
    // The last byte of `CSI A`, or the number of `CSI 3 ~`.
    enum Form {
        Letter(char),
        Number(u8),
    }
    let form = match code {
        KeyCode::Up => Form::Letter('A'),
        KeyCode::Down => Form::Letter('B'),
        KeyCode::Right => Form::Letter('C'),
        KeyCode::Left => Form::Letter('D'),
        KeyCode::Home => Form::Letter('H'),
        KeyCode::End => Form::Letter('F'),
        KeyCode::Insert => Form::Number(2),
        KeyCode::Delete => Form::Number(3),
        KeyCode::PageUp => Form::Number(5),
        KeyCode::PageDown => Form::Number(6),
        KeyCode::F(number @ 1..=4) => Form::Letter(char::from(b'P' + number - 1)),
        KeyCode::F(5) => Form::Number(15),
        KeyCode::F(number @ 6..=10) => Form::Number(11 + number),
        KeyCode::F(number @ 11..=12) => Form::Number(12 + number),
        _ => return Vec::new(),
    };
    let is_f = matches!(code, KeyCode::F(_));
    match form {
        Form::Letter(letter) if held > 1 => format!("\x1b[1;{held}{letter}"),
        Form::Letter(letter) if is_f || modes.application_cursor => format!("\x1bO{letter}"),
        Form::Letter(letter) => format!("\x1b[{letter}"),
        Form::Number(number) if held > 1 => format!("\x1b[{number};{held}~"),
        Form::Number(number) => format!("\x1b[{number}~"),
    }
    .into_bytes()
}

/// What a paste sends. Nothing in it can end the paste or press a key.
pub fn paste_bytes(text: &str, modes: PaneModes) -> Vec<u8> {
    // As terminals do: the end of a line is what the Enter key sends.
    let mut clean = text.replace("\r\n", "\r").replace('\n', "\r");
    clean.retain(|c| !c.is_control() || matches!(c, '\r' | '\t'));
    if modes.bracketed_paste { format!("\x1b[200~{clean}\x1b[201~") } else { clean }.into_bytes()
}

/// What the mouse sends when it does something on the area that shows the program's screen from its
/// place `origin` (column, row) on. Nothing beside the area, and what the program does not want to
/// know.
pub fn mouse_bytes(
    event: &MouseEvent,
    area: Rect,
    origin: (u16, u16),
    modes: PaneModes,
) -> Vec<u8> {
    let (column, row) = (event.column, event.row);
    if !area.contains((column, row).into()) {
        return Vec::new();
    }
    let Some(mouse) = modes.mouse else { return wheel_as_keys(event.kind, modes) };
    let number = |button: MouseButton| match button {
        MouseButton::Left => 0_u8,
        MouseButton::Middle => 1,
        MouseButton::Right => 2,
    };
    let (button, released) = match event.kind {
        MouseEventKind::Down(button) => (number(button), false),
        MouseEventKind::Up(button) => (number(button), true),
        MouseEventKind::Drag(button) if mouse.drags => (32 + number(button), false),
        MouseEventKind::Moved if mouse.moves => (35, false),
        MouseEventKind::ScrollUp => (64, false),
        MouseEventKind::ScrollDown => (65, false),
        MouseEventKind::ScrollLeft => (66, false),
        MouseEventKind::ScrollRight => (67, false),
        _ => return Vec::new(),
    };
    let held = [(KeyModifiers::SHIFT, 4), (KeyModifiers::ALT, 8), (KeyModifiers::CONTROL, 16)];
    let held = held.iter().filter(|(key, _)| event.modifiers.contains(*key)).map(|(_, n)| n);
    let button = button + held.sum::<u8>();
    let (x, y) = (column - area.x + origin.0 + 1, row - area.y + origin.1 + 1);
    if mouse.sgr {
        let last = if released { 'm' } else { 'M' };
        return format!("\x1b[<{button};{x};{y}{last}").into_bytes();
    }
    // The old form has one byte for each, and no word for which button was let go.
    let (Ok(x), Ok(y)) = (u8::try_from(x + 32), u8::try_from(y + 32)) else { return Vec::new() };
    let button = if released { button | 3 } else { button };
    vec![ESC, b'[', b'M', button + 32, x, y]
}

fn wheel_as_keys(kind: MouseEventKind, modes: PaneModes) -> Vec<u8> {
    let code = match kind {
        MouseEventKind::ScrollUp => KeyCode::Up,
        MouseEventKind::ScrollDown => KeyCode::Down,
        _ => return Vec::new(),
    };
    if !modes.full_screen {
        return Vec::new();
    }
    function_key(code, 1, modes).repeat(WHEEL_LINES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pane::PaneMouse;
    use crate::testing::key;

    fn sent(name: &str, modes: PaneModes) -> String {
        String::from_utf8(key_bytes(&key(name), modes)).unwrap()
    }

    #[test]
    fn keys_are_what_a_terminal_sends() {
        for (name, expected) in [
            ("x", "x"),
            ("X", "X"),
            ("ü", "ü"),
            ("space", " "),
            ("enter", "\r"),
            ("shift+enter", "\x1b\r"),
            ("alt+enter", "\x1b\r"),
            ("tab", "\t"),
            ("shift+tab", "\x1b[Z"),
            ("esc", "\x1b"),
            ("backspace", "\x7f"),
            ("ctrl+backspace", "\x08"),
            ("alt+backspace", "\x1b\x7f"),
            ("ctrl+c", "\x03"),
            ("ctrl+z", "\x1a"),
            ("ctrl+space", "\0"),
            ("ctrl+[", "\x1b"),
            ("ctrl+\\", "\x1c"),
            ("ctrl+4", "\x1c"),
            ("ctrl+_", "\x1f"),
            ("ctrl+7", "\x1f"),
            ("alt+b", "\x1bb"),
            ("alt+ctrl+b", "\x1b\x02"),
            ("up", "\x1b[A"),
            ("left", "\x1b[D"),
            ("home", "\x1b[H"),
            ("end", "\x1b[F"),
            ("ctrl+left", "\x1b[1;5D"),
            ("shift+up", "\x1b[1;2A"),
            ("alt+right", "\x1b[1;3C"),
            ("pageup", "\x1b[5~"),
            ("ctrl+pagedown", "\x1b[6;5~"),
            ("delete", "\x1b[3~"),
            ("f1", "\x1bOP"),
            ("f2", "\x1bOQ"),
            ("f6", "\x1b[17~"),
        ] {
            assert_eq!(sent(name, PaneModes::default()), expected, "{name}");
        }
    }

    #[test]
    fn function_keys_have_the_numbers_of_old() {
        let numbers = [(5, 15), (6, 17), (7, 18), (8, 19), (9, 20), (10, 21), (11, 23), (12, 24)];
        for (key, number) in numbers {
            let bytes = function_key(KeyCode::F(key), 1, PaneModes::default());
            assert_eq!(bytes, format!("\x1b[{number}~").into_bytes(), "F{key}");
        }
        assert!(function_key(KeyCode::F(13), 1, PaneModes::default()).is_empty());
        assert!(function_key(KeyCode::CapsLock, 1, PaneModes::default()).is_empty());
    }

    #[test]
    fn arrows_follow_the_programs_mode_unless_a_key_is_held() {
        let modes = PaneModes { application_cursor: true, ..PaneModes::default() };
        assert_eq!(sent("up", modes), "\x1bOA");
        assert_eq!(sent("end", modes), "\x1bOF");
        assert_eq!(sent("ctrl+up", modes), "\x1b[1;5A");
        assert_eq!(sent("pageup", modes), "\x1b[5~");
    }

    #[test]
    fn a_release_sends_nothing() {
        let mut release = key("x");
        release.kind = KeyEventKind::Release;
        assert!(key_bytes(&release, PaneModes::default()).is_empty());
    }

    #[test]
    fn a_paste_cannot_end_itself_or_press_a_key() {
        let hostile = "one\r\ntwo\x1b[201~\x03\x1b]0;t\x07\u{9b}\tend";
        let bracketed = PaneModes { bracketed_paste: true, ..PaneModes::default() };
        assert_eq!(paste_bytes(hostile, bracketed), b"\x1b[200~one\rtwo[201~]0;t\tend\x1b[201~");
        assert_eq!(paste_bytes(hostile, PaneModes::default()), b"one\rtwo[201~]0;t\tend");
    }

    fn mouse(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
        MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
    }

    fn wanting(drags: bool, moves: bool, sgr: bool) -> PaneModes {
        PaneModes { mouse: Some(PaneMouse { drags, moves, sgr }), ..PaneModes::default() }
    }

    #[test]
    fn the_mouse_speaks_of_places_on_the_programs_own_screen() {
        let area = Rect::new(0, 1, 80, 23);
        let at = |event: &MouseEvent, modes| {
            String::from_utf8(mouse_bytes(event, area, (5, 2), modes)).unwrap()
        };
        let press = mouse(MouseEventKind::Down(MouseButton::Left), 10, 1);
        assert_eq!(at(&press, wanting(false, false, true)), "\x1b[<0;16;3M");
        assert_eq!(at(&press, wanting(false, false, false)), "\x1b[M \x30\x23");
        let up = mouse(MouseEventKind::Up(MouseButton::Right), 10, 1);
        assert_eq!(at(&up, wanting(false, false, true)), "\x1b[<2;16;3m");
        assert_eq!(at(&up, wanting(false, false, false)), "\x1b[M#\x30\x23");
        let wheel = mouse(MouseEventKind::ScrollDown, 0, 1);
        assert_eq!(at(&wheel, wanting(false, false, true)), "\x1b[<65;6;3M");
        let drag = mouse(MouseEventKind::Drag(MouseButton::Left), 0, 1);
        assert_eq!(at(&drag, wanting(false, false, true)), "");
        assert_eq!(at(&drag, wanting(true, false, true)), "\x1b[<32;6;3M");
        let moved = mouse(MouseEventKind::Moved, 0, 1);
        assert_eq!(at(&moved, wanting(true, false, true)), "");
        assert_eq!(at(&moved, wanting(true, true, true)), "\x1b[<35;6;3M");
        let held = MouseEvent { modifiers: KeyModifiers::CONTROL, ..press };
        assert_eq!(at(&held, wanting(false, false, true)), "\x1b[<16;16;3M");
        let beside = mouse(MouseEventKind::Down(MouseButton::Left), 10, 0);
        assert_eq!(at(&beside, wanting(true, true, true)), "");
    }

    #[test]
    fn the_old_form_has_no_words_for_far_places() {
        let far = mouse(MouseEventKind::Down(MouseButton::Left), 300, 1);
        let area = Rect::new(0, 1, 400, 23);
        assert!(mouse_bytes(&far, area, (0, 0), wanting(false, false, false)).is_empty());
    }

    #[test]
    fn the_wheel_is_arrows_only_for_a_program_with_the_whole_screen() {
        let area = Rect::new(0, 0, 80, 24);
        let wheel = mouse(MouseEventKind::ScrollUp, 0, 0);
        assert!(mouse_bytes(&wheel, area, (0, 0), PaneModes::default()).is_empty());
        let full = PaneModes { full_screen: true, ..PaneModes::default() };
        assert_eq!(mouse_bytes(&wheel, area, (0, 0), full), b"\x1b[A\x1b[A\x1b[A");
    }
}
