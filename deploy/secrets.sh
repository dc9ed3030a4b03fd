#!/bin/sh
# Makes the files that docker-compose.yml takes as secrets; what exists already is left as it is.
# Only their folder is closed: containers read the files as users of their own.
set -eu
folder=${1:-secrets}
mkdir -p -m 700 "$folder"
make_secret() {
    [ -s "$folder/$1" ] || printf '%s' "$2" >"$folder/$1"
    chmod 444 "$folder/$1"
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make_secret database_password "$(random)"
make_secret prefect_database_password "$(random)"
make_secret pareto_database_password "$(random)"
make_secret prefect_auth "pareto:$(random)"
[ -e "$folder/endpoint_api_key" ] || : >"$folder/endpoint_api_key"
chmod 444 "$folder/endpoint_api_key"
