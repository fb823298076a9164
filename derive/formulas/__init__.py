"""An expression, written."""
