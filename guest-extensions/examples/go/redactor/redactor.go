// A redactor: an extension that takes keys and tokens out of results, before a model reads them and before they are kept
// in the session.
//
// It asks for nothing: changing a result needs no grant.
//
// What it can not catch: it knows tokens by how they begin. A password of its own kind, a token that is encoded or split
// over two lines, and pictures pass. Nor does it see what a tool shows while it runs, only what it gives in the end.

// Package export_atoll_plugin_extension is the name under which the bindings look for the functions of an extension.
package export_atoll_plugin_extension

import (
	"regexp"

	wit "go.bytecodealliance.org/pkg/wit/types"
	extension "wit_component/atoll_plugin_extension"
	atoll "wit_component/atoll_plugin_types"
)

// How tokens of well-known services begin, and at least 16 more characters. Not inside a word: `task-…` holds no `sk-…`.
// In JSON a line break is `\n`, whose `n` is not part of a word.
var token = regexp.MustCompile(`(^|[^A-Za-z0-9_-]|\\[a-z])(?:sk-|gh[po]_|github_pat_|glpat-|xox[bp]-|AKIA)[A-Za-z0-9_-]{16,}`)

func Start(uint8) wit.Result[atoll.Subscription, atoll.Error] {
	return wit.Ok[atoll.Subscription, atoll.Error](atoll.Subscription{Events: []string{"tool-result"}})
}

func OnEvent(id string, event extension.Event) wit.Result[extension.Outcome, atoll.Error] {
	answer := extension.MakeOutcomePass()
	if event.Tag() == extension.Event_ToolResult {
		if patch, changed := patched(event.ToolResult()); changed {
			answer = extension.MakeOutcomePatch(patch)
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

// What has to change in a result, and whether anything has to.
func patched(result extension.CallResult) (extension.ResultPatch, bool) {
	changed := false
	redacted := func(text string) string {
		clean := token.ReplaceAllString(text, "${1}[redacted]")
		changed = changed || clean != text
		return clean
	}
	// The same may stand in the data that scripts and whoever shows the call get. Tokens have no character that JSON would
	// escape, so its text can be treated as any other.
	data := func(text wit.Option[string]) wit.Option[string] {
		if text.IsNone() {
			return text
		}
		return wit.Some(redacted(text.Some()))
	}
	content := make([]atoll.Content, 0, len(result.Content))
	for _, piece := range result.Content {
		if piece.Tag() == atoll.Content_Text {
			piece = atoll.MakeContentText(redacted(piece.Text()))
		}
		content = append(content, piece)
	}
	patch := extension.ResultPatch{
		Content:    wit.Some(content),
		Details:    data(result.Details),
		Structured: data(result.Structured),
		IsError:    wit.None[bool](),
		Usage:      wit.None[atoll.Usage](),
	}
	return patch, changed
}
