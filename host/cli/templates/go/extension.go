// An extension that looks at command lines before they run, and stops those that overwrite what others have pushed.

// Package export_atoll_plugin_extension is the name under which the bindings look for the functions of an extension.
package export_atoll_plugin_extension

import (
	"encoding/json"
	"slices"
	"strings"

	wit "go.bytecodealliance.org/pkg/wit/types"
	extension "wit_component/atoll_plugin_extension"
	atoll "wit_component/atoll_plugin_types"
)

// The model reads this, so it says what to do instead.
const reason = "Pushing by force is not allowed here. Push to a branch of your own."

func Start(uint8) wit.Result[atoll.Subscription, atoll.Error] {
	// Only what is named here is sent. `wit/extension.wit` lists the events and what may be answered.
	return wit.Ok[atoll.Subscription, atoll.Error](atoll.Subscription{Events: []string{"tool-call"}})
}

func OnEvent(id string, event extension.Event) wit.Result[extension.Outcome, atoll.Error] {
	answer := extension.MakeOutcomePass()
	if event.Tag() == extension.Event_ToolCall && event.ToolCall().Tool == "bash" {
		var arguments struct {
			Command string `json:"command"`
		}
		// An error blocks the call: a gate that can not look lets nothing pass.
		if err := json.Unmarshal([]byte(event.ToolCall().Arguments), &arguments); err != nil {
			return wit.Err[extension.Outcome](atoll.MakeErrorInvalidArguments(err.Error()))
		}
		if isForcedPush(arguments.Command) {
			answer = extension.MakeOutcomeBlock(extension.Block{Reason: reason})
		}
	}
	return wit.Ok[extension.Outcome, atoll.Error](answer)
}

func RunCommand(id, name, arguments string) wit.Result[wit.Unit, atoll.Error] {
	return wit.Err[wit.Unit](atoll.MakeErrorNotFound("There is no command " + name + "."))
}

func CompleteCommand(name, arguments string) wit.Result[[]extension.Completion, atoll.Error] {
	return wit.Ok[[]extension.Completion, atoll.Error](nil)
}

func Stop() {}

func isForcedPush(line string) bool {
	words := strings.Fields(line)
	for at := 1; at < len(words); at++ {
		if words[at-1] == "git" && words[at] == "push" {
			return slices.Contains(words, "--force") || slices.Contains(words, "-f")
		}
	}
	return false
}
