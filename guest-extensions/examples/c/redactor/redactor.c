// A redactor: an extension that takes keys and tokens out of results, before a model reads them and before they are kept in
// the session.
//
// It asks for nothing: changing a result needs no grant.
//
// What it can not catch: it knows tokens by how they begin. A password of its own kind, a token that is encoded or split over
// two lines, and pictures pass. Nor does it see what a tool shows while it runs, only what it gives in the end.

#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef exports_atoll_plugin_extension_error_t failure_t;

// How tokens of well-known services begin.
static const char *const BEGINNINGS[] = {"sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA"};
// What follows has at least this many letters, digits, `-` and `_`.
static const size_t SHORTEST = 16;
static const char INSTEAD[] = "[redacted]";

static bool is_of_a_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

// How long the token is that begins here; 0: there is none.
static size_t token(const char *text, size_t len, size_t at) {
    // `task-…` holds no `sk-…`. In JSON a line break is `\n`, whose `n` is not part of a word.
    if (at > 0 && is_of_a_word(text[at - 1]) && !(at > 1 && text[at - 2] == '\\')) {
        return 0;
    }
    for (size_t i = 0; i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++) {
        size_t begins = strlen(BEGINNINGS[i]);
        if (len - at < begins || memcmp(text + at, BEGINNINGS[i], begins) != 0) {
            continue;
        }
        size_t n = 0;
        while (at + n < len && is_of_a_word(text[at + n])) {
            n++;
        }
        return n >= begins + SHORTEST ? n : 0;
    }
    return 0;
}

// Takes the tokens out of a text, which gets shorter by that and stays where it is. Says whether there was one.
static bool redact(plugin_string_t *string) {
    char *text = (char *)string->ptr;
    bool found = false;
    size_t kept = 0;
    for (size_t at = 0; at < string->len;) {
        size_t n = token(text, string->len, at);
        if (n == 0) {
            text[kept++] = text[at++];
            continue;
        }
        found = true;
        memcpy(text + kept, INSTEAD, sizeof INSTEAD - 1);
        kept += sizeof INSTEAD - 1;
        at += n;
    }
    string->len = kept;
    return found;
}

bool exports_atoll_plugin_extension_start(uint8_t reason, exports_atoll_plugin_extension_subscription_t *wanted,
                                          failure_t *error) {
    (void)reason, (void)error;
    memset(wanted, 0, sizeof *wanted);
    wanted->events.len = 1;
    wanted->events.ptr = malloc(sizeof *wanted->events.ptr);
    plugin_string_dup(wanted->events.ptr, "tool-result");
    return true;
}

bool exports_atoll_plugin_extension_on_event(plugin_string_t *id, exports_atoll_plugin_extension_event_t *event,
                                             exports_atoll_plugin_extension_outcome_t *outcome, failure_t *error) {
    (void)error;
    outcome->tag = EXPORTS_ATOLL_PLUGIN_EXTENSION_OUTCOME_PASS;
    if (event->tag == EXPORTS_ATOLL_PLUGIN_EXTENSION_EVENT_TOOL_RESULT) {
        exports_atoll_plugin_extension_call_result_t *result = &event->val.tool_result;
        bool changed = false;
        for (size_t i = 0; i < result->content.len; i++) {
            if (result->content.ptr[i].tag == ATOLL_PLUGIN_TYPES_CONTENT_TEXT) {
                changed |= redact(&result->content.ptr[i].val.text);
            }
        }
        // The same may stand in the data that scripts and whoever shows the call get. Tokens have no character that JSON
        // would escape, so its text can be treated as any other.
        changed |= result->details.is_some && redact(&result->details.val);
        changed |= result->structured.is_some && redact(&result->structured.val);
        if (changed) {
            // What was cleaned is moved into the answer, so it must not be freed with the event.
            exports_atoll_plugin_extension_result_patch_t *patch = &outcome->val.patch;
            outcome->tag = EXPORTS_ATOLL_PLUGIN_EXTENSION_OUTCOME_PATCH;
            memset(patch, 0, sizeof *patch);
            patch->content.is_some = true;
            patch->content.val = result->content;
            patch->details = result->details;
            patch->structured = result->structured;
            memset(&result->content, 0, sizeof result->content);
            result->details.is_some = result->structured.is_some = false;
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
