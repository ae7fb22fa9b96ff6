// A gate: an extension that looks at every command line before it runs, and stops those that delete whole trees.
//
// It asks for nothing: watching and blocking need no grant. It fails closed: an error or a panic blocks the call.
//
// What it can not catch: it reads the line and does not run it. `rm $FLAGS`, a script that is written first and run then,
// `find -delete`, `git clean -fdx` or another program that deletes are all beyond it. It keeps a model from a mistake, not
// an attacker from a goal. It would rather stop too much: `echo rm -rf` is stopped as well.

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
const reason = "Deleting whole trees (rm -rf) is not allowed here. Name the files to delete."

func Start(uint8) wit.Result[atoll.Subscription, atoll.Error] {
	// Only what is named here is sent: all else costs nothing.
	return wit.Ok[atoll.Subscription, atoll.Error](atoll.Subscription{Events: []string{"tool-call"}})
}

func OnEvent(id string, event extension.Event) wit.Result[extension.Outcome, atoll.Error] {
	answer := extension.MakeOutcomePass()
	if event.Tag() == extension.Event_ToolCall && event.ToolCall().Tool == "bash" {
		var arguments struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal([]byte(event.ToolCall().Arguments), &arguments); err != nil {
			return wit.Err[extension.Outcome](atoll.MakeErrorInvalidArguments(err.Error()))
		}
		if deletesATree(arguments.Command) {
			answer = extension.MakeOutcomeBlock(extension.Block{Reason: reason})
		}
	}
	return wit.Ok[extension.Outcome, atoll.Error](answer)
}

func RunCommand(id, name, arguments string) wit.Result[wit.Unit, atoll.Error] {
	return wit.Ok[wit.Unit, atoll.Error](wit.Unit{})
}

func CompleteCommand(name, arguments string) wit.Result[[]extension.Completion, atoll.Error] {
	return wit.Ok[[]extension.Completion, atoll.Error](nil)
}

func Stop() {}

// Quotes and backslashes do not change what a shell runs: `\rm`, `r"m"`, `sh -c 'rm -rf x'`.
var quotes = strings.NewReplacer("\\\n", " ", "'", "", "\"", "", "\\", "")

// Whether a line has `rm` with both of its options in one command, however they are spelled.
func deletesATree(line string) bool {
	commands := strings.FieldsFunc(quotes.Replace(line), func(c rune) bool { return strings.ContainsRune(";|&\n(){}`", c) })
	return slices.ContainsFunc(commands, func(command string) bool {
		words := strings.Fields(command)
		// Anywhere in the command, because of `sudo rm`, `xargs rm` and `env A=1 /bin/rm`.
		at := slices.IndexFunc(words, func(word string) bool { return word == "rm" || strings.HasSuffix(word, "/rm") })
		if at < 0 {
			return false
		}
		recursive, force := false, false
		for _, option := range words[at+1:] {
			if option == "--" { // After it there are only names.
				break
			}
			if strings.HasPrefix(option, "--") { // Long options may be cut short as long as they stay unique.
				recursive = recursive || strings.HasPrefix("--recursive", option)
				force = force || strings.HasPrefix("--force", option)
			} else if strings.HasPrefix(option, "-") {
				recursive = recursive || strings.ContainsAny(option, "rR")
				force = force || strings.Contains(option, "f")
			}
		}
		return recursive && force
	})
}
