"""DATA_DIR is an instance's own folder; whatever else is there stays as it is."""

from pathlib import Path

import pytest

from config.devstack.instance import Instance, NotOursError, wipe


def test_foreign_folder_is_not_used_as_data_dir(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(NotOursError, match="DATA_DIR"):
        Instance(tmp_path)
    with pytest.raises(NotOursError, match="DATA_DIR"):
        wipe(tmp_path)
    assert (tmp_path / "precious").read_text() == "x"
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_own_data_folder_is_reused_and_wiped(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Instance(folder) as instance:
        instance.remember("port", 1)
    with Instance(folder) as again:
        assert again.state == {"port": 1}
    wipe(folder)
    assert not folder.exists()
