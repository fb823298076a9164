"""A user's names are labels: what a forward is made of does not depend on them, nor on how it is
written. Nothing is closed to see that, unless a test asks for the cost.
"""

import pytest
from forwards import forward_file
from respelling.graphs import Numbers, nodes
from respelling.spellings import respelled, spellings
from sampling import every
from sympy import exp

from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.closing.risks import up_to_operations
from derive.gradient.values.relations import relations_of
from derive.language.notation.library import forward_from, list_forwards
from derive.language.symbols import tensors_in
from derive.proof.proving.proof import prove

SAME = [spelling for spelling in spellings if spelling.same]

# Forwards whose graph is another one in a spelling. These may only become fewer.
DIFFERENT = {
    "inlined": {
        *("cross_entropy", "cross_entropy_probabilities", "cross_entropy_softcap"),
        *("cross_entropy_z_loss", "softmax_nll", "mlp"),  # the logarithm of a share is a difference
        *("linear_cross_entropy", "linear_kl"),
        *("gelu_tanh", "js_div", "smooth_l1"),  # a number is multiplied into a sum
        *("huber", "log_cosh"),  # the sign of a difference is one of what is taken of it
        *("l2_normalize", "info_nce"),  # a choice that is divided by is divided in
        *("masked_attention", "biased_attention", "masked_softmax"),  # a choice of a choice is one
        *("focal", "kl_div"),
        *("clip", "siglip"),  # as l2_normalize
        "focal_tversky",  # a sum inside of a sum is one with it
    },
    "all named": {
        "clip",
        *("cross_entropy", "cross_entropy_softcap", "cross_entropy_z_loss"),
        *("info_nce", "linear_cross_entropy", "linear_dpo", "nll"),
    },
    "doubled lines": {"biased_attention", "masked_softmax"},
    "reordered": {"l1"},
}
IN_ANY = {"linear_grpo", "ppo"}  # their extremes are taken in the order of names


@pytest.mark.parametrize("spelling", every(4, SAME), ids=lambda spelling: spelling.name)
def test_the_graph_of_a_respelling_is_that_of_the_usual_spelling(spelling):
    different = set()
    for definition in (forward.definition for forward in list_forwards()):
        if spelling.applies(definition) and not definition.derived:  # sizes by formulas of names
            numbers, other = Numbers(), respelled(definition, spelling).definition
            if nodes(definition, numbers) != nodes(other, numbers):
                different.add(definition.snake)
    assert different - IN_ANY == DIFFERENT.get(spelling.name, set())


# Lines with names, and the same mathematics in one line: what stands behind a name cancels.
NAMED = {
    "exponential": ("e = exp(x); r = 1/e; y = r*w", "y = exp(-x)*w"),
    "two": ("e = exp(x); r = exp(-x); y = (e - r)/(e + r)", "y = tanh(x)"),
    "quotient": ("e = exp(x); r = e/(e + 1); q = r/e; y = q*x", "y = x/(exp(x) + 1)"),
    "product": ("a = x*w; b = a/w; y = b*w", "y = x*w"),
    "square": ("a = x*w; b = a**2; y = b/w", "y = x**2*w"),
    "root": ("v = x**2 + 1; s = sqrt(v); y = x/s**2", "y = x/(x**2 + 1)"),
    "logarithm": ("s = Sum(exp(x), C); p = x - log(s); y = exp(p)", "y = exp(x)/Sum(exp(x), C)"),
    "longer": ("e = exp(x); r = 1/e; h = r*w; y = h*e + x", "y = w + x"),
}


def defined(folder, name, written):
    body = "".join(f"    {line}\n" for line in written.split("; "))
    declared = "".join(f"    {n} = Input(N, C)\n" for n in "xw" if n in written.replace("exp", ""))
    return forward_from(forward_file(folder, name, declared + body)).definition


@pytest.mark.parametrize("named, usual", NAMED.values(), ids=NAMED)
def test_what_cancels_behind_names_does_in_several_lines_too(named, usual, tmp_path):
    one, two = defined(tmp_path, "Usual", usual), defined(tmp_path, "Named", named)
    forms = [close(derive_chain(d)) for d in (one, two)]
    # A name that the user gave to a value keeps its line, which may be one operation more.
    assert len({up_to_operations(form.preference) for form in forms}) == 1
    assert forms[1].cost.operations <= forms[0].cost.operations + 1
    assert prove(forms[1]).every_size
    aliases = forms[1].relations.aliases
    assert not any(t.name in aliases for e in aliases.values() for t in tensors_in(e))


def test_a_name_that_others_read_stays(tmp_path):
    """The exponential is computed all the same."""
    definition = defined(tmp_path, "Read", "e = exp(x); s = Sum(e, C); p = e/s; h = p*w; y = h + x")
    assert not relations_of(definition).aliases


def test_a_name_that_is_no_value_is_another_one_for_what_it_stands_for(tmp_path):
    """Its gradient is that of the user's lines."""
    definition = defined(tmp_path, "Named", "e = exp(x); r = 1/e; h = r*w; y = tanh(h)")
    form = close(derive_chain(definition))
    x, w = definition.inputs
    dh = form.chain.by_name["dh"].tensor
    assert form.relations.aliases == {"e": exp(x), "r": exp(-x)}
    assert form.closed["dr"] == dh * w and form.closed["de"] == -dh * w * exp(-2 * x)


def test_an_exponential_in_several_places_keeps_its_name(tmp_path):
    definition = defined(tmp_path, "Several", "e = exp(x); y = (e - e**2/(1 + e))*w")
    assert not relations_of(definition).aliases
