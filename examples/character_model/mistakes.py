"""What a user can get wrong."""


class Mistake(Exception):
    """The question cannot be answered; the message is one line that says why, and the remedy."""
