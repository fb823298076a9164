"""The torch target: what the template prints, put together from a Program."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jinja2

from codegen.alone import listed
from codegen.header import header
from codegen.program import Program
from codegen.program.steps import NotZero
from codegen.quality import Counts, Rounding
from codegen.reduced import merged
from codegen.sharding import Sharded
from codegen.targets.torch.chunked import ChunkedPage
from codegen.targets.torch.documentation import documentation
from codegen.targets.torch.page import Page
from codegen.targets.torch.shard_documentation import (
    chunked_documentation,
    sharded_documentation,
)
from codegen.targets.torch.shard_pairs import ShardedPair
from codegen.targets.torch.traffic import counts
from derive.notation.definition import Definition
from derive.running.writing import MARK

TEMPLATES = Path(__file__).parent / "templates"
RUNTIME = "_runtime.py"  # what all modules share: beside them here, and wherever they are written
IMPORTS = {  # by what a text holds where it needs them
    "math.": "import math",
    "": "from typing import NamedTuple",
}
RANKS = "_ranks.py"  # beside it where a module computes an axis in parts


def runtime() -> str:
    """The text of the file that stands beside all modules."""
    return _copied(RUNTIME)


def beside(text: str) -> dict[str, str]:
    """The files that a module with this text imports from its folder, by name; a lean one none."""
    imported = re.findall(r"^from \. import (.*)$", text, re.M)
    names = {f"{name}.py" for line in imported for name in line.split(", ")}
    return {file: _copied(file) for file in (RUNTIME, RANKS) if file in names}


def _copied(file: str) -> str:
    return f"# {MARK}\n{Path(__file__).with_name(file).read_text()}"


class TorchTarget:
    """Writes a module with the five functions of a forward; see ``targets/__init__.py`` for the
    contract.
    """

    suffix = ".py"

    def __init__(self):
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )

    def render(self, program: Program) -> str:
        program = merged(program)
        page, title = Page(program), program.title
        body = self.printed(
            "module.py.jinja",
            title=title,
            declared=page.declared(),
            public=page.public(),
            shapes=page.shapes(program.forward),
            inputs=page.inputs,
            output=listed("", program.outputs),
            functions=page.printed(),
            alone=[page.cores_alone("", "_pair")] * (len(program.outputs) > 1),
            seconds=page.seconds(),
            name=program.name,
            plains=page.plains(),
        )
        head = self.printed(
            "head.py.jinja",
            header=header(program.source, program.source_hash),
            title=title,
            name=program.name,
            documentation=documentation(program),
            imports=[line for part, line in IMPORTS.items() if part in body],
        )
        return head + body

    def render_sharded(self, sharded: Sharded) -> str:
        """The text of the module for one rank of each group."""
        page, program = ShardedPair(sharded), sharded.program
        functions = (page.forward(), page.backward(), page.atoms(), page.chain())
        values = {"functions": functions, "cores": page.plain_pair()}
        said = sharded_documentation(sharded)
        return self.of_parts("sharded.py.jinja", page, program, documentation=said, **values)

    def render_chunked(self, sharded: Sharded) -> str:
        """The text of the module that computes in chunks."""
        page, program = ChunkedPage(sharded), sharded.program
        values = {"cores": page.pair_of_lines()}
        said = chunked_documentation(sharded)
        return self.of_parts("chunked.py.jinja", page, program, documentation=said, **values)

    def of_parts(self, template: str, page: ShardedPair, program: Program, **more: object) -> str:
        """The text of a module that computes an axis in parts."""
        values = more | {
            "title": program.title,
            "name": program.name,
            "public": page.public(),
            "shapes": page.shapes(program.forward),
            "asked": page.arguments_asked(),
            "prepared": page.prepared_names,
            "pair": page.pair(),
            "header": header(program.source, program.source_hash),
        }
        text = self.printed(template, **values, imports=())
        imports = [line for part, line in IMPORTS.items() if part in text]
        imports.sort(key=lambda line: line.startswith("from"))
        return self.printed(template, **values, imports=imports)

    def printed(self, template: str, **values: object) -> str:
        return self.environment.get_template(template).render(**values)

    def backward_lines(self, program: Program) -> dict[str, str]:
        printer, lines = Page(replace(program, reductions=())).printer(program.backward), {}
        for step in program.backward.steps:
            if isinstance(step, NotZero):
                continue
            before = f"{lines[step.name]}\n" if step.name in lines else ""
            lines[step.name] = before + printer.step(step)
        return lines

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        from codegen.targets.torch.check import largest_difference_of  # torch takes a second
        from codegen.targets.torch.loading import every_reduction, loaded
        from codegen.targets.torch.square import undefined_where_singular
        from codegen.targets.torch.within_reach import largest_difference

        with undefined_where_singular(definition):
            return max(
                largest_difference(text, own, p, partial(loaded, program=p), largest_difference_of)
                for own, p in every_reduction(definition, program)
            )

    def check_every_use(
        self, text: str, definition: Definition, program: Program
    ) -> tuple[str, ...]:
        from codegen.targets.torch.loading import loaded
        from codegen.targets.torch.square import undefined_where_singular
        from codegen.targets.torch.within_reach import infinite_in_use

        load = partial(loaded, program=program)
        with undefined_where_singular(definition):
            return infinite_in_use(text, definition, program, load)

    def difference_of_parts(
        self, text: str, whole: str, definition: Definition, program: Program, sharded: Sharded
    ) -> float:
        """How far what ranks compute by ``text`` is from their parts of what ``whole`` computes."""
        from codegen.targets.torch.shard_check import largest_difference_of_parts

        return largest_difference_of_parts(text, whole, definition, program, sharded)

    def difference_of_chunks(
        self, text: str, whole: str, definition: Definition, program: Program, sharded: Sharded
    ) -> float:
        """How far what is computed in chunks is from what ``whole`` computes."""
        from codegen.targets.torch.shard_check import largest_difference_of_chunks

        return largest_difference_of_chunks(text, whole, definition, program, sharded)

    def rounding(self, text: str, definition: Definition, program: Program) -> Rounding:
        from codegen.targets.torch.loading import loaded
        from codegen.targets.torch.rounding import rounding
        from codegen.targets.torch.square import undefined_where_singular

        module = loaded(text, program)
        function, atoms = (getattr(module, name) for name in (program.name, program.atoms.name))

        def written(**arguments: object) -> list:
            found = atoms(**arguments)
            return [getattr(found, name) for name in program.outputs]

        with undefined_where_singular(definition):
            return rounding(function, written, definition, program)

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        from codegen.targets.torch.extremes import extremes
        from codegen.targets.torch.loading import loaded
        from codegen.targets.torch.square import undefined_where_singular

        module = loaded(text, program)
        function, atoms = (getattr(module, name) for name in (program.name, program.atoms.name))

        def statements(**arguments: object) -> tuple:
            found = atoms(**arguments)
            values = tuple(getattr(found, name) for name in program.outputs)
            return values if len(values) > 1 else values[0]

        with undefined_where_singular(definition):
            return extremes(function, statements, definition, program)

    def function(self, text: str, program: Program) -> Callable:
        from codegen.targets.torch.loading import loaded

        return getattr(loaded(text, program), program.name)

    def counts(self, program: Program) -> Counts:
        return counts(program)
