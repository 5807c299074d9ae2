//! What the runtime told, as changes of cells.

use std::path::{Path, PathBuf};
use std::time::Instant;

use claw_runtime::api::{ApiError, StopReason};
use claw_runtime::{CompactionCause, NoticeLevel, RuntimeError, TuiEvent, TurnStop, TurnSummary};

use super::answer::Answer;
use super::cell::{Content, Standing};
use super::source::Source;
use super::thinking::Thinking;
use super::tool::Tool;
use super::{INTERRUPTED_MARK, Transcript};
use crate::numbers::grouped;
use crate::sanitise;

impl Transcript {
    /// Takes in one fact. Facts that are not shown in the transcript are left alone.
    /// A session that was opened is not one of them: the owner calls [`Transcript::load`].
    pub fn apply(&mut self, now: Instant, event: &TuiEvent) {
        match event {
            TuiEvent::TurnStarted { input, retry } => self.turn_started(input, *retry),
            TuiEvent::TurnCompleted { summary } | TuiEvent::UnaskedTurnEnded { summary } => {
                self.turn_completed(summary);
            }
            TuiEvent::TurnFailed { error, .. } => self.turn_failed(error),
            TuiEvent::TextDelta { text } => self.text(text),
            TuiEvent::ThinkingStarted => {
                self.thinking("");
            }
            TuiEvent::ThinkingDelta { text } => self.thinking(text),
            TuiEvent::ThinkingEnded { char_count, redacted } => {
                self.thinking_ended(*char_count, *redacted);
            }
            TuiEvent::MessageStop { stop_reason } => {
                self.finish_live(None);
                let said = std::mem::take(&mut self.said);
                if !said && unusual_stop(stop_reason).is_none() {
                    self.push(Content::EmptyAnswer);
                }
            }
            TuiEvent::Compacted { cause, removed, before_tokens, after_tokens, original } => {
                let original = original.as_deref().map(from_own_folder);
                self.compacted(*cause, *removed, *before_tokens, *after_tokens, original);
            }
            TuiEvent::CompactionFailed { error: None } => {
                self.notice(NoticeLevel::Warning, "The compaction was stopped.");
            }
            TuiEvent::CompactionFailed { error: Some(error) } => {
                let text = format!("Not compacted: {error}\nThe conversation is as it was.");
                self.notice(NoticeLevel::Error, &text);
            }
            TuiEvent::NothingToRetry => self.notice(
                NoticeLevel::Info,
                "Nothing to retry: no prompt waits for an answer or has only a part of one.",
            ),
            TuiEvent::Exported { path } => {
                let text = format!("Conversation written to {}", path.display());
                self.notice(NoticeLevel::Info, &text);
            }
            TuiEvent::Reply { title, markdown } => {
                let title = sanitise::single_line(title).into_owned();
                let markdown = sanitise::text(markdown).into_owned();
                let following = self.view.is_following();
                let at = self.push(Content::Reply { title, markdown });
                // An answer to a command is read from its beginning, also when it is long.
                if following {
                    self.view.show_from(&mut self.cells, at);
                }
            }
            TuiEvent::Notice { level, text } => self.notice(*level, text),
            _ => self.apply_tool(now, event),
        }
    }

    fn apply_tool(&mut self, now: Instant, event: &TuiEvent) {
        match event {
            TuiEvent::ToolUseStarted { id, name } => {
                self.said = true;
                self.tool(id, name, |_| ());
            }
            TuiEvent::ToolUse { id, name, input } => {
                self.said = true;
                self.tool(id, name, |tool| tool.ready(input));
            }
            TuiEvent::ToolUseIncomplete { id, name } => {
                self.tool(id, name, Tool::incomplete);
            }
            TuiEvent::ToolStarted { id, name, input, .. } => {
                self.tool(id, name, |tool| tool.started(now, input));
            }
            TuiEvent::ToolOutput { id, text } => self.known_tool(id, |tool| tool.output(text)),
            TuiEvent::ToolEnded { id, is_error, elapsed } => {
                self.known_tool(id, |tool| tool.ended(*is_error, *elapsed));
            }
            TuiEvent::ToolResult { id, name, input, outcome, denied, .. } => {
                self.tool(id, name, |tool| tool.result(input, outcome, *denied));
            }
            TuiEvent::PermissionRequired { request, .. } => {
                self.questions.push((request.id, request.tool_use_id.clone()));
                self.known_tool(&request.tool_use_id, Tool::waiting);
            }
            TuiEvent::PermissionRetired { id, .. } => {
                if let Some(at) = self.questions.iter().position(|(known, _)| known == id) {
                    let (_, call) = self.questions.swap_remove(at);
                    self.known_tool(&call, Tool::answered);
                }
            }
            _ => {}
        }
    }

    /// Adds a cell at the end.
    pub(super) fn push(&mut self, content: Content) -> usize {
        self.view.count_cell();
        let at = self.cells.push(content);
        if self.cells.queued() > 0 {
            self.view.make_room(at);
        }
        at
    }

    fn notice(&mut self, level: NoticeLevel, text: &str) {
        let text = sanitise::text(text).into_owned();
        self.view.count_text(&text);
        self.push(Content::Notice { level, text });
    }

    /// Matches the turn with the prompt that is already shown; shows it when there is none, unless
    /// the turn repeats an earlier prompt.
    fn turn_started(&mut self, input: &str, retry: bool) {
        self.calls.clear();
        self.questions.clear();
        self.said = false;
        if retry {
            return;
        }
        if self.submitted.take().is_some() {
            return;
        }
        if let Some(at) = self.cells.unqueue_first() {
            if let Some(cell) = self.cells.change(at)
                && let Content::User { standing, .. } = &mut cell.content
            {
                *standing = Standing::Begun;
            }
            return;
        }
        if !input.trim().is_empty() {
            self.push(Content::User { text: Source::clean(input), standing: Standing::Begun });
        }
    }

    fn text(&mut self, delta: &str) {
        let at = match self.live {
            Some(at) if self.is_live_answer(at) => at,
            _ => {
                self.finish_live(None);
                let at = self.push(Content::Answer(Answer::live()));
                self.live = Some(at);
                at
            }
        };
        self.view.count_text(delta);
        self.said |= !delta.trim().is_empty();
        if let Some(cell) = self.cells.change(at)
            && let Content::Answer(answer) = &mut cell.content
        {
            answer.push(delta);
        }
    }

    fn is_live_answer(&self, at: usize) -> bool {
        matches!(self.cells.get(at).map(|cell| &cell.content), Some(Content::Answer(_)))
    }

    fn is_live_thinking(&self, at: usize) -> bool {
        matches!(self.cells.get(at).map(|cell| &cell.content), Some(Content::Thinking(_)))
    }

    fn thinking(&mut self, delta: &str) {
        self.said = true;
        let at = match self.live {
            Some(at) if self.is_live_thinking(at) => at,
            _ => {
                self.finish_live(None);
                let at = self.push(Content::Thinking(Thinking::live()));
                self.live = Some(at);
                at
            }
        };
        if let Some(cell) = self.cells.change(at)
            && let Content::Thinking(thinking) = &mut cell.content
        {
            thinking.push(delta);
        }
    }

    fn thinking_ended(&mut self, chars: usize, redacted: bool) {
        if !self.live.is_some_and(|at| self.is_live_thinking(at)) {
            self.thinking("");
        }
        if let Some(at) = self.live.take()
            && let Some(cell) = self.cells.change(at)
            && let Content::Thinking(thinking) = &mut cell.content
        {
            thinking.finish(Some(chars), redacted);
        }
    }

    /// What grew is complete; `mark` says why it is not whole. True when the mark found a text.
    fn finish_live(&mut self, mark: Option<&str>) {
        let Some(at) = self.live.take() else {
            return;
        };
        if let Some(cell) = self.cells.change(at) {
            match &mut cell.content {
                Content::Answer(answer) => answer.finish(mark.map(str::to_owned)),
                Content::Thinking(thinking) => thinking.finish(None, false),
                _ => {}
            }
        }
    }

    /// The call with this id, new if it is not known.
    fn tool(&mut self, id: &str, name: &str, act: impl FnOnce(&mut Tool)) {
        if !self.calls.iter().any(|(known, _)| known == id) {
            self.finish_live(None);
            let at = self.push(Content::Tool(Box::new(Tool::writing(name))));
            self.calls.push((id.to_owned(), at));
        }
        self.known_tool(id, act);
    }

    fn known_tool(&mut self, id: &str, act: impl FnOnce(&mut Tool)) {
        if let Some((_, at)) = self.calls.iter().rev().find(|(known, _)| known == id)
            && let Some(cell) = self.cells.change(*at)
            && let Content::Tool(tool) = &mut cell.content
        {
            act(tool);
        }
    }

    /// No more events of this turn come: calls without a result are interrupted. True if any was.
    fn end_calls(&mut self) -> bool {
        let mut any = false;
        for (_, at) in std::mem::take(&mut self.calls) {
            if let Some(cell) = self.cells.change(at)
                && let Content::Tool(tool) = &mut cell.content
            {
                any |= tool.interrupt();
            }
        }
        self.questions.clear();
        any
    }

    fn turn_completed(&mut self, summary: &TurnSummary) {
        if summary.stop == TurnStop::Cancelled {
            return self.interrupt();
        }
        self.submitted = None;
        self.finish_live(None);
        self.end_calls();
        match &summary.stop {
            TurnStop::Cancelled | TurnStop::Failed => {}
            TurnStop::IterationLimit(limit) => self.notice(
                NoticeLevel::Warning,
                &format!("Stopped after {limit} rounds of tool calls. Say \"continue\" to go on."),
            ),
            TurnStop::Finished(reason) => {
                if let Some(text) = unusual_stop(reason) {
                    self.notice(NoticeLevel::Warning, &text);
                }
            }
        }
    }

    /// What runs will not be finished: it is marked as stopped.
    fn interrupt(&mut self) {
        let live_text = self.live.is_some_and(|at| self.is_live_answer(at));
        self.submitted = None;
        self.finish_live(Some(INTERRUPTED_MARK));
        let calls = self.end_calls();
        if !live_text && !calls {
            self.notice(NoticeLevel::Warning, &sentence(INTERRUPTED_MARK));
        }
    }

    /// The program ends in the middle of a turn: nothing is left that looks as if it went on.
    pub fn leave(&mut self) {
        self.interrupt();
        while self.is_sending() {
            self.steered(Standing::Uncertain);
        }
        if self.queued() > 0 {
            self.notice(NoticeLevel::Warning, "Not sent any more:");
        }
    }

    fn turn_failed(&mut self, error: &RuntimeError) {
        let live_text = self.live.is_some_and(|at| self.is_live_answer(at));
        self.submitted = None;
        let cut = match error {
            RuntimeError::Api(ApiError::StreamCut { cause, .. }) => {
                let cause = sanitise::single_line(&cause.to_string()).into_owned();
                Some(format!("cut off: {cause}; /retry sends it again"))
            }
            _ => None,
        };
        self.finish_live(cut.as_deref());
        self.end_calls();
        match cut {
            Some(_) if live_text => {}
            Some(mark) => self.notice(NoticeLevel::Error, &sentence(&mark)),
            None => {
                let text = format!("{error}\nThe conversation is kept; /retry sends it again.");
                self.notice(NoticeLevel::Error, &text);
            }
        }
    }

    fn compacted(
        &mut self,
        cause: CompactionCause,
        removed: usize,
        before: u64,
        after: u64,
        original: Option<String>,
    ) {
        let tokens = |count: u64| grouped(usize::try_from(count).unwrap_or(usize::MAX));
        let why = match cause {
            CompactionCause::Requested => "",
            CompactionCause::Automatic => " (the context was getting full)",
            CompactionCause::ContextWindow => " (the context was full)",
        };
        let mut text = if removed == 0 && after == before {
            format!("Nothing to compact: the context has about {} tokens", tokens(before))
        } else {
            let sizes = format!("about {} tokens are now {}", tokens(before), tokens(after));
            match removed {
                // A backend compacted a context of its own: ours stays as it is.
                0 if original.is_none() => format!("Compacted{why}: {sizes}"),
                0 => format!("Compacted{why}: long tool texts were shortened, {sizes}"),
                removed => format!("Compacted{why}: {removed} messages became a summary, {sizes}"),
            }
        };
        if original.is_some() {
            text.push_str(". The original is kept in");
        }
        self.push(Content::Compaction { text, original, summary: None });
    }
}

/// A path from the program's own folder in the workspace on, in one line; whole where it is not in
/// there.
fn from_own_folder(path: &Path) -> String {
    let own = path.iter().position(|part| part == ".claw");
    let shown: PathBuf = path.iter().skip(own.unwrap_or(0)).collect();
    sanitise::single_line(&shown.display().to_string()).into_owned()
}

/// A mark as a sentence of its own.
pub(super) fn sentence(mark: &str) -> String {
    let mut chars = mark.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Words for a stop that the person has to know about.
fn unusual_stop(reason: &StopReason) -> Option<String> {
    match reason {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => None,
        StopReason::MaxTokens => Some(
            "Cut off: the answer reached the output limit. Say \"continue\" to go on.".to_owned(),
        ),
        StopReason::Refusal => Some("The model refused to answer.".to_owned()),
        StopReason::PauseTurn => Some("The model paused. Say \"continue\" to go on.".to_owned()),
        StopReason::Cancelled => Some("Interrupted".to_owned()),
        StopReason::Other(reason) => {
            Some(format!("The model stopped for a reason that is not known here: {reason}"))
        }
    }
}
