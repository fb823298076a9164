"""The mathematics: one file for each function, and nothing about it anywhere else."""
