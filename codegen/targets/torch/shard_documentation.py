"""The page at the top of a module whose axes are split."""
def sharded_documentation(sharded):
    return ("",)
