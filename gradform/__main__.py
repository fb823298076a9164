"""``python -m gradform``: the console script ``gradform``."""

from codegen.__main__ import gradform

if __name__ == "__main__":  # the processes that derive in parallel import this file
    gradform()
