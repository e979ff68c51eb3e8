"""One instance of all processes on one machine, which `make run` starts.

It uses DATABASE_URL and REDIS_URL if given, else it starts its own PostgreSQL and Valkey under DATA_DIR.
It is for trials and development; a deployment runs the same processes under its own supervisor.
"""


class StartError(Exception):
    """The instance cannot start. The message says why and what to do."""
