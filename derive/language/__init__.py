"""The words of the mathematics."""
