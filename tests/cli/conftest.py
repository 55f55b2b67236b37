"""What the tests of commands share."""

from __future__ import annotations

import pytest

from tests.recombination.igor_files import mouse_files


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of a recombination model; tests do not change it."""
    return mouse_files().write(tmp_path_factory.mktemp("model") / "mouse")
