"""``Label(N, ignored=-100)``: a label that counts only where it is not a certain number."""

from __future__ import annotations

from derive.language.errors import NotationError, Place
from derive.language.kept_labels import kept_tensor
from derive.language.notation.definition import IGNORE_INDEX, Ignoring
from derive.language.symbols import MOST_ENTRIES, Tensor


def ignore(body, label: Tensor, ignored: int, place: Place) -> None:
    """``label`` counts only where it is not ``ignored``, in the class body ``body``."""
    if not -MOST_ENTRIES <= ignored < MOST_ENTRIES:
        raise NotationError(
            f"{label}: the label that is ignored is not a 64-bit integer",
            f"write {label} = Label(N, ignored=-100)",
        )
    if body.ignoring and body.ignoring[0].default != ignored:
        other = body.ignoring[0]
        raise NotationError(
            f"{label} is ignored where it is {ignored}, {other.label} where it is "
            f"{other.default}, but {IGNORE_INDEX} is one number",
            f"write {label} = Label(..., ignored={other.default})",
        )
    if not body.ignoring:
        body.claim(IGNORE_INDEX, place)
    kept = kept_tensor(label)
    body.claim(kept.name, place)
    body.inputs.append(kept)
    body.tensors[kept.name] = kept
    body.ignoring.append(Ignoring(label, kept, ignored))
