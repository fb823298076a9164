"""The autograd Function of a lean module as text: saved values, and calls of the functions."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.program import NUMBERS
from codegen.program.parts import values_in, with_replaced
from codegen.program.values import LengthOf, SizeOf, Value
from codegen.targets.lean.plain import FunctionText, PlainFunctions, returning
from codegen.targets.torch.lines import LONGEST, STEP, broken, filled
from codegen.targets.torch.wrapping import free, unpacked, wrapped

# The names that torch keeps in ctx, here so that nothing imports torch to print.
OF_CTX = {
    *("apply", "apply_boxed", "apply_jvp", "dirty_tensors", "mark_dirty", "mark_shared_storage"),
    *("mark_non_differentiable", "materialize_grads", "maybe_clear_saved_tensors", "metadata"),
    *("name", "needs_input_grad", "next_functions", "non_differentiable", "register_hook"),
    *("register_prehook", "requires_grad", "save_for_backward", "save_for_forward"),
    *("saved_for_forward", "saved_tensors", "saved_variables", "set_materialize_grads", "to_save"),
}
METHOD, INNER = STEP * 2, STEP * 3  # the margins of a method's lines, and of those in an if


class AutogradFunction(PlainFunctions):
    """The Function, beside the functions that it calls."""

    def context(self) -> FunctionText:
        """The text that saves values on ``ctx``."""
        ctx, names = self.called["ctx"], [p.name for p in self.inner]
        sizes = {name: self._measured(name) for name in self.noted if name not in names}
        lengths = [v for value in sizes.values() for v in (value, *values_in(value))]
        read = {*self.saved, *(v.tensor for v in lengths if isinstance(v, LengthOf))}
        given = [n if n in read else self._noted(n) if n in self.noted else "_" for n in names]
        whole = given == names == self.saved and not sizes  # which need no names
        lines = (
            [] if whole or {*given} == {"_"} else [f"{unpacked(given)} = {self.called['inputs']}"]
        )
        results = [*self.outputs, *self.made]
        shown = [n if n in {*self.made, *self.saved} else "_" for n in results]
        if {*shown} != {"_"}:
            lines.append(f"{', '.join(shown)} = {self.called['output']}")
        if self.made:
            lines.append(f"{ctx}.mark_non_differentiable({', '.join(self.made)})")
        printer = self.printer(self.program.forward)
        lines += [f"{self._noted(n)} = {printer.text(value)}" for n, value in sizes.items()]
        if len(self.outputs) == 1:
            lines.append(f"{ctx}.set_materialize_grads(False)")
        saved = [f"*{self.called['inputs']}"] if whole else self.saved
        if kept := [*saved, *self.made]:
            lines.append(f"{ctx}.save_for_backward({', '.join(kept)})")
        given = ", ".join(self.called[name] for name in ("ctx", "inputs", "output"))
        lines = [broken(line, METHOD) for line in lines or ["pass"]]
        return FunctionText(f"def setup_context({given}):", (), tuple(lines))

    def _noted(self, name: str) -> str:
        """A name for a number on ctx that differs from ctx's own."""
        return f"{self.called['ctx']}.{free(name, OF_CTX)}"

    def _measured(self, name: str) -> Value:
        """A size in terms of the arguments' lengths: read off one, or computed from others."""
        for p in self.tensors:
            for i, dim in enumerate(p.layout):
                if self.sizes[dim.axis.name] == name and not dim.one:
                    return LengthOf(p.name, i)
        value = dict(self.program.forward.sizes)[name]
        own = {axis: size for axis, size in self.sizes.items() if size != name}
        return with_replaced(
            value,
            lambda v: self._measured(own[v.name]) if isinstance(v, SizeOf) else None,
        )

    def _once(self, kept: Sequence[str]) -> str:
        """The gradients; they raise if differentiated by upstreams or saved values."""
        results = [*self.program.backward.results]
        of = [*(p.name for p in self.program.upstreams), *(n for n in kept if n not in self.made)]
        said = repr(f"{self.name}: no second derivatives: {self.program.without_second}")
        arguments = [said, *(f"({unpacked(names)})" for names in (results, of))]
        return wrapped(f"{unpacked(results)} = _runtime.once", arguments, indent=len(METHOD))

    def _made_again(self, arguments: Sequence[str]) -> str:
        """A call of the forward; its results are in brackets if they do not fit a line."""
        names = [*["_"] * len(self.outputs), *self.made]
        called, head = f"{self.name}_forward", f"{', '.join(names)} = "
        if len(f"{INNER}{head}{called}(") <= LONGEST:
            return wrapped(head + called, arguments, indent=len(INNER))
        call = wrapped(f") = {called}", arguments, indent=len(INNER))
        return "\n".join(["(", *filled(names, INNER + STEP), INNER + call])

    def gradient(self) -> FunctionText:
        """The backward of the Function.

        Long: saving, recomputing, checking and returning are one text, line by line.
        """
        ctx, upstreams = self.called["ctx"], [p.name for p in self.program.upstreams]
        lines = []
        if len(self.outputs) == 1:
            nothing = returning(["None"] * len(self.inner))
            lines += [f"if {upstreams[0]} is None:", STEP + nothing]
        kept = [*self.saved, *self.made]
        if kept:
            lines.append(broken(f"{unpacked(kept)} = {ctx}.saved_tensors", METHOD))
        once = self.program.without_second
        if self.made and not once:
            asked = [p.name if p.role not in NUMBERS else self._noted(p.name) for p in self.inner]
            lines.append("if torch.is_grad_enabled():  # gradients of gradients: of the inputs")
            lines.append(STEP + self._made_again(asked))
        if asked := self.asked():
            needs = [f"need_{p.name}" if p.name in asked else "_" for p in self.inner]
            while needs[-1] == "_":
                needs.pop()
            first = len(needs) if "_" not in needs else 0  # inputs, of which all are asked for
            needs += ["*_"] * (len(needs) < len(self.inner))
            if not first:
                lines.append(broken(f"{unpacked(needs)} = {ctx}.needs_input_grad", METHOD))
        arguments = [*upstreams, *(n if n in kept else self._noted(n) for n in self.read)]
        if asked and first:
            arguments.append(f"*{ctx}.needs_input_grad[:{first}]")
        else:
            arguments += [f"need_{name}" for name in asked]
        called, results = f"{self.name}_backward", [*self.program.backward.results]
        places = [f"d{p.name}" if p.role == "input" else "None" for p in self.inner]
        nothing = ", None" * (len(places) - len(results))
        if once:
            call = wrapped(f"{', '.join(results)} = {called}", arguments, indent=len(INNER))
            lines += ["with torch.no_grad():", STEP + call, self._once(kept), returning(places)]
        elif results == places[: len(results)] and {*places[len(results) :]} <= {"None"}:
            star = "*" * bool(nothing and results[1:])
            lines.append(wrapped(f"return {star}{called}", arguments, nothing, len(METHOD)))
        else:
            lines.append(wrapped(f"{', '.join(results)} = {called}", arguments, indent=len(METHOD)))
            lines.append(returning(places))
        behind = ["*_"] * bool(self.made)
        return FunctionText(
            f"def backward({', '.join([ctx, *upstreams, *behind])}):", (), tuple(lines)
        )
