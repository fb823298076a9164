"""Generated modules. Not edited by hand."""
