#!/usr/bin/env bash
# The demo's cluster, with a folder, a socket and a port of its own.
#   cluster.sh start | stop | psql [ARGS…] | url | clean
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

home=$STATE/demo
data=$home/data
# A socket's path has at most 107 bytes, and a checkout's path may be longer: the sockets stand under /tmp.
sockets=/tmp/pg_recur-demo-$(printf '%s' "$ROOT" | sha256sum | cut -c1-10)
port=54321

running() { [ -s "$data/postmaster.pid" ] && as_server "$PRIVATE_BIN/pg_ctl" status -D "$data" >/dev/null 2>&1; }

start() {
  if ! running; then
    if [ -s "$data/PG_VERSION" ] && [ "$(cat "$data/PG_VERSION")" != "$PG_MAJOR" ]; then
      say "Replacing the demo's cluster, which is of PostgreSQL $(cat "$data/PG_VERSION")"
      rm -rf "$home"
    fi
    mkdir -p "$home" "$sockets"
    chmod 700 "$sockets"
    [ "$SERVER_USER" = "$(id -un)" ] || chown "$SERVER_USER" "$home" "$sockets"
    if [ ! -s "$data/PG_VERSION" ]; then
      say "Creating a private cluster in $data"
      as_server "$PRIVATE_BIN/initdb" -D "$data" -U postgres --auth=trust --encoding=UTF8 --locale=C >/dev/null
      as_server tee -a "$data/postgresql.conf" >/dev/null <<CONF
shared_preload_libraries = 'pg_recur'
listen_addresses = ''
unix_socket_directories = '$sockets'
port = $port
CONF
    fi
    as_server "$PRIVATE_BIN/pg_ctl" start -w -D "$data" -l "$home/server.log" >/dev/null ||
      { tail -n 20 "$home/server.log" >&2; die "the server did not start; its log is $home/server.log"; }
  fi
  # For a newcomer who looks for the cluster in the checkout.
  [ "$home" = "$ROOT/.demo" ] || ln -sfn "$home" "$ROOT/.demo"
}

stop() {
  if running; then
    as_server "$PRIVATE_BIN/pg_ctl" stop -w -m fast -D "$data" >/dev/null
    echo "The demo's cluster has stopped."
  else
    echo "The demo's cluster is not running."
  fi
}

case ${1:-} in
  start) start ;;
  stop) [ -n "${PG_CONFIG:-}" ] || { echo "There is no cluster here."; exit 0; }; stop ;;
  psql)
    shift
    [ -s "$data/PG_VERSION" ] || die "there is no cluster yet; make demo creates it"
    start
    as_server "$PRIVATE_BIN/psql" -h "$sockets" -p "$port" -U postgres -d demo "$@" ;;
  url) echo "host=$sockets port=$port user=postgres dbname=demo" ;;
  clean)
    [ -z "${PG_CONFIG:-}" ] || { ! running || stop; }
    as_root rm -rf "$sockets" "$STATE"
    rm -f "$ROOT/.demo"
    echo "Removed servers and clusters. Packages and cargo-pgrx stay; cargo clean removes the builds." ;;
  *) die "usage: cluster.sh start | stop | psql [ARGS] | url | clean" ;;
esac
