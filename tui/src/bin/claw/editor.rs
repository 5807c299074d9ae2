//! The person's own editor on the draft.

use std::io::Write;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Opens the text in `$VISUAL`, `$EDITOR` or `vi` and returns what was saved. The terminal must
/// have been given back before.
pub fn edit(text: &str) -> Result<String> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty())
        .unwrap_or_else(|| "vi".to_owned());
    // Created with mode 0600: a draft may hold what others must not read.
    let mut file = tempfile::Builder::new()
        .prefix("claw-draft-")
        .suffix(".md")
        .tempfile()
        .context("cannot make a file for the editor")?;
    file.write_all(text.as_bytes()).context("cannot write the draft for the editor")?;
    // Through the shell, as other programs do it: the variable may hold quoted arguments.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("editor")
        .arg(file.path())
        .status()
        .with_context(|| format!("cannot start the editor \"{editor}\"; set VISUAL or EDITOR"))?;
    if status.code() == Some(127) {
        bail!("the editor \"{editor}\" was not found; set VISUAL or EDITOR");
    }
    if !status.success() {
        bail!("the editor ended with {status}; nothing has changed");
    }
    // Many editors replace the file, so it is read by its name again.
    std::fs::read_to_string(file.path()).context("the saved draft cannot be read")
}
