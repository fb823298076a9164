"""Quality of a module that is ready to be written, for its report."""

from __future__ import annotations

from dataclasses import replace

from codegen.driver.gate import Generated
from codegen.files.quality import Emitted, Quality
from codegen.program import Program
from codegen.program.packed import packed
from codegen.schedule.moved import loops_of
from codegen.sharding.counting import collectives_of
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import saved_in
from codegen.targets.torch.traffic import counts
from derive.language.notation.layout import plain, shape
from derive.proof.proving.proved import Proved


def emitted(generated: Generated) -> Emitted:
    """The files of `Generated` and the facts to report."""
    return Emitted(
        generated.file,
        generated.text,
        _quality(generated),
        cut_short=generated.proved.cut_short,
        program=packed(_without_risks(generated.whole), generated.proved.definition.axes),
        chain=generated.chain,
    )


def _without_risks(program: Program) -> Program:
    """The program to print kernels from: without risks, which the text states already."""
    plain = program.without_options
    plain = None if plain is None else replace(plain, risks=())
    return replace(program, risks=(), without_options=plain)


def _quality(generated: Generated) -> Quality:
    program, whole, proved = generated.program, generated.whole, generated.proved
    counted, loops = counts(program), loops_of(with_little_kept(whole))  # as kernels are printed
    forward, backward = (
        replace(traffic, loops=moved)
        for traffic, moved in zip((counted.forward, counted.backward), loops, strict=True)
    )
    return Quality(
        name=program.name,
        outputs=tuple(f"{t.name} {shape(plain(t.home))}" for t in proved.definition.results),
        closed_form=program.formulas,
        unsafe=program.unsafe,
        saved=saved_in(Pair(program, Outside(proved.definition))),
        reductions=counted.reductions,
        operations=proved.closed_form.cost.operations,
        full=counted.full,
        forward=forward,
        backward=backward,
        proved=_sizes_proved(proved),
        split=tuple(collectives_of(whole)),
        difference=generated.largest_difference,
        rounding=generated.rounding,
        seconds=generated.seconds,
    )


def _sizes_proved(proved: Proved) -> str:
    batches = proved.gradients[0].sizes
    shown = ", ".join("x".join(str(n) for _, n in batch) for batch in batches if batch)
    small = f"exact for {shown}" if shown else "exact"
    return f"{small}; every size" if proved.every_size else f"{small}; only those"
