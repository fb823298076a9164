"""Errors of the user."""


class Mistake(Exception):
    """Invalid input; the message is one line with the reason and the remedy."""
