"""A tool: the classes and functions of a Python file. Python's own parser comes with the component, so what is read here is
what Python reads. The host makes a fresh instance for each call, so nothing is kept from one to the next.
"""

import ast
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import files
from wit_world.imports.types import (
    Annotations, Content_Text, Error_Failed, Error_InvalidArguments, Error_NotFound, ExecutionMode, Exposure, Tool, ToolOutput,
)

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The Python file."}},
    "required": ["path"],
}


class Tools(exports.Tools):
    def list_tools(self):
        return [Tool(
            name="outline", label="Outline", description="Lists the classes and functions of a Python file with their lines.",
            parameters=json.dumps(PARAMETERS), output_schema=None, prompt_snippet=None, prompt_guidelines=[],
            exposure=Exposure.DIRECT, default_active=True, execution_mode=ExecutionMode.PARALLEL, namespace=None,
            annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False), prepares=False,
        )]

    def prepare(self, tool, arguments):
        raise Err(Error_NotFound(tool))

    async def call(self, call):
        path = json.loads(call.arguments)["path"]
        # What the host refuses is an `Err`, which the model reads as it is.
        source = await files.read(path, None)
        try:
            tree = ast.parse(bytes(source), filename=path)
        except SyntaxError as error:
            raise Err(Error_InvalidArguments(f"{path} is no Python: line {error.lineno}: {error.msg}"))
        except Exception as error:
            # Any other exception would end the instance, which tells the model nothing.
            raise Err(Error_Failed(f"{path} can not be read: {error}"))
        lines = list(outline(tree, ""))
        text = "\n".join(lines) if lines else f"{path} has no classes and no functions."
        return ToolOutput(
            content=[Content_Text(text)], details=None, structured=None, is_error=False, terminate=False, usage=None,
        )


def outline(node, indent):
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef():
                yield f"{child.lineno}: {indent}class {child.name}"
                yield from outline(child, indent + "  ")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                kind = "async def" if isinstance(child, ast.AsyncFunctionDef) else "def"
                yield f"{child.lineno}: {indent}{kind} {child.name}({', '.join(arg.arg for arg in child.args.args)})"
                yield from outline(child, indent + "  ")
            case _:
                yield from outline(child, indent)
