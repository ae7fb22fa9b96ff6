"""A redactor: an extension that takes keys and tokens out of results, before a model reads them and before they are kept in
the session.

It asks for nothing: changing a result needs no grant.

What it can not catch: it knows tokens by how they begin. A password of its own kind, a token that is encoded or split over
two lines, and pictures pass. Nor does it see what a tool shows while it runs, only what it gives in the end.
"""

import re

from wit_world import exports
from wit_world.exports.extension import Event_ToolResult, Outcome_Pass, Outcome_Patch, ResultPatch
from wit_world.imports.types import Content_Text, Subscription

# How tokens of well-known services begin, and at least 16 more characters. Not inside a word: `task-…` holds no `sk-…`. In
# JSON a line break is `\n`, whose `n` is not part of a word.
TOKEN = re.compile(r"(?:(?<![A-Za-z0-9_-])|(?<=\\[a-z]))(?:sk-|gh[po]_|github_pat_|glpat-|xox[bp]-|AKIA)[A-Za-z0-9_-]{16,}")


class Extension(exports.Extension):
    async def start(self, reason):
        return Subscription(events=["tool-result"], topics=[], commands=[], flags=[], shortcuts=[])

    async def on_event(self, id, event):
        match event:
            case Event_ToolResult(result) if has_token(result):
                content = [
                    Content_Text(redacted(piece.value)) if isinstance(piece, Content_Text) else piece
                    for piece in result.content
                ]
                # The same may stand in the data that scripts and whoever shows the call get. Tokens have no character that
                # JSON would escape, so its text can be treated as any other.
                details, structured = redacted(result.details), redacted(result.structured)
                return Outcome_Patch(ResultPatch(content, details, structured, is_error=None, usage=None))
        return Outcome_Pass()

    async def run_command(self, id, name, arguments):
        pass

    async def complete_command(self, name, arguments):
        return []

    async def stop(self):
        pass


def redacted(text):
    return text if text is None else TOKEN.sub("[redacted]", text)


def has_token(result):
    texts = [piece.value for piece in result.content if isinstance(piece, Content_Text)]
    return any(text is not None and TOKEN.search(text) for text in [*texts, result.details, result.structured])
