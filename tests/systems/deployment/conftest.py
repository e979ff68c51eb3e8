"""One build and one installation for all tests of this folder."""

from pathlib import Path

import pytest

from tests import database_template
from tests.systems.deployment import installation
from tests.systems.deployment.installation import Installation


@pytest.fixture(scope="package")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    installation.build(folder)
    return folder


@pytest.fixture(scope="package")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="package")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation with tables."""
    folder = tmp_path_factory.mktemp("installed")
    installation.install(wheel, folder / "environment")
    url = database_template.new_database("installed")
    return Installation(folder / "environment", folder / "home", settings={"DATABASE_URL": url})
