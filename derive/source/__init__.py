"""The lines of a class body, as they were typed."""
