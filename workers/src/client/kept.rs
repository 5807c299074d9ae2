//! Whether a Claude session that is remembered can be opened, and from where.

use std::path::PathBuf;

use claw_runtime::{TuiEvent, TurnContext};

use crate::config::WorkerConfig;
use crate::host::Host;
use crate::transcript::Migrated;
use crate::worker::OpenAs;

/// The folder of an account; none for the default one.
pub(super) type Account = Option<PathBuf>;

/// Whether the session that is to be opened can be; always so for a new one. `kept_in` is the account
/// that had it last: one of another account is brought along first. The person is told when it has to
/// be begun again, with what we have ourselves.
pub(super) async fn is_kept(
    config: &WorkerConfig,
    open: &OpenAs,
    kept_in: Option<Account>,
    cx: &TurnContext,
) -> bool {
    let elsewhere = kept_in.filter(|account| *account != config.config_dir);
    if let Some(account) = elsewhere {
        match Host::bring_along(config, open, account).await {
            Ok(Migrated::Copied) => cx.sink.emit(TuiEvent::info(
                "The Claude session of this conversation was copied from the folder of another account.",
            )),
            Ok(Migrated::Known | Migrated::Nothing) => {}
            Err(error) => {
                cx.sink.emit(TuiEvent::warning(format!(
                    "The Claude session of this conversation is kept by another account and cannot be brought along ({error}); a new one is given its history.",
                )));
                return false;
            }
        }
    }
    let is_there = Host::has_transcript(config, open);
    if !is_there {
        cx.sink.emit(TuiEvent::warning(
            "The Claude session of this conversation is gone; a new one is given its history.",
        ));
    }
    is_there
}
