"""What `python3 -m venv FOLDER` does for a reader of the guide: an environment whose `pip` needs no network.

It installs the client of this tree, with what that depends on, and nothing else.
"""

import sys
import sysconfig
import venv
from pathlib import Path
from types import SimpleNamespace

from tests.stack import ROOT

PIP = """#!/bin/sh
test "$*" = "install ./clients/python" || {{ echo "No package $*" >&2; exit 1; }}
printf '%s\\n' "{client}" "{packages}" > "{folder}/shop.pth"
"""


class WithClient(venv.EnvBuilder):
    def post_setup(self, context: SimpleNamespace) -> None:
        (folder,) = Path(context.env_dir).glob("lib/python3*/site-packages")
        client, packages = ROOT / "clients/python/src", sysconfig.get_path("purelib")
        pip = Path(context.bin_path, "pip")
        pip.write_text(PIP.format(client=client, packages=packages, folder=folder))
        pip.chmod(0o700)


if __name__ == "__main__":
    WithClient(symlinks=True).create(sys.argv[1])
