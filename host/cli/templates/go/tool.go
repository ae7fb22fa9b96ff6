// The tool `count_words`: counts the words of a text. The host makes a fresh instance for each call, so nothing is kept from
// one to the next.

// Package export_atoll_plugin_tools is the name under which the bindings look for the functions of a component with tools.
package export_atoll_plugin_tools

import (
	"encoding/json"
	"fmt"
	"strings"

	wit "go.bytecodealliance.org/pkg/wit/types"
	tools "wit_component/atoll_plugin_tools"
	atoll "wit_component/atoll_plugin_types"
)

const parameters = `{
	"type": "object",
	"properties": {"text": {"type": "string", "description": "The text."}},
	"required": ["text"]
}`

func ListTools() []atoll.Tool {
	return []atoll.Tool{{
		Name:          "count_words",
		Label:         "Count words",
		Description:   "Counts the words of a text.",
		Parameters:    parameters,
		OutputSchema:  wit.None[string](),
		PromptSnippet: wit.None[string](),
		Exposure:      atoll.Exposure_Direct,
		DefaultActive: true,
		ExecutionMode: atoll.ExecutionMode_Parallel,
		Namespace:     wit.None[atoll.Namespace](),
		Annotations: atoll.Annotations{
			ReadOnly:    wit.Some(true),
			Destructive: wit.Some(false),
			Idempotent:  wit.Some(true),
			OpenWorld:   wit.Some(false),
		},
	}}
}

func Prepare(tool, arguments string) wit.Result[string, atoll.Error] {
	return wit.Err[string](atoll.MakeErrorNotFound(tool))
}

func Call(call tools.Invocation) wit.Result[atoll.ToolOutput, atoll.Error] {
	var arguments struct {
		Text string `json:"text"`
	}
	// An error is what the model reads.
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		return wit.Err[atoll.ToolOutput](atoll.MakeErrorInvalidArguments(err.Error()))
	}
	words := len(strings.Fields(arguments.Text))
	return wit.Ok[atoll.ToolOutput, atoll.Error](atoll.ToolOutput{
		Content:    []atoll.Content{atoll.MakeContentText(fmt.Sprintf("%d words", words))},
		Details:    wit.None[string](),
		Structured: wit.Some(fmt.Sprintf(`{"words":%d}`, words)),
		Usage:      wit.None[atoll.Usage](),
	})
}
