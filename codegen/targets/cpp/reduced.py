"""Kernels of a function whose caller chooses the reduction: each word has its own, and one function
calls those of the word that is passed.
"""

from __future__ import annotations

from codegen.program import Function, Program
from codegen.reduced import in_order, merged
from codegen.targets.cpp.functions import Written, called_at, functions_of, pair_written
from codegen.targets.cpp.wrappers import Wrapper
from codegen.targets.torch.lines import broken
from codegen.targets.torch.page import Page
from codegen.targets.torch.wrapping import in_tuple, unpacked, wrapped
from derive.notation.definition import REDUCTION

INSIDE = 8  # columns before what stands below a condition
PLAIN = "_plain"
KINDS = ("forward", "backward")


def functions_of_all(program: Program) -> Written:
    """The functions of each reduction, and what chooses between them; `functions_of` where there is
    no choice. Raises `QuestionError` for what no loop computes.
    """
    if not program.reductions:
        return functions_of(program)
    whole, written, chosen = merged(program), Written(), []
    page, every = Page(whole), dict(whole.reductions)
    for word in in_order(whole):
        one, own = every[word], Page(every[word])
        parts, plain = pair_written(written, own, one, f"_{word}", whole), ([], "None")
        if one.plain is not None:
            shorter = own.plain.program
            plain = pair_written(written, own.plain, shorter, f"_{word}{PLAIN}", whole)
        if called_at(written, f"_{word}_function", page, parts, plain):
            chosen.append((word, f"_{word}_function"))
    written.replaced = []
    for way, of in (("", page), (PLAIN, page.plain)):
        for kind in KINDS if of is not None else ():
            _add_choice(written, of, way, kind)
    if chosen:
        written.chosen.append(("function", tuple(chosen)))
        written.replaced.append("function")
    return written


def _add_choice(written: Written, page: Page, way: str, kind: str) -> None:
    """The function ``kind``, which calls what the word has, where any has something."""
    there, name = {w.name for w in written.wrappers}, f"{way}_{kind}"
    every = {word: getattr(p, kind) for word, p in page.program.reductions}
    own = {w: f for w, f in every.items() if f"_{w}{name}" in there}
    if not own:
        return
    function: Function = getattr(page.program, kind)
    needs = [page.needs] * (kind == "backward")
    arguments = [*(p.name for p in function.parameters), *needs]
    returned = function.results if way else ()
    tensors = ", ".join(p.name for p in function.tensors)
    again = wrapped(f"return _of.{name}", arguments, indent=INSIDE)
    lines = [f"if not _usable({tensors}):", f"    {again}"]
    for word, computed in own.items():
        passed = [*(p.name for p in computed.parameters), *needs]
        shown = [r if r in computed.results or r == REDUCTION else "None" for r in function.results]
        result = in_tuple(shown) if way else wrapped(function.result_class, shown, indent=INSIDE)
        lines += [
            f'if {REDUCTION} == "{word}":',
            f"    {wrapped(f'_found = _{word}{name}', passed, indent=INSIDE)}",
            "    if _found is not None:",
            f"        {broken(f'{unpacked(computed.results)} = _found', ' ' * INSIDE)}",
            f"        return {result}",
        ]
    signature = page.core(function, name, needs, returned).signature
    written.wrappers.append(Wrapper(name, signature, tuple(lines), again))
    written.replaced.append(name)
