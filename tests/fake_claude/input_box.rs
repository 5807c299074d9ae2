//! The input box: what a paste leaves of its text, and what CR makes of the whole.

use std::path::Path;

use crate::version::Version;

/// What CR did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// A new line, since the text ended in a backslash; or there was nothing.
    Nothing,
    Prompt(String),
    Command(String),
    Shell(String),
}

#[derive(Debug)]
pub struct InputBox {
    version: Version,
    pub text: String,
    pastes: u32,
    /// The files of the images in it, in the order of their markers.
    pub images: Vec<String>,
}

impl InputBox {
    pub fn new(version: Version) -> Self {
        Self { version, text: String::new(), pastes: 0, images: Vec::new() }
    }

    pub fn paste(&mut self, raw: &str) {
        let text = {
            let clean = self.cleaned(raw);
            self.without_images(&clean)
        };
        let long = text.matches('\n').count() >= 3 || text.chars().count() > 800;
        if self.version.is_332() && long {
            self.pastes += 1;
            let id = format!("{:04x}", 0xec7c_u32 + self.pastes);
            let mark = format!("pasted_content id=\"{id}\"");
            self.text.push_str(&format!("\n\n<{mark}>\n{text}\n</{mark}>\n"));
        } else {
            self.text.push_str(&text);
        }
    }

    /// A line that names an image file becomes a marker before everything else.
    fn without_images(&mut self, text: &str) -> String {
        let is_image = |line: &&str| line.ends_with(".png") && Path::new(line).is_file();
        let (images, words): (Vec<&str>, Vec<&str>) = text.split('\n').partition(is_image);
        for image in &images {
            self.images.push((*image).to_owned());
            self.text.push_str(&format!("[Image #{}]", self.images.len()));
        }
        words.join("\n")
    }

    /// What this version keeps of pasted text.
    fn cleaned(&self, raw: &str) -> String {
        let raw = raw.replace("\r\n", "\n").replace('\r', "\n");
        let mut kept = String::new();
        let mut letters = raw.chars().peekable();
        while let Some(c) = letters.next() {
            match c {
                '\t' => kept.push_str("    "),
                '\n' => kept.push('\n'),
                '\x1b' => {
                    // The whole sequence vanishes.
                    if letters.next_if_eq(&'[').is_some() {
                        while letters.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {}
                    }
                }
                '\u{80}'..='\u{9f}' => {
                    if !self.version.is_332() {
                        letters.next();
                    }
                }
                '\0'..='\x1f' | '\x7f' | '\u{200b}' if self.version.is_332() => {}
                _ => kept.push(c),
            }
        }
        kept
    }

    /// One Ctrl-U: the last line goes.
    pub fn kill_line(&mut self) {
        match self.text.rfind('\n') {
            Some(at) if at + 1 == self.text.len() => self.text.truncate(at),
            Some(at) => self.text.truncate(at + 1),
            None => self.text.clear(),
        }
    }

    pub fn enter(&mut self) -> Entered {
        if self.text.ends_with('\\') {
            self.text.pop();
            self.text.push('\n');
            return Entered::Nothing;
        }
        let text = std::mem::take(&mut self.text);
        let wrapped = text.contains("<pasted_content id=");
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Entered::Nothing;
        }
        let word = trimmed.split_whitespace().next().unwrap_or_default();
        if word.starts_with('/') && !word[1..].contains('/') {
            return Entered::Command(trimmed.to_owned());
        }
        if let Some(command) = text.strip_prefix('!') {
            return Entered::Shell(command.trim().to_owned());
        }
        Entered::Prompt(if wrapped { text } else { text.trim_end().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(version: Version, raw: &str) -> Entered {
        let mut input = InputBox::new(version);
        input.paste(raw);
        input.enter()
    }

    fn prompt(text: &str) -> Entered {
        Entered::Prompt(text.to_owned())
    }

    #[test]
    fn what_each_version_makes_of_a_paste() {
        let both = [Version::V197, Version::V332];
        for version in both {
            assert_eq!(pasted(version, "one\r\ntwo\rthree"), prompt("one\ntwo\nthree"));
            assert_eq!(pasted(version, "a\tb  \n"), prompt("a    b"));
            assert_eq!(pasted(version, "r\x1b[31med"), prompt("red"));
            assert_eq!(pasted(version, "/cost"), Entered::Command("/cost".to_owned()));
            assert_eq!(pasted(version, " /cost"), Entered::Command("/cost".to_owned()));
            assert_eq!(pasted(version, "/tmp/x is there"), prompt("/tmp/x is there"));
            assert_eq!(pasted(version, "!ls"), Entered::Shell("ls".to_owned()));
            assert_eq!(pasted(version, " !ls"), prompt(" !ls"));
        }
        assert_eq!(pasted(Version::V197, "a\x03b\u{9b}cd"), prompt("a\x03bd"));
        assert_eq!(pasted(Version::V332, "a\x03b\u{9b}cd"), prompt("abcd"));
        assert_eq!(pasted(Version::V197, "1\n2\n3\n4"), prompt("1\n2\n3\n4"));
        assert_eq!(
            pasted(Version::V332, "1\n2\n3\n4"),
            prompt("\n\n<pasted_content id=\"ec7d\">\n1\n2\n3\n4\n</pasted_content id=\"ec7d\">\n")
        );
    }

    #[test]
    fn a_row_of_small_pastes_stays_verbatim() {
        let mut input = InputBox::new(Version::V332);
        for piece in ["1\n2\n", "3\n4\n", "5"] {
            input.paste(piece);
        }
        assert_eq!(input.enter(), prompt("1\n2\n3\n4\n5"));
    }

    #[test]
    fn a_backslash_at_the_end_continues_the_line() {
        let mut input = InputBox::new(Version::V332);
        input.paste("path\\");
        assert_eq!(input.enter(), Entered::Nothing);
        assert_eq!(input.enter(), prompt("path"));
    }
}
