#!/bin/sh
# Hands a container's secrets to its program, as the variables that this knows; then becomes it.
# They stand in no image, compose file, command or process list.
set -eu
secrets=${PARETO_SECRETS:-/run/secrets}
take() {
    if [ -s "$secrets/$2" ]; then
        value=$(cat "$secrets/$2")
        export "$1=$value"
    fi
}
take PGPASSWORD database_password
take PREFECT_API_AUTH_STRING prefect_auth
take PREFECT_SERVER_API_AUTH_STRING prefect_auth
take ENDPOINT_API_KEY endpoint_api_key
exec "$@"
