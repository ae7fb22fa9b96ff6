"""An extension that looks at command lines before they run, and stops those that overwrite what others have pushed."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.extension import Block, Event_ToolCall, Outcome_Block, Outcome_Pass
from wit_world.imports.types import Error_NotFound, Subscription

# The model reads this, so it says what to do instead.
REASON = "Pushing by force is not allowed here. Push to a branch of your own."


class Extension(exports.Extension):
    async def start(self, reason):
        # Only what is named here is sent. `wit/extension.wit` lists the events and what may be answered.
        return Subscription(events=["tool-call"], topics=[], commands=[], flags=[], shortcuts=[])

    async def on_event(self, id, event):
        match event:
            # An exception blocks the call: a gate that can not look lets nothing pass.
            case Event_ToolCall(call) if call.tool == "bash" and is_forced_push(json.loads(call.arguments)["command"]):
                return Outcome_Block(Block(REASON, terminate=False))
        return Outcome_Pass()

    async def run_command(self, id, name, arguments):
        raise Err(Error_NotFound(f"There is no command {name}."))

    async def complete_command(self, name, arguments):
        return []

    async def stop(self):
        pass


def is_forced_push(line):
    words = line.split()
    return ("git", "push") in zip(words, words[1:]) and any(word in ("--force", "-f") for word in words)
