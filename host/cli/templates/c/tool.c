// The tool `count_words`: counts the words of a text. The host makes a fresh instance for each call, so nothing is kept from
// one to the next.
//
// What a function is given is its own to free, and what it answers is freed by the bindings. JSON is up to you: this tool has
// one argument and reads it by hand.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static const char PARAMETERS[] = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
                                 "\"description\":\"The text.\"}},\"required\":[\"text\"],\"additionalProperties\":false}";

void exports_atoll_plugin_tools_list_tools(exports_atoll_plugin_tools_list_tool_t *tools) {
    tools->len = 1;
    tools->ptr = calloc(1, sizeof *tools->ptr); // What is not said is none, false and empty.
    plugin_string_dup(&tools->ptr->name, "count_words");
    plugin_string_dup(&tools->ptr->label, "Count words");
    plugin_string_dup(&tools->ptr->description, "Counts the words of a text.");
    plugin_string_dup(&tools->ptr->parameters, PARAMETERS);
    tools->ptr->exposure = ATOLL_PLUGIN_TYPES_EXPOSURE_DIRECT;
    tools->ptr->execution_mode = ATOLL_PLUGIN_TYPES_EXECUTION_MODE_PARALLEL;
    tools->ptr->default_active = true;
}

bool exports_atoll_plugin_tools_prepare(plugin_string_t *tool, plugin_string_t *arguments, plugin_string_t *prepared,
                                        exports_atoll_plugin_tools_error_t *error) {
    (void)prepared;
    plugin_string_free(arguments);
    error->tag = ATOLL_PLUGIN_TYPES_ERROR_NOT_FOUND;
    error->val.not_found = *tool;
    return false;
}

// The words of the only string that is a value in `{"text": "…"}`. The arguments fit the schema, so there is one.
static size_t count(const plugin_string_t *json) {
    const char *text = (const char *)json->ptr, *end = text + json->len;
    const char *at = memchr(text, ':', json->len);
    at = at == NULL ? NULL : memchr(at, '"', (size_t)(end - at));
    size_t words = 0;
    bool inside = false;
    for (at = at == NULL ? end : at + 1; at < end && *at != '"'; at++) {
        bool space = *at == ' ';
        if (*at == '\\') {
            at++;
            space = *at == 'n' || *at == 't' || *at == 'r' || *at == 'f';
        }
        words += !space && !inside;
        inside = !space;
    }
    return words;
}

bool exports_atoll_plugin_tools_call(exports_atoll_plugin_tools_invocation_t *call,
                                     exports_atoll_plugin_tools_tool_output_t *output,
                                     exports_atoll_plugin_tools_error_t *error) {
    (void)error;
    char text[64];
    size_t words = count(&call->arguments);
    memset(output, 0, sizeof *output);
    snprintf(text, sizeof text, "%zu words", words);
    output->content.len = 1;
    output->content.ptr = calloc(1, sizeof *output->content.ptr);
    output->content.ptr->tag = ATOLL_PLUGIN_TYPES_CONTENT_TEXT;
    plugin_string_dup(&output->content.ptr->val.text, text);
    snprintf(text, sizeof text, "{\"words\":%zu}", words);
    output->structured.is_some = true;
    plugin_string_dup(&output->structured.val, text);
    exports_atoll_plugin_tools_invocation_free(call);
    return true;
}
