"""What is reported of a module that is ready to be written: how good it is, in each reduction."""

from __future__ import annotations

from dataclasses import replace

from codegen.driver import Generated
from codegen.program import Program
from codegen.program.packed import packed
from codegen.quality import Emitted, Quality
from codegen.schedule.moved import loops_of
from codegen.sharding.counting import collectives_of
from codegen.targets import Target, targets
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import saved_in
from derive.notation.layout import plain, shape
from derive.proving.proved import Proved


def emitted(generated: Generated, target: Target = targets["torch"]) -> Emitted:
    """What of `Generated` is written, and what is reported of it."""
    programs = dict(generated.program.reductions)
    quality = _quality(generated, generated.program, generated.proved, target)
    others = tuple(
        replace(_quality(generated, programs[word], proved, target), reduction=word, split=())
        for word, proved in generated.others.items()
    )
    short = (proved.cut_short for proved in (generated.proved, *generated.others.values()))
    cut_short = "; ".join(dict.fromkeys(filter(None, short)))
    definition = generated.proved.definition
    if generated.refused:
        left = f"{definition.name}: second derivatives are autograd's, line by line"
        cut_short = "; ".join(filter(None, (cut_short, f"{left}; {generated.refused}")))
    return Emitted(
        generated.file,
        generated.text,
        quality,
        cut_short=cut_short,
        others=others,
        program=packed(generated.whole or generated.program, definition.axes),
        chain=generated.chain,
    )


def _quality(generated: Generated, program: Program, proved: Proved, target: Target) -> Quality:
    """How good the module is where it computes one ``program``."""
    counts, whole = target.counts(program), generated.whole or program
    forward, backward = (
        replace(traffic, loops=loops)
        for traffic, loops in zip((counts.forward, counts.backward), loops_of(whole), strict=True)
    )
    return Quality(
        name=program.name,
        outputs=tuple(f"{t.name} {shape(plain(t.home))}" for t in proved.definition.results),
        closed_form=program.formulas,
        unsafe=program.unsafe,
        saved=_saved(generated, program),
        reductions=counts.reductions,
        operations=proved.closed_form.cost.operations,
        full=counts.full,
        forward=forward,
        backward=backward,
        proved=_sizes_proved(proved),
        split=tuple(collectives_of(whole)),
        difference=generated.largest_difference,
        rounding=generated.rounding,
        seconds=generated.seconds,
    )


def _saved(generated: Generated, program: Program) -> tuple[str, ...]:
    if generated.is_lean:
        return saved_in(Pair(program, Outside(generated.proved.definition)))
    kept = program.backward.tensors[len(program.upstreams) :]
    return tuple(f"{p.name} {shape(p.layout)}" for p in kept)


def _sizes_proved(proved: Proved) -> str:
    batches = proved.gradients[0].sizes
    shown = ", ".join("x".join(str(n) for _, n in batch) for batch in batches if batch)
    small = f"exact for {shown}" if shown else "exact"
    return f"{small}; every size" if proved.every_size else f"{small}; only those"
