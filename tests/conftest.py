"""What all tests share."""

import pytest
import torch

import derive


@pytest.fixture(autouse=True)
def _one_thread():
    """Two test processes share two cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def proved():
    """The project's own two, derived and proved once for each test process."""
    return {name: derive.derive(name) for name in ("batch_norm", "softmax_nll")}
