"""The torch target: a Program as a Python module that imports torch and nothing else."""
