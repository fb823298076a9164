"""A generated module from its text, as the checks use it before anything is written."""

from __future__ import annotations

from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from inspect import signature
from types import ModuleType

from codegen.program import Program
from derive.notation.definition import REDUCTION, Definition
from derive.notation.reduced import reduced


class _OfText(InspectLoader):
    """Imports a module from its text: nothing is written for it that could be left behind."""

    def __init__(self, text: str):
        self.text = text

    def get_source(self, fullname: str) -> str:
        return self.text


def load(text: str, name: str) -> ModuleType:
    """The generated module with this text, under a name of its own, beside the runtime."""
    loader = _OfText(text)
    module = module_from_spec(spec_from_loader(f"{__package__}.checked_{name}", loader))
    loader.exec_module(module)
    return module


def loaded(text: str, program: Program) -> ModuleType | OfOneReduction:
    """The module with this text as ``program``, one of its reductions, has it."""
    return of_program(load(text, program.name), program)


def of_program(module: ModuleType, program: Program) -> ModuleType | OfOneReduction:
    """The ``module`` as one of its reductions has it."""
    return OfOneReduction(module, program) if program.reduction else module


class OfOneReduction:
    """The functions of a module with the arguments that a program of one reduction has. Where that
    is the default, no word is passed.
    """

    def __init__(self, module: ModuleType, program: Program):
        self.module, self.program = module, program
        second = program.second
        own = (program.forward, program.backward, program.atoms, program.chain)
        own += () if second is None else (second.jvp, second.double)
        self.names = {f.name: [p.name for p in f.parameters] for f in own}
        self.names[program.name] = self.names[program.forward.name]

    def __getattr__(self, name: str):
        function, own = getattr(self.module, name), self.names[name]
        asked = signature(function).parameters.values()
        more = {p.name: None for p in asked if p.name not in own and p.default is p.empty}
        chosen = REDUCTION in {p.name for p in asked} and not self.program.reductions
        more |= {REDUCTION: self.program.reduction} if chosen else {}
        return lambda *args, **named: function(
            **dict(zip(own, args, strict=False)), **named, **more
        )


def every_reduction(definition: Definition, program: Program) -> list[tuple[Definition, Program]]:
    """The program and those of its other reductions, each with its mathematics."""
    others = ((reduced(definition, word), other) for word, other in program.reductions)
    return [(definition, program), *others]
