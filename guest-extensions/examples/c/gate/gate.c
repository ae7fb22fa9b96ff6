// A gate: an extension that looks at every command line before it runs, and stops those that delete whole trees.
//
// It asks for nothing: watching and blocking need no grant. It fails closed: a trap or an error blocks the call.
//
// What it can not catch: it reads the line and does not run it. `rm $FLAGS`, a script that is written first and run then,
// `find -delete`, `git clean -fdx` or another program that deletes are all beyond it. It keeps a model from a mistake, not an
// attacker from a goal. It would rather stop too much: `echo rm -rf` is stopped as well, and so is a call of `bash` that has
// it in another argument than `command`, because the arguments are read as text.

#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef exports_atoll_plugin_extension_error_t failure_t;

// The model reads this, so it says what to do instead.
static const char REASON[] = "Deleting whole trees (rm -rf) is not allowed here. Name the files to delete.";

static bool is(plugin_string_t text, const char *word) {
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static bool ends_with(const char *word, size_t len, const char *end) {
    size_t n = strlen(end);
    return len >= n && memcmp(word + len - n, end, n) == 0;
}

// Whether a word is a long option, perhaps cut short.
static bool is_long(const char *word, size_t len, const char *option) {
    return len > 2 && len <= strlen(option) && memcmp(word, option, len) == 0;
}

// The next character of a JSON text, escapes undone but for `\u`, which JSON needs for nothing that matters here.
static char decoded(const plugin_string_t *json, size_t *at) {
    char c = (char)json->ptr[(*at)++];
    if (c == '\\' && *at < json->len) {
        c = (char)json->ptr[(*at)++];
        return c == 'n' || c == 'r' ? '\n' : c == 't' ? ' ' : c;
    }
    return c;
}

// The line that a shell would see. Quotes and backslashes do not change what it runs (`\rm`, `r"m"`, `sh -c 'rm -rf x'`), so
// they are left out. What ends a command becomes a line break, and so do the quotes of JSON itself.
static size_t plain_line(const plugin_string_t *json, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < json->len;) {
        bool is_of_json = json->ptr[at] == '"';
        char c = decoded(json, &at);
        if (c == '\\') {
            // At the end of a line it means that the command goes on.
            size_t next = at;
            if (at < json->len && decoded(json, &next) == '\n') {
                out[n++] = ' ';
                at = next;
            }
        } else if (is_of_json || strchr(";|&(){}`", c)) {
            out[n++] = '\n';
        } else if (c != '\'' && c != '"') {
            out[n++] = c;
        }
    }
    return n;
}

// Whether a line has `rm` with both of its options in one command, however they are spelled.
static bool deletes_a_tree(const char *line, size_t len) {
    bool is_rm = false, only_names = false, recursive = false, force = false;
    size_t at = 0;
    while (at < len) {
        if (line[at] == '\n') {
            is_rm = only_names = recursive = force = false;
        }
        if (strchr(" \t\n", line[at])) {
            at++;
            continue;
        }
        const char *word = line + at;
        size_t n = 0;
        while (at < len && !strchr(" \t\n", line[at])) {
            at++;
            n++;
        }
        if (!is_rm) {
            // Anywhere in the command, because of `sudo rm`, `xargs rm` and `env A=1 /bin/rm`.
            is_rm = (n == 2 && memcmp(word, "rm", 2) == 0) || ends_with(word, n, "/rm");
        } else if (n == 2 && memcmp(word, "--", 2) == 0) {
            only_names = true;
        } else if (!only_names && n > 2 && memcmp(word, "--", 2) == 0) {
            // Long options may be cut short as long as they stay unique.
            recursive |= is_long(word, n, "--recursive");
            force |= is_long(word, n, "--force");
        } else if (!only_names && word[0] == '-') {
            recursive |= memchr(word, 'r', n) || memchr(word, 'R', n);
            force |= memchr(word, 'f', n) != NULL;
        }
        if (recursive && force) {
            return true;
        }
    }
    return false;
}

bool exports_atoll_plugin_extension_start(uint8_t reason, exports_atoll_plugin_extension_subscription_t *wanted,
                                          failure_t *error) {
    (void)reason, (void)error;
    // Only what is named here is sent: all else costs nothing. What is handed to the host is freed by the bindings.
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
    if (event->tag == EXPORTS_ATOLL_PLUGIN_EXTENSION_EVENT_TOOL_CALL && is(event->val.tool_call.tool, "bash")) {
        const plugin_string_t *arguments = &event->val.tool_call.arguments;
        char *line = malloc(arguments->len + 1);
        if (line == NULL) {
            abort(); // A gate that can not look lets nothing pass.
        }
        if (deletes_a_tree(line, plain_line(arguments, line))) {
            outcome->tag = EXPORTS_ATOLL_PLUGIN_EXTENSION_OUTCOME_BLOCK;
            plugin_string_dup(&outcome->val.block.reason, REASON);
            outcome->val.block.terminate = false;
        }
        free(line);
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
