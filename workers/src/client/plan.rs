//! The file in which the CLI keeps its plan while it is in plan mode: newer versions do not say the
//! plan again when they ask for its approval.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use claw_runtime::session::ContentBlock;
use serde_json::Value;

use crate::config::WorkerConfig;
use crate::fact::Fact;
use crate::transcript;

/// Bytes of a plan that is shown.
const MOST: u64 = 256 * 1024;

/// Where the plan is, as far as it is known.
#[derive(Debug)]
pub(super) struct PlanFile {
    /// The folder of plans; none where the CLI's files are out of our reach.
    folder: Option<PathBuf>,
    path: Option<PathBuf>,
}

impl PlanFile {
    pub fn of(config: &WorkerConfig) -> Self {
        let here = config.prefix.is_empty();
        let folder = here.then(|| transcript::config_dir(config).join("plans"));
        Self { folder, path: None }
    }

    /// A record that names the file, or a tool of the CLI that writes into its folder.
    pub fn note(&mut self, fact: &Fact) {
        let named = match fact {
            Fact::PlanFile { path } => Some(PathBuf::from(path)),
            Fact::Block { content: ContentBlock::ToolUse { name, input, .. }, .. }
                if matches!(name.as_str(), "Write" | "Edit") =>
            {
                let input: Value = serde_json::from_str(input).unwrap_or_default();
                input["file_path"].as_str().map(PathBuf::from)
            }
            _ => None,
        };
        let within = |path: &PathBuf| {
            self.folder.as_deref().is_some_and(|folder| path.parent() == Some(folder))
        };
        if let Some(path) = named.filter(within) {
            self.path = Some(path);
        }
    }

    /// What is in it. None when there is none, or when it is more than a person reads.
    pub fn read(&self) -> Option<String> {
        read(self.path.as_deref()?)
    }
}

fn read(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MOST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn writes(path: &Path) -> Fact {
        let input = serde_json::json!({"file_path": path}).to_string();
        Fact::Block {
            message: "m".into(),
            block: Some(0),
            content: ContentBlock::ToolUse { id: "t".into(), name: "Write".into(), input },
            model: None,
            usage: None,
            stop_reason: None,
            aborted: false,
        }
    }

    #[test]
    fn the_plan_is_read_from_the_file_that_the_cli_names_or_writes() {
        let folder = tempfile::tempdir().unwrap();
        let config = testing::config(folder.path(), folder.path());
        let plans = transcript::config_dir(&config).join("plans");
        std::fs::create_dir_all(&plans).unwrap();
        let (first, second) = (plans.join("first.md"), plans.join("second.md"));
        std::fs::write(&first, "1. Begin").unwrap();
        std::fs::write(&second, "2. End").unwrap();
        let elsewhere = folder.path().join("secret");
        std::fs::write(&elsewhere, "no plan").unwrap();
        let mut plan = PlanFile::of(&config);
        assert_eq!(plan.read(), None);
        plan.note(&Fact::PlanFile { path: first.to_string_lossy().into_owned() });
        assert_eq!(plan.read().as_deref(), Some("1. Begin"));
        plan.note(&writes(&second));
        plan.note(&writes(&elsewhere));
        assert_eq!(plan.read().as_deref(), Some("2. End"));
        std::fs::write(&second, "x".repeat(300 * 1024)).unwrap();
        assert_eq!(plan.read(), None);
        let far = WorkerConfig { prefix: vec!["ssh".into(), "host".into()], ..config };
        let mut plan = PlanFile::of(&far);
        plan.note(&writes(&first));
        assert_eq!(plan.read(), None);
    }
}
