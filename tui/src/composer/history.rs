//! Earlier prompts: newest first, each text once, the unsent draft kept aside while looking.
//!
//! Which prompts belong here (this session, this project) is the caller's choice; nothing is
//! written anywhere.

/// Earlier prompts and the place in them.
#[derive(Debug, Default)]
pub struct History {
    /// Oldest first.
    entries: Vec<String>,
    /// Those that were added here rather than loaded.
    added: Vec<String>,
    /// Which entry is shown, and the draft it took the place of.
    shown: Option<(usize, String)>,
}

impl History {
    /// Takes in the entries of another place, oldest first, for those of the place before. What was
    /// added here stays as the newest, and when there is nothing to take in, so does everything.
    /// Of equal entries the newest stays.
    pub fn load(&mut self, mut entries: Vec<String>) {
        self.settle();
        if entries.is_empty() {
            return;
        }
        entries.extend(self.added.iter().cloned());
        let mut seen = std::collections::HashSet::new();
        let mut kept: Vec<String> = entries
            .into_iter()
            .rev()
            .filter(|entry| !entry.trim().is_empty() && seen.insert(entry.clone()))
            .collect();
        kept.reverse();
        self.entries = kept;
    }

    /// Adds the newest entry and stops looking.
    pub fn push(&mut self, entry: &str) {
        self.settle();
        self.add(entry);
    }

    fn add(&mut self, entry: &str) {
        if entry.trim().is_empty() {
            return;
        }
        for list in [&mut self.entries, &mut self.added] {
            list.retain(|known| known != entry);
            list.push(entry.to_owned());
        }
    }

    /// Oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// True while an earlier prompt is shown in place of the draft.
    pub fn is_browsing(&self) -> bool {
        self.shown.is_some()
    }

    /// The entry before the shown one; `draft` is kept when looking begins.
    pub fn older(&mut self, draft: &str) -> Option<String> {
        let index = match &self.shown {
            None => self.entries.len().checked_sub(1)?,
            Some((index, _)) => index.checked_sub(1)?,
        };
        let kept = match self.shown.take() {
            Some((_, kept)) => kept,
            None => draft.to_owned(),
        };
        self.shown = Some((index, kept));
        Some(self.entries[index].clone())
    }

    /// The entry after the shown one, and after the newest the kept draft.
    pub fn newer(&mut self) -> Option<String> {
        let (index, kept) = self.shown.take()?;
        if index + 1 < self.entries.len() {
            self.shown = Some((index + 1, kept));
            return Some(self.entries[index + 1].clone());
        }
        Some(kept)
    }

    /// Takes the shown entry as the draft: the next look begins at the newest again, which is the
    /// draft that it took the place of.
    pub fn settle(&mut self) {
        if let Some((_, kept)) = self.shown.take() {
            self.add(&kept);
        }
    }

    /// The newest entry at or before `from` (counted from the newest, 0) that contains the words,
    /// letter case aside. Returns its place and text.
    pub fn search(&self, words: &str, from: usize) -> Option<(usize, &str)> {
        let words = words.to_lowercase();
        self.entries
            .iter()
            .rev()
            .enumerate()
            .skip(from)
            .find(|(_, entry)| entry.to_lowercase().contains(&words))
            .map(|(place, entry)| (place, entry.as_str()))
    }
}

/// A search through earlier prompts in progress.
#[derive(Debug)]
pub struct Search {
    pub words: String,
    /// The match's place, counted from the newest.
    pub place: Option<usize>,
    /// What the draft was when the search began.
    pub draft: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[&str]) -> History {
        let mut history = History::default();
        history.load(entries.iter().map(|e| (*e).to_owned()).collect());
        history
    }

    #[test]
    fn newest_comes_first_and_the_draft_comes_back() {
        let mut history = history(&["one", "two", "three"]);
        assert_eq!(history.older("draft").as_deref(), Some("three"));
        assert_eq!(history.older("").as_deref(), Some("two"));
        assert_eq!(history.older("").as_deref(), Some("one"));
        assert_eq!(history.older(""), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("three"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn equal_entries_are_there_once() {
        let mut history = history(&["a", "b", "a", "  ", "c", "c"]);
        assert_eq!(history.entries(), ["b", "a", "c"]);
        history.push("b");
        assert_eq!(history.entries(), ["a", "c", "b"]);
    }

    #[test]
    fn entries_of_another_place_come_before_what_was_typed_here() {
        let mut history = history(&["old"]);
        history.push("mine");
        history.load(vec!["theirs".into(), "mine".into(), "newer".into()]);
        assert_eq!(history.entries(), ["theirs", "newer", "mine"]);
        history.load(Vec::new());
        assert_eq!(history.entries(), ["theirs", "newer", "mine"]);
    }

    #[test]
    fn the_kept_draft_is_an_entry_once_another_takes_its_place() {
        let mut settled = history(&["one"]);
        settled.older("draft");
        settled.settle();
        assert_eq!(settled.entries(), ["one", "draft"]);
        let mut sent = history(&["one"]);
        sent.older("draft");
        sent.push("one");
        assert_eq!(sent.entries(), ["draft", "one"]);
        let mut loaded = history(&["one"]);
        loaded.older("draft");
        loaded.load(vec!["two".into()]);
        assert_eq!(loaded.entries(), ["two", "draft"]);
    }

    #[test]
    fn search_finds_the_newest_first_and_goes_on_to_older_ones() {
        let history = history(&["Fix tests", "add docs", "fix lint"]);
        assert_eq!(history.search("FIX", 0), Some((0, "fix lint")));
        assert_eq!(history.search("fix", 1), Some((2, "Fix tests")));
        assert_eq!(history.search("fix", 3), None);
    }
}
