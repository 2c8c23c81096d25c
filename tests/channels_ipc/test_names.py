import re

import pytest

from channels_ipc.names import file_name, new_node, node_of

HOSTILE = [".", "..", ".hidden", "Upper", "upper", "a" * 99, "A" * 99, "x!" + "é" * 90, "a!b", "-"]


def test_node_of_a_process_local_channel():
    node = new_node()
    assert node_of(f"specific.{node}!1f") == node
    assert node_of(f"a.b.{node}!") == node


@pytest.mark.parametrize("name", ["relay", "specific.x!y", "0123456789abcdef", "a.0123!x", "!"])
def test_no_node_in_other_names(name):
    assert node_of(name) is None


def test_file_names_are_fit_and_distinct_whatever_the_name():
    files = [file_name(name) for name in HOSTILE]
    assert all(re.fullmatch(r"=?[a-z0-9_.-]{1,99}", file) for file in files)
    assert not any(file.startswith(".") for file in files)
    assert len({file.lower() for file in files}) == len(HOSTILE)


def test_file_name_is_readable_where_it_can_be():
    assert file_name("relay") == "relay"


@pytest.mark.parametrize("name", HOSTILE)
def test_file_name_stands_for_itself(name):
    assert file_name(file_name(name)) == file_name(name)
