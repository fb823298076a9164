"""A page is well formed whatever is on it, says the same twice, and needs nothing from outside."""

import re
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import forwards
import pytest
import torch
from sampling import sampled
from sympy import Abs, And, Function, Ne, Or, Piecewise, Rational, cbrt, exp, log, sin, sqrt

from derive import Axis, Flatten, Max, OneHot, Sum
from derive.language.formulas.mathml import mathml
from derive.language.formulas.mathml_elements import BROKEN
from derive.language.nodes import ArgMax, Unflatten
from derive.language.symbols import Tensor, tensors_in
from derive.show.document import (
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Foldable,
    Matrix,
    Numbered,
    Prose,
    Section,
    TensorGraph,
    TensorNode,
)
from derive.show.graph import drawing
from derive.show.html import PageLinks, fragment, page
from derive.show.index import index
from derive.show.numbers import numbers_of
from derive.show.sections import STABLE

N, C, K = Axis("N"), Axis("C"), Axis("K")
x, y = Tensor("x", (N, C)), Tensor("y", (N, C))
labels = Tensor("labels", (N,), role="label", integer=True)
HOSTILE = """<script>alert("x")</script> & 'quotes' </p></math> <!-- \x1b[31m \ud800 ]]>"""

FORWARDS = forwards.told_apart()
FONTS = ("math", "names")


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


class Tags(HTMLParser):
    """The elements of a page with their attributes, and those left open."""

    EMPTY = ("meta", "link")

    def __init__(self, text: str):
        super().__init__()
        self.found, self.open, self.attributes = Counter(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found[tag] += 1
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


@pytest.mark.parametrize("name", sampled(FORWARDS))
def test_a_page_is_well_formed_complete_and_alone(name, shown):
    """One test for each forward, so that it is derived once."""
    document = shown(name)
    text = page(document)
    assert text.encode() == page(document).encode()
    _is_well_formed_and_complete(text, document)
    _needs_nothing_from_outside(text)
    _is_drawn_by_what_browsers_know(text)
    (graph,) = blocks(document, TensorGraph)
    _has_a_place_for_everything(graph)


def blocks(document: Document, kind) -> list:
    """All of a kind, also those inside of groups."""
    found = []
    pending = [block for section in document.sections for block in section.blocks]
    while pending:
        block = pending.pop(0)
        found += [block] if isinstance(block, kind) else []
        pending += block.blocks if isinstance(block, Foldable) else ()
    return found


def _is_well_formed_and_complete(text: str, document: Document) -> None:
    root = parsed(text)
    assert Tags(text).open == []
    count = {k: len(blocks(document, k)) for k in (Derivation, Equations, TensorGraph, Foldable)}
    numbered = text.count('<details class="numbers">')
    assert len(list(root.iter("details"))) == count[Derivation] + count[Foldable] + numbered
    assert len(list(root.iter("svg"))) == count[TensorGraph]
    assert len(list(root.iter("h2"))) == len(document.sections)
    assert sum("equations" in e.get("class", "").split() for e in root.iter("div")) == (
        count[Derivation] + count[Equations]
    )


def _needs_nothing_from_outside(text: str) -> None:
    tags = Tags(text)
    assert not {"img", "iframe", "object", "form"} & set(tags.found)
    assert tags.found["script"] == 1 and "script-src 'sha256-" in text
    for name, value in tags.attributes:
        assert not name.startswith("on") and name != "src"
        assert name != "href" or value == "data:," or value.startswith("#")
    fonts = re.compile(r"url\(data:font/woff2;base64,[\w+/=]+\)")
    assert len(fonts.findall(text)) == len(FONTS)
    text = fonts.sub("", text)
    assert not re.search(r"https?:|//[a-z]|@import", text)
    assert not re.search(r"url\((?!#)", text)


def _is_drawn_by_what_browsers_know(text: str) -> None:
    """MathML Core, and no node that fell through to its text."""
    known = {"math", "mrow", "mi", "mn", "mo", "mtext", "mfrac", "msqrt", "mroot", "msup", "msub"}
    known |= {"munder", "mtable", "mtr", "mtd", "mspace"}
    children = {"mfrac": 2, "mroot": 2, "msup": 2, "msub": 2, "munder": 2}
    for math in parsed(text).iter("math"):
        for element in math.iter():
            assert element.tag in known
            assert len(element) == children.get(element.tag, len(element))
            if element.tag == "mtext":
                assert not re.search(r"Sum\(|OneHot|Tensor|Piecewise", element.text)


def _has_a_place_for_everything(graph: TensorGraph) -> None:
    """No boxes overlap, all are inside of the drawing, and an edge leads down."""
    drawn = drawing(graph)
    place = {box.name: box for box in drawn.boxes}
    assert len(drawn.forward) == len(graph.edges)
    assert len(drawn.backward) == len(graph.passes)
    assert all(place[a].y < place[b].y for a, b in graph.edges)
    for i, box in enumerate(drawn.boxes):
        assert box.left >= 0 and box.left + box.width <= drawn.width
        assert box.top >= 0 and box.top + box.height <= drawn.height
        for other in drawn.boxes[:i]:
            apart = abs(box.x - other.x) - (box.width + other.width) / 2
            assert box.y != other.y or apart > 0, (box.name, other.name)


def text_of(e) -> str:
    text = "".join(ElementTree.fromstring(mathml(e)).itertext())
    return text.replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (x - y, "x-y"),
        (-x - y, "-x-y"),
        (2 * x * y, "2⋅x⋅y"),
        (x * (x - y), "x⋅(x-y)"),
        (Sum(x * y, N), "∑Nx⋅y"),
        (Sum(x - y, N), "∑N(x-y)"),
        (Sum(x, N) + Sum(y, N), "(∑Nx)+∑Ny"),
        (Sum(x, N, C) * (x - y), "(∑C,Nx)⋅(x-y)"),
        (Sum(x, N) ** 2, "(∑Nx)2"),
        (sqrt(x), "x"),
        (1 / sqrt(x), "1x"),
        (cbrt(x), "x3"),
        (x ** Rational(2, 3), "x23"),
        ((x * y) ** 2, "x2⋅y2"),
        ((x + y) ** 2, "(x+y)2"),
        (x / (N - 1), "xN-1"),
        (exp(x), "exp\u2061(x)"),
        (log(x) - sin(y), "log\u2061(x)-sin\u2061(y)"),
        (Abs(x), "|x|"),
        (Max(x, C), "maxCx"),
        (ArgMax(x, C), "arg\u2009maxCx"),
        (OneHot(labels, C), "1[labels=C]"),
        (OneHot.over(ArgMax(x, C), [C]), "1[arg\u2009maxCx=C]"),
        (Flatten(x, N, C, into=K), "flatN⋅C→K\u2061(x)"),
        (Unflatten.over(Tensor("z", (K,)), [K], [N, C]), "apartK→N⋅C\u2061(z)"),
        (x.along((K, C)), "xK,C"),
        (Piecewise((x, x < 2), (y, True)), "{xif\u00a0x<2yotherwise"),
        (Function("f")(x), "f\u2061(x)"),
        (Rational(1, 2) * x, "x2"),
        (Tensor("amp", ()) * Tensor("lt", ()), "amp⋅lt"),
    ],
    ids=str,
)
def test_a_formula_reads_as_in_a_book(expression, text):
    assert text_of(expression) == text


def test_conditions_read_as_in_a_book():
    assert text_of(And(x < 2, Ne(y, 1))) == "x<2\u2227y≠1"
    assert text_of(Or(And(x < 2, y < 1), y > 3)) == "y>3\u2228(x<2\u2227y<1)"


def test_the_sign_of_a_sum_stands_over_its_axes():
    under = ElementTree.fromstring(mathml(Sum(x, N))).find(".//munder")
    assert [child.text for child in under] == ["∑", "N"]


def hostile() -> Document:
    name = Tensor("lt", (), home=())
    equation = Equation(name, name + 1, HOSTILE, HOSTILE)
    return Document(
        HOSTILE,
        (HOSTILE, (HOSTILE, name, HOSTILE)),
        headline=equation,
        sections=(
            Section(
                HOSTILE,
                (
                    Prose((HOSTILE, name, HOSTILE)),
                    Foldable(HOSTILE, (Prose(HOSTILE),)),
                    Equations((equation, Equation(HOSTILE, HOSTILE))),
                    Derivation(HOSTILE, equation, (equation,)),
                    Matrix(HOSTILE, ((name,),), (1, 1), HOSTILE),
                    Code(((HOSTILE, HOSTILE),)),
                    TensorGraph((TensorNode(HOSTILE, "input", HOSTILE),), (), frozenset()),
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        page(hostile()),
        index({HOSTILE: {HOSTILE: hostile()}}, HOSTILE, HOSTILE, PageLinks(((HOSTILE, HOSTILE),))),
        fragment(hostile()),
    ],
    ids=["page", "index", "notebook"],
)
def test_hostile_words_are_only_words(text):
    text.encode("utf-8")
    assert Tags(text).found["script"] == ("script-src" in text)  # of an index the search
    assert 'alert("x")' in "".join(parsed(text).itertext())


def test_what_cannot_be_shown_is_refused_by_name():
    with pytest.raises(TypeError, match="int"):
        page(Document("x", (), (Section("", (3,)),)))


def test_gradients_flow_only_where_they_pass():
    nodes = (
        TensorNode("a", "input", "()"),
        TensorNode("b", "label", "()"),
        TensorNode("c", "statement", "()"),
    )
    graph = TensorGraph(nodes, (("a", "c"), ("b", "c")), frozenset({("a", "c")}))
    drawn = drawing(graph)
    assert (len(drawn.forward), len(drawn.backward)) == (2, 1)
    start = [float(n) for n in re.findall(r"[\d.]+", drawn.backward[0])[:2]]
    below = next(box for box in drawn.boxes if box.name == "c")
    assert start[1] == below.top  # a gradient starts at what was computed


def test_a_box_is_named_as_in_formulas():
    boxes = drawing(graph_of("tau", "dq_gain", "inv_std")).boxes
    assert [box.sign for box in boxes] == [("\u03c4", ""), ("dq", "gain"), ("inv_std", "")]


def graph_of(*names: str) -> TensorGraph:
    return TensorGraph(tuple(TensorNode(n, "input", "()") for n in names), (), frozenset())


def test_the_numbers_of_a_graph_are_those_of_torch(shown):
    (graph,) = blocks(shown("batch_norm"), TensorGraph)
    numbers, batch = numbers_of(graph.numbered)
    assert str(batch).startswith("Random data for N = 3, C = 2,")
    assert len(numbers["eps"]) == 1  # no gradient flows to a number
    assert numbers.keys() == {node.name for node in graph.nodes}
    known = {
        name: [torch.tensor([[float(e) for e in row] for row in own.rows]) for own in found]
        for name, found in numbers.items()
    }
    given = {name: known[name][0].requires_grad_() for name in ("x", "gain", "bias")}
    x, gain, bias = given.values()
    y = gain * (x - x.mean(0)) / (x.var(0) + known["eps"][0]).sqrt() + bias
    y.backward(known["y"][1])
    torch.testing.assert_close(y, known["y"][0], rtol=0, atol=0.01)
    for name, t in given.items():
        torch.testing.assert_close(t.grad, known[name][1], rtol=0, atol=0.01)


def test_numbers_are_easy_to_read(proved):
    """1 arrives at a loss, nothing is left of rounding, and a size that is refused has none."""
    chains = {name: found.closed_form.chain for name, found in proved.items()}
    numbers, batch = numbers_of(Numbered(chains["softmax_nll"], 3))
    assert "labels are counted from 1" in str(batch)
    assert numbers["loss"][1].rows == ((1,),)
    assert min(abs(e) for row in numbers["logit_maxes"][1].rows for e in row) == 0
    assert numbers_of(Numbered(chains["batch_norm"], 1)) == ({}, "")


def test_names_of_parts_are_told_before_they_are_used(shown):
    """Of every forward with such names; and softmax as it is written, with no row's maximum."""
    document = shown("softmax")
    told = {"x", "y", "dy", "dx"}
    for section in document.sections:
        for block in section.blocks:
            lines = [*getattr(block, "lines", ())]
            lines += [block.start, *block.steps] if isinstance(block, Derivation) else []
            for line in lines:
                met = {t.name for t in tensors_in(line.right)}
                assert met <= told, (section.title, line)
                told |= {line.left.name} if isinstance(line.left, Tensor) else set()
                shifted = any("shifted" in name for name in met)
                assert not shifted or section.title == STABLE


SYMBOLS = {
    "tau": "<mi>\u03c4</mi>",
    "deps": '<mi class="name">d\u03b5</mi>',
    "beta1": "<msub><mi>\u03b2</mi><mi>1</mi></msub>",
    "xhat": '<mi class="name">x\u0302</mi>',
    "dxhat": '<mi class="name">dx\u0302</mi>',
    "alpha_hat": '<mi class="name">\u03b1\u0302</mi>',
    "dx_hat": '<mi class="name">dx\u0302</mi>',
    "dq_gain": '<msub><mi class="name">dq</mi><mi class="name">gain</mi></msub>',
    "inv_std": '<mi class="name">inv_std</mi>',
    "x_over_rms": '<mi class="name">x_over_rms</mi>',
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_name_is_a_symbol(name):
    assert SYMBOLS[name] in mathml(name)
    assert mathml("eps") != mathml("epsilon")


def test_brackets_between_which_a_line_may_be_broken_are_of_one_size():
    """On two lines each would grow with its own neighbours."""
    a, b, c = (Tensor(f"a_long_name_{k}", (N,)) for k in "abc")
    shown = ElementTree.fromstring(mathml((a - b * Sum(a * c, N)) / c))
    sizes = [(e.get("minsize"), e.get("maxsize")) for e in shown.iter() if e.text in ("(", ")")]
    assert len(shown) > 1 and sizes == [(BROKEN, BROKEN)] * 2
