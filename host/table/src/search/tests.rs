use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::reach::Standing;
use crate::{
    Tool,
    test_tools::{described, exposed, namespace, runner, tool},
    tool::{Exposure, is_valid_name},
};

fn table(tools: Vec<Tool>) -> Table {
    let mut table = Table::new();
    table.register("p", tools, &runner()).unwrap();
    table
}

fn found(table: &Table, text: &str) -> Vec<String> {
    names(table, &Query::new(text))
}

fn names(table: &Table, query: &Query<'_>) -> Vec<String> {
    table.search(query, |_, _| true).unwrap().iter().map(|entry| entry.tool.name.clone()).collect()
}

fn github() -> Table {
    let issue = |name: &str, description: &str| Tool {
        namespace: Some(namespace("mcp__github", "github")),
        ..described(name, description)
    };
    table(vec![
        described("read", "Reads a file."),
        issue("mcp__github__get_issue", "Gets one issue with its comments."),
        issue("mcp__github__list_issues", "Lists the issues of a repository, newest first."),
        issue("mcp__github__search_code", "Finds code in all repositories."),
        described("browser_click", "Clicks on an element of the page. Not for issues."),
    ])
}

/// Each rule of the ranking once, on one table: what a query finds first.
#[test]
fn ten_queries_and_what_they_find_first() {
    let mut tools: Vec<Tool> = github().tools().iter().map(|entry| entry.tool.clone()).collect();
    let airport = json!({"type": "object", "properties": {"departureAirport": {"type": "string"}}});
    tools.extend([
        Tool { namespace: Some(namespace("mcp__desk", "desk")), ..described("mcp__desk__createTicket", "Opens one.") },
        described("weather", "Forecast for one city."),
        Tool { parameters: airport, ..described("fly", "Books flights.") },
    ]);
    let table = table(tools);
    let issue = "mcp__github__get_issue";
    for (query, first) in [
        (issue, Some(issue)),
        ("get_issue", Some(issue)),
        ("create ticket", Some("mcp__desk__createTicket")),
        ("TICKETS", Some("mcp__desk__createTicket")),
        ("what is the weather in that city", Some("weather")),
        ("departure airport", Some("fly")),
        ("code of the repository", Some("mcp__github__search_code")),
        ("desk", Some("mcp__desk__createTicket")),
        ("of the in a", None),
        ("zebra", None),
    ] {
        let found = found(&table, query);
        assert_eq!(found.first().map(String::as_str), first, "{query}: {found:?}");
    }
}

#[test]
fn a_name_in_full_or_without_its_namespace_comes_first() {
    assert_eq!(found(&github(), "mcp__github__search_code")[0], "mcp__github__search_code");
    assert_eq!(found(&github(), "list_issues")[0], "mcp__github__list_issues");
    assert_eq!(found(&github(), "LIST_ISSUES")[0], "mcp__github__list_issues");
    let twins = table(vec![described("a", "read read read read"), tool("Read"), tool("read"), tool("x__read")]);
    assert_eq!(found(&twins, "read"), ["read", "Read", "x__read", "a"]);
}

#[test]
fn more_words_of_the_query_beat_a_better_score() {
    let table = table(vec![
        described("weather", "weather weather weather"),
        described("other", "Some long text in which the weather of a city is only one among many things."),
    ]);
    assert_eq!(found(&table, "weather in the city"), ["other", "weather"]);
}

#[test]
fn a_word_in_the_name_weighs_more_than_one_in_the_text() {
    assert_eq!(found(&github(), "issues"), ["mcp__github__get_issue", "mcp__github__list_issues", "browser_click"]);
    assert_eq!(found(&github(), "get issue")[0], "mcp__github__get_issue");
    assert_eq!(
        found(&github(), "github"),
        ["mcp__github__get_issue", "mcp__github__list_issues", "mcp__github__search_code"]
    );
}

#[test]
fn a_whole_name_in_the_query_is_a_bonus() {
    let table = table(vec![described("send_mail_draft", "x"), described("send_mail", "x")]);
    assert_eq!(found(&table, "please send mail"), ["send_mail", "send_mail_draft"]);
}

#[test]
fn a_rare_word_tells_more_than_a_frequent_one() {
    let table =
        table(vec![described("a", "file"), described("b", "file"), described("c", "file"), described("d", "zebra")]);
    assert_eq!(found(&table, "file zebra")[0], "d");
}

#[test]
fn equals_keep_their_order() {
    let table = table(vec![described("b", "same words"), described("a", "same words"), described("c", "same words")]);
    assert_eq!(found(&table, "words"), ["b", "a", "c"]);
}

#[test]
fn schemas_are_searched_through_references() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "departureAirport": {"type": "string", "description": "IATA code"},
            "legs": {"type": "array", "items": {"$ref": "#/$defs/Leg"}}
        },
        "$defs": {"Leg": {
            "type": "object",
            "description": "One segment",
            "properties": {"next": {"$ref": "#/$defs/Leg"}, "any": {"anyOf": [{"description": "stopover"}]}}
        }, "Unused": {"description": "nowhere"}}
    });
    let table = table(vec![tool("other"), Tool { parameters, ..tool("book") }]);
    for word in ["airport", "iata", "segment", "stopover", "leg", "next"] {
        assert_eq!(found(&table, word), ["book"], "{word}");
    }
    assert!(found(&table, "nowhere").is_empty());
    assert!(found(&table, "string").is_empty(), "types are no words");
}

#[test]
fn a_search_has_a_limit_and_a_namespace() {
    let all = github();
    let limited = Query { limit: 1, ..Query::new("issue") };
    assert_eq!(names(&all, &limited), ["mcp__github__get_issue"]);
    assert!(names(&all, &Query { limit: 0, ..Query::new("issue") }).is_empty());
    for name in ["mcp__github", "github"] {
        let inside = Query { namespace: Some(name), ..Query::new("issues") };
        assert_eq!(names(&all, &inside), ["mcp__github__get_issue", "mcp__github__list_issues"]);
    }
    let unknown = Query { namespace: Some("gitlab"), ..Query::new("issues") };
    assert_eq!(all.search(&unknown, |_, _| true).err().unwrap().code(), "not-found");
}

#[test]
fn the_caller_says_what_is_searched() {
    let mut table = table(vec![
        described("a", "word"),
        Tool { description: "word".into(), ..exposed("b", Exposure::Deferred) },
        Tool { description: "word".into(), ..exposed("c", Exposure::Codemode) },
        Tool { description: "word".into(), ..exposed("d", Exposure::Hidden) },
    ]);
    let loadable = |table: &Table| -> Vec<String> {
        let admits = |entry: &Registered, standing: Standing| {
            entry.tool.exposure.is_searched() && standing == Standing::Inactive
        };
        table.search(&Query::new("word"), admits).unwrap().iter().map(|entry| entry.tool.name.clone()).collect()
    };
    assert_eq!(loadable(&table), ["b", "c"]);
    table.activate(&["b".to_owned()], true).unwrap();
    assert_eq!(loadable(&table), ["c"]);
    assert_eq!(found(&table, "word"), ["a", "b", "c"], "hidden tools are never found");
    assert!(found(&table, "d").is_empty());
}

#[test]
fn other_languages_are_found_too() {
    let table = table(vec![
        described("weather", "查询城市的天气预报"),
        described("stocks", "查询股票价格和气温无关的数据"),
        described("suche", "Durchsucht Dateien nach Wörtern, auch mit Umlauten: Größe, Straße."),
        described("kensaku", "プロジェクト内のファイルを検索します"),
        described("henshu", "ファイルを編集します"),
        described("poisk", "Поиск по файлам проекта"),
    ]);
    for (query, expected) in [
        ("天气", vec!["weather"]),
        ("城市天气", vec!["weather"]),
        ("股票", vec!["stocks"]),
        ("查", vec!["weather", "stocks"]),
        ("Gro\u{308}ße", vec!["suche"]),
        ("GRÖSSE wörtern", vec!["suche"]),
        ("検索", vec!["kensaku"]),
        ("ファイル 編集", vec!["henshu", "kensaku"]),
        ("ПОИСК", vec!["poisk"]),
    ] {
        assert_eq!(found(&table, query), expected, "{query}");
    }
}

#[test]
fn a_query_without_words_finds_nothing_but_names() {
    for query in ["", "  ", "the", "!?", "of the"] {
        assert!(found(&github(), query).is_empty(), "{query:?}");
    }
    assert_eq!(found(&table(vec![tool("___"), tool("the")]), "___"), ["___"]);
    assert_eq!(found(&table(vec![tool("___"), tool("the")]), "the"), ["the"]);
}

#[test]
fn one_of_many_tools_is_found() {
    let many =
        (0..5_000).map(|n| described(&format!("tool_{n}"), &format!("Does thing number {n} with files and words")));
    let table = table(many.collect());
    assert_eq!(found(&table, "thing 4711")[0], "tool_4711");
}

fn any_tools() -> impl Strategy<Value = Vec<Tool>> {
    let word =
        prop_oneof!["[a-z]{1,4}", "[a-zA-Z_-]{1,8}", "[a-c]__[a-c]"].prop_filter("a name", |name| is_valid_name(name));
    proptest::collection::hash_map(word, any::<String>(), 0..8).prop_map(|tools| {
        let mut tools: Vec<Tool> = tools.iter().map(|(name, text)| described(name, text)).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    })
}

proptest! {
    #[test]
    fn searching_never_panics_and_always_gives_the_same(tools in any_tools(), query in any::<String>(), limit in 0_usize..5) {
        let query = Query { limit, ..Query::new(&query) };
        let first = names(&table(tools.clone()), &query);
        prop_assert!(first.len() <= limit);
        prop_assert_eq!(first, names(&table(tools), &query));
    }

    #[test]
    fn an_exact_name_always_comes_first(tools in any_tools(), pick in any::<prop::sample::Index>()) {
        prop_assume!(!tools.is_empty());
        let name = tools[pick.index(tools.len())].name.clone();
        let found = found(&table(tools), &name);
        prop_assert_eq!(&found[0], &name);
    }
}
