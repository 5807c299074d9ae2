//! The start of the terminal program: the dialogs that stand in its way.

use crate::app::{App, Exit};
use crate::dialog::{Choice, Dialog};

/// An entry that lets the start go on begins so.
const YES: &str = "Yes";

impl App {
    /// Goes through the dialogs in their order.
    pub async fn pass_dialogs(&mut self) -> Result<(), Exit> {
        let version = self.session.version;
        if self.session.quirks.has("auth-at-start") {
            loop {
                self.choose(Dialog::login()).await?;
            }
        }
        let config = self.session.home.config();
        if config["hasCompletedOnboarding"] != true {
            let words = "Unable to connect to Anthropic services\r\n\r\nFailed to connect to \
                         api.anthropic.com: ENOTFOUND";
            return Err(Exit::with(1, words));
        }
        self.ask_trust().await?;
        self.ask_key().await?;
        let bypass = self.session.mode() == "bypassPermissions";
        if bypass && !self.bypass_accepted {
            let dialog = Dialog::bypass(version);
            if !self.says_yes(dialog).await? {
                return Err(Exit::with(1, ""));
            }
            let yes = serde_json::json!(true);
            self.session.home.set("skipDangerousModePermissionPrompt", yes);
        }
        let unknown = self.session.hooks.unknown.clone();
        if !unknown.is_empty() {
            match self.choose(Dialog::unknown_hooks(&unknown)).await? {
                Choice::Entry(0) => {}
                _ => return Err(Exit::with(1, "")),
            }
        }
        Ok(())
    }

    async fn ask_trust(&mut self) -> Result<(), Exit> {
        let mut times = if self.session.quirks.has("trust-twice") { 2 } else { 1 };
        if self.session.home.is_trusted(self.session.version) {
            times -= 1;
        }
        for _ in 0..times {
            let cwd = self.session.home.cwd.to_string_lossy().into_owned();
            let dialog = Dialog::trust(self.session.version, &cwd);
            if !self.says_yes(dialog).await? {
                return Err(Exit::with(1, ""));
            }
            self.session.home.trust();
        }
        Ok(())
    }

    async fn ask_key(&mut self) -> Result<(), Exit> {
        let Some(key) = self.session.api.key() else { return Ok(()) };
        let from = key.char_indices().rev().nth(19).map_or(0, |(at, _)| at);
        let tail = key[from..].to_owned();
        let answered = |list: &str| {
            let config = self.session.home.config();
            let known = config["customApiKeyResponses"][list].as_array().cloned();
            known.unwrap_or_default().iter().any(|one| one == tail.as_str())
        };
        if answered("approved") {
            return Ok(());
        }
        let accepted = !answered("rejected")
            && self.says_yes(Dialog::api_key(self.session.version, &tail)).await?;
        let list = if accepted { "approved" } else { "rejected" };
        self.session.home.change(|config| {
            let all = &mut config["customApiKeyResponses"];
            if !all.is_object() {
                *all = serde_json::json!({"approved": [], "rejected": []});
            }
            if let Some(list) = all[list].as_array_mut() {
                list.push(serde_json::json!(tail));
            }
        });
        if !accepted {
            self.session.api.reject_key();
        }
        Ok(())
    }

    async fn says_yes(&mut self, dialog: Dialog) -> Result<bool, Exit> {
        let entries = dialog.entries.clone();
        match self.choose(dialog).await? {
            Choice::Entry(index) => Ok(entries[index].starts_with(YES)),
            _ => Ok(false),
        }
    }
}
