//! A turn as events and pauses.
//!
//! Must never look at a clock: how long things take is the script's to say.

use atoll_plugin::Error;
use atoll_plugin::provider::{
    AssistantBlock, CallStart, Delta, Done, Failure, Message, ModelEvent, StopReason, ThinkingEnd, Usage,
};
use atoll_plugin::types::Content;
use serde_json::Value;

use crate::script::{Call, Defaults, Fail, Kind, Stop, Tokens, Turn};

/// How many characters come at once, if the script does not say.
const CHUNK: usize = 24;

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Give these events, in one go.
    Events(Vec<ModelEvent>),
    /// Be silent.
    Pause(u64),
    /// Be silent until nobody listens any more.
    Hang,
}

/// The steps of `turn`, the answer to `transcript`, which holds `answers` answers already.
pub fn play(turn: &Turn, defaults: &Defaults, transcript: &[Message], answers: usize) -> Vec<Step> {
    let mut player = Player {
        steps: Vec::new(),
        next: 0,
        chunk: turn.chunk.or(defaults.chunk).unwrap_or(CHUNK),
        pause: turn.chunk_delay_ms.unwrap_or(defaults.chunk_delay_ms),
        said: 0,
    };
    player.wait(turn.delay_ms.unwrap_or(defaults.delay_ms));
    if let Some(fail) = &turn.fail {
        if let Some(text) = &fail.after_text {
            player.event(ModelEvent::Start);
            player.begin_text(text);
        }
        player.event(ModelEvent::Failed(failure(fail)));
        return player.steps;
    }
    player.event(ModelEvent::Start);
    if let Some(text) = &turn.thinking {
        let index = player.index();
        player.event(ModelEvent::ThinkingStart(index));
        player.grow(index, text, ModelEvent::ThinkingDelta);
        player.event(ModelEvent::ThinkingEnd(ThinkingEnd { index, signature: None }));
    }
    let thought = player.said;
    if let Some(text) = &turn.text {
        let index = player.begin_text(text);
        player.event(ModelEvent::TextEnd(index));
    }
    for (at, call) in turn.calls.iter().enumerate() {
        player.call(call, || format!("call_{}_{}", answers + 1, at + 1));
    }
    if turn.hang {
        player.steps.push(Step::Hang);
        return player.steps;
    }
    let usage = match &turn.usage {
        Some(tokens) => claimed(tokens),
        None => estimated(transcript, player.said, turn.thinking.as_ref().map(|_| thought)),
    };
    player.event(ModelEvent::Usage(usage));
    let reason = match turn.stop {
        Some(Stop::Stop) => StopReason::Stop,
        Some(Stop::Length) => StopReason::Length,
        None if turn.calls.is_empty() => StopReason::Stop,
        Some(Stop::ToolUse) | None => StopReason::ToolUse,
    };
    player.event(ModelEvent::Done(Done { reason, raw_reason: None, response_model: None, response_id: None }));
    player.steps
}

struct Player {
    steps: Vec<Step>,
    next: u32,
    chunk: usize,
    pause: u64,
    /// Characters so far.
    said: usize,
}

impl Player {
    fn index(&mut self) -> u32 {
        let index = self.next;
        self.next += 1;
        index
    }

    fn event(&mut self, event: ModelEvent) {
        match self.steps.last_mut() {
            Some(Step::Events(events)) => events.push(event),
            _ => self.steps.push(Step::Events(vec![event])),
        }
    }

    fn wait(&mut self, ms: u64) {
        if ms > 0 {
            self.steps.push(Step::Pause(ms));
        }
    }

    fn begin_text(&mut self, text: &str) -> u32 {
        let index = self.index();
        self.event(ModelEvent::TextStart(index));
        self.grow(index, text, ModelEvent::TextDelta);
        index
    }

    fn grow(&mut self, index: u32, mut text: &str, event: impl Fn(Delta) -> ModelEvent) {
        while !text.is_empty() {
            let at = text.char_indices().nth(self.chunk).map_or(text.len(), |(at, _)| at);
            let (piece, rest) = text.split_at(at);
            self.said += piece.chars().count();
            self.event(event(Delta { index, text: piece.to_owned() }));
            self.wait(self.pause);
            text = rest;
        }
    }

    fn call(&mut self, call: &Call, id: impl Fn() -> String) {
        let index = self.index();
        let id = call.id.clone().unwrap_or_else(id);
        self.event(ModelEvent::CallStart(CallStart { index, id, name: call.tool.clone() }));
        let arguments = match &call.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        self.grow(index, &arguments, ModelEvent::CallDelta);
        self.event(ModelEvent::CallEnd(index));
    }
}

fn failure(fail: &Fail) -> Failure {
    let passes = fail.status.is_some_and(|status| matches!(status, 408 | 409 | 429) || status >= 500);
    let kind = fail.kind.unwrap_or(if passes { Kind::Unavailable } else { Kind::Failed });
    Failure {
        error: match kind {
            Kind::Unavailable => Error::Unavailable(fail.message.clone()),
            Kind::Failed => Error::Failed(fail.message.clone()),
        },
        status: fail.status,
        retry_after_ms: fail.retry_after_ms,
    }
}

fn claimed(tokens: &Tokens) -> Usage {
    let sum =
        [tokens.output, tokens.cache_read, tokens.cache_write].into_iter().fold(tokens.input, u64::saturating_add);
    Usage {
        input: tokens.input,
        output: tokens.output,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write,
        reasoning: tokens.reasoning,
        total_tokens: tokens.total.unwrap_or(sum),
    }
}

/// Four characters make a token, so that what is shown of a script's use has a plausible size.
fn estimated(transcript: &[Message], said: usize, thought: Option<usize>) -> Usage {
    let tokens = |characters: usize| u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX);
    let input = tokens(transcript.iter().map(length).sum());
    let output = tokens(said);
    Usage { input, output, cache_read: 0, cache_write: 0, reasoning: thought.map(tokens), total_tokens: input + output }
}

fn length(message: &Message) -> usize {
    let content = |content: &[Content]| -> usize {
        content.iter().map(|piece| if let Content::Text(text) = piece { text.chars().count() } else { 0 }).sum()
    };
    match message {
        Message::System(text) => text.chars().count(),
        Message::User(pieces) => content(pieces),
        Message::ToolResult(result) => content(&result.content),
        Message::Assistant(blocks) => blocks
            .iter()
            .map(|block| match block {
                AssistantBlock::Text(text) => text.chars().count(),
                AssistantBlock::Thinking(thinking) => thinking.text.chars().count(),
                AssistantBlock::ToolCall(call) => call.name.chars().count() + call.arguments.chars().count(),
            })
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn steps(turn: &str) -> Vec<String> {
        let script = Script::parse(&format!("turns: [{turn}]")).unwrap();
        let transcript = [Message::User(vec![Content::Text("12345".into())])];
        let show = |step: &Step| match step {
            Step::Events(events) => events.iter().map(event).collect::<Vec<_>>().join(", "),
            Step::Pause(ms) => format!("pause {ms}"),
            Step::Hang => "hang".to_owned(),
        };
        play(&script.turns[0].value, &script.defaults, &transcript, 2).iter().map(show).collect()
    }

    fn event(event: &ModelEvent) -> String {
        match event {
            ModelEvent::Start => "start".into(),
            ModelEvent::TextStart(at) => format!("text {at}"),
            ModelEvent::TextDelta(delta) => format!("{}+{}", delta.index, delta.text),
            ModelEvent::TextEnd(at) | ModelEvent::CallEnd(at) => format!("end {at}"),
            ModelEvent::ThinkingStart(at) => format!("thinking {at}"),
            ModelEvent::ThinkingDelta(delta) => format!("{}~{}", delta.index, delta.text),
            ModelEvent::ThinkingEnd(end) => format!("end {}", end.index),
            ModelEvent::CallStart(start) => format!("call {} {} {}", start.index, start.id, start.name),
            ModelEvent::CallDelta(delta) => format!("{}={}", delta.index, delta.text),
            ModelEvent::Usage(usage) => format!("usage {} {} {}", usage.input, usage.output, usage.total_tokens),
            ModelEvent::Done(done) => format!("{:?}", done.reason),
            ModelEvent::Failed(failure) => {
                format!("{} {:?} {:?}", failure.error.code(), failure.status, failure.retry_after_ms)
            }
        }
    }

    #[test]
    fn a_whole_turn_comes_at_once() {
        assert_eq!(
            steps("{thinking: hm, text: Grüße, chunk: 3, calls: [{tool: ls}, {tool: rm, id: x, arguments: {a: 1}}]}"),
            ["start, thinking 0, 0~hm, end 0, text 1, 1+Grü, 1+ße, end 1, \
              call 2 call_3_1 ls, 2={}, end 2, call 3 x rm, 3={\"a, 3=\":1, 3=}, end 3, usage 2 4 6, StopReason::ToolUse"]
        );
    }

    #[test]
    fn pauses_split_it() {
        assert_eq!(
            steps(
                "{text: abc, chunk: 2, delay-ms: 7, chunk-delay-ms: 5, stop: length, usage: {input: 1, cache-read: 2}}"
            ),
            ["pause 7", "start, text 0, 0+ab", "pause 5", "0+c", "pause 5", "end 0, usage 1 0 3, StopReason::Length"]
        );
    }

    #[test]
    fn an_empty_text_is_an_empty_block() {
        assert_eq!(steps("{text: ''}"), ["start, text 0, end 0, usage 2 0 2, StopReason::Stop"]);
    }

    #[test]
    fn arguments_that_are_not_json() {
        assert!(steps("{calls: [{tool: ls, arguments: '{\"a'}]}")[0].contains("0={\"a, end 0"));
    }

    #[test]
    fn failures() {
        assert_eq!(steps("{fail: {message: m}}"), ["failed None None"]);
        assert_eq!(steps("{fail: {message: m, status: 503}}"), ["unavailable Some(503) None"]);
        assert_eq!(steps("{fail: {message: m, status: 400, retry-after-ms: 3}}"), ["failed Some(400) Some(3)"]);
        assert_eq!(steps("{fail: {message: m, status: 429, kind: failed}}"), ["failed Some(429) None"]);
        assert_eq!(
            steps("{fail: {message: m, kind: unavailable, after-text: so}}"),
            ["start, text 0, 0+so, unavailable None None"]
        );
    }

    #[test]
    fn a_turn_that_hangs_says_its_text_first() {
        assert_eq!(steps("{hang: true}"), ["start", "hang"]);
        assert_eq!(steps("{hang: true, text: a, delay-ms: 2}"), ["pause 2", "start, text 0, 0+a, end 0", "hang"]);
    }
}
