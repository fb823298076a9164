"""A forward as a function to call: derived, proved and compared once, with no file written.

    my_norm = gradform.function(MyNorm)          # a Forward

    @gradform.function("x: N C, gain: C")        # a torch function, imported at its first call
    def my_norm(x, gain, eps=1e-6): ...

The lean module is compiled from its text, so a traceback shows its lines. It is kept in the cache
under the hash of the mathematics and of gradform, and of a torch function under that of its code
(``recognized.py``): a second process starts at once, and imports no SymPy for the latter.
"""

from __future__ import annotations

import ast
import functools
import html
import inspect
import re
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, overload

from codegen.called.recognized import digest_of
from codegen.driver.cache import keep, recalled
from codegen.files.dependencies import machinery_hash
from codegen.files.digest import digest
from codegen.files.loading import loaded
from codegen.importing.asked import in_python
from codegen.importing.decorated import DECORATED, request_of
from derive.language.errors import QuestionError
from derive.running.garbage import collected_seldom

if TYPE_CHECKING:
    from codegen.driver.lean import Lean
    from codegen.targets.lean.outside import Outside
    from derive.language.notation.definition import Definition
    from derive.language.notation.forward import Forward
    from derive.proof.proving.proved import Proved

PLACE = re.compile(r"place=Place\([^()]*\)")
_KEPT = ("name", "text", "proof", "sizes")
SHOWN = 12  # digits of a hash, in a traceback
_here = threading.local()  # functions this thread is deriving; detects one that calls itself


@overload
def function(asked: type[Forward], *, limit: float | None = None) -> DerivedFunction: ...


@overload
def function(
    asked: str | Mapping[str, str],
    *,
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
    limit: float | None = None,
) -> Callable[[Callable], DerivedFunction]: ...


def function(
    asked: type[Forward] | str | Mapping[str, str],
    *,
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
    limit: float | None = None,
) -> DerivedFunction | Callable[[Callable], DerivedFunction]:
    """A function whose backward is derived and proved, ready to be called.

    ``asked`` is a `Forward`; or the axes of the tensors of a torch function that this decorates,
    ``"x: N C, labels: N"``. Nothing is derived before the first call, or `DerivedFunction.derive`.
    ``sizes`` are those of an example, for a torch function that does not accept all sizes;
    ``options`` the values of non-tensor arguments, ``"p=0.1"``; ``limit`` is in seconds,
    for derivation and proof.

    Raises `QuestionError` for any other argument.
    """
    if isinstance(asked, type):
        from derive.language.notation.forward import Forward  # imports SymPy

        if issubclass(asked, Forward):
            return DerivedFunction(asked, limit=limit)
    if isinstance(asked, (str, Mapping)):
        return lambda written: DerivedFunction(
            None, request_of(written, asked, sizes, options), limit=limit
        )
    what = getattr(asked, "__name__", None) or f"an object of {type(asked).__name__}"
    if hasattr(asked, "apply") and hasattr(asked, "backward"):
        raise QuestionError(
            f"function({what}): that has a backward already",
            f'check it: gradform.check({what}, "x: N C")',
        )
    raise QuestionError(
        f"function({what}): that is neither a Forward nor the axes of tensors",
        f"pass a Forward, or name the axes of the function's tensors: {DECORATED}",
    )


class DerivedFunction:
    """A function with a derived backward, called like that of its lean module.

    ``source`` is the text of that module, ``proof`` the statement that was proved, ``derivation``
    shows how the backward is found, ``forward`` is the mathematics.
    """

    def __init__(
        self,
        forward: type[Forward] | None,
        imported: tuple[Callable, Any, Any, Any] | None = None,
        limit: float | None = None,
    ):
        self._forward, self._imported, self._limit = forward, imported, limit
        self._run: Callable | None = None
        self._text = self._proof = self._sizes = ""
        self._proved: Proved | None = None
        self._alone = threading.Lock()  # a function is derived once even if two threads call it
        self._finding: Future | None = None
        self._is_awaited = True  # silent unless derived on demand
        if imported is not None:
            self.__name__ = type(imported[0]).__name__  # of an object
            functools.update_wrapper(self, imported[0])
        else:
            self.__name__, self.__doc__ = forward.definition.snake, forward.definition.doc
            self.__module__, self.__qualname__ = forward.__module__, self.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._ready()
        return self._run(*args, **kwargs)

    def derive(self) -> DerivedFunction:
        """Derive now instead of at the first call. Returns the function itself.

        Raises `QuestionError` for unsupported mathematics, and `UnprovedError` if the proof fails
        or the code disagrees with autograd.
        """
        self._ready()
        return self

    @property
    def forward(self) -> type[Forward]:
        """The mathematics."""
        if self._forward is None:
            from codegen.importing.driver import from_torch  # half a second to import

            try:
                self._forward = from_torch(*self._imported)
            except QuestionError as error:
                raise in_python(error) from None
        return self._forward

    @property
    def source(self) -> str:
        """The text of the lean module."""
        self._ready()
        return self._text

    @property
    def proof(self) -> str:
        """The proved sizes, and how they were proved, in words."""
        self._ready()
        return self._proof

    @property
    def derivation(self) -> Proved:
        """The derivation, step by step; a notebook shows it."""
        if self._proved is None:
            self._proved = _derived(self._outside(), self._limit, _said(self))
        return self._proved

    def write(self, path: str | Path, force: bool = False) -> Path:
        """Write the module to a file, which needs nothing but torch. Returns its path.

        Raises `QuestionError` for a file that gradform did not write or that was edited; ``force``
        replaces it.
        """
        from derive.running.writing import sealed, write_all

        path, remedy = Path(path), "name another file, or replace it: write(..., force=True)"
        write_all({path: sealed(self.source)}, remedy, force=force or None)
        return path

    def __repr__(self) -> str:
        if self._run is None:
            return f"<gradform function {self.__name__}, not derived yet>"
        arguments = ", ".join(self.signature.parameters)
        return f"<gradform function {self.__name__}({arguments}), proved for {self._sizes}>"

    def _repr_latex_(self) -> str | None:
        """The statements, and the gradients once they are derived here; derives nothing."""
        if self._forward is None:
            return None
        from derive.language.formulas.latex import latex_statements

        known, backward = self._forward, ()
        if self._proved is not None:
            known, backward = self._proved, self._proved.closed_form.shown
        shown = ((s.tensor, s.expression) for s in known.definition.statements)
        return latex_statements([*shown, *backward])

    def _repr_html_(self) -> str:
        """The formulas, with the code folded; before it is derived those of the forward alone."""
        name = html.escape(repr(self))
        if self._run is None:
            return f"<code>{name}</code>{self._forward_in_html()}"
        formulas = html.escape(ast.get_docstring(ast.parse(self._text)) or "")
        return (
            f"<code>{name}</code><pre>{formulas}</pre>"
            f"<details><summary>code</summary><pre>{html.escape(self._text)}</pre></details>"
        )

    def _forward_in_html(self) -> str:
        if self._forward is None:
            return ""
        from derive.language.formulas.text import formula

        statements = self._forward.definition.statements
        lines = "\n".join(f"{s.name} = {formula(s.expression)}" for s in statements)
        return f"<pre>{html.escape(lines)}</pre>"

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the module's function."""
        return inspect.signature(self.derive()._run)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature for `inspect.signature`; derives nothing, because editors ask for it."""
        if self._run is None and self._imported is None:
            raise AttributeError("__signature__")
        return inspect.signature(self._run or self._imported[0])

    # As a function it is pickled by its name, and its own copy.

    def __reduce__(self) -> str | tuple:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is self:
            return self.__qualname__
        if self._forward is None or self._imported is not None:
            raise PicklingError(
                f"{self.__name__} is not found as {self.__module__}.{self.__qualname__}: define it "
                "at the top of a module, under its own name"
            )
        return DerivedFunction, (self._forward, None, self._limit)

    def __copy__(self) -> DerivedFunction:
        return self

    def __deepcopy__(self, memo: dict) -> DerivedFunction:
        return self

    def _ready(self) -> bool:
        """Find the function of the module; torch.compile has it found while it traces. In another
        thread, which is outside of every transform round the call, and is not waited for where
        the wait is interrupted.

        Raises `QuestionError` where that asks for the function itself.
        """
        if self._run is not None:
            return True
        outer = getattr(_here, "found", ())
        if self in outer:
            raise QuestionError(
                f"{self.__name__} calls itself, so it has no formula",
                "give it another name than the torch function that it calls",
            )
        with self._alone:
            if self._finding is None or self._finding.done():
                self._finding = Future()
                arguments = self._finding, (*outer, self)
                threading.Thread(target=self._find_into, args=arguments, daemon=True).start()
            finding, self._is_awaited = self._finding, True
        try:
            finding.result()
        except KeyboardInterrupt:
            self._is_awaited = False
            raise
        return True

    # As torch.compiler.assume_constant_result marks it, which imports the compiler: two seconds.
    _ready._dynamo_marked_constant = True

    def _find_into(self, finding: Future, found: tuple[DerivedFunction, ...]) -> None:
        _here.found = found
        try:
            self._run is None and self._find()
        except BaseException as error:
            finding.set_exception(error)
        else:
            finding.set_result(None)

    @collected_seldom()
    def _find(self) -> None:
        code = self._imported and digest_of(*self._imported)
        key = code and digest(code, machinery_hash())
        found = _recalled(key) if key else None
        if found is None:
            own = _key(self.forward.definition)
            found = _recalled(own)
            if found is None:
                made = self._derived()
                sizes = "every size" if self._proved.every_size else "small batches alone"
                name = self.forward.definition.snake
                found = [name, made.text, self._proved.summary, sizes]
                if made.cut_short:
                    key = own = None
            for name in filter(None, {key, own}):
                keep(name, found)
        name, self._text, self._proof, self._sizes = found
        module = loaded(self._text, name, digest(self._text)[:SHOWN])
        self._run = getattr(module, name)

    def _outside(self) -> Outside:
        from codegen.targets.lean.outside import outside_of

        return outside_of(self.forward.definition)

    def _derived(self) -> Lean:
        from codegen.driver.lean import lean_module  # imports all targets: a second

        progress, outside = _said(self), self._outside()
        self._proved = self._proved or _derived(outside, self._limit, progress)
        made = lean_module(self.forward, outside, self._proved, progress, self._limit)
        progress("")
        return made


def _derived(outside: Outside, limit: float | None, progress: Callable[[str], None]) -> Proved:
    from derive.derivation import derive_definition

    return derive_definition(outside.inside, progress, limit)


def _recalled(key: str) -> list[str] | None:
    """Read an entry of the cache; None if it is missing or malformed."""
    found = recalled(key)
    fits = isinstance(found, list) and [type(part) for part in found] == [str] * len(_KEPT)
    return found if fits else None


def _said(function: DerivedFunction) -> Callable[[str], None]:
    """Print progress on a terminal or in a notebook, and nothing elsewhere."""
    if _is_kernel() and not sys.stderr.isatty():
        return _in_notebook(function)
    if not sys.stderr.isatty():
        return lambda what: None

    def said(what: str) -> None:
        line = f"{function.__name__}: {what}" if what else ""
        if function._is_awaited:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    return said


def _is_kernel() -> bool:
    """True if a notebook runs in this process; IPython may be imported without one."""
    known = sys.modules.get("IPython")
    return known is not None and hasattr(known.get_ipython(), "kernel")


def _in_notebook(function: DerivedFunction) -> Callable[[str], None]:
    """Show a line below the cell, empty at the end."""
    from IPython.display import display

    shown: list = []

    def said(what: str) -> None:
        data = {"text/plain": f"{function.__name__}: {what}" if what else ""}
        if shown:
            shown[0].update(data, raw=True)
        elif what:
            shown.append(display(data, raw=True, display_id=True))

    return said


def _key(definition: Definition) -> str:
    """The hash of the mathematics and of gradform, independent of files and lines."""
    tensors = {t for s in definition.statements for t in s.expression.atoms(type(s.tensor))}
    tensors |= {*definition.inputs, *(s.tensor for s in definition.statements)}
    told = sorted(f"{t.name} {t.role} {t.home} {t.axes} {t.assumptions0}" for t in tensors)
    fixed = sorted(f"{axis} {n}" for axis, n in definition.fixed.items())
    parts = [PLACE.sub("", repr(definition)), *told, *fixed, machinery_hash()]
    return digest(*parts)
