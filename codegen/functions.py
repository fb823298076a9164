"""A forward as a function that is called: derived, proved and compared once, with no file written.

    my_norm = gradform.function(MyNorm)          # a Forward

    @gradform.function("x: N C, gain: C")        # a torch function, imported at its first call
    def my_norm(x, gain, eps=1e-6): ...

The lean module is compiled from its text, so a traceback shows its lines. It is kept in the cache
under the hash of the mathematics and of gradform, so a second process starts at once.
"""

from __future__ import annotations

import functools
import hashlib
import html
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from codegen.cache import keep, recalled
from codegen.dependencies import machinery_hash
from codegen.loading import loaded
from derive.language.errors import QuestionError
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.proving.proved import Proved
from derive.running.garbage import collected_seldom

if TYPE_CHECKING:
    from codegen.targets.lean.outside import Outside

ASKED = '@gradform.function("x: N C, gain: C")'
PLACE = re.compile(r"place=Place\([^()]*\)")
_KEPT = ("text", "proof", "sizes")
SHOWN = 12  # digits of a hash, in a traceback


@overload
def function(asked: type[Forward], *, limit: float | None = None) -> Function: ...


@overload
def function(
    asked: str | Mapping[str, str],
    *,
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
) -> Callable[[Callable], Function]: ...


def function(
    asked: type[Forward] | str | Mapping[str, str],
    *,
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
) -> Function | Callable[[Callable], Function]:
    """A function whose backward is derived and proved, ready to be called.

    ``asked`` is a `Forward`; or the axes of the tensors of a torch function that this decorates,
    ``"x: N C, labels: N"``. Nothing is derived before the first call, or `Function.derive`.
    ``sizes`` are those of an example, for a torch function that does not accept all sizes;
    ``limit`` is in seconds, for derivation and proof.

    Raises `QuestionError` for anything else.
    """
    if isinstance(asked, type) and issubclass(asked, Forward):
        return Function(asked, limit=limit)
    if isinstance(asked, (str, Mapping)):
        return lambda written: Function(None, (written, asked, sizes), limit=limit)
    what = getattr(asked, "__name__", repr(asked))
    raise QuestionError(
        f"function({what}): that is neither a Forward nor the axes of tensors",
        f"pass a Forward, or name the axes of the function's tensors: {ASKED}",
    )


class Function:
    """A function with a derived backward, which is called as its lean module's is.

    ``source`` is the text of that module, ``proof`` says what was proved, ``derivation`` shows how
    the backward is found, ``forward`` is the mathematics.
    """

    def __init__(
        self,
        forward: type[Forward] | None,
        imported: tuple[Callable, object, object] | None = None,
        limit: float | None = None,
    ):
        self._forward, self._imported, self._limit = forward, imported, limit
        self._run: Callable | None = None
        self._text = self._proof = self._sizes = ""
        self._proved: Proved | None = None
        if imported is not None:
            functools.update_wrapper(self, imported[0])
        else:
            self.__name__, self.__doc__ = forward.definition.snake, forward.definition.doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._ready()
        return self._run(*args, **kwargs)

    def derive(self) -> Function:
        """Derive now what the first call would. Returns the function itself.

        Raises `QuestionError` for mathematics that is not supported and `UnprovedError` where it is
        not proved, or where what was written does not agree with autograd.
        """
        self._ready()
        return self

    @property
    def forward(self) -> type[Forward]:
        """The mathematics."""
        if self._forward is None:
            from codegen.importing.driver import from_torch  # half a second

            self._forward = from_torch(*self._imported)
        return self._forward

    @property
    def source(self) -> str:
        """The text of the lean module."""
        self._ready()
        return self._text

    @property
    def proof(self) -> str:
        """In words: which sizes were proved, and how."""
        self._ready()
        return self._proof

    @property
    def derivation(self) -> Proved:
        """The derivation, step by step; a notebook shows it."""
        if self._proved is None:
            self._proved = _derived(self._outside(), self._limit, _said(self))
        return self._proved

    def write(self, path: str | Path) -> Path:
        """Write the module to a file, which needs nothing but torch. Returns its path.

        Raises `QuestionError` for a file that gradform did not write.
        """
        from derive.running.writing import write_all

        path = Path(path)
        write_all({path: self.source}, "name another file")
        return path

    def __repr__(self) -> str:
        if self._run is None:
            return f"<gradform function {self.__name__}, not derived yet>"
        arguments = ", ".join(self.signature.parameters)
        return f"<gradform function {self.__name__}({arguments}), proved for {self._sizes}>"

    def _repr_html_(self) -> str:
        text = html.escape(self._text or repr(self))
        said = html.escape(f"proved: {self._proof}" if self._proof else "not derived yet")
        name = html.escape(self.__name__)
        return (
            f"<p><code>{name}</code>: {said}</p>"
            f"<details><summary>code</summary><pre>{text}</pre></details>"
        )

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.derive()._run)

    def _ready(self) -> bool:
        """Find the function of the module; torch.compile has it found while it traces."""
        if self._run is None:
            with ThreadPoolExecutor(1) as alone:  # outside of every transform round the call
                alone.submit(self._find).result()
        return True

    # As torch.compiler.assume_constant_result marks it, which imports the compiler: two seconds.
    _ready._dynamo_marked_constant = True

    @collected_seldom()
    def _find(self) -> None:
        definition = self.forward.definition
        name = _key(definition)
        found = recalled(name)
        if not (isinstance(found, list) and len(found) == len(_KEPT)):
            found = self._derived()
            if not self._proved.cut_short:
                keep(name, found)
        self._text, self._proof, self._sizes = found
        module = loaded(self._text, definition.snake, name[:SHOWN])
        self._run = getattr(module, definition.snake)

    def _outside(self) -> Outside:
        from codegen.targets.lean.outside import outside_of

        return outside_of(self.forward.definition)

    def _derived(self) -> list[str]:
        """What is kept: the text, what was proved, and for which sizes."""
        from codegen.lean import lean_module  # all targets: a second

        progress, outside = _said(self), self._outside()
        self._proved = self._proved or _derived(outside, self._limit, progress)
        text = lean_module(self.forward, outside, self._proved, progress)
        progress("")
        sizes = "every size" if self._proved.every_size else "small batches alone"
        return [text, self._proved.summary, sizes]


def _derived(outside: Outside, limit: float | None, progress: Callable[[str], None]) -> Proved:
    from derive.derivation import derive_definition

    return derive_definition(outside.inside, progress, limit)


def _said(function: Function) -> Callable[[str], None]:
    """Says on a terminal what is being done; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda what: None

    def said(what: str) -> None:
        line = f"{function.__name__}: {what}" if what else ""
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    return said


def _key(definition: Definition) -> str:
    """The hash of the mathematics, and of gradform: files and lines are none of it."""
    tensors = {t for s in definition.statements for t in s.expression.atoms(type(s.tensor))}
    tensors |= {*definition.inputs, *(s.tensor for s in definition.statements)}
    told = sorted(f"{t.name} {t.role} {t.home} {t.axes} {t.assumptions0}" for t in tensors)
    fixed = sorted(f"{axis} {n}" for axis, n in definition.fixed.items())
    parts = [PLACE.sub("", repr(definition)), *told, *fixed, machinery_hash()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
