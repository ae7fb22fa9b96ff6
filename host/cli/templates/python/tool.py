"""The tool `count_words`: counts the words of a text file. The host makes a fresh instance for each call, so nothing is kept
from one to the next.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import files
from wit_world.imports.types import Annotations, Content_Text, Error_NotFound, ExecutionMode, Exposure, Tool, ToolOutput

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The file."}},
    "required": ["path"],
}


class Tools(exports.Tools):
    def list_tools(self):
        return [Tool(
            name="count_words", label="Count words", description="Counts the words of a text file.",
            parameters=json.dumps(PARAMETERS), output_schema=None, prompt_snippet="Counts words", prompt_guidelines=[],
            exposure=Exposure.DIRECT, default_active=True, execution_mode=ExecutionMode.PARALLEL, namespace=None,
            annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False), prepares=False,
        )]

    def prepare(self, tool, arguments):
        raise Err(Error_NotFound(tool))

    async def call(self, call):
        # The arguments fit the schema. What the host refuses is raised as an `Err`, which the model reads; any other exception
        # would end the instance.
        path = json.loads(call.arguments)["path"]
        words = len(bytes(await files.read(path, None)).decode(errors="replace").split())
        return ToolOutput(
            content=[Content_Text(f"{words} words")], details=None, structured=json.dumps({"words": words}), is_error=False,
            terminate=False, usage=None,
        )
