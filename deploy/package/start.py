"""Starts `thaiqr-server` from the folder of the wheel, which has the modules of the service side by side."""

import sys
from pathlib import Path


def main() -> None:
    # First, so that no other package in the environment can take the place of one of ours.
    sys.path.insert(0, str(Path(__file__).parent))
    from config import command_line

    command_line.main()
