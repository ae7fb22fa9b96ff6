//! The person and the models of this host, as those who answer what servers ask.
//!
//! Nothing that a server asks for happens without the person: where there is nobody, forms are declined and models are not
//! asked. What a server says is shown as its own words, with its name, and never acted on.

use atoll_mcp_client::{
    elicitation::{Choice, Field, Form, Kind, Page, Wanted, read as read_wanted},
    result::Piece,
    sampling,
    session::Refusal,
};
use atoll_plugin::{Content, Error, models, session, types::Blob, ui};
use futures::{FutureExt as _, future::LocalBoxFuture};
use serde_json::{Map, Value, json};

use crate::Answers;

/// How often a person is asked the same again because an answer does not fit.
const TRIES: usize = 10;

/// What a choice of nothing is called.
const NOTHING: &str = "(leave it open)";
const DONE: &str = "(that is all)";

/// Whoever sits at this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Person;

impl Answers for Person {
    fn sample<'a>(&'a self, server: &'a str, params: Value) -> LocalBoxFuture<'a, Result<Value, Refusal>> {
        async move { sample(server, &params).await }.boxed_local()
    }

    fn elicit<'a>(&'a self, server: &'a str, params: Value) -> LocalBoxFuture<'a, Result<Value, Refusal>> {
        async move {
            if !ui::available() {
                return Ok(json!({"action": "decline"}));
            }
            let said = match read_wanted(&params).map_err(Refusal::invalid)? {
                Wanted::Form(form) => fill_in(server, &form).await,
                Wanted::Page(page) => open(server, &page).await,
            };
            let said = said.map_err(|error| Refusal::failed(error.message()))?;
            Ok(match said {
                Said::Accepted(Some(content)) => json!({"action": "accept", "content": content}),
                Said::Accepted(None) => json!({"action": "accept"}),
                Said::Declined => json!({"action": "decline"}),
                Said::Cancelled => json!({"action": "cancel"}),
            })
        }
        .boxed_local()
    }
}

async fn sample(server: &str, params: &Value) -> Result<Value, Refusal> {
    let question = sampling::read(params).map_err(Refusal::invalid)?;
    if !ui::available() {
        return Err(Refusal::unwanted("a model is asked only if the user allows it, and there is no user to ask"));
    }
    let available = models::available();
    let names: Vec<&str> = available.iter().map(|choice| choice.name.as_str()).collect();
    let hinted = question.model(&names).map(str::to_owned);
    // The session's own is the one that is asked where no other is named.
    let model =
        hinted.clone().or_else(|| session::describe().model).or_else(|| names.first().map(|&name| name.to_owned()));
    let Some(model) = model else {
        return Err(Refusal::failed("there is no model that could be asked"));
    };
    let is_blind = available.iter().any(|choice| choice.name == model && !choice.images);
    if question.has_images() && is_blind {
        return Err(Refusal::invalid(format!("the model {model} does not see pictures")));
    }
    let title = format!("Let the MCP server {server} ask the model {model}?");
    let most = question.max_tokens.map(|most| format!("\n\nThe answer, of at most {most} tokens, goes to the server."));
    let message = format!("{}{}", question.shown(), most.unwrap_or_default());
    let allowed = ui::confirm(title, message, None).await.map_err(|error| Refusal::failed(error.message()))?;
    if allowed != Some(true) {
        return Err(Refusal::unwanted("the user does not allow it"));
    }
    let prompt = question.prompt.iter().filter_map(content).collect();
    let asked = models::complete(hinted, question.system.clone(), prompt, question.max_tokens).await;
    let answer = asked.map_err(|error| Refusal::failed(error.message()))?;
    Ok(question.answer(&answer.text, &model, answer.usage.output))
}

fn content(piece: &Piece) -> Option<Content> {
    match piece {
        Piece::Text(text) => Some(Content::Text(text.clone())),
        Piece::Image { data, mime_type } => {
            Some(Content::Image(Blob { data: data.clone(), mime_type: mime_type.clone() }))
        }
        Piece::Blob { .. } => None,
    }
}

/// What came of asking a person.
#[derive(Debug, PartialEq)]
enum Said {
    Accepted(Option<Map<String, Value>>),
    Declined,
    Cancelled,
}

/// One of several, by its place.
async fn choose(title: String, options: Vec<String>) -> Result<Option<usize>, Error> {
    let chosen = ui::select(title, options, None).await?;
    Ok(chosen.and_then(|at| usize::try_from(at).ok()))
}

/// Has a page opened. It is the person who opens it: what is said there is between that one and the page.
async fn open(server: &str, page: &Page) -> Result<Said, Error> {
    let title = format!("The MCP server {server} wants you to open a page of {}: {}", page.host, page.message);
    let options = vec![format!("I open {}", page.url), "Decline".to_owned()];
    Ok(match choose(title, options).await? {
        Some(0) => Said::Accepted(None),
        Some(_) => Said::Declined,
        None => Said::Cancelled,
    })
}

/// Has a form filled in, field by field.
async fn fill_in(server: &str, form: &Form) -> Result<Said, Error> {
    let title = format!("The MCP server {server} asks: {}", form.message);
    let suggested = form.suggested();
    if form.fields.is_empty() {
        return Ok(match choose(title, vec!["Agree".to_owned(), "Decline".to_owned()]).await? {
            Some(0) => Said::Accepted(Some(Map::new())),
            Some(_) => Said::Declined,
            None => Said::Cancelled,
        });
    }
    let mut options = vec!["Answer".to_owned()];
    if let Some(suggested) = suggested.as_ref().filter(|suggested| !suggested.is_empty()) {
        options.push(format!("Answer as suggested: {}", Value::Object(suggested.clone())));
    }
    options.push("Decline".to_owned());
    let last = options.len() - 1;
    match choose(title, options).await? {
        Some(0) => {}
        Some(at) if at == last => return Ok(Said::Declined),
        Some(_) => return Ok(Said::Accepted(suggested)),
        None => return Ok(Said::Cancelled),
    }
    let mut answers = Map::new();
    let mut open = Vec::new();
    for field in &form.fields {
        match ask(server, field).await? {
            Answer::Value(value) => {
                answers.insert(field.name.clone(), value);
            }
            Answer::Nothing => open.push(field.name.as_str()),
            Answer::Cancelled => return Ok(Said::Cancelled),
        }
    }
    let mut filled = form.filled(answers);
    // What was left open on purpose is not filled in.
    filled.retain(|name, _| !open.contains(&name.as_str()));
    let title = format!("Send this to the MCP server {server}? {}", Value::Object(filled.clone()));
    Ok(match choose(title, vec!["Send".to_owned(), "Decline".to_owned()]).await? {
        Some(0) => Said::Accepted(Some(filled)),
        Some(_) => Said::Declined,
        None => Said::Cancelled,
    })
}

enum Answer {
    Value(Value),
    Nothing,
    Cancelled,
}

async fn ask(server: &str, field: &Field) -> Result<Answer, Error> {
    let title = format!("{server}: {}", field.label);
    match &field.kind {
        Kind::Flag => {
            let yes_or_no = [(json!(true), "Yes"), (json!(false), "No")];
            pick(title, field, yes_or_no.map(|(value, title)| (value, title.to_owned())).to_vec()).await
        }
        Kind::One(choices) => {
            let all = choices.iter().map(|choice| (json!(choice.value), choice.title.clone())).collect();
            pick(title, field, all).await
        }
        Kind::Some { choices, .. } => pick_some(&title, field, choices).await,
        Kind::Text { .. } | Kind::Number { .. } => type_in(&title, field).await,
    }
}

/// One of several, the suggested one first.
async fn pick(title: String, field: &Field, mut all: Vec<(Value, String)>) -> Result<Answer, Error> {
    if let Some(at) = all.iter().position(|(value, _)| Some(value) == field.default.as_ref()) {
        let suggested = all.remove(at);
        all.insert(0, suggested);
    }
    let mut options: Vec<String> = all.iter().map(|(_, title)| title.clone()).collect();
    if !field.required {
        options.push(NOTHING.to_owned());
    }
    Ok(match choose(title, options).await? {
        None => Answer::Cancelled,
        Some(at) => all.into_iter().nth(at).map_or(Answer::Nothing, |(value, _)| Answer::Value(value)),
    })
}

/// Some of several: each is switched on and off until that is all.
async fn pick_some(title: &str, field: &Field, choices: &[Choice]) -> Result<Answer, Error> {
    let suggested = field.default.as_ref().and_then(Value::as_array);
    let mut chosen: Vec<bool> =
        choices.iter().map(|choice| suggested.is_some_and(|all| all.contains(&json!(choice.value)))).collect();
    let mut why = String::new();
    for _ in 0..TRIES + 2 * choices.len() {
        let mark = |(choice, is_chosen): (&Choice, &bool)| {
            format!("[{}] {}", if *is_chosen { "x" } else { " " }, choice.title)
        };
        let options = choices.iter().zip(&chosen).map(mark).chain([DONE.to_owned()]).collect();
        match choose(format!("{title}{why}"), options).await? {
            None => return Ok(Answer::Cancelled),
            Some(at) => match chosen.get_mut(at) {
                Some(one) => *one = !*one,
                None => {
                    let all = choices.iter().zip(&chosen).filter(|(_, is_chosen)| **is_chosen);
                    let all: Vec<&str> = all.map(|(choice, _)| choice.value.as_str()).collect();
                    if all.is_empty() && !field.required {
                        return Ok(Answer::Nothing);
                    }
                    match field.check(&json!(all)) {
                        Ok(()) => return Ok(Answer::Value(json!(all))),
                        Err(wrong) => why = format!(" ({wrong})"),
                    }
                }
            },
        }
    }
    Ok(Answer::Cancelled)
}

/// A text or a number.
async fn type_in(title: &str, field: &Field) -> Result<Answer, Error> {
    let suggested = match &field.default {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mut why = match (&field.default, field.required) {
        (Some(_), _) => format!(" (an empty line: {suggested})"),
        (None, false) => " (an empty line leaves it open)".to_owned(),
        (None, true) => String::new(),
    };
    for _ in 0..TRIES {
        let said = ui::input(format!("{title}{why}"), suggested.clone(), None).await?;
        // Saying nothing is an answer where there need be none; it is asked at the end whether all of it is meant.
        match field.read(said.as_deref().unwrap_or_default()) {
            Ok(Some(value)) => return Ok(Answer::Value(value)),
            Ok(None) => return Ok(Answer::Nothing),
            Err(_) if said.is_none() => return Ok(Answer::Cancelled),
            Err(wrong) => why = format!(" ({wrong})"),
        }
    }
    Ok(Answer::Cancelled)
}
