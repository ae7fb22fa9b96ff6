"""A gate: an extension that looks at every command line before it runs, and stops those that delete whole trees.

It asks for nothing: watching and blocking need no grant. It fails closed: an exception blocks the call.

What it can not catch: it reads the line and does not run it. `rm $FLAGS`, a script that is written first and run then,
`find -delete`, `git clean -fdx` or another program that deletes are all beyond it. It keeps a model from a mistake, not an
attacker from a goal. It would rather stop too much: `echo rm -rf` is stopped as well.
"""

import json
import re

from wit_world import exports
from wit_world.exports.extension import Block, Event_ToolCall, Outcome_Block, Outcome_Pass
from wit_world.imports.types import Subscription

# The model reads this, so it says what to do instead.
REASON = "Deleting whole trees (rm -rf) is not allowed here. Name the files to delete."


class Extension(exports.Extension):
    async def start(self, reason):
        # Only what is named here is sent: all else costs nothing.
        return Subscription(events=["tool-call"], topics=[], commands=[], flags=[], shortcuts=[])

    async def on_event(self, id, event):
        match event:
            case Event_ToolCall(call) if call.tool == "bash" and deletes_a_tree(json.loads(call.arguments)["command"]):
                return Outcome_Block(Block(REASON, terminate=False))
        return Outcome_Pass()

    async def run_command(self, id, name, arguments):
        pass

    async def complete_command(self, name, arguments):
        return []

    async def stop(self):
        pass


def deletes_a_tree(line):
    """Whether a line has `rm` with both of its options in one command, however they are spelled."""
    # Quotes and backslashes do not change what a shell runs: `\\rm`, `r"m"`, `sh -c 'rm -rf x'`.
    plain = re.sub(r"""['"\\]""", "", line.replace("\\\n", " "))
    return any(is_rm_of_a_tree(command.split()) for command in re.split(r"[;|&\n(){}`]", plain))


def is_rm_of_a_tree(words):
    # Anywhere in the command, because of `sudo rm`, `xargs rm` and `env A=1 /bin/rm`.
    at = next((at for at, word in enumerate(words) if word == "rm" or word.endswith("/rm")), len(words))
    recursive = force = False
    for option in words[at + 1:]:
        if option == "--":  # After it there are only names.
            break
        if option.startswith("--"):  # Long options may be cut short as long as they stay unique.
            recursive |= len(option) > 2 and "--recursive".startswith(option)
            force |= len(option) > 2 and "--force".startswith(option)
        elif option.startswith("-"):
            recursive |= "r" in option.lower()
            force |= "f" in option
    return recursive and force
