"""The functions of autograd's as text that a backward is where it is differentiated again."""

from __future__ import annotations

from codegen.program import NUMBERS, Again, Function
from codegen.targets.torch.line_by_line import LineByLine
from codegen.targets.torch.pairs import Pairs
from codegen.targets.torch.printed import Behind
from codegen.targets.torch.wrapping import broken_at_its_place, in_tuple


class DifferentiatedAgain(LineByLine):
    """What autograd calls behind a backward, and behind that where a third order was asked for."""

    def behind_the_backward(self) -> tuple[Behind, ...]:
        """The functions of autograd's that the backward is where it is differentiated again, and
        that what comes behind it is where a third order was asked for.
        """
        if not self.any_order:
            return ()
        upstream = self.program.backward.parameters[0].name
        inputs = f"{upstream}, *saved"
        computed = self.either(
            lambda pair, name: [f"gradients = {pair.backward_called(name, upstream, '')}"], "", ""
        )
        returned = [f"{inputs} = ctx.saved_tensors"]
        called = self.either(self._behind_called, "")
        if self.third:
            how = f"if torch.is_grad_enabled() and not _runtime.in_plain_torch({upstream}):"
            again = self.either(self._behind_applied, "    ")
            called = [how, *again, "else:", *(f"    {line}" for line in called)]
        said = "The closed form where it is differentiated again."
        found = [self._behind("Gradient", said, inputs, computed, [*returned, *called])]
        if self.third:
            found += [self._again(kind) for kind in ("Behind", "Pullback") if self._has(kind)]
        return tuple(found)

    def _behind(
        self, kind: str, said: str, inputs: str, computed: list[str], returned: list[str]
    ) -> Behind:
        known = self.known
        given = ", ".join("_" if name == "needs" else name for name in known)
        context = [f"{given}, {inputs} = inputs"]
        context += [f"ctx.{name} = {name}" for name in known if name != "needs"]
        returned = [*returned, f"return {in_tuple(['None'] * len(known) + ['*gradients'])}"]
        return Behind(
            kind,
            said,
            ", ".join([*known, inputs]),
            inputs,
            tuple(context),
            tuple(map(broken_at_its_place, computed)),
            tuple(map(broken_at_its_place, returned)),
        )

    def _again(self, kind: str) -> Behind:
        """What comes behind one of the functions of the second order."""
        core = kind.lower()

        def computed(pair: Pairs, name: str) -> list[str]:
            function = pair.seconds[kind]
            if function is None:
                return ["raise NotImplementedError(_REFUSAL)"]
            more = ", needs=needs" * pair.guards_in(function)
            return [f"gradients = {name}_{core}(*tensors, *numbers{more})"]

        def called(pair: Pairs, name: str) -> list[str]:
            again = pair.thirds.get(kind)
            if again is None:
                return ["raise NotImplementedError(_REFUSAL)"]
            places = pair.places_of(kind)
            vectors = "".join(f"vectors[{places[of]}], " for of, _ in again.vectors)
            more = f", needs=ctx.needs_input_grad[{len(self.known)} :]"
            more *= pair.guards_in(again.function)
            return [f"gradients = {name}_{core}_again({vectors}*tensors, *ctx.numbers{more})"]

        said = {
            "Behind": "What comes back behind the backward, differentiated again.",
            "Pullback": "What comes back to the inputs, differentiated again.",
        }
        there = "gradients = [g if t is not None else t for g, t in zip(gradients, tensors)]"
        returned = ["tensors = ctx.saved_tensors", *self.either(called, ""), there]
        return self._behind(kind, said[kind], "*tensors", self.either(computed, "", ""), returned)

    @property
    def seconds(self) -> dict[str, Function | None]:
        second = self.program.second
        return {"Behind": second.behind, "Pullback": second.pullback}

    @property
    def thirds(self) -> dict[str, Again]:
        return dict(zip(("Behind", "Pullback"), self.program.second.third, strict=False))

    def _has(self, kind: str) -> bool:
        return any(pair.seconds[kind] is not None for pair in self.pairs)

    def places_of(self, kind: str) -> dict[str, int]:
        """The place of every result among those that are returned."""
        if kind == "Pullback":
            asked = [p for p in self.asked_for if p.role == "input"]
            return {f"d{p.name}": i for i, p in enumerate(asked)}
        needs = self.program.backward.parameters[1:]
        tensors = [p.name for p in needs if p.role not in NUMBERS]
        second = self.program.second
        return {second.behind.results[0]: 0} | {
            c: tensors.index(of) + 1 for of, c in second.cotangents
        }

    def vectors(self, whole: Pairs) -> str:
        """What stands before the gradients that the pair computes, of those of the ``whole``."""
        own, places = self.program.backward.results, whole.program.backward.results
        if own == places:
            return "*vectors"
        return ", ".join(f"vectors[{places.index(name)}]" for name in own)

    def _behind_called(self, pair: Pairs, name: str) -> list[str]:
        asked = f", needs=ctx.needs_input_grad[{len(self.known)} :]"
        more = asked * pair.guards_in(pair.program.second.behind)
        upstream = self.program.backward.parameters[0].name
        arguments = f"{pair.vectors(self)}, {upstream}, *saved, *ctx.numbers{more}"
        return [f"gradients = {name}_behind({arguments})"]

    def _behind_applied(self, pair: Pairs, name: str) -> list[str]:
        upstream, k = self.program.backward.parameters[0].name, len(self.known)
        known = "ctx.plain, " * (self.plain is not None)
        known += f"ctx.needs_input_grad[{k} :], ctx.numbers"
        arguments = f"{known}, {pair.vectors(self)}, {upstream}, *saved"
        return [f"gradients = _runtime.applied({self.program.title}Behind, {arguments})"]
