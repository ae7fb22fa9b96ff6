//! What a server wants to know of the person: the form that it asks to be filled in, or the page that it asks to be opened.
//!
//! What a server sends is read as JSON, and what is no form is refused with the reason. Nothing here asks anybody: an adapter
//! does, field by field, and [`Field::read`] says what an answer comes to.

use serde_json::{Map, Value, json};

use crate::text::{one_line, shown};

/// The most fields of a form, and choices of a field: nobody answers more.
const MAX_FIELDS: usize = 50;
const MAX_CHOICES: usize = 200;
/// The longest text of a server's that a person is shown, in characters.
const MAX_SHOWN: usize = 1_000;

/// What a server wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A form is to be filled in.
    Form(Form),
    /// A page is to be opened.
    Page(Page),
}

/// A form.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// What it is for, for the person.
    pub message: String,
    /// What is asked, in order.
    pub fields: Vec<Field>,
}

/// A page that the person is to open in a browser; what is said there does not pass through here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What it is for, for the person.
    pub message: String,
    /// Its address, `http` or `https`.
    pub url: String,
    /// The host in it, which is what a person has to look at.
    pub host: String,
}

/// A question of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// The question, for the person.
    pub label: String,
    /// It has to be answered.
    pub required: bool,
    /// What an answer is.
    pub kind: Kind,
    /// What it is where nothing else is said.
    pub default: Option<Value>,
}

/// What an answer is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A text.
    Text {
        /// At least so many characters.
        min: Option<u64>,
        /// At most so many.
        max: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`; others are not checked.
        format: Option<String>,
    },
    /// A number.
    Number {
        /// A whole one.
        is_whole: bool,
        /// At least this.
        min: Option<f64>,
        /// At most this.
        max: Option<f64>,
    },
    /// Yes or no.
    Flag,
    /// One of several.
    One(Vec<Choice>),
    /// Some of several.
    Some {
        /// What there is.
        choices: Vec<Choice>,
        /// At least so many.
        min: u64,
        /// At most so many.
        max: Option<u64>,
    },
}

/// One of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the server gets.
    pub value: String,
    /// What the person sees.
    pub title: String,
}

/// What a person is shown of a text of a server's.
fn told(text: &str) -> String {
    let mut told: String = one_line(&text.replace(['\n', '\r', '\t'], " ")).chars().take(MAX_SHOWN).collect();
    if told.len() < text.len() && text.chars().count() > MAX_SHOWN {
        told.push('…');
    }
    told.trim().to_owned()
}

/// Reads what a server sends.
///
/// # Errors
/// Why nobody can be asked that.
pub fn read(params: &Value) -> Result<Wanted, String> {
    let message = told(params["message"].as_str().unwrap_or_default());
    match params["mode"].as_str() {
        None | Some("form") => {}
        Some("url") => return page(params, message).map(Wanted::Page),
        Some(other) => return Err(format!("there is no way to ask with the mode {}", shown(other))),
    }
    let schema = &params["requestedSchema"];
    let Some(properties) = schema["properties"].as_object() else {
        return Err("requestedSchema has no properties".to_owned());
    };
    if properties.len() > MAX_FIELDS {
        return Err(format!("the form has more than {MAX_FIELDS} fields"));
    }
    let required: Vec<&str> =
        schema["required"].as_array().map(|all| all.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    let fields: Result<Vec<Field>, String> = properties
        .iter()
        .map(|(name, schema)| {
            field(name, schema, required.contains(&name.as_str()))
                .map_err(|why| format!("the field {}: {why}", shown(name)))
        })
        .collect();
    Ok(Wanted::Form(Form { message, fields: fields? }))
}

fn page(params: &Value, message: String) -> Result<Page, String> {
    let url = params["url"].as_str().unwrap_or_default();
    let is_plain = url.len() <= 8_192 && url.bytes().all(|b| b.is_ascii_graphic());
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).filter(|_| is_plain);
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#', '\\']).next()).unwrap_or_default();
    // Whoever is named before an @ is not who is asked, and looks like it.
    if authority.is_empty() || authority.contains('@') {
        return Err(format!("{} is no address that is opened", shown(url)));
    }
    Ok(Page { message, url: url.to_owned(), host: authority.to_owned() })
}

/// The pages that the error of a call names, which have to be opened before the call is made again.
pub fn pages(data: &Value) -> Vec<Page> {
    let all = data["elicitations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |one: &Value| page(one, told(one["message"].as_str().unwrap_or_default())).ok();
    all.iter().take(MAX_FIELDS).filter(|one| one["mode"] == "url").filter_map(read).collect()
}

fn field(name: &str, schema: &Value, required: bool) -> Result<Field, String> {
    let text = |key: &str| schema[key].as_str().map(told).filter(|text| !text.is_empty());
    let mut label = text("title").unwrap_or_else(|| told(name));
    if let Some(description) = text("description") {
        label = format!("{label}: {description}");
    }
    let count = |key: &str| schema[key].as_u64();
    let kind = match schema["type"].as_str() {
        Some("boolean") => Kind::Flag,
        Some(kind @ ("number" | "integer")) => Kind::Number {
            is_whole: kind == "integer",
            min: schema["minimum"].as_f64(),
            max: schema["maximum"].as_f64(),
        },
        Some("array") => {
            let Some(choices) = choices(&schema["items"])? else {
                return Err("what it may hold is not listed".to_owned());
            };
            Kind::Some { choices, min: count("minItems").unwrap_or_default(), max: count("maxItems") }
        }
        Some("string") | None => match choices(schema)? {
            Some(choices) => Kind::One(choices),
            None if schema["type"].is_null() => return Err("it has no type".to_owned()),
            None => {
                let format = schema["format"].as_str().map(str::to_owned);
                Kind::Text { min: count("minLength"), max: count("maxLength"), format }
            }
        },
        Some(other) => return Err(format!("nobody can be asked for the type {}", shown(other))),
    };
    let mut field = Field { name: name.to_owned(), label, required, kind, default: None };
    // A default that does not fit is none.
    field.default = schema.get("default").filter(|value| field.check(value).is_ok()).cloned();
    Ok(field)
}

/// What may be chosen, in each of the ways in which it is said.
fn choices(schema: &Value) -> Result<Option<Vec<Choice>>, String> {
    let all: Vec<Choice> = if let Some(values) = schema["enum"].as_array() {
        let titles = &schema["enumNames"];
        let one = |(at, value): (usize, &Value)| {
            let value = value.as_str()?;
            Some(Choice { value: value.to_owned(), title: told(titles[at].as_str().unwrap_or(value)) })
        };
        values.iter().enumerate().filter_map(one).collect()
    } else if let Some(titled) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let one = |one: &Value| {
            let value = one["const"].as_str()?;
            Some(Choice { value: value.to_owned(), title: told(one["title"].as_str().unwrap_or(value)) })
        };
        titled.iter().filter_map(one).collect()
    } else {
        return Ok(None);
    };
    match all.len() {
        0 => Err("there is nothing to choose from".to_owned()),
        count if count > MAX_CHOICES => Err(format!("there are more than {MAX_CHOICES} things to choose from")),
        _ => Ok(Some(all)),
    }
}

impl Form {
    /// What it comes to where everything is as suggested; none if something has to be said that is not.
    pub fn suggested(&self) -> Option<Map<String, Value>> {
        if self.fields.iter().any(|field| field.required && field.default.is_none()) {
            return None;
        }
        Some(self.filled(Map::new()))
    }

    /// The answers in the order of the form, with what was not said as suggested.
    pub fn filled(&self, mut answers: Map<String, Value>) -> Map<String, Value> {
        let value = |field: &Field| {
            let value = answers.shift_remove(&field.name).or_else(|| field.default.clone())?;
            Some((field.name.clone(), value))
        };
        self.fields.iter().filter_map(value).collect()
    }
}

impl Field {
    /// What a typed answer comes to; none if it is left open.
    ///
    /// # Errors
    /// What has to be different.
    pub fn read(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match &self.default {
                Some(value) => Ok(Some(value.clone())),
                None if self.required => Err("it has to be answered".to_owned()),
                None => Ok(None),
            };
        }
        let value = match &self.kind {
            Kind::Number { is_whole: true, .. } => {
                json!(text.parse::<i64>().map_err(|_| "it has to be a whole number".to_owned())?)
            }
            Kind::Number { .. } => {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                json!(number.ok_or_else(|| "it has to be a number".to_owned())?)
            }
            Kind::Flag => match text.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => json!(true),
                "no" | "n" | "false" => json!(false),
                _ => return Err("it has to be yes or no".to_owned()),
            },
            Kind::Text { .. } | Kind::One(_) => json!(text),
            Kind::Some { .. } => {
                let all: Vec<&str> = text.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
                json!(all)
            }
        };
        self.check(&value).map(|()| Some(value))
    }

    /// Whether a value is an answer.
    ///
    /// # Errors
    /// What has to be different.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let is_one_of = |choices: &[Choice], value: &Value| {
            value.as_str().is_some_and(|value| choices.iter().any(|choice| choice.value == value))
        };
        match &self.kind {
            Kind::Flag => value.is_boolean().then_some(()).ok_or_else(|| "it has to be yes or no".to_owned()),
            Kind::One(choices) if is_one_of(choices, value) => Ok(()),
            Kind::One(_) => Err("it has to be one of those that are listed".to_owned()),
            Kind::Some { choices, min, max } => {
                let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
                if !value.is_array() || !all.iter().all(|one| is_one_of(choices, one)) {
                    return Err("they have to be among those that are listed".to_owned());
                }
                between(count, Some(*min), *max, "how many there are")
            }
            Kind::Number { is_whole, min, max } => {
                let Some(number) = value.as_f64() else { return Err("it has to be a number".to_owned()) };
                if *is_whole && number.fract() != 0.0 {
                    return Err("it has to be a whole number".to_owned());
                }
                between(number, *min, *max, "it")
            }
            Kind::Text { min, max, format } => {
                let Some(text) = value.as_str() else { return Err("it has to be a text".to_owned()) };
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                between(length, *min, *max, "its length")?;
                format.as_deref().map_or(Ok(()), |format| has_format(text, format))
            }
        }
    }
}

fn between<N: Copy + PartialOrd + std::fmt::Display>(
    value: N,
    min: Option<N>,
    max: Option<N>,
    what: &str,
) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if value < min => Err(format!("{what} has to be at least {min}")),
        (_, Some(max)) if value > max => Err(format!("{what} has to be at most {max}")),
        _ => Ok(()),
    }
}

fn has_format(text: &str, format: &str) -> Result<(), String> {
    let no_space = !text.contains(char::is_whitespace);
    let (is_one, how) = match format {
        "email" => {
            let parts = text.rsplit_once('@');
            let is_one = parts.is_some_and(|(who, host)| !who.is_empty() && !host.is_empty() && !host.starts_with('.'));
            (is_one && no_space, "an e-mail address, such as ann@example.com")
        }
        "uri" => {
            let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
            (is_scheme && no_space && text.len() > scheme.len() + 1, "an address, such as https://example.com")
        }
        "date" => (is_date(text), "a date, such as 2025-12-31"),
        "date-time" => (is_date_time(text), "a date and a time, such as 2025-12-31T23:59:00Z"),
        _ => (true, ""),
    };
    is_one.then_some(()).ok_or_else(|| format!("it has to be {how}"))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, length: usize| {
        let is_one = text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
        is_one.then(|| text.parse::<u32>().ok()).flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (time, has_zone) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, true),
        None => match time.rsplit_once(['+', '-']) {
            Some((time, zone)) => (time, zone.len() == 5 && is_clock(zone)),
            None => (time, false),
        },
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    is_date(date) && has_zone && is_fraction && clock.len() == 8 && is_clock(clock)
}

/// `HH:MM` or `HH:MM:SS`.
fn is_clock(text: &str) -> bool {
    let most = [23, 59, 60];
    let parts: Vec<&str> = text.split(':').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().zip(most).all(|(part, most)| {
            part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u32>().is_ok_and(|n| n <= most)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(properties: &Value, required: &Value) -> Result<Form, String> {
        let params = json!({"message": "Who are\nyou?", "requestedSchema": {"type": "object", "properties": properties, "required": required}});
        match read(&params)? {
            Wanted::Form(form) => Ok(form),
            Wanted::Page(page) => Err(page.url),
        }
    }

    #[test]
    fn defaults_of_every_kind_are_filled_in_in_the_order_of_the_form() {
        let properties = json!({
            "name": {"type": "string", "default": "Ann"}, "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "idle"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]},
            "open": {"type": "string"}, "wrong": {"type": "integer", "default": "x"},
        });
        let form = form(&properties, &json!(["name"])).expect("a form");
        assert_eq!(form.message, "Who are you?");
        let filled = Value::Object(form.suggested().expect("it needs nothing"));
        let expected =
            json!({"name": "Ann", "age": 30, "score": 95.5, "status": "active", "verified": true, "tags": ["b"]});
        assert_eq!(filled.to_string(), expected.to_string());
        let mut said = Map::new();
        said.insert("open".to_owned(), json!("x"));
        said.insert("age".to_owned(), json!(5));
        let filled = Value::Object(form.filled(said)).to_string();
        assert!(filled.starts_with(r#"{"name":"Ann","age":5,"#) && filled.ends_with(r#""open":"x"}"#), "{filled}");
    }

    #[test]
    fn what_has_to_be_said_is_not_suggested() {
        let form = form(&json!({"a": {"type": "string"}}), &json!(["a"])).expect("a form");
        assert_eq!(form.suggested(), None);
        assert_eq!(form.fields[0].read("  "), Err("it has to be answered".to_owned()));
    }

    #[test]
    fn choices_are_read_in_every_way_they_are_written() {
        let titled = json!([{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]);
        let properties = json!({
            "plain": {"type": "string", "enum": ["a", "b"]},
            "named": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
            "titled": {"type": "string", "oneOf": titled},
            "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 1},
            "someTitled": {"type": "array", "items": {"anyOf": titled}},
        });
        let form = form(&properties, &json!([])).expect("a form");
        let titles: Vec<Vec<&str>> = (form.fields.iter())
            .map(|field| match &field.kind {
                Kind::One(choices) | Kind::Some { choices, .. } => choices.iter().map(|c| c.title.as_str()).collect(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(titles, [["a", "b"], ["First", "Second"], ["First", "Second"], ["a", "b"], ["First", "Second"]]);
        assert_eq!(form.fields[0].read("b"), Ok(Some(json!("b"))));
        assert!(form.fields[0].read("c").is_err());
        assert_eq!(form.fields[3].read("a"), Ok(Some(json!(["a"]))));
        assert!(form.fields[3].read("a, b").is_err_and(|why| why.contains("at most 1")));
        assert!(form.fields[3].check(&json!([])).is_err_and(|why| why.contains("at least 1")));
        assert_eq!(form.fields[4].read("a, b"), Ok(Some(json!(["a", "b"]))));
    }

    #[test]
    fn answers_are_checked_and_what_is_wrong_is_said() {
        let properties = json!({
            "age": {"type": "integer", "minimum": 1, "maximum": 9}, "share": {"type": "number"}, "sure": {"type": "boolean"},
            "name": {"type": "string", "minLength": 2, "maxLength": 3}, "mail": {"type": "string", "format": "email"},
            "page": {"type": "string", "format": "uri"}, "day": {"type": "string", "format": "date"},
            "time": {"type": "string", "format": "date-time"}, "x": {"type": "string", "format": "unheard-of"},
        });
        let form = form(&properties, &json!([])).expect("a form");
        let ask = |name: &str, text: &str| {
            let field = form.fields.iter().find(|field| field.name == name).expect("a field");
            match field.read(text) {
                Ok(value) => format!("{}", value.unwrap_or_default()),
                Err(why) => why,
            }
        };
        let cases = [
            ("age", "5"),
            ("age", "0"),
            ("age", "10"),
            ("age", "1.5"),
            ("age", "x"),
            ("age", ""),
            ("share", "1.5"),
            ("share", "NaN"),
            ("sure", "Yes"),
            ("sure", "n"),
            ("sure", "perhaps"),
            ("name", "é€"),
            ("name", "a"),
            ("name", "abcd"),
            ("mail", "a@b.c"),
            ("mail", "a b@c"),
            ("mail", "@c"),
            ("page", "https://x"),
            ("page", "x"),
            ("page", "a b:c"),
            ("day", "2024-02-29"),
            ("day", "2023-02-29"),
            ("day", "2024-13-01"),
            ("day", "24-1-1"),
            ("time", "2024-02-29T23:59:60Z"),
            ("time", "2024-02-29T10:00:00.5+02:00"),
            ("time", "2024-02-29T10:00:00"),
            ("time", "2024-02-29 10:00:00Z"),
            ("time", "2024-02-29T25:00:00Z"),
            ("x", "y"),
        ];
        let said: Vec<String> =
            cases.iter().map(|(name, text)| format!("{name} {text:?}: {}", ask(name, text))).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn what_is_no_form_is_refused_with_the_reason() {
        let many: Map<String, Value> = (0..51).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
        let wrong = [
            json!({"message": "x"}),
            json!({"mode": "smell", "message": "x"}),
            json!({"requestedSchema": {"properties": {"a": {"type": "object"}}}}),
            json!({"requestedSchema": {"properties": {"a": {}}}}),
            json!({"requestedSchema": {"properties": {"a": {"type": "array", "items": {"type": "string"}}}}}),
            json!({"requestedSchema": {"properties": {"a": {"type": "string", "enum": []}}}}),
            json!({"requestedSchema": {"properties": many}}),
            json!({"mode": "url", "url": "file:///etc/passwd"}),
            json!({"mode": "url", "url": "https://good.example@bad.example/"}),
            json!({"mode": "url", "url": "https://\u{e9}.example/"}),
            json!({"mode": "url", "url": "javascript:alert(1)"}),
        ];
        let said: Vec<String> = wrong.iter().map(|params| read(params).expect_err("it is none")).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn pages_say_whose_they_are() {
        let params =
            json!({"mode": "url", "message": "Sign in.", "url": "https://a.example:8443/x?y=z", "elicitationId": "1"});
        let expected = Page {
            message: "Sign in.".to_owned(),
            url: "https://a.example:8443/x?y=z".to_owned(),
            host: "a.example:8443".to_owned(),
        };
        assert_eq!(read(&params), Ok(Wanted::Page(expected.clone())));
        let data = json!({"elicitations": [params, {"mode": "form"}, {"mode": "url", "url": "file:///x"}, 7]});
        assert_eq!(pages(&data), [expected]);
        assert_eq!(pages(&json!(null)), []);
    }

    proptest! {
        #[test]
        fn what_is_read_fits_what_was_asked(
            kind in "string|integer|number|boolean|array|x", text in any::<String>(), format in "email|uri|date|date-time|x",
            min in proptest::option::of(0u64..9), max in proptest::option::of(0u64..9),
        ) {
            let schema = json!({"type": kind, "format": format, "minLength": min, "maxLength": max, "minimum": min,
                "maximum": max, "items": {"enum": ["a", "b"]}, "minItems": min, "default": text});
            if let Ok(field) = field("f", &schema, true) {
                if let Ok(Some(value)) = field.read(&text) {
                    prop_assert_eq!(field.check(&value), Ok(()));
                }
                if let Some(default) = &field.default {
                    prop_assert_eq!(field.check(default), Ok(()));
                }
            }
        }

        #[test]
        fn nothing_that_a_server_sends_harms(message in any::<String>(), url in any::<String>(), name in any::<String>()) {
            let _ = read(&json!({"message": message, "mode": "url", "url": url}));
            let mut properties = Map::new();
            properties.insert(name, json!({"type": "string", "title": message}));
            let _ = read(&json!({"message": message, "requestedSchema": {"properties": properties}}));
        }
    }
}
