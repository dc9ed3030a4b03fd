#!/bin/sh
# Run by the PostgreSQL image in a new cluster: a database and a user each for Prefect and for records.
set -eu
secrets=${PARETO_SECRETS:-/run/secrets}
for name in prefect pareto; do
    file=$secrets/${name}_database_password
    test -s "$file"
    # psql reads the password itself: a command line is seen by every process of the machine.
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres \
        --set=name="$name" --set=file="$file" <<'SQL'
\set password `cat :'file'`
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
SQL
done
