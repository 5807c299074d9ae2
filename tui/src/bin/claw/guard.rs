//! The terminal guard: a tiny process that outlives a crash of this one.
//!
//! A segmentation fault, SIGKILL or the kernel's out-of-memory killer leaves a program no last word,
//! so another process has it. The guard sleeps in a read on a pipe; the program writes there when it
//! takes the terminal and when it has given it back. When the pipe ends while the terminal is
//! taken, the guard gives it back. It lives in a session of its own, so that no signal of the
//! terminal reaches it, and does nothing at all until then.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use claw_tui::terminal::modes;
use claw_tui::terminal::restore::{GUARD_TAKEN, Restorer, raw, write_all};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
    SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// The hidden subcommand. Its argument is the line settings to return to.
pub const SUBCOMMAND: &str = "__terminal-guard";

/// Starts the guard for the terminal that this restorer holds. Where there are no line settings
/// there is no terminal, and nothing to guard.
pub fn spawn(restorer: &Restorer) -> io::Result<()> {
    let Some(before) = restorer.line_settings() else { return Ok(()) };
    let mut guard = Command::new(own_program()?)
        .arg0("claw")
        .arg(SUBCOMMAND)
        .arg(Line::of(&before).encode())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(io::stdout().as_fd().try_clone_to_owned()?)
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(pipe) = guard.stdin.take() {
        restorer.set_guard(Box::new(pipe));
    }
    Ok(())
}

/// The file of the running program, also when it was replaced meanwhile.
fn own_program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Is the guard, when the arguments say so: stands guard until the pipe on standard input ends.
/// The terminal is standard output.
pub fn stand(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != SUBCOMMAND {
        return None;
    }
    let before = arguments.next().and_then(|line| Line::decode(line.to_str()?));
    // Fails only when it is the leader of a group already; then it is out of reach as well.
    let _ = rustix::process::setsid();
    let taken = last_word(&mut io::stdin()) == Some(GUARD_TAKEN);
    if let (true, Some(before)) = (taken, before) {
        // A terminal that is gone cannot be put in order and does not need to be.
        let _ = give_back(io::stdout(), &before);
    }
    Some(ExitCode::SUCCESS)
}

/// Waits for the end of the pipe and returns the last thing that was said.
fn last_word(pipe: &mut impl Read) -> Option<u8> {
    let mut last = None;
    let mut words = [0_u8; 16];
    loop {
        match pipe.read(&mut words) {
            Ok(0) => return last,
            Ok(count) => last = Some(words[count - 1]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return last,
        }
    }
}

fn give_back(tty: impl AsFd, before: &Line) -> io::Result<()> {
    // The screen first: the shell is about to write its prompt and must not write it in vain.
    write_all(&tty, modes::LEAVE.as_bytes())?;
    let mut now = tcgetattr(&tty)?;
    let mut settings = now.clone();
    before.apply(&mut settings);
    // A shell that was quicker has set the line for its own prompt: that must stay.
    let still_ours = Line::of(&now) == Line::of(&raw(&settings));
    if still_ours {
        before.apply(&mut now);
        tcsetattr(&tty, OptionalActions::Now, &now)?;
        tcflush(&tty, QueueSelector::IFlush)?;
    }
    Ok(())
}

/// The line settings that raw mode changes; it leaves all others alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// Input, output, control and local modes.
    modes: [u32; 4],
    /// VMIN and VTIME.
    codes: [u8; 2],
}

impl Line {
    fn of(termios: &Termios) -> Self {
        Self {
            modes: [
                termios.input_modes.bits(),
                termios.output_modes.bits(),
                termios.control_modes.bits(),
                termios.local_modes.bits(),
            ],
            codes: [
                termios.special_codes[SpecialCodeIndex::VMIN],
                termios.special_codes[SpecialCodeIndex::VTIME],
            ],
        }
    }

    fn apply(&self, termios: &mut Termios) {
        let [input, output, control, local] = self.modes;
        termios.input_modes = InputModes::from_bits_retain(input);
        termios.output_modes = OutputModes::from_bits_retain(output);
        termios.control_modes = ControlModes::from_bits_retain(control);
        termios.local_modes = LocalModes::from_bits_retain(local);
        termios.special_codes[SpecialCodeIndex::VMIN] = self.codes[0];
        termios.special_codes[SpecialCodeIndex::VTIME] = self.codes[1];
    }

    /// Numbers in hexadecimal, joined by commas.
    fn encode(&self) -> String {
        let numbers = self.modes.into_iter().chain(self.codes.map(u32::from));
        numbers.map(|number| format!("{number:x}")).collect::<Vec<_>>().join(",")
    }

    fn decode(text: &str) -> Option<Self> {
        let numbers: Result<Vec<u32>, _> =
            text.split(',').map(|number| u32::from_str_radix(number, 16)).collect();
        let [input, output, control, local, min, time] = numbers.ok()?.try_into().ok()?;
        Some(Self {
            modes: [input, output, control, local],
            codes: [u8::try_from(min).ok()?, u8::try_from(time).ok()?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line = Line { modes: [0x500, 0x5, 0xbf, 0x8a3b], codes: [1, 0] };

    #[test]
    fn line_settings_survive_the_way_through_an_argument() {
        assert_eq!(Line::decode(&LINE.encode()), Some(LINE));
        for damaged in ["", "1,2", "1,2,3,4,5,6,7", "1,2,3,4,100,0", "x,2,3,4,5,6"] {
            assert_eq!(Line::decode(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn the_last_word_before_the_end_counts() {
        assert_eq!(last_word(&mut &b"t"[..]), Some(b't'));
        assert_eq!(last_word(&mut &b"trt"[..]), Some(b't'));
        assert_eq!(last_word(&mut &[b'r'; 40][..]), Some(b'r'));
        assert_eq!(last_word(&mut io::empty()), None);
    }

    #[test]
    fn other_arguments_are_not_for_the_guard() {
        assert!(stand(["tui".into()].into_iter()).is_none());
        assert!(stand(std::iter::empty()).is_none());
    }
}
