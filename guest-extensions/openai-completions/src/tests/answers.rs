//! Streams of chunks as events.

use atoll_event_stream::Events;
use atoll_plugin::Error;
use atoll_plugin::provider::{ModelEvent, StopReason};
use proptest::prelude::*;

use crate::chunks::Answer;
use crate::failure;

/// What an answer in these pieces gives, one line an event.
fn play(pieces: &[&[u8]], wants_reason: bool) -> Vec<String> {
    let mut answer = Answer::new("m", "r1", wants_reason);
    let mut lines = Events::default();
    let mut events = Vec::new();
    let mut came: Vec<_> = pieces.iter().flat_map(|piece| lines.push(piece).unwrap()).collect();
    came.extend(lines.finish().unwrap());
    for event in came {
        answer.data(&event.data, &mut events);
    }
    answer.finish(&mut events);
    events.iter().map(show).collect()
}

fn show(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Start => "start".into(),
        ModelEvent::TextStart(at) => format!("text {at}"),
        ModelEvent::TextDelta(delta) => format!("text {} + {}", delta.index, delta.text),
        ModelEvent::TextEnd(at) => format!("text {at} end"),
        ModelEvent::ThinkingStart(at) => format!("thinking {at}"),
        ModelEvent::ThinkingDelta(delta) => format!("thinking {} + {}", delta.index, delta.text),
        ModelEvent::ThinkingEnd(end) => {
            format!("thinking {} end {}", end.index, end.signature.as_deref().unwrap_or("-"))
        }
        ModelEvent::CallStart(start) => format!("call {} {} {}", start.index, start.id, start.name),
        ModelEvent::CallDelta(delta) => format!("call {} + {}", delta.index, delta.text),
        ModelEvent::CallEnd(at) => format!("call {at} end"),
        ModelEvent::Usage(usage) => format!(
            "usage {} {} {} {} {:?} {}",
            usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.total_tokens
        ),
        ModelEvent::Done(done) => format!(
            "done {:?} {} {} {}",
            done.reason,
            done.raw_reason.as_deref().unwrap_or("-"),
            done.response_model.as_deref().unwrap_or("-"),
            done.response_id.as_deref().unwrap_or("-")
        ),
        ModelEvent::Failed(failure) => {
            let text = match &failure.error {
                Error::Failed(text) | Error::Unavailable(text) => text,
                other => panic!("{other:?}"),
            };
            format!("{} {:?} {text}", failure.error.code(), failure.status)
        }
    }
}

fn deltas(chunks: &[&str]) -> Vec<String> {
    let text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    play(&[text.as_bytes()], true)
}

/// An answer with thinking, text and two calls at once, as a server sends it.
const RECORDED: &str = concat!(
    "\u{feff}: keep-alive\r\n\r\n",
    r#"data: {"id":"c1","model":"m-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    "\r\n\r\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"Let me "}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"think 🦀"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Grüße"}}]}"#,
    "\r\r",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}},{"index":1,"id":"call_b","function":{"name":"ls","arguments":"{"}}]}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"\"ä\"}"}}]}}]}"#,
    "\n\n",
    "event: message\nid: 4\ndata: {\"id\":\"c1\",\ndata: \"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    r#"data: {"id":"c1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}}"#,
    "\n\ndata: [DONE]\n\n",
);

const RECORDED_EVENTS: [&str; 17] = [
    "thinking 0",
    "thinking 0 + Let me ",
    "thinking 0 + think 🦀",
    "thinking 0 end reasoning_content",
    "text 1",
    "text 1 + Grüße",
    "text 1 end",
    "call 2 call_a read",
    "call 2 + {\"path\":",
    "call 3 call_b ls",
    "call 3 + {",
    "call 3 + }",
    "call 2 + \"ä\"}",
    "call 2 end",
    "call 3 end",
    "usage 36 20 64 0 Some(8) 120",
    "done StopReason::ToolUse tool_calls m-2026 c1",
];

#[test]
fn a_recorded_answer() {
    assert_eq!(play(&[RECORDED.as_bytes()], true), RECORDED_EVENTS);
}

proptest! {
    #[test]
    fn borders_make_no_difference(mut cuts in prop::collection::vec(0..RECORDED.len(), 0..40)) {
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&RECORDED.as_bytes()[from..cut]);
            from = cut;
        }
        pieces.push(&RECORDED.as_bytes()[from..]);
        prop_assert_eq!(play(&pieces, true), RECORDED_EVENTS);
    }

    #[test]
    fn any_bytes_end_exactly_once(bytes in prop::collection::vec(any::<u8>(), 0..200), prefix in 0..RECORDED.len()) {
        let mut input = RECORDED.as_bytes()[..prefix].to_vec();
        input.extend(bytes);
        let events = play(&[&input], true);
        let ends = |line: &&String| ["done", "failed", "unavailable"].iter().any(|end| line.starts_with(end));
        prop_assert_eq!(events.iter().filter(ends).count(), 1);
        prop_assert!(events.last().is_some_and(|line| ends(&line)));
    }
}

#[test]
fn reasons_for_the_end() {
    for (reason, wanted) in [
        ("stop", "done StopReason::Stop stop - -"),
        ("end", "done StopReason::Stop end - -"),
        ("length", "done StopReason::Length length - -"),
        ("content_filter", "failed None The server ended the answer: content_filter."),
        ("odd", "failed None The server ended the answer: odd."),
        ("network_error", "unavailable None The server lost its connection to the model: network_error."),
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        assert_eq!(deltas(&[&chunk]), [wanted]);
    }
}

#[test]
fn calls_make_it_a_stop_for_tools_whatever_the_server_says() {
    let events = deltas(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":{"x":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(events, ["call 0 a ls", "call 0 + {\"x\":1}", "call 0 end", "done StopReason::ToolUse stop - -"]);
}

#[test]
fn an_end_without_a_reason() {
    let text = r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#.to_owned() + "\n\n";
    let cut = "unavailable None The stream ended without a reason: the answer may be cut off.";
    assert_eq!(play(&[text.as_bytes()], true), ["text 0", "text 0 + hi", cut]);
    assert_eq!(play(&[(text.clone() + "data: [DONE]\n\n").as_bytes()], true).last().unwrap(), cut);
    assert_eq!(play(&[text.as_bytes()], false).last().unwrap(), "done StopReason::Stop - - -");
    assert_eq!(play(&[b""], false), [cut]);
}

#[test]
fn nothing_after_the_end() {
    let events = deltas(&[
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
        r#"{"choices":[{"delta":{"content":"late"}}]}"#,
        "[DONE]",
    ]);
    assert_eq!(events, ["done StopReason::Stop stop - -"]);
}

#[test]
fn errors_in_the_stream_and_garbage() {
    let hi = r#"{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#;
    let events = deltas(&[hi, r#"{"error":{"message":"Overloaded","code":529}}"#, hi]);
    assert_eq!(
        events,
        [
            "text 0",
            "text 0 + hi",
            "usage 5 1 0 0 None 6",
            "unavailable Some(529) The server ended the answer: 529 Overloaded",
        ]
    );
    for garbage in ["{nonsense", "[1]", "7", "null"] {
        let wanted = format!("failed None The server sent a chunk that is not a JSON object: {garbage}");
        assert_eq!(deltas(&[garbage]), [wanted]);
    }
    let choice = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"error","error":{"message":"gone"}}]}"#;
    assert_eq!(deltas(&[choice]), ["failed None The server ended the answer: gone"]);
}

#[test]
fn a_connection_that_breaks_after_the_reason_does_no_harm() {
    let broken = || failure::of_transport(Error::Unavailable("reset".into()), "The answer broke off");
    let mut events = Vec::new();
    let mut answer = Answer::new("m", "r1", true);
    answer.data(r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}"#, &mut events);
    answer.broke_off(broken(), &mut events);
    assert!(matches!(events.last(), Some(ModelEvent::Done(done)) if done.reason == StopReason::Length));
    let mut answer = Answer::new("m", "r1", true);
    answer.broke_off(broken(), &mut events);
    assert_eq!(show(events.last().unwrap()), "unavailable None The answer broke off: reset");
}

#[test]
fn names_in_pieces_names_again_and_calls_without_arguments() {
    let events = deltas(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rea"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"d","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ls","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ls","arguments":"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"so"},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(
        events,
        [
            "call 0 a read",
            "call 1 b ls",
            "call 1 + {",
            "call 1 + }",
            "text 2",
            "text 2 + so",
            "text 2 end",
            "call 0 + {}",
            "call 0 end",
            "call 1 end",
            "done StopReason::ToolUse tool_calls - -",
        ]
    );
}

#[test]
fn calls_that_are_not_numbered_or_all_have_number_0() {
    for index in ["", r#""index":0,"#] {
        let one = format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"a","function":{{"name":"ls","arguments":"{{}}"}}}}]}}}}]}}"#
        );
        let two = one.replace("\"a\"", "\"b\"");
        let events = deltas(&[&one, &two, r#"{"choices":[{"finish_reason":"tool_calls"}]}"#]);
        assert_eq!(events[..4], ["call 0 a ls", "call 0 + {}", "call 1 b ls", "call 1 + {}"], "{index}");
    }
    let events = deltas(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"ls","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{}"}}}]}"#,
        r#"{"choices":[{"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(events[..2], ["call 0 call_r1_0 ls", "call 0 + {}"]);
}

#[test]
fn a_server_that_gives_each_fragment_a_new_id() {
    let events = deltas(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"zz","function":{"arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(events[..3], ["call 0 a ls", "call 0 + {}", "call 0 end"]);
}

#[test]
fn far_too_many_calls() {
    let calls: Vec<String> = (0..600)
        .map(|at| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{at},"id":"c{at}","function":{{"name":"ls"}}}}]}}}}]}}"#))
        .collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    assert_eq!(deltas(&calls), ["failed None The model made more than 512 calls in one answer."]);
}

#[test]
fn tokens_where_other_servers_count_them() {
    let count =
        |usage: &str| deltas(&[&format!(r#"{{"choices":[{{"finish_reason":"stop","usage":{usage}}}]}}"#)])[0].clone();
    assert_eq!(
        count(r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#),
        "usage 6 2 4 0 None 12"
    );
    assert_eq!(
        count(
            r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":1}}"#
        ),
        "usage 0 2 20 1 None 12"
    );
    assert_eq!(count("{}"), "usage 0 0 0 0 None 0");
}

#[test]
fn thinking_and_text_that_take_turns() {
    let events = deltas(&[
        r#"{"choices":[{"delta":{"reasoning":"a","reasoning_content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"b","content":"c"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_text":"d"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(
        events,
        [
            "thinking 0",
            "thinking 0 + a",
            "thinking 0 + b",
            "thinking 0 end reasoning",
            "text 1",
            "text 1 + c",
            "text 1 end",
            "thinking 2",
            "thinking 2 + d",
            "thinking 2 end reasoning_text",
            "done StopReason::Stop stop - -",
        ]
    );
}
