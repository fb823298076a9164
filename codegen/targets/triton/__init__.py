"""The Triton target: kernels for GPUs."""
