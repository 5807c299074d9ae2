//! The worker's own screen for the front-end: pictures while somebody looks, and what they type.
//!
//! It waits on a thread of its own, which exists only while somebody looks, and sends a picture when
//! something has changed, at most one a frame.

use std::sync::Arc;
use std::thread;

use claw_tui::frame::FRAME;
use claw_tui::inbox::{Inbox, InboxSender};
use claw_tui::pane::{PaneColour, PaneEvent, PaneLook, PaneModes, PaneMouse, PaneOrder, Picture};
use claw_workers::{Host, ScreenCell, ScreenColour, ScreenView, Screens, SeenScreen, WindowSize};
use tokio::sync::watch;

/// Carries out the front-end's orders.
pub struct WorkerPane {
    host: Arc<Host>,
    sender: InboxSender,
    /// The size that is wanted, for the thread that sends pictures; dropping it ends the thread.
    looking: Option<watch::Sender<WindowSize>>,
}

impl WorkerPane {
    pub fn new(host: Arc<Host>, sender: InboxSender) -> Self {
        Self { host, sender, looking: None }
    }

    pub fn carry_out(&mut self, order: PaneOrder) {
        match order {
            PaneOrder::Look { columns, rows } => self.look(WindowSize { columns, rows }),
            PaneOrder::Resize { columns, rows } => {
                if let Some(looking) = &self.looking {
                    looking.send_replace(WindowSize { columns, rows });
                }
            }
            PaneOrder::Type(bytes) => self.host.screens().type_bytes(bytes),
            PaneOrder::Leave => self.looking = None,
        }
    }

    fn look(&mut self, size: WindowSize) {
        let (wanted, seen) = watch::channel(size);
        self.looking = Some(wanted);
        let (screens, sender) = (self.host.screens().clone(), self.sender.clone());
        let failed = self.sender.clone();
        let begun = thread::Builder::new()
            .name("claw-pane".to_owned())
            .spawn(move || send_pictures(&screens, &sender, seen));
        if let Err(error) = begun {
            tracing::warn!(%error, "no thread for the worker's screen");
            failed.send(Inbox::Worker(PaneEvent::Gone));
        }
    }
}

/// Until nobody looks any more.
fn send_pictures(screens: &Screens, sender: &InboxSender, wanted: watch::Receiver<WindowSize>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    match runtime {
        Ok(runtime) => runtime.block_on(watch_screen(screens, sender, wanted)),
        Err(error) => {
            tracing::warn!(%error, "no pictures of the worker's screen");
            sender.send(Inbox::Worker(PaneEvent::Gone));
        }
    }
}

async fn watch_screen(
    screens: &Screens,
    sender: &InboxSender,
    mut wanted: watch::Receiver<WindowSize>,
) {
    let mut seen = SeenScreen::default();
    loop {
        let size = *wanted.borrow_and_update();
        let view = screens.view();
        // Another worker may have taken the place of the one that was looked at.
        if view.as_ref().is_some_and(|view| (view.columns, view.rows) != (size.columns, size.rows))
        {
            screens.resize(size);
        }
        let event = match view {
            Some(view) => PaneEvent::Shown(Box::new(picture(&view))),
            None => PaneEvent::Gone,
        };
        sender.send(Inbox::Worker(event));
        tokio::time::sleep(FRAME).await;
        tokio::select! {
            () = screens.changed(&mut seen) => {}
            size = wanted.changed() => if size.is_err() {
                return;
            },
        }
        if wanted.has_changed().is_err() {
            return;
        }
    }
}

fn picture(view: &ScreenView) -> Picture {
    let modes = PaneModes {
        application_cursor: view.application_cursor,
        bracketed_paste: view.bracketed_paste,
        mouse: view.mouse.map(|mouse| PaneMouse {
            drags: mouse.drags,
            moves: mouse.moves,
            sgr: mouse.sgr,
        }),
        full_screen: view.alternate,
    };
    let mut picture = Picture::new(view.columns, view.rows, modes);
    picture.set_title(&view.title);
    picture.set_cursor(view.cursor);
    for row in 0..view.rows {
        for column in 0..view.columns {
            let Some(cell) = view.cell(column, row) else { continue };
            // The place after a wide one belongs to it.
            if *cell != ScreenCell::default() && !is_second_half(view, column, row) {
                picture.set(column, row, cell.text.as_str(), cell.wide, look(cell));
            }
        }
    }
    picture
}

fn is_second_half(view: &ScreenView, column: u16, row: u16) -> bool {
    column.checked_sub(1).and_then(|before| view.cell(before, row)).is_some_and(|cell| cell.wide)
}

fn look(cell: &ScreenCell) -> PaneLook {
    PaneLook {
        fg: colour(cell.fg),
        bg: colour(cell.bg),
        bold: cell.bold,
        dim: cell.dim,
        italic: cell.italic,
        underline: cell.underline,
        inverse: cell.inverse,
    }
}

fn colour(colour: ScreenColour) -> PaneColour {
    match colour {
        ScreenColour::Default => PaneColour::Default,
        ScreenColour::Indexed(index) => PaneColour::Indexed(index),
        ScreenColour::Rgb(r, g, b) => PaneColour::Rgb(r, g, b),
    }
}
