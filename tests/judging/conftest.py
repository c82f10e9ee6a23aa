"""The judge on loopback, for every test here."""

import pytest

from tests.judging.faulty_server import serving


@pytest.fixture
def serve():
    """Return a context manager that runs a judge."""
    return serving
