"""The error of a module that is right in one use and wrong in another."""

from derive.language.errors import UnprovedError


class WrongUse(UnprovedError):
    """A use of a module that fails or differs from autograd, with the order of its derivatives."""

    def __init__(self, message: str, order: int):
        super().__init__(message)
        self.order = order

    def __reduce__(self):  # from the process of one of several forwards
        return type(self), (str(self), self.order)
