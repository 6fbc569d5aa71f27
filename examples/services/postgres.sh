#!/bin/sh
# postgres.sh FOLDER: PostgreSQL with its data in FOLDER, which is made on the first start; the user
# postgres gets DATABASE_PASSWORD.
set -eu
data=$1
programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n1)

if [ ! -s "$data/PG_VERSION" ]; then
  passwords=$(mktemp)
  printf '%s\n' "$DATABASE_PASSWORD" >"$passwords"
  "$programs/initdb" --pgdata "$data" --username postgres --auth scram-sha-256 --pwfile "$passwords" --no-sync
  rm "$passwords"
fi
unset DATABASE_PASSWORD
exec "$programs/postgres" -D "$data" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
