"""What several tests share is made once, by one of the test processes."""

import os

import pytest

# Under xdist the group is a part of the name by which tests are handed out.
SEVERAL = "PYTEST_XDIST_WORKER" in os.environ


def group_of(request) -> str:
    if SEVERAL:
        return request.node.nodeid.rpartition("@")[2]
    return request.node.get_closest_marker("xdist_group").args[0]


@pytest.fixture(scope="module")
def made():
    return []


@pytest.mark.parametrize("name", ["tanh"])
def test_all_of_one_forward_is_done_by_one_process(name, derived, request):
    assert group_of(request) == "tanh"


@pytest.mark.parametrize("name", ["one", "other"])
def test_so_is_what_a_module_makes_by_its_name(name, made, request):
    assert group_of(request) == f"test_sharing {name}"


def test_and_what_it_makes_without(made, request):
    assert group_of(request) == "test_sharing"
