"""Four exercises in backpropagation by hand, solved by generated code, checked by autograd.

    python examples/exercises.py [--dtype float64] [--threads 2] [--data names.txt]

1: the gradients of all 26 tensors of the network, one step of the chain rule at a time.
2: softmax and negative log likelihood as one closed form. 3: batch norm as one closed form.
4: a few steps of training, with the gradient of every parameter.

The reference below is plain torch, differentiated by autograd. Exit status: 0 exercise 1 is exact
and the others are within rounding; 1 otherwise; 2 invalid arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from character_model.mistakes import Mistake
from character_model.network import EPS, drawn_parameters, loss_and_gradients
from character_model.words import OWN_WORDS, SYMBOLS, Examples, load
from rich.console import Console
from rich.table import Table
from torch import Tensor

from gradform.generated.batch_norm import batch_norm_backward, batch_norm_forward
from gradform.generated.chain.mlp import mlp_atoms, mlp_chain
from gradform.generated.softmax_nll import softmax_nll_backward, softmax_nll_forward

SEED = 2147483647
STEPS, RATE = 5, 0.1
BITS = {torch.float32: torch.int32, torch.float64: torch.int64}
TOLERANCES = {torch.float32: 2e-6, torch.float64: 1e-14}
# Examples in a batch: a batch norm of two magnifies rounding without bound, and beyond some 1,000
# autograd's own gradient of an index is added up by several threads, each time in another order.
LEAST, MOST = 4, 1024
WIDTH = 80

Parameters = dict[str, Tensor]

# The reference's tensors in the order of the exercise, and what the generated module calls them:
# there the batch norm is a forward of its own, with names of its own.
GENERATED_NAMES = {
    "logprobs": "logprobs",
    "probs": "probs",
    "counts_sum_inv": "counts_sum_inv",
    "counts_sum": "counts_sum",
    "counts": "counts",
    "norm_logits": "norm_logits",
    "logit_maxes": "logit_maxes",
    "logits": "logits",
    "h": "h",
    "W2": "W2",
    "b2": "b2",
    "hpreact": "hpreact",
    "bngain": "bngain",
    "bnbias": "bnbias",
    "bnraw": "xhat",
    "bnvar_inv": "inv_std",
    "bnvar": "var",
    "bndiff2": "diff2",
    "bndiff": "diff",
    "bnmeani": "mean",
    "hprebn": "hprebn",
    "embcat": "embcat",
    "W1": "W1",
    "b1": "b1",
    "emb": "emb",
    "C": "C",
}


# The reference


def statements_by_hand(
    parameters: Parameters, contexts: Tensor, labels: Tensor
) -> dict[str, Tensor]:
    """Every tensor from the embedding to the loss, one small operation each."""
    C, W1, b1, W2, b2, bngain, bnbias = parameters.values()
    n = len(contexts)
    emb = C[contexts]
    embcat = emb.view(n, -1)
    hprebn = embcat @ W1 + b1
    bnmeani = 1 / n * hprebn.sum(0, keepdim=True)
    bndiff = hprebn - bnmeani
    bndiff2 = bndiff**2
    bnvar = 1 / (n - 1) * bndiff2.sum(0, keepdim=True)  # Bessel's correction
    bnvar_inv = (bnvar + 1e-5) ** -0.5
    bnraw = bndiff * bnvar_inv
    hpreact = bngain * bnraw + bnbias
    h = torch.tanh(hpreact)
    logits = h @ W2 + b2
    logit_maxes = logits.max(1, keepdim=True).values
    norm_logits = logits - logit_maxes
    counts = norm_logits.exp()
    counts_sum = counts.sum(1, keepdim=True)
    counts_sum_inv = counts_sum**-1
    probs = counts * counts_sum_inv
    logprobs = probs.log()
    loss = -logprobs[range(n), labels].mean()
    return {
        "emb": emb,
        "embcat": embcat,
        "hprebn": hprebn,
        "bnmeani": bnmeani,
        "bndiff": bndiff,
        "bndiff2": bndiff2,
        "bnvar": bnvar,
        "bnvar_inv": bnvar_inv,
        "bnraw": bnraw,
        "hpreact": hpreact,
        "h": h,
        "logits": logits,
        "logit_maxes": logit_maxes,
        "norm_logits": norm_logits,
        "counts": counts,
        "counts_sum": counts_sum,
        "counts_sum_inv": counts_sum_inv,
        "probs": probs,
        "logprobs": logprobs,
        "loss": loss,
    }


@dataclass(frozen=True)
class Reference:
    """The hand-typed network on one batch: the value of every tensor, and autograd's gradient."""

    contexts: Tensor
    values: dict[str, Tensor]
    gradients: dict[str, Tensor]

    def scales(self) -> dict[str, float]:
        """By what a rounding error in each gradient is measured: the largest entry, or, of a
        gradient that is a sum and may cancel, the largest sum of the magnitudes of its terms.

        In the gradient of hprebn the first term of the closed form stands for all three.
        """
        v, d = self._magnitudes(self.values), self._magnitudes(self.gradients)
        dhprebn = v["bngain"] * v["bnvar_inv"] * d["hpreact"]
        demb = (dhprebn @ v["W1"].T).view_as(d["emb"])
        sums = {
            "logit_maxes": d["norm_logits"].sum(1),
            "W2": v["h"].T @ d["logits"],
            "b2": d["logits"].sum(0),
            "bngain": (d["hpreact"] * v["bnraw"]).sum(0),
            "bnbias": d["hpreact"].sum(0),
            "hprebn": dhprebn,
            "W1": v["embcat"].T @ dhprebn,
            "b1": dhprebn.sum(0),
            "C": torch.zeros_like(v["C"]).index_put_((self.contexts,), demb, accumulate=True),
        }
        return {name: tensor.max().item() for name, tensor in {**d, **sums}.items()}

    @staticmethod
    def _magnitudes(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: tensor.abs() for name, tensor in tensors.items()}


def differentiated(parameters: Parameters, batch: Examples) -> Reference:
    """The reference at these parameters, which it does not change."""
    leaves = {name: p.detach().clone().requires_grad_() for name, p in parameters.items()}
    statements = statements_by_hand(leaves, batch.contexts, batch.labels)
    for tensor in statements.values():
        tensor.retain_grad()
    statements["loss"].backward()
    tensors = {**leaves, **statements}
    return Reference(
        batch.contexts,
        {name: tensor.detach() for name, tensor in tensors.items()},
        {name: tensor.grad for name, tensor in tensors.items()},
    )


# The comparison


@dataclass(frozen=True)
class Comparison:
    """One gradient beside autograd's. ``difference`` is None where there is nothing to subtract."""

    name: str
    kind: str
    exact: bool
    approximate: bool
    difference: float | None


def compared(name: str, ours: Tensor, reference: Tensor, scale: float | None = None) -> Comparison:
    """Compare two tensors of one shape and one dtype; any others differ, even if they broadcast.

    Exact means every bit, the sign of a zero included. Approximate means that no entry is further
    away than the dtype's tolerance times ``scale``, the reference's largest entry by default.
    """
    for kind, expected in ((ours.dtype, reference.dtype), (ours.shape, reference.shape)):
        if kind != expected:
            return Comparison(name, f"{_shown(kind)}, not {_shown(expected)}", False, False, None)
    kind = _shown(reference.shape)
    bits = BITS[reference.dtype]
    exact = torch.equal(ours.contiguous().view(bits), reference.contiguous().view(bits))
    difference = (ours - reference).abs().max().item()
    scale = reference.abs().max().item() if scale is None else scale
    approximate = difference <= TOLERANCES[reference.dtype] * scale
    return Comparison(name, kind, exact, approximate, difference)


def _shown(kind: torch.dtype | torch.Size) -> str:
    return str(tuple(kind)) if isinstance(kind, torch.Size) else str(kind).removeprefix("torch.")


# The exercises


def first_exercise(parameters: Parameters, batch: Examples) -> list[Comparison]:
    """All 26 gradients, one step of the chain rule at a time."""
    reference = differentiated(parameters, batch)
    chain, scales = generated_chain(parameters, batch), reference.scales()
    return [
        compared(name, chain[f"d{ours}"], reference.gradients[name], scales[name])
        for name, ours in GENERATED_NAMES.items()
    ]


def generated_chain(parameters: Parameters, batch: Examples) -> dict[str, Tensor]:
    """The gradients of all statements and inputs by the generated chain, by their names there."""
    inputs = {"contexts": batch.contexts, "labels": batch.labels, **parameters}
    atoms = mlp_atoms(**inputs, eps=EPS)
    return mlp_chain(_upstream(parameters), **inputs, eps=EPS, atoms=atoms)._asdict()


def second_exercise(parameters: Parameters, batch: Examples) -> list[Comparison]:
    """The gradient of the logits in one formula: (softmax - onehot) / n."""
    reference = differentiated(parameters, batch)
    logits, labels = reference.values["logits"], batch.labels
    _, *kept = softmax_nll_forward(logits, labels)
    dlogits = softmax_nll_backward(_upstream(parameters), logits, labels, *kept)
    return [compared("logits", dlogits, reference.gradients["logits"])]


def third_exercise(parameters: Parameters, batch: Examples) -> list[Comparison]:
    """The gradients of a batch norm's inputs in one formula each."""
    reference = differentiated(parameters, batch)
    names = ("hprebn", "bngain", "bnbias")
    x, gain, bias = (reference.values[name] for name in names)
    _, *kept = batch_norm_forward(x, gain, bias, EPS)
    found = batch_norm_backward(reference.gradients["hpreact"], x, gain, *kept)
    gradients = dict(zip(names, found, strict=True))
    scales = reference.scales()
    return [
        compared(name, d, reference.gradients[name], scales[name]) for name, d in gradients.items()
    ]


def fourth_exercise(
    parameters: Parameters, batches: Iterable[Examples], rate: float = RATE
) -> list[Comparison]:
    """Gradient descent by the closed form, a step per batch; the worst comparison per parameter.

    Changes ``parameters`` in place. The reference is evaluated at the same parameters.
    """
    worst: dict[str, Comparison] = {}
    for batch in batches:
        reference = differentiated(parameters, batch)
        scales = reference.scales()
        given = batch.contexts, batch.labels, _upstream(parameters)
        _, gradients = loss_and_gradients(parameters, *given)
        for name, parameter in parameters.items():
            ours, expected = gradients[name], reference.gradients[name]
            comparison = compared(name, ours, expected, scales[name])
            worst[name] = max(worst.get(name, comparison), comparison, key=_badness)
            parameter -= rate * ours
    return list(worst.values())


def _badness(comparison: Comparison) -> tuple[bool, bool, float]:
    return not comparison.approximate, not comparison.exact, comparison.difference or 0.0


def _upstream(parameters: Parameters) -> Tensor:
    return parameters["C"].new_ones(())


# What is printed


def table_of(title: str, comparisons: list[Comparison]) -> Table:
    """One line per tensor."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("gradient of", overflow="fold")
    table.add_column("shape", overflow="fold")
    for heading in ("exact", "approximate", "largest difference"):
        table.add_column(heading, justify="right")
    for c in comparisons:
        answers = ["yes" if answer else "no" for answer in (c.exact, c.approximate)]
        table.add_row(c.name, c.kind, *answers, _difference(c.difference))
    return table


def _difference(difference: float | None) -> str:
    if difference is None:
        return "not compared"
    return f"{difference:.1e}" if difference else "0"


def run(parameters: Parameters, batch_of: Callable[[], Examples], console: Console) -> bool:
    """Run and print all four exercises. True if all pass."""
    batch = batch_of()
    exact = first_exercise(parameters, batch)
    others = {
        "2. softmax and negative log likelihood, closed form": second_exercise(parameters, batch),
        "3. batch norm, closed form": third_exercise(parameters, batch),
        f"4. {STEPS} steps of training, closed form, the worst step": fourth_exercise(
            parameters, [batch_of() for _ in range(STEPS)]
        ),
    }
    console.print(table_of("1. every gradient, by the chain rule", exact))
    for title, comparisons in others.items():
        console.print(table_of(title, comparisons))
    wrong = [c.name for group in others.values() for c in group if not c.approximate]
    if wrong:
        console.print(f"further away than rounding in 2 to 4: {', '.join(wrong)}")
    count = sum(c.exact for c in exact)
    console.print(f"{count} of {len(exact)} exact")
    return count == len(exact) and not wrong


# The command line


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        examples = load(options.data).training
    except Mistake as mistake:
        sys.stderr.write(f"{Path(__file__).name}: {mistake}\n")
        return 2
    torch.set_num_threads(options.threads)
    dtype = getattr(torch, options.dtype)
    generator = torch.Generator().manual_seed(options.seed)
    drawn = drawn_parameters(len(SYMBOLS), options.hidden, generator)

    def batch_of() -> Examples:
        chosen = torch.randint(len(examples), (options.batch,), generator=generator)
        return Examples(examples.contexts[chosen], examples.labels[chosen])

    # A pipe has no width of its own.
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    console.print(
        f"{options.data.name}: batch {options.batch}, {options.hidden} hidden units, "
        f"{options.dtype}\ntorch {torch.__version__}, CPU capability "
        f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} thread(s)"
    )
    parameters = {name: parameter.to(dtype) for name, parameter in drawn.items()}
    return 0 if run(parameters, batch_of, console) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--threads", type=_whole(1, os.cpu_count() or 1), default=1)
    parser.add_argument("--batch", type=_whole(LEAST, MOST), default=32, help="examples (32)")
    parser.add_argument("--hidden", type=_whole(1, MOST), default=64, help="units (64)")
    parser.add_argument("--seed", type=_whole(0, 2**63 - 1), default=SEED, help=f"({SEED})")
    parser.add_argument(
        "--data", type=Path, metavar="FILE", default=OWN_WORDS, help="words, one a line, a to z"
    )
    return parser


def _whole(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: an integer in a range."""

    def whole(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is out of range: {least} to {most}")
        return number

    return whole


if __name__ == "__main__":
    sys.exit(main())
