"""A class body becomes a definition."""
