"""Judges a handwritten backward, a `torch.autograd.Function`.

In: a Function and the axes of its tensors. Out: of each gradient whether it is that of the forward,
proved or refuted; where nothing can be traced, a comparison in numbers.
"""

from importlib import import_module

PUBLIC = {"assert_gradient": "checking", "check_function": "checking"}  # with their modules
__all__ = list(PUBLIC)


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PUBLIC[name]}"), name)
