#!/bin/sh
# PostgreSQL's image runs this once, when it creates the cluster. The role of the service is no superuser.
set -eu
psql --username="$POSTGRES_USER" --dbname=postgres --set=ON_ERROR_STOP=1 \
  --set=password="$THAIQR_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE thaiqr LOGIN PASSWORD :'password';
CREATE DATABASE thaiqr OWNER thaiqr;
SQL
