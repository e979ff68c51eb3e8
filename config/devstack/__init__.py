"""One instance of everything on one machine: what `make run` starts.

Uses DATABASE_URL and REDIS_URL where given, else starts its own PostgreSQL and Valkey under DATA_DIR.
For trying out and for development; a deployment runs the same processes under its own supervision.
"""
