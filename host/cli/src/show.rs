//! Shows a run to a person, step by step, with the component that ran each call and what it was allowed.

use std::{
    collections::HashMap,
    io::IsTerminal as _,
    sync::{Mutex, PoisonError},
};

use crate::terminal;
use atoll_agent::{Event, Pipeline, event::AnswerEvent};
use atoll_table::Content;
use serde_json::Value;

/// How many lines of a result are shown.
const LINES: usize = 12;

/// Prints events as they come.
pub(crate) struct Show {
    /// For each tool, its plugin and what that may do.
    plugins: HashMap<String, (String, String)>,
    colours: bool,
    in_text: Mutex<bool>,
}

impl Show {
    pub(crate) fn new(pipeline: &Pipeline) -> Self {
        let plugins = pipeline.table(|table| {
            table
                .tools()
                .iter()
                .map(|entry| {
                    let allowed = entry.runner.allowed();
                    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join("; ") };
                    (entry.tool.name.clone(), (entry.plugin.clone(), allowed))
                })
                .collect()
        });
        Self { plugins, colours: std::io::stdout().is_terminal(), in_text: Mutex::new(false) }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Shows one event.
    ///
    /// # Errors
    /// If standard output can not be written.
    pub(crate) fn event(&self, event: &Event) -> std::io::Result<()> {
        let mut in_text = self.in_text.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::MessageUpdate { assistant_message_event: AnswerEvent::TextDelta { delta, .. }, .. } => {
                if !*in_text {
                    terminal::piece(format_args!("\n{} ", self.paint("1;36", "model:")))?;
                    *in_text = true;
                }
                terminal::piece(format_args!("{delta}"))?;
            }
            Event::MessageEnd { .. } if *in_text => {
                terminal::line("")?;
                *in_text = false;
            }
            // What a call makes is one line; what came of it is its caller's to say.
            Event::ToolExecutionStart { tool_name, args, parent_tool_call_id: Some(_), .. } => {
                terminal::line(format_args!("  {}", self.paint("2", &format!("calls {tool_name}: {}", brief(args)))))?;
            }
            Event::ToolExecutionEnd { parent_tool_call_id: Some(_), .. } => {}
            Event::ToolExecutionStart { tool_name, args, .. } => {
                let (plugin, allowed) = self.plugins.get(tool_name).cloned().unwrap_or_default();
                terminal::line(format_args!("\n{} {}", self.paint("1;33", &format!("{tool_name}:")), brief(args)))?;
                terminal::line(format_args!(
                    "  {}",
                    self.paint("2", &format!("component {plugin}; may use: {allowed}"))
                ))?;
            }
            Event::ToolExecutionEnd { tool_name, result, is_error, duration_ms, .. } => {
                let verdict = if *is_error { self.paint("1;31", "failed") } else { self.paint("1;32", "ok") };
                terminal::line(format_args!("\n{tool_name}: {verdict} in {} ms", duration_ms.unwrap_or_default()))?;
                let text = Content::joined_text(&result.content);
                let lines: Vec<&str> = text.lines().collect();
                for line in lines.iter().take(LINES) {
                    terminal::line(format_args!("  | {line}"))?;
                }
                if lines.len() > LINES {
                    terminal::line(format_args!("  | … {} more lines", lines.len() - LINES))?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Arguments in one line: a single text as it is, anything else as JSON.
fn brief(arguments: &Value) -> String {
    match arguments.as_object() {
        Some(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            })
            .collect::<Vec<_>>()
            .join("  "),
        None => arguments.to_string(),
    }
}
