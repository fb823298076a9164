"""The user's own names for the source of a Function, as its verdict uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sympy import Symbol

from codegen.importing.asked import Argument
from codegen.importing.examples import axes_in
from codegen.importing.reader import Reader
from derive.claims.checking.answers import Answer
from derive.claims.checking.words.spoken import Spoken
from derive.gradient.chain.chain import adjoint_of
from derive.language.notation.definition import Definition

ARRIVING = "upstream"  # a gradient that arrives and is called like something else


def spoken_for(
    reader: Reader,
    definition: Definition,
    arguments: Sequence[Argument],
    upstreams: Mapping[str, str],
) -> Spoken:
    """The user's names; ``upstreams`` maps the names of upstream gradients to the backward's."""
    names = {d.name: a.name for a, d in zip(arguments, reader.declared, strict=False)}
    theirs = {
        s.name: reader.theirs[s.name] for s in definition.statements if s.name in reader.theirs
    }
    met = Counter([*names.values(), *theirs.values()])
    names |= {name: own for name, own in theirs.items() if met[own] == 1}
    made = {s.name: s.expression for s in definition.statements if s.name not in names}
    arriving = {n: ARRIVING if called in met else called for n, called in upstreams.items()}
    total = adjoint_of(definition.output).name
    users = axes_in(arguments)
    sizes = reader.sizes.of_all
    return Spoken(
        names=names | {n: called for n, called in arriving.items() if n != total},
        arriving=arriving,
        made=made,
        ones=() if total in upstreams else (total,),
        axes={
            a.name: sizes.get(a.name, Symbol(a.name))
            for a in definition.axes
            if a.name not in users
        },
        users=tuple(users),
        kept={
            i.kept.name: (names.get(i.label.name, i.label.name), i.default)
            for i in definition.ignoring
        },
    )


def at_users_sizes(answer: Answer, spoken: Spoken) -> Answer:
    """The answer with its sizes given for the user's axes."""

    def users(batches):
        return tuple(tuple(spoken.sizes(batch).items()) for batch in batches)

    if answer.proved:
        answer = replace(answer, proved=replace(answer.proved, sizes=users(answer.proved.sizes)))
    if answer.agreement:
        further = replace(answer.agreement, sizes=users(answer.agreement.sizes))
        answer = replace(answer, agreement=further)
    return answer
