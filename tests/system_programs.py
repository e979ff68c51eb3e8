"""Programs of the system that tests run beside the service."""

import os
import shutil

import pytest


def find_program(name: str, package: str) -> str:
    """Its path. Skips the test if it is not installed. A person's PATH may lack the programs of /usr/sbin."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(
            f"{name} is not installed (on Debian: apt install {package}; .ci/run does it where it may)"
        )
    return found
