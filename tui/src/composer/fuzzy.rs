//! Which of some names match what was typed, best first: those that begin with it, then those that
//! contain its letters in order.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Indices of the matching names, best first; with nothing typed all, in their order.
pub fn rank<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    if typed.is_empty() {
        return (0..names.into_iter().count()).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let atom = Atom::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy, false);
    let lower = typed.to_lowercase();
    let mut buffer = Vec::new();
    let mut found: Vec<(bool, u16, usize)> = names
        .into_iter()
        .enumerate()
        .filter_map(|(index, name)| {
            let begins = name.to_lowercase().starts_with(&lower);
            let score = atom.score(Utf32Str::new(name, &mut buffer), &mut matcher);
            match (begins, score) {
                // Those that begin with it keep the order of the table.
                (true, _) => Some((true, 0, index)),
                (false, Some(score)) => Some((false, score, index)),
                (false, None) => None,
            }
        })
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
    found.into_iter().map(|(_, _, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_come_first_then_letters_in_order() {
        let names = ["session fork", "export", "exit", "theme", "context"];
        let show = |typed| rank(typed, names).into_iter().map(|i| names[i]).collect::<Vec<_>>();
        assert_eq!(show("ex"), ["export", "exit", "context"]);
        assert_eq!(show("sf"), ["session fork"]);
        assert_eq!(show("zz"), Vec::<&str>::new());
        assert_eq!(show("").len(), 5);
    }
}
