//! What a block stands in: quotes, lists and items, and the marks that they put before its lines.

use ratatui::text::{Line, Span};

use super::wrap::{Margins, spans_width};
use crate::theme::Theme;

/// Text keeps at least this many columns: deeper nesting loses its outermost marks.
const NARROWEST_TEXT: usize = 12;

#[derive(Debug)]
enum Container {
    Quote,
    List { next: Option<u64>, items: usize, loose: bool },
    Item { marker: String, used: bool },
}

/// The containers around the block that is read, outermost first.
#[derive(Debug, Default)]
pub struct Nesting {
    containers: Vec<Container>,
}

/// Mark on the first line and on the further lines.
type Mark = (Span<'static>, Span<'static>);

impl Nesting {
    pub fn open_quote(&mut self) {
        self.containers.push(Container::Quote);
    }

    pub fn open_list(&mut self, first: Option<u64>) {
        self.containers.push(Container::List { next: first, items: 0, loose: false });
    }

    /// Opens the next item of the list. Returns whether a blank line belongs before it; none leaves
    /// that to what was before the list.
    pub fn open_item(&mut self) -> Option<bool> {
        let bullet = if self.containers.len() > 2 { "◦ " } else { "• " };
        let Some(Container::List { next, items, loose }) = self.containers.last_mut() else {
            return None;
        };
        let gap = (*items > 0).then_some(*loose);
        *items += 1;
        let marker = match next {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            None => bullet.to_owned(),
        };
        self.containers.push(Container::Item { marker, used: false });
        gap
    }

    /// Opens something that has a mark of its own before its first line.
    pub fn open_marked(&mut self, marker: String) {
        self.containers.push(Container::Item { marker, used: false });
    }

    /// A paragraph begins: directly in an item it makes the list a loose one.
    pub fn open_paragraph(&mut self) {
        if let [.., Container::List { loose, .. }, Container::Item { .. }] =
            self.containers.as_mut_slice()
        {
            *loose = true;
        }
    }

    /// The item is a task: its box takes the place of the bullet.
    pub fn mark_task(&mut self, done: bool) {
        if let Some(Container::Item { marker, .. }) = self.containers.last_mut() {
            (if done { "☑ " } else { "☐ " }).clone_into(marker);
        }
    }

    pub fn close(&mut self) {
        self.containers.pop();
    }

    /// Closes a list. Returns whether what follows in the same item stands apart from it.
    pub fn close_list(&mut self) -> bool {
        let ended = self.containers.pop();
        let around = self.containers.iter().rev().nth(1);
        [ended.as_ref(), around]
            .into_iter()
            .flatten()
            .any(|container| matches!(container, Container::List { loose: true, .. }))
    }

    /// The line of an item that has no text before what comes now.
    pub fn bare_marker(&mut self, width: usize, theme: &Theme) -> Option<Line<'static>> {
        matches!(self.containers.last(), Some(Container::Item { used: false, .. }))
            .then(|| Line::from(self.margins(width, theme).first))
    }

    /// A blank line, with the marks of the quotes around it.
    pub fn blank_line(&self, theme: &Theme) -> Line<'static> {
        let quotes = self
            .containers
            .iter()
            .take_while(|container| matches!(container, Container::Quote))
            .map(|_| Span::styled("│", theme.quote));
        Line::from(quotes.collect::<Vec<_>>())
    }

    /// Columns that are left for text.
    pub fn room(&self, width: usize, theme: &Theme) -> usize {
        let taken: usize = self.marks(width, theme).iter().map(mark_width).sum();
        width.saturating_sub(taken)
    }

    /// The margins for the next text; the markers of new items are used up.
    pub fn margins(&mut self, width: usize, theme: &Theme) -> Margins {
        let (first, rest) = self.marks(width, theme).into_iter().unzip();
        for container in &mut self.containers {
            if let Container::Item { used, .. } = container {
                *used = true;
            }
        }
        Margins { first, rest }
    }

    /// The marks of the containers, without the outermost where they would leave too little room.
    fn marks(&self, width: usize, theme: &Theme) -> Vec<Mark> {
        let mut marks = Vec::new();
        for container in &self.containers {
            match container {
                Container::Quote => {
                    let mark = Span::styled("│ ", theme.quote);
                    marks.push((mark.clone(), mark));
                }
                Container::List { .. } => {}
                Container::Item { marker, used } => {
                    let mark = Span::styled(marker.clone(), theme.list_marker);
                    let blank = Span::raw(" ".repeat(spans_width(std::slice::from_ref(&mark))));
                    marks.push((if *used { blank.clone() } else { mark }, blank));
                }
            }
        }
        let allowed = width.saturating_sub(NARROWEST_TEXT).max(width / 2);
        let mut total: usize = marks.iter().map(mark_width).sum();
        let dropped = marks.iter().take_while(|mark| {
            let fits = total <= allowed;
            total -= if fits { 0 } else { mark_width(mark) };
            !fits
        });
        let dropped = dropped.count();
        marks.drain(..dropped);
        marks
    }
}

fn mark_width(mark: &Mark) -> usize {
    spans_width(std::slice::from_ref(&mark.1))
}
