//! The demo's script: scenes chosen by the words of the prompt, steps played one per answer.

use serde::Deserialize;
use serde_json::Value;

const SCRIPT: &str = include_str!("../../../../assets/demo/script.json");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// In order of preference where two match equally well.
    scenes: Vec<Scene>,
    /// Played when no scene matches.
    fallback: Scene,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scene {
    pub(super) name: String,
    /// Lower-case words; the scene with the most of them in the prompt is played.
    #[serde(default)]
    words: Vec<String>,
    /// Never empty.
    steps: Vec<Step>,
}

/// One answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    pub(super) thinking: String,
    pub(super) text: String,
    /// Said instead of `text`, without the calls, when a tool failed or was denied before it.
    pub(super) if_failed: Option<String>,
    pub(super) tools: Vec<ScriptedCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    pub(super) input: Value,
}

impl Script {
    pub(super) fn embedded() -> Result<Self, serde_json::Error> {
        serde_json::from_str(SCRIPT)
    }

    pub(super) fn scene_for(&self, prompt: &str) -> &Scene {
        let prompt = prompt.to_lowercase();
        let words: Vec<&str> =
            prompt.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let score = |scene: &Scene| {
            scene.words.iter().filter(|word| words.contains(&word.as_str())).count()
        };
        let mut best = (0, &self.fallback);
        for scene in &self.scenes {
            let score = score(scene);
            if score > best.0 {
                best = (score, scene);
            }
        }
        best.1
    }
}

impl Scene {
    /// The step for the n-th answer; the last one when the script has ended.
    pub(super) fn step(&self, answers: usize) -> &Step {
        static SILENT: Step = Step {
            thinking: String::new(),
            text: String::new(),
            if_failed: None,
            tools: Vec::new(),
        };
        self.steps.get(answers).unwrap_or(&SILENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prompt: &str, scene: &str) {
        let script = Script::embedded().unwrap();
        assert_eq!(script.scene_for(prompt).name, scene, "prompt {prompt:?}");
    }

    #[test]
    fn prompts_find_their_scene() {
        check("Hello!", "tour");
        check("what can you do?", "tour");
        check("show me everything", "everything");
        check("please run a command", "run");
        check("edit a file and show me the diff", "edit");
        check("What files are in this project?", "files");
        check("Refactor the billing module", "fallback");
        check("write something long", "long");
        check("", "fallback");
    }

    #[test]
    fn every_scene_ends_without_a_call() {
        let script = Script::embedded().unwrap();
        for scene in script.scenes.iter().chain([&script.fallback]) {
            let last = scene.steps.last().expect("a scene has steps");
            assert!(last.tools.is_empty(), "scene {} would wait for ever", scene.name);
            assert!(!last.text.is_empty(), "scene {} ends in silence", scene.name);
        }
    }
}
