// An extension that looks at command lines before they run, and stops those that overwrite what others have pushed.
//
// What a function is given is its own to free, and what it answers is freed by the bindings.

#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef exports_atoll_plugin_extension_error_t failure_t;

// The model reads this, so it says what to do instead.
static const char REASON[] = "Pushing by force is not allowed here. Push to a branch of your own.";

static bool is_at(const plugin_string_t *text, size_t at, const char *word) {
    size_t len = strlen(word);
    return at + len <= text->len && memcmp(text->ptr + at, word, len) == 0;
}

// How much blank space is here. In JSON a tab and the end of a line are spelled with a backslash.
static size_t blank(const plugin_string_t *text, size_t at) {
    size_t from = at;
    for (;;) {
        if (is_at(text, at, " ")) {
            at += 1;
        } else if (is_at(text, at, "\\t") || is_at(text, at, "\\n")) {
            at += 2;
        } else {
            return at - from;
        }
    }
}

// The arguments are JSON; for these words its text will do.
static bool is_forced_push(const plugin_string_t *arguments) {
    bool pushes = false, forces = false;
    for (size_t at = 0; at < arguments->len; at++) {
        size_t behind_git = is_at(arguments, at, "git") ? blank(arguments, at + 3) : 0;
        pushes = pushes || (behind_git > 0 && is_at(arguments, at + 3 + behind_git, "push"));
        size_t gap = blank(arguments, at);
        bool is_option = is_at(arguments, at + gap, "--force") || is_at(arguments, at + gap, "-f");
        forces = forces || (gap > 0 && is_option);
    }
    return pushes && forces;
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
