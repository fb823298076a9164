"""Ctrl-C between two steps."""

from __future__ import annotations

import signal


class Interrupt:
    """Ctrl-C, handled between two steps. A second one stops immediately.

    Inside the ``with``, calling it returns whether Ctrl-C was pressed.
    """

    requested = False

    def __enter__(self) -> Interrupt:
        self._previous = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(self, *error) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def __call__(self) -> bool:
        return self.requested

    def _request(self, number, frame) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
