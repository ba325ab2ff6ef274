# Names and functions that the scripts share. Sourcing it changes nothing on the machine.
#
#   PG_CONFIG      the server to build for (default: the newest that Debian's packages have installed)
#   PG_MAJOR       its major version
#   STATE          a folder that the server's user can reach: servers, mirrors, clusters
#   SERVER_USER    the user that runs the server: PostgreSQL refuses to run as root
#   PRIVATE_PG     a private mirror of that PostgreSQL; the extension is installed there and nowhere else
#   PRIVATE_BIN    the mirror's programs

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CARGO_PGRX_VERSION=0.18.1
CARGO_DENY_VERSION=0.20.2
SUPPORTED_MAJORS="18 17 16 15" # newest first: the order in which they are preferred

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
install_packages() {
  command -v apt-get >/dev/null || die "missing: $*; install them, since this machine has no apt-get"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die "missing: $*; install them, or sudo so that this script can"
  say "Installing packages: $*"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Runs a command as the server's user, from a folder that this user may enter.
as_server() {
  if [ "$SERVER_USER" = "$(id -un)" ]; then "$@"; else (cd / && runuser -u "$SERVER_USER" -- "$@"); fi
}

if [ -z "${PG_CONFIG:-}" ]; then
  for major in $SUPPORTED_MAJORS; do
    if [ -x "/usr/lib/postgresql/$major/bin/pg_config" ] && [ -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
      PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
      break
    fi
  done
fi
if [ -n "${PG_CONFIG:-}" ]; then
  [ -x "$PG_CONFIG" ] || die "PG_CONFIG=$PG_CONFIG is not an executable; give the path of a server's pg_config"
  PG_MAJOR=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
  case " $SUPPORTED_MAJORS " in
    *" $PG_MAJOR "*) ;;
    *) die "$PG_CONFIG is PostgreSQL $PG_MAJOR; supported: $SUPPORTED_MAJORS" ;;
  esac
fi

if [ "$(id -u)" = 0 ]; then
  SERVER_USER=postgres
  # The checkout may stand under a home that only root can enter.
  STATE=/var/tmp/pg_recur-$(printf '%s' "$ROOT" | sha256sum | cut -c1-10)
else
  SERVER_USER=$(id -un)
  STATE=$ROOT/.build
fi
PRIVATE_PG=$STATE/pg${PG_MAJOR:-}
PRIVATE_BIN=${PG_CONFIG:+$PRIVATE_PG$("$PG_CONFIG" --bindir)}
FEATURES="--no-default-features --features pg${PG_MAJOR:-}"
# What the tests and the benchmarks read to start servers.
export PG_RECUR_BIN=$PRIVATE_BIN PG_RECUR_SERVER_USER=$SERVER_USER PG_RECUR_STATE=$STATE
export PGRX_HOME=$STATE/pgrx
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
