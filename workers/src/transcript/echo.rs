//! Knows our own prompt again in the transcript: the record that begins its turn, and no other one.
//!
//! Compares whole texts, but for the rewriting that the CLI is known to do. Refuses to match by
//! containment: a prompt such as "ok" is found in many a record that is not ours.

use std::path::Path;

use super::record::Record;
use crate::fact::{Fact, PromptSource};
use crate::prompt::receipt_matches;

/// What a record means for the prompt that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// Not this prompt.
    No,
    /// It may be: the words and the count of images are right, and where the images came from is
    /// told by the records that follow.
    Waiting,
    /// This is it.
    Yes,
}

/// One prompt that is looked for. Records are offered in the order of the file.
#[derive(Debug, Clone)]
pub struct PromptEcho {
    text: String,
    /// Paths of the images, in the order of the prompt.
    images: Vec<String>,
    /// Sources that were told already, once the words were right.
    told: Option<usize>,
}

impl PromptEcho {
    /// A prompt of words only.
    pub fn new(prompt: &str) -> Self {
        Self { text: prompt.to_owned(), images: Vec::new(), told: None }
    }

    /// A prompt whose text names these image files, in this order. The CLI puts a marker in the place
    /// of each path and attaches the image.
    pub fn with_images<P: AsRef<Path>>(prompt: &str, images: &[P]) -> Self {
        let images: Vec<String> =
            images.iter().map(|path| path.as_ref().to_string_lossy().into_owned()).collect();
        if images.is_empty() {
            return Self::new(prompt);
        }
        Self { text: without_paths(prompt, &images), images, told: None }
    }

    /// Shows it the next record.
    pub fn offer(&mut self, record: &Record) -> Echo {
        if record.sidechain {
            return Echo::No;
        }
        let mut result = Echo::No;
        for fact in &record.facts {
            match self.look(fact, record.images) {
                Echo::Yes => return Echo::Yes,
                other => result = other,
            }
        }
        // Bookkeeping comes between a prompt and its sources.
        if record.facts.is_empty() && self.told.is_some() { Echo::Waiting } else { result }
    }

    fn look(&mut self, fact: &Fact, images: usize) -> Echo {
        match fact {
            Fact::Prompt { text, source: PromptSource::Typed | PromptSource::Queued, .. } => {
                self.told = None;
                self.words(text, images)
            }
            Fact::Prompt { text, source: PromptSource::Hidden, .. } if self.told.is_some() => {
                self.sources(text)
            }
            Fact::Unknown { .. } if self.told.is_some() => Echo::Waiting,
            // The turn went on without the sources.
            _ => {
                self.told = None;
                Echo::No
            }
        }
    }

    fn words(&mut self, text: &str, images: usize) -> Echo {
        if images != self.images.len() {
            return Echo::No;
        }
        if self.images.is_empty() {
            return if receipt_matches(&self.text, text) { Echo::Yes } else { Echo::No };
        }
        let seen = one_line(&without_markers(text));
        // A prompt of nothing but images has no words to compare.
        let same = (seen.is_empty() && self.text.is_empty()) || receipt_matches(&self.text, &seen);
        if !same {
            return Echo::No;
        }
        self.told = Some(0);
        Echo::Waiting
    }

    /// A record that tells sources tells the next ones, or another image was attached.
    fn sources(&mut self, text: &str) -> Echo {
        let mut told = self.told.take().unwrap_or(0);
        let mut any = false;
        for source in sources(text) {
            any = true;
            if self.images.get(told).is_none_or(|path| path != source) {
                return Echo::No;
            }
            told += 1;
        }
        if any && told == self.images.len() {
            return Echo::Yes;
        }
        // Another word to the model changes nothing.
        self.told = Some(told);
        Echo::Waiting
    }
}

/// The paths in `[Image: source: path]`, in order. A path may hold brackets: it ends where its line
/// does.
fn sources(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        line.trim().strip_prefix("[Image: source: ")?.strip_suffix(']').map(str::trim)
    })
}

/// Takes each path out once, in order, as it may be written in an input box: plain, in quotes, or
/// with its spaces escaped.
fn without_paths(prompt: &str, images: &[String]) -> String {
    let mut rest = prompt;
    let mut left = String::with_capacity(prompt.len());
    for path in images {
        let escaped = path.replace(' ', "\\ ");
        let forms = [format!("\"{path}\""), format!("'{path}'"), escaped, path.clone()];
        let found = forms.iter().filter_map(|form| Some((rest.find(form.as_str())?, form.len())));
        // The earliest form, and of those the longest: quotes belong to the path.
        if let Some((at, length)) = found.min_by_key(|&(at, length)| (at, usize::MAX - length)) {
            left.push_str(&rest[..at]);
            rest = &rest[at + length..];
        }
    }
    left.push_str(rest);
    one_line(&left)
}

/// Without `[Image #n]`.
fn without_markers(text: &str) -> String {
    const OPEN: &str = "[Image #";
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        left.push_str(before);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        match after[digits..].strip_prefix(']') {
            Some(behind) if digits > 0 => rest = behind,
            _ => {
                left.push_str(OPEN);
                rest = after;
            }
        }
    }
    left + rest
}

/// Taking something out leaves white space of any length.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
