"""A sweep whose rows are too long for registers, as passes in which programs walk along rows of one
axis.

Nodes with several values in a row, such as a sum along S for each place along K, have shorter rows,
and are computed before. Axes that are left in a row become one: at k and s is its entry k * S + s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from codegen.schedule.apart import apart, divided
from codegen.schedule.costs import GPU
from codegen.schedule.elements import Axes, Element, with_indices
from codegen.schedule.gathered import gathered
from codegen.schedule.inlining import needed
from codegen.schedule.merging import JoinedAxes, is_met, short
from codegen.schedule.moments import in_one_pass
from codegen.schedule.nodes import Flat
from codegen.schedule.online import computed_again
from codegen.schedule.online import in_chunks as read_in_chunks
from codegen.schedule.plan import Nest, Plan, Sweep
from codegen.schedule.planning import planned
from codegen.schedule.rows import sweep_of
from codegen.schedule.shape import Shape, in_chunks, in_rows, shape_of


@dataclass(frozen=True)
class Walk:
    """A sweep in its ``shape``. ``memory`` are the axes of every array, ``inlined`` the names of
    values that are inlined where they are read, ``codes`` the names of sizes by their axes,
    ``joined`` those axes that are several as one.
    """

    sweep: Sweep
    shape: Shape
    memory: Mapping[str, Axes]
    inlined: Mapping[Element, str]
    codes: Mapping[str, str]
    joined: Mapping[str, Axes]


def planned_for_gpu(flat: Flat) -> Plan:
    """Sweeps of which each is one kernel."""
    return gathered(apart(planned(in_one_pass(flat, GPU), GPU)))


def walks(whole: Walk) -> list[Walk]:
    """Walks for rows of any length; empty if the sweep does not allow them."""
    found = []
    rows = _without_tile(whole.sweep)
    for sweep in pieces(_of_all_rows(rows)) if rows else ():
        one = as_one(replace(whole, sweep=sweep))
        if one is None:
            return []
        for each in chain(*map(divided, parts_of(one.sweep))):
            own = tuple(node for node in whole.sweep.parts if node.name in each.reads)
            each = replace(each, parts=own)
            found.append(replace(one, sweep=each, shape=in_chunks(each)))
    return found


def _without_tile(sweep: Sweep) -> Sweep | None:
    """The sweep with axes that the grid cuts beside a row as rows, too, if each of these stores
    something else. None if no row is walked along.
    """
    shape = shape_of(sweep)
    if not shape.tile:
        return sweep if shape.inner else None
    left = [node for node in sweep.nodes if node.name in {*sweep.stored, *sweep.partial}]
    alike = any(shape.tile not in node.space for node in left)
    if len(shape.inner) == 1 or alike:
        return sweep if alike and len(shape.inner) > 1 and not sweep.tiles else None
    rows = (*(axis for axis in sweep.parallel if axis != shape.tile), shape.tile)
    return _without_tile(replace(sweep, parallel=rows, tiles=False))


def _of_all_rows(sweep: Sweep) -> Sweep:
    """The sweep with every axis of its rows parallel, if each of these stores something else."""
    rows = in_rows(sweep).rows
    left = [node for node in sweep.nodes if node.name in {*sweep.stored, *sweep.partial}]
    is_of_all = all({*rows} <= {*node.space} for node in left)
    return replace(sweep, parallel=rows, tiles=False) if is_of_all else sweep


def pieces(sweep: Sweep) -> Iterator[Sweep]:
    """Sweeps in which a reduction has one value in each row, or one for each entry. Values with
    fewer axes than rows are computed before, or again.
    """
    parallel, inner = {*sweep.parallel}, {*shape_of(sweep).inner}
    fewer = {n.name: n for n in sweep.nodes if not n.kind and not parallel <= {*n.axes}}
    every = [computed_again(n, fewer) for n in sweep.nodes if n.name not in fewer]
    reductions = {n.name: n for n in every if n.kind}
    several = [n for n in reductions.values() if not parallel <= {*n.space}]
    rows, told = sweep.parallel, inner | (parallel if several else set())
    if several:
        rows = tuple(axis for axis in rows if axis in several[0].axes)
    else:
        several = [n for n in reductions.values() if {*n.axes} & inner and inner - {*n.axes}]
    if not several:
        yield sweep_of(every, rows, {*sweep.stored}, {}) if fewer else sweep
        return
    of = [axis for axis in several[0].axes if axis in inner]
    own = {n.name for n in several if {*n.axes} & told == {*several[0].axes} & told}
    before = {n.name for n in needed(every, own)} & reductions.keys() - own
    first, of, rows = (before, [], sweep.parallel) if before else (own, of, rows)
    rest = {*sweep.stored} - first
    later = needed([n for n in every if n.name not in first], rest)
    left = first & frozenset(sweep.stored).union(*(node.reads for node in later))
    wider = {n.name: n for n in every if not n.kind and not {*of} <= {*n.axes}}
    nodes = [computed_again(n, wider) for n in every if n.name not in wider]
    yield from pieces(sweep_of(needed(nodes, left), (*rows, *of), left, {}))
    if later:
        yield from pieces(sweep_of(later, sweep.parallel, rest, {}))


def as_one(walk: Walk) -> Walk | None:
    """The same in passes along one axis each; None if these are not contiguous in memory."""
    sweep = walk.sweep
    loops = [[axis for axis in nest.axes if axis not in sweep.rows] for nest in sweep.nests]
    pairs = [(axes[-2], axes[-1]) for axes in loops if len(axes) > 1]
    if not pairs:
        return walk
    joined = _joined(walk, pairs[0])
    name, both = joined.name, {*joined.pair}
    looped = {node.name: node for node in sweep.nodes if both <= {*node.space}}
    codes = {axis: code for axis, code in walk.codes.items() if axis != name}
    is_taken = short(name) in (*map(short, codes), *codes.values())
    if is_taken or any(both & {*n.axes} and n.name not in joined.layouts for n in looped.values()):
        return None
    nodes = [joined.node(node) if node.name in looped else node for node in sweep.nodes]
    memory = {array: joined.axes(axes) for array, axes in joined.layouts.items()}
    inlined = {e.replaced(joined.changed): value for e, value in walk.inlined.items()}
    return as_one(
        replace(
            walk,
            sweep=sweep_of(nodes, sweep.parallel, {*sweep.stored}, {}),
            memory={**walk.memory, **memory},
            inlined={**walk.inlined, **inlined},
            codes={**walk.codes, name: short(name)},
            joined={**walk.joined, name: joined.parts(walk.joined)},
        )
    )


def _joined(walk: Walk, pair: tuple[str, str]) -> JoinedAxes:
    """A merged axis, for arrays that have both axes adjacent, and are read at no other places."""
    nodes = walk.sweep.nodes
    layouts = {**walk.memory, **{node.name: node.axes for node in nodes}}
    layouts = {name: axes for name, axes in layouts.items() if pair in pairwise(axes)}
    entries = [e for node in nodes for e in node.value.entries if e.name in layouts]
    elsewhere = {e.name for e in entries if not is_met(e, layouts[e.name], pair)}
    return JoinedAxes(pair, {name: axes for name, axes in layouts.items() if name not in elsewhere})


def parts_of(sweep: Sweep) -> list[Sweep]:
    """A sweep over rows that are too long for registers: sums over the rows with an entry for each
    entry of a row become one of their own, which the grid cuts along these.
    """
    of = {node.name: node for node in sweep.nodes}
    inner = {*shape_of(sweep).inner}
    alone = [of[name] for name in sweep.partial if {*of[name].axes} & inner]
    if not alone:
        return [read_in_chunks(sweep)]
    needed: set[str] = set()

    def again(e: Element) -> Element | None:
        node = of.get(e.name) if e.kind == "entry" else None
        if node is None:
            return None
        if node.kind or node.name in sweep.stored or not node.axes:
            needed.add(node.name)
            return None
        return with_indices(node.value, dict(zip(node.axes, e.args, strict=True))).replaced(again)

    alone = [replace(node, value=node.value.replaced(again)) for node in alone]
    names = [node.name for node in alone]
    main = replace(
        sweep,
        nests=tuple(rest for nest in sweep.nests if (rest := _without(nest, names)).nodes),
        stored=tuple(
            name for name in of if name not in names and (name in sweep.stored or name in needed)
        ),
        partial=tuple(name for name in sweep.partial if name not in names),
    )
    nest = Nest(alone[0].axes, tuple(alone))
    columns = replace(sweep, nests=(nest,), stored=tuple(names), partial=tuple(names), kept=())
    return [read_in_chunks(main), columns] if main.nests else [columns]


def _without(nest: Nest, names: list[str]) -> Nest:
    return replace(nest, nodes=tuple(node for node in nest.nodes if node.name not in names))
