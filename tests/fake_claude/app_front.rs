//! The screen as the front of a conversation: what is told becomes events of the app.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::front::{Answer, Front, Question};
use crate::message::Message;

pub enum AppEvent {
    Line(char, String),
    Live(String),
    Ask(Box<Question>, oneshot::Sender<Answer>),
    /// The question was answered elsewhere or taken back.
    Asked,
}

pub struct AppFront {
    pub events: mpsc::UnboundedSender<AppEvent>,
}

impl AppFront {
    fn tell(&self, event: AppEvent) {
        // The app ends together with the process.
        let _ = self.events.send(event);
    }
}

/// Tells that a question is over, however it ended.
struct Over(mpsc::UnboundedSender<AppEvent>);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = self.0.send(AppEvent::Asked);
    }
}

impl Front for AppFront {
    fn prompt(&self, text: &str) {
        self.tell(AppEvent::Line('❯', text.to_owned()));
    }

    fn api_event(&self, event: &Value, message: &Message, tool_use: Option<&str>) {
        if tool_use.is_none() && event["delta"]["text"].is_string() {
            let open = message.blocks.last().filter(|block| !block.ended);
            let text = open.and_then(|block| block.content["text"].as_str());
            self.tell(AppEvent::Live(text.unwrap_or_default().to_owned()));
        }
    }

    fn block(&self, _message: &Message, content: &Value, tool_use: Option<&str>) {
        if tool_use.is_some() {
            return;
        }
        if let Some(text) = content["text"].as_str() {
            self.tell(AppEvent::Line('●', text.to_owned()));
        } else if let Some(name) = content["name"].as_str() {
            self.tell(AppEvent::Line('●', name.to_owned()));
        }
    }

    fn notice(&self, text: &str) {
        self.tell(AppEvent::Line('⎿', text.to_owned()));
    }

    fn failed(&self, text: &str, _class: &str, _status: Option<u16>) {
        self.notice(text);
    }

    fn retry(&self, attempt: u32, max: u32, _delay_ms: u64, _status: Option<u16>, _class: &str) {
        self.tell(AppEvent::Line('⎿', format!("Retrying… (attempt {attempt}/{max})")));
    }

    fn ask(&self, question: Question) -> LocalBoxFuture<'static, Answer> {
        let (reply, answer) = oneshot::channel();
        self.tell(AppEvent::Ask(Box::new(question), reply));
        let over = Over(self.events.clone());
        async move {
            let _over = over;
            answer.await.unwrap_or(Answer::Stop)
        }
        .boxed_local()
    }
}
