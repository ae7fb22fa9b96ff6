//! Signing in to servers with the other adapter: begun by the model, by the person, and ended by the browser or by the address
//! that it was led to.

use serde_json::{Value, json};

use crate::{
    common::{
        server::{Reply, Request, Server},
        text_of,
    },
    mcp_proxy::Place,
    mcp_sign_in::{field, open, server},
};

fn place(server: &Server) -> Place {
    Place::with(&json!({"mcpServers": {"far": {"url": format!("{}/mcp", server.origin())}}}))
}

/// The text of the last result that a model was given.
fn last_result(request: &Request) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "tool");
    let content = last.map(|message| message["content"].clone()).unwrap_or_default();
    content.as_str().map_or_else(|| text_of(&content), str::to_owned)
}

/// Where a browser is led to by the page that stands in this text, for a person who says yes.
fn led_to(text: &str) -> String {
    let page = text.lines().find(|line| line.starts_with("http")).unwrap_or_else(|| panic!("{text}"));
    format!("{}?code=the-code&state={}", field(page, "redirect_uri"), field(page, "state"))
}

/// A model that calls the server, signs in as it is told to, and calls it again. `opens`: the browser is on this machine.
fn model(opens: bool) -> Server {
    let calls = |arguments: Value| Reply::calls(&[("mcp", &arguments.to_string())]);
    Server::answering(move |at, request| match at {
        0 => calls(json!({"connect": "far"})),
        1 => calls(json!({"action": "auth-start", "server": "far"})),
        2 => {
            let address = led_to(&last_result(request));
            if opens {
                assert!(open(&address).contains("this page can be closed"));
            }
            calls(json!({"action": "auth-complete", "server": "far", "url": address}))
        }
        3 => calls(json!({"tool": "far_one"})),
        _ => Reply::text("done"),
    })
}

/// What the model read, call by call.
fn played(opens: bool) -> Vec<String> {
    let (server, state) = server(3_600);
    let (place, model) = (place(&server), model(opens));
    place.sandbox.model_behind(&model);
    place.atoll().args(["-p", "go"]).run().ok();
    let state = state.lock().unwrap();
    assert_eq!((state.given, state.misused), (1, 0));
    place.sandbox.results().iter().map(|result| text_of(&result["content"])).collect()
}

#[test]
fn a_model_begins_to_sign_in_and_the_browser_ends_it() {
    let read = played(true);
    assert!(
        read[0].contains("it wants you to sign in; mcp({ action: \"auth-start\", server: \"far\" }) or, in a session, `/mcp login far`"),
        "{read:#?}"
    );
    assert!(!read[0].contains("atoll mcp"), "that is another adapter's: {read:#?}");
    assert!(read[1].starts_with("Ask the user to open this page to sign in to far:"), "{read:#?}");
    assert_eq!(read[2..], ["Signed in to far.", "you are in"], "{read:#?}");
}

#[test]
fn an_address_that_a_browser_elsewhere_was_led_to_ends_it_too() {
    let read = played(false);
    assert_eq!(read[2..], ["Signed in to far.", "you are in"], "{read:#?}");
}

#[test]
fn a_person_signs_in_and_out_by_the_command() {
    let (server, _) = server(3_600);
    let place = place(&server);
    let login = place.sandbox.scripted(&json!({"turns": []})).arg("-e").arg(&place.file).arg("/mcp login far").start();
    let shown = login.wait_for_output("curl 'ADDRESS'");
    assert!(open(&led_to(&shown)).contains("this page can be closed"));
    assert!(login.wait().ok().stdout.contains("Signed in to far."));
    assert_eq!(place.good("mcp", &json!({"tool": "far_one"})), "you are in");
    let typed = |what: &str| {
        let run = place.sandbox.scripted(&json!({"turns": []})).arg("-e").arg(&place.file).arg(what).run();
        format!("{}{}", run.stdout, run.stderr)
    };
    assert!(typed("/mcp login far").contains("far lets you in as you are."));
    assert!(typed("/mcp logout far").contains("Signed out of far."));
    assert!(place.bad("mcp", &json!({"tool": "far_one"})).contains("auth-start"));
    assert!(typed("/mcp login fat").contains("is far meant?"));
}

#[test]
fn what_can_not_be_ended_says_how_it_is_begun() {
    let (server, state) = server(3_600);
    let place = place(&server);
    let ended = place.bad(
        "mcp",
        &json!({"action": "auth-complete", "server": "far", "url": "http://127.0.0.1/callback?code=the-code"}),
    );
    assert!(ended.contains("Nobody is signing in to far: mcp({ action: \"auth-start\", server: \"far\" })"), "{ended}");
    assert_eq!(state.lock().unwrap().given, 0);
}
