//! What extensions can be told and can ask for is shown from Rust and from a script: every event and every function of the
//! contract has a row here, which names the tests. An event or a function without one makes this red, and so does a name
//! that is no test's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use atoll_table::extension::EventKind;

use crate::common::plugins::workspace_root;

/// Tests in which a whole run is told, with what it is compared with.
const RUN: &str = "an_extension_sees_every_event_of_a_run_in_order";
const SCRIPTS_RUN: &str = "a_script_is_told_the_same_events_as_a_component_in_the_same_order";
/// Tests in which every event is told, whether a part of the program tells of it yet or not.
const PUT: &str = "every_event_reaches_a_component_and_its_answer_counts";
const PUT_TO_SCRIPT: &str = "every_event_reaches_a_script_and_its_answer_counts";

const CHANGES: &str = "a_script_is_told_of_what_changes_in_the_session";
const CALLS: &str = "a_script_is_told_of_calls_their_partial_results_and_where_more_may_be";
const ANSWERS: &str = "every_answer_of_a_handler_has_its_effect";
const REQUESTS: &str = "a_script_sees_and_changes_requests_to_a_model_and_is_told_of_what_comes_back";
const PROVIDER: &str = "requests_are_seen_and_changed_in_load_order_and_what_comes_back_is_told";
const MORE: &str = "one_more_request_is_made_when_a_handler_says_so";

/// Each event with the test in which an extension in Rust is told of it and the one in which a script is.
const EVENTS: &[(&str, &str, &str)] = &[
    ("input", "input_is_transformed_in_order_and_handled_input_reaches_no_model", ANSWERS),
    ("tool-call", "a_block_is_what_the_model_reads_and_the_call_does_not_run", ANSWERS),
    ("tool-result", "a_patched_result_is_what_the_model_reads_and_loses_its_data", ANSWERS),
    ("user-bash", PUT, PUT_TO_SCRIPT),
    ("before-agent-start", "a_message_is_injected_and_another_system_prompt_holds_for_one_run_only", ANSWERS),
    ("context", "context_is_changed_for_the_request_and_not_in_the_session", ANSWERS),
    ("context-with-system", "context_is_changed_for_the_request_and_not_in_the_session", ANSWERS),
    ("before-provider-headers", PROVIDER, REQUESTS),
    ("before-provider-request", PROVIDER, REQUESTS),
    ("after-provider-response", PROVIDER, REQUESTS),
    ("provider-stream-event", PROVIDER, REQUESTS),
    ("message-start", RUN, SCRIPTS_RUN),
    ("message-update", RUN, SCRIPTS_RUN),
    ("message-end", "a_replaced_message_keeps_its_role", ANSWERS),
    ("agent-start", RUN, SCRIPTS_RUN),
    ("agent-end", RUN, SCRIPTS_RUN),
    ("agent-settled", RUN, SCRIPTS_RUN),
    ("turn-start", RUN, SCRIPTS_RUN),
    ("turn-end", MORE, ANSWERS),
    ("agent-before-settle", MORE, ANSWERS),
    ("tool-execution-start", RUN, CALLS),
    ("tool-execution-update", "a_partial_result_is_told_of", CALLS),
    ("tool-execution-end", RUN, CALLS),
    ("session-start", "another_version_takes_over_and_both_are_told_why", SCRIPTS_RUN),
    ("session-shutdown", "another_version_takes_over_and_both_are_told_why", CHANGES),
    ("session-info-changed", "what_changes_in_the_session_is_told", CHANGES),
    ("session-compact", PUT, PUT_TO_SCRIPT),
    ("session-compact-failed", PUT, PUT_TO_SCRIPT),
    ("session-tree", PUT, PUT_TO_SCRIPT),
    ("session-before-switch", PUT, PUT_TO_SCRIPT),
    ("session-before-fork", PUT, PUT_TO_SCRIPT),
    ("session-before-tree", PUT, PUT_TO_SCRIPT),
    ("session-before-compact", PUT, PUT_TO_SCRIPT),
    ("resources-discover", "extensions_are_asked_where_more_is_and_naming_a_place_opens_nothing", CALLS),
    (
        "project-trust",
        "the_command_line_comes_before_an_extension_and_an_extension_before_what_is_saved",
        "one_that_has_nothing_to_say_elsewhere_is_asked_here",
    ),
    ("model-select", "what_changes_in_the_session_is_told", CHANGES),
    ("thinking-level-select", "what_changes_in_the_session_is_told", CHANGES),
    ("cache-warming-decision", PUT, PUT_TO_SCRIPT),
    ("ui-prompt-start", "others_are_told_when_a_question_is_there_and_when_it_is_gone", SCRIPTS_DIALOGS),
    ("ui-prompt-end", "others_are_told_when_a_question_is_there_and_when_it_is_gone", SCRIPTS_DIALOGS),
    ("mcp-servers-change", "servers_are_told_to_whoever_subscribed_and_each_changes_its_own", CHANGES),
    ("bus", "what_one_says_on_the_bus_others_hear", "every_function_of_the_session_can_be_called"),
];

/// How a function is shown.
enum Shown {
    /// By this call, in the file of this test.
    By(&'static str, &'static str),
    /// Not at all, because of this.
    Not(&'static str),
}
use Shown::{By, Not};

const TOLD: &str = "an_extension_ends_in_order_with_the_program";
const SESSION: &str = "every_function_of_the_session_can_be_called";
const FACTS: &str = "the_session_is_described_as_it_is";
const TABLE: &str = "tools_are_listed_found_described_switched_and_withdrawn";
const STORE: &str = "what_is_kept_is_listed_and_forgotten";
const CONFIG: &str = "files_of_configuration_are_read_written_and_filled_in";
const TIME: &str = "time_and_the_shell_are_those_of_the_host";
const DIALOGS: &str = "dialogs_are_plain_prompts_at_a_terminal";
const SCRIPTS_DIALOGS: &str = "dialogs_of_a_script_are_answered_by_the_person";
const GRANTED: &str = "what_is_granted_to_a_script_works_through_every_module_that_leads_there";
const ADDITIONS: &str = "providers_servers_and_secrets_are_there_for_a_script_that_is_granted_them";
const SERVERS: &str = "servers_are_told_to_whoever_subscribed_and_each_changes_its_own";
const STOPS: &str = "commands_abort_and_shutdown_work_from_a_script";
const ENTRIES: &str = "entries_labels_and_names_are_in_the_session_file";
const IN_GROUPS: &str = "a_search_says_which_groups_are_still_to_come_and_can_look_in_one_group";
const OF_TOOLS: &str = "it is for tools that run a model's scripts and for adapters, which are components";
const NO_MODULE: &str = "no module of scripts leads there: they read and list what they name";

/// Each function that an extension exports or may import, with how it is shown from Rust and from a script.
const FUNCTIONS: &[(&str, Shown, Shown)] = &[
    (
        "extension.start",
        By("session-start", TOLD),
        By("export default", "a_script_that_died_is_started_again_with_what_it_kept"),
    ),
    ("extension.on-event", By("\"event\"", PUT), By("a.on(", PUT_TO_SCRIPT)),
    ("extension.run-command", By("/keep it", ENTRIES), By("/do ", STOPS)),
    ("extension.complete-command", By("\"complete\"", PUT), By("getArgumentCompletions", PUT_TO_SCRIPT)),
    ("extension.stop", By("\"stop\"", TOLD), By("session_shutdown", CHANGES)),
    (
        "log.write",
        By("a_flood_of_log_lines", "a_flood_of_log_lines_is_cut_and_the_call_goes_on"),
        By("console.log(", "a_promise_that_nobody_waits_for_is_in_the_log"),
    ),
    ("clock.now", By("\"clock\"", TIME), By("Date.now()", SESSION)),
    ("clock.monotonic", By("\"clock\"", TIME), By("performance.now()", "time_is_that_of_the_host")),
    ("clock.sleep", By("\"sleep\"", TIME), By("setTimeout(", SESSION)),
    (
        "progress.update",
        By("\"update\"", "a_partial_result_of_an_extensions_tool_is_shown"),
        By("onUpdate(", "a_partial_result_is_shown"),
    ),
    (
        "progress.cancelled",
        By("\"untilCancelled\"", "a_handler_that_never_ends_is_given_up_and_told_so"),
        By("ctx.signal", "a_signal_of_a_script_ends_with_what_it_belongs_to"),
    ),
    ("progress.kept", By("kept", "what_is_kept_is_kept_with_the_session_if_the_call_succeeds"), Not(OF_TOOLS)),
    ("progress.keep", By("keep", "what_is_kept_is_kept_with_the_session_if_the_call_succeeds"), Not(OF_TOOLS)),
    (
        "progress.shape",
        By("characters left out", "a_model_gets_the_ends_of_a_long_result_and_can_read_the_rest"),
        Not(OF_TOOLS),
    ),
    ("progress.left", By("\"left\"", "a_call_sees_what_it_can_call_and_what_is_left_to_it"), Not(OF_TOOLS)),
    (
        "workers.count",
        By("on_all_cores", "many_files_are_searched_on_all_cores_with_the_result_of_one"),
        Not("a script is one instance with one thread of work"),
    ),
    (
        "workers.run",
        By("on_all_cores", "many_files_are_searched_on_all_cores_with_the_result_of_one"),
        Not("a script is one instance with one thread of work"),
    ),
    (
        "host.describe",
        By("\"describeHost\"", "dash_e_works_with_every_command_that_uses_the_tools"),
        By("ctx.mode", SESSION),
    ),
    (
        "host.flag-value",
        By("\"flag\"", "flags_of_extensions_are_options_and_unknown_ones_are_errors"),
        By("atoll.getFlag(", SESSION),
    ),
    (
        "host.settings",
        By("pluginSettings", "a_project_does_not_say_what_an_extension_of_the_users_does"),
        By("atoll.getSettings()", SESSION),
    ),
    (
        "host.home",
        By("\"home\"", "dash_e_works_with_every_command_that_uses_the_tools"),
        Not("scripts name what is below the user's home with `~`"),
    ),
    (
        "host.wanted-command",
        By("\"command\"", "a_command_of_a_plugins_is_one_of_the_program"),
        Not("a script begins nothing by itself that a command could do without"),
    ),
    (
        "host.subscribe",
        By("\"subscribe\"", "an_extension_wants_other_events_from_when_it_says_so"),
        By("off()", "a_script_wants_other_events_from_when_it_says_so"),
    ),
    (
        "host.print",
        By("\"print\"", "what_a_command_prints_is_on_standard_output_and_nowhere_among_events"),
        By("atoll.print(", ADDITIONS),
    ),
    (
        "source.files",
        By("index.ts", "a_script_may_consist_of_files_and_lie_in_a_folder"),
        By("index.ts", "a_script_may_consist_of_files_and_lie_in_a_folder"),
    ),
    (
        "files.read",
        By("\"read\"", "a_file_larger_than_one_host_call_may_bring_ends_at_host_call_bytes"),
        By("readFileSync(", GRANTED),
    ),
    ("files.read-many", By("\"read-so-many\"", "one_call_reads_only_so_many_files"), Not(NO_MODULE)),
    ("files.open", By("\"open-files\"", "open_files_without_end_end_at_handles"), Not(NO_MODULE)),
    ("files.write", By("\"write\"", "a_write_goes_through_a_link_and_keeps_the_mode"), By("writeFileSync(", GRANTED)),
    ("files.list-dir", By("\"ls\"", "names_are_listed_with_their_kinds_sure_72"), By("readdirSync(", GRANTED)),
    ("files.stat", By("how", "no_spelling_of_a_path_leads_out_of_the_workspace"), By("statSync(", GRANTED)),
    ("files.walk", By("\"walk\"", "a_walk_never_tells_a_name_from_outside"), Not(NO_MODULE)),
    (
        "files.remove",
        By("\"remove\"", "no_link_leads_out_of_the_workspace_in_any_position"),
        By("unlinkSync(", GRANTED),
    ),
    (
        "files.lock",
        By("\"lock\"", "a_lock_does_not_tell_where_a_link_leads"),
        By("appendFile(", "what_is_written_keeps_what_was_there_where_it_was_to_be_kept"),
    ),
    ("http.fetch", By("\"fetch\"", "one_granted_origin_opens_that_origin_and_nothing_else"), By("fetch(", GRANTED)),
    ("process.spawn", By("\"bash\"", "output_and_exit_code_of_a_good_command"), By("atoll.exec(", GRANTED)),
    ("process.shell", By("\"shell\"", TIME), By("execSync(", GRANTED)),
    (
        "listener.open",
        By("\"listen\"", "one_request_is_listened_for_and_no_other_counts"),
        By("atoll.listen(", "a_script_listens_for_one_request"),
    ),
    ("store.get", By("\"kept\"", STORE), By("atoll.store.get(", SESSION)),
    ("store.set", By("\"keep\"", STORE), By("atoll.store.set(", SESSION)),
    ("store.remove", By("\"forget\"", STORE), By("atoll.store.delete(", SESSION)),
    ("store.keys", By("\"keys\"", STORE), By("atoll.store.keys(", SESSION)),
    (
        "store.lock",
        By("\"locked\"", "a_lock_is_held_by_one_instance_of_all_processes_and_not_lost_with_its_holder"),
        By("atoll.store.lock(", ADDITIONS),
    ),
    ("config.read", By("\"readConfig\"", CONFIG), By("atoll.config.read(", ADDITIONS)),
    ("config.write", By("\"writeConfig\"", CONFIG), By("atoll.config.write(", ADDITIONS)),
    ("config.resolve", By("\"resolve\"", CONFIG), By("atoll.config.resolve(", ADDITIONS)),
    (
        "secrets.available",
        By("\"secrets\"", "what_is_not_granted_or_not_asked_for_is_not_revealed_listed_or_kept"),
        By("atoll.secrets.available(", ADDITIONS),
    ),
    (
        "secrets.reveal",
        By("\"reveal\"", "a_secret_is_revealed_to_whom_it_is_granted_and_is_said_nowhere"),
        By("atoll.secrets.reveal(", ADDITIONS),
    ),
    (
        "secrets.save",
        By("\"saveSecret\"", "a_secret_that_is_kept_is_the_users_from_then_on_and_never_worked_out"),
        By("atoll.secrets.save(", ADDITIONS),
    ),
    ("table.register", By("\"register\"", TABLE), By("atoll.registerTool(", SESSION)),
    ("table.unregister", By("\"unregister\"", TABLE), By("atoll.unregisterTool(", SESSION)),
    ("table.activate", By("\"deactivate\"", TABLE), By("atoll.setActiveTools(", SESSION)),
    ("table.list", By("\"listTools\"", TABLE), By("atoll.getAllTools(", SESSION)),
    ("table.search", By("\"searchTools\"", TABLE), By("atoll.searchTools(", SESSION)),
    ("table.describe", By("\"describeTool\"", TABLE), By("atoll.describeTool(", SESSION)),
    ("table.callable-now", By("\"callable\"", "a_call_sees_what_it_can_call_and_what_is_left_to_it"), Not(OF_TOOLS)),
    ("table.find", By("\"find\"", IN_GROUPS), Not(OF_TOOLS)),
    ("table.group-of", By("\"group\"", IN_GROUPS), Not(OF_TOOLS)),
    ("table.expect", By("\"expect\"", IN_GROUPS), Not(OF_TOOLS)),
    (
        "table.call",
        By("\"call\"", "a_nested_call_from_a_handler_has_its_id_and_goes_through_the_same_checks"),
        By("ctx.executeTool(", SESSION),
    ),
    ("session.describe", By("\"describeSession\"", FACTS), By("ctx.isIdle()", SESSION)),
    ("session.entries", By("\"entries\"", FACTS), By("getBranch()", SESSION)),
    ("session.append", By("\"append\"", ENTRIES), By("atoll.appendEntry(", SESSION)),
    (
        "session.send",
        By("\"send\"", "steer_follow_up_and_next_turn_come_when_they_are_due"),
        By("atoll.sendUserMessage(", SESSION),
    ),
    (
        "session.send-custom",
        By("\"sendCustom\"", "a_message_that_is_sent_while_nothing_runs_is_seen_and_changed_as_any_other"),
        By("atoll.sendMessage(", SESSION),
    ),
    ("session.set-label", By("\"label\"", "an_entry_gets_a_label_and_loses_it"), By("atoll.setLabel(", SESSION)),
    ("session.set-name", By("\"name\"", ENTRIES), By("atoll.setSessionName(", SESSION)),
    (
        "session.set-model",
        By("\"model\"", "programs_are_told_of_the_model_that_is_asked_now"),
        By("atoll.setModel(", SESSION),
    ),
    ("session.set-thinking", By("\"thinking\"", ENTRIES), By("atoll.setThinkingLevel(", SESSION)),
    (
        "session.set-prompt-section",
        By("\"section\"", "a_section_of_the_prompt_comes_and_goes"),
        By("atoll.setPromptSection(", SESSION),
    ),
    ("session.system-prompt", By("\"systemPrompt\"", FACTS), By("ctx.getSystemPrompt(", SESSION)),
    ("session.context-usage", By("\"contextUsage\"", FACTS), By("ctx.getContextUsage(", SESSION)),
    (
        "session.compact",
        By("\"compact\"", "a_summary_of_the_conversation_is_not_to_be_had_yet_and_that_is_said"),
        By("ctx.compact(", "a_summary_that_a_script_asks_for_is_refused_as_the_contract_says"),
    ),
    (
        "session.wait-idle",
        By("\"waitIdle\"", "waiting_until_nothing_runs_is_not_for_handlers"),
        By("ctx.waitForIdle(", SESSION),
    ),
    (
        "session.reload",
        By("\"reload\"", "an_extension_can_ask_for_it_and_not_while_it_is_being_done"),
        By("ctx.reload(", "a_script_has_all_extensions_loaded_anew_and_finds_what_it_kept"),
    ),
    ("session.abort", By("\"abort\"", "an_extension_stops_what_is_running"), By("ctx.abort(", STOPS)),
    (
        "session.shutdown",
        By("\"shutdown\"", "an_extension_that_shuts_down_ends_the_run_after_the_prompt"),
        By("ctx.shutdown(", STOPS),
    ),
    ("models.available", By("\"models\"", FACTS), By("atoll.getModels(", SESSION)),
    (
        "models.complete",
        By("\"complete\"", "a_completion_of_its_own_takes_no_tools_and_is_no_message"),
        By("atoll.complete(", "a_completion_of_a_scripts_own_is_asked_for_without_tools"),
    ),
    ("ui.available", By("\"hasPerson\"", DIALOGS), By("ui.available(", SCRIPTS_DIALOGS)),
    ("ui.select", By("\"select\"", DIALOGS), By("ui.select(", SCRIPTS_DIALOGS)),
    ("ui.confirm", By("\"confirm\"", DIALOGS), By("ui.confirm(", SCRIPTS_DIALOGS)),
    ("ui.input", By("\"input\"", DIALOGS), By("ui.input(", SCRIPTS_DIALOGS)),
    ("ui.editor", By("\"editor\"", DIALOGS), By("ui.editor(", SCRIPTS_DIALOGS)),
    (
        "ui.notify",
        By("\"notify\"", "a_dialog_of_a_plugin_can_not_look_like_a_question_of_the_host"),
        By("ui.notify(", STOPS),
    ),
    (
        "ui.set-status",
        By("status = \"busy\"", "what_a_plugin_answers_and_does_is_compared_step_by_step"),
        By("setStatus(", "every_event_reaches_a_script_and_its_answer_counts"),
    ),
    ("bus.emit", By("\"emit\"", "what_one_says_on_the_bus_others_hear"), By("atoll.events.emit(", SESSION)),
    (
        "providers.register",
        By("\"provider\"", "a_model_that_an_extension_adds_can_be_asked_by_name_and_is_listed"),
        By("registerProvider", "a_provider_that_a_script_adds_is_asked_by_the_name_of_its_model"),
    ),
    (
        "providers.unregister",
        By("\"dropProvider\"", "an_extension_switches_to_a_model_it_adds_and_takes_it_away_again"),
        By("atoll.unregisterProvider(", ADDITIONS),
    ),
    ("servers.register", By("\"server\"", SERVERS), By("atoll.registerMcpServer(", ADDITIONS)),
    ("servers.unregister", By("\"dropServer\"", SERVERS), By("atoll.unregisterMcpServer(", ADDITIONS)),
    ("servers.list", By("\"servers\"", SERVERS), By("atoll.getMcpServers(", ADDITIONS)),
    (
        "servers.permit",
        By("\"permit\"", "whoever_connects_to_servers_learns_whether_their_owner_may_reach_them"),
        By("atoll.permitMcpServer(", ADDITIONS),
    ),
];

/// Interfaces that others than extensions export, and the one that only has types.
const OTHERS: [&str; 5] = ["types", "tools", "worker", "provider", "provider-auth"];

/// The tests below a folder by their names, each with the text of its file.
fn tests_below(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("extension_contract.rs")
        {
            let text = fs::read_to_string(&path).unwrap();
            let marked = text.split("#[test]").chain(text.split("#[tokio::test]")).skip(1);
            for name in marked.filter_map(|after| after.split_once("fn ")?.1.split_once('(')) {
                found.insert(name.0.trim().to_owned(), text.clone());
            }
        }
    }
}

fn tests() -> BTreeMap<String, String> {
    let mut tests = BTreeMap::new();
    tests_below(&workspace_root().join("tests"), &mut tests);
    // What these two tell of is what is compared.
    let run = workspace_root().join(format!("tests/snapshots/all__extensions__{RUN}.snap"));
    let run = fs::read_to_string(run).unwrap();
    for name in [RUN, SCRIPTS_RUN] {
        tests.get_mut(name).unwrap().push_str(&run);
    }
    tests
}

/// The events that the contract lists: of each item, the names before what they may be answered with.
fn events_of_the_contract() -> BTreeSet<String> {
    let text = fs::read_to_string(workspace_root().join("wit/extension.wit")).unwrap();
    let (list, _) = text.split_once("variant event {").unwrap();
    let (_, list) = list.split_once("/// Something happened").unwrap();
    let list = list.lines().map(|line| line.trim().trim_start_matches('/')).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    for item in list.split(" - `").skip(1) {
        let (mut depth, mut plain) = (0, String::from("`"));
        for letter in item.chars() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ':' if depth == 0 => break,
                letter if depth == 0 => plain.push(letter),
                _ => {}
            }
        }
        names.extend(plain.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

/// The functions of the interfaces that extensions export and import.
fn functions_of_the_contract() -> BTreeSet<String> {
    let mut resolve = wit_parser::Resolve::default();
    resolve.push_dir(workspace_root().join("wit")).unwrap();
    let mut functions = BTreeSet::new();
    for (_, interface) in &resolve.interfaces {
        let name = interface.name.as_deref().unwrap_or_default();
        if !OTHERS.contains(&name) {
            // What a resource does is shown with the function that gives it.
            let own = interface.functions.keys().filter(|function| !function.starts_with('['));
            functions.extend(own.map(|function| format!("{name}.{function}")));
        }
    }
    functions
}

fn set<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

#[test]
fn every_event_is_shown_from_rust_and_from_a_script() {
    let known = set(EventKind::ALL.into_iter().map(EventKind::as_str).chain(["bus"]));
    assert_eq!(events_of_the_contract(), known, "the list in wit/extension.wit is not what the host knows");
    assert_eq!(set(EVENTS.iter().map(|(event, ..)| *event)), known, "each event has one row in EVENTS");
    let tests = tests();
    for (event, rust, script) in EVENTS {
        for (test, spelled) in [(rust, event.to_string()), (script, event.replace('-', "_"))] {
            let text = tests.get(*test).unwrap_or_else(|| panic!("{event}: there is no test {test}"));
            let is_named = text.contains(*event) || text.contains(&spelled) || *event == "bus";
            assert!(is_named, "{event}: nothing in the file of {test} names it");
        }
    }
}

#[test]
fn every_function_is_shown_from_rust_and_from_a_script() {
    let rows = set(FUNCTIONS.iter().map(|(function, ..)| *function));
    assert_eq!(rows, functions_of_the_contract(), "each function has one row in FUNCTIONS");
    let tests = tests();
    for (function, rust, script) in FUNCTIONS {
        for shown in [rust, script] {
            match shown {
                Not(reason) => assert!(reason.len() > 20, "{function}: say why it is not shown"),
                By(call, test) => {
                    let text = tests.get(*test).unwrap_or_else(|| panic!("{function}: there is no test {test}"));
                    assert!(text.contains(call), "{function}: nothing in the file of {test} calls {call}");
                }
            }
        }
        assert!(matches!(rust, By(..)), "{function} is not shown from Rust");
    }
}
