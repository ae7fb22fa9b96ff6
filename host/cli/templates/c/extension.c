// An extension that looks at command lines before they run, and stops those that overwrite what others have pushed.
//
// What a function is given is its own to free, and what it answers is freed by the bindings.

#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef exports_atoll_plugin_extension_error_t failure_t;

// The model reads this, so it says what to do instead.
static const char REASON[] = "Pushing by force is not allowed here. Push to a branch of your own.";

static bool contains(const plugin_string_t *text, const char *word) {
    size_t len = strlen(word);
    for (size_t at = 0; at + len <= text->len; at++) {
        if (memcmp(text->ptr + at, word, len) == 0) {
            return true;
        }
    }
    return false;
}

// The arguments are JSON; for these words its text will do.
static bool is_forced_push(const plugin_string_t *arguments) {
    return contains(arguments, "git push") && (contains(arguments, " --force") || contains(arguments, " -f"));
}

bool exports_atoll_plugin_extension_start(uint8_t reason, exports_atoll_plugin_extension_subscription_t *wanted,
                                          failure_t *error) {
    (void)reason, (void)error;
    // Only what is named here is sent. `wit/extension.wit` lists the events and what may be answered.
    memset(wanted, 0, sizeof *wanted);
    wanted->events.len = 1;
    wanted->events.ptr = malloc(sizeof *wanted->events.ptr);
    plugin_string_dup(wanted->events.ptr, "tool-call");
    return true;
}

bool exports_atoll_plugin_extension_on_event(plugin_string_t *id, exports_atoll_plugin_extension_event_t *event,
                                             exports_atoll_plugin_extension_outcome_t *outcome, failure_t *error) {
    (void)error;
    outcome->tag = EXPORTS_ATOLL_PLUGIN_EXTENSION_OUTCOME_PASS;
    if (event->tag == EXPORTS_ATOLL_PLUGIN_EXTENSION_EVENT_TOOL_CALL) {
        const exports_atoll_plugin_extension_call_t *call = &event->val.tool_call;
        bool is_bash = call->tool.len == 4 && memcmp(call->tool.ptr, "bash", 4) == 0;
        if (is_bash && is_forced_push(&call->arguments)) {
            outcome->tag = EXPORTS_ATOLL_PLUGIN_EXTENSION_OUTCOME_BLOCK;
            plugin_string_dup(&outcome->val.block.reason, REASON);
            outcome->val.block.terminate = false;
        }
    }
    plugin_string_free(id);
    exports_atoll_plugin_extension_event_free(event);
    return true;
}

bool exports_atoll_plugin_extension_run_command(plugin_string_t *id, plugin_string_t *name, plugin_string_t *arguments,
                                                failure_t *error) {
    (void)error;
    plugin_string_free(id);
    plugin_string_free(name);
    plugin_string_free(arguments);
    return true;
}

bool exports_atoll_plugin_extension_complete_command(plugin_string_t *name, plugin_string_t *arguments,
                                                     exports_atoll_plugin_extension_list_completion_t *completions,
                                                     failure_t *error) {
    (void)error;
    plugin_string_free(name);
    plugin_string_free(arguments);
    memset(completions, 0, sizeof *completions);
    return true;
}

void exports_atoll_plugin_extension_stop(void) {}
