#!/usr/bin/env python
"""Management commands. Without DATABASE_URL they work on the instance that `make run` started."""

import sys

from config import management
from config.devstack.environment import load_env_file

if __name__ == "__main__":
    load_env_file()
    management.run(*sys.argv)
