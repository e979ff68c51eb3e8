"""DATA_DIR is an instance's own folder; whatever else is there stays as it is."""

from pathlib import Path

import pytest

from config.devstack.instance import Instance, NotOursError, wipe


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(NotOursError, match="DATA_DIR"):
        Instance(tmp_path)
    with pytest.raises(NotOursError, match="DATA_DIR"):
        wipe(tmp_path)
    assert (tmp_path / "precious").read_text() == "x"
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_an_instances_folder_is_taken_again_and_wiped(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Instance(folder) as instance:
        instance.note("port", 1)
    with Instance(folder) as again:
        assert again.known == {"port": 1}
    wipe(folder)
    assert not folder.exists()
