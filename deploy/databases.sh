#!/bin/sh
# Run by the PostgreSQL image in a new cluster: a database and a user each for Prefect and for records.
set -eu
secrets=${PARETO_SECRETS:-/run/secrets}
for name in prefect pareto; do
    password=$(cat "$secrets/${name}_database_password")
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres \
        --set=name="$name" --set=password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
SQL
done
