#!/usr/bin/env bash
# Installs what is missing on a Debian machine: packages by name, and the pinned cargo-pgrx.
# Quick where nothing is missing.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/env.sh"

command -v cargo >/dev/null || die "cargo is not installed; pg_recur needs Rust 1.95 or later (https://rustup.rs)"

wanted=""
need() { command -v "$1" >/dev/null || wanted="$wanted $2"; }
need cc build-essential
need clang clang
need pkg-config pkg-config
# For the tests of the consumers in examples/ and of PgBouncer, and for fetching servers.
need python3 python3
python3 -c 'import ensurepip, venv' 2>/dev/null || wanted="$wanted python3-venv"
need node nodejs
need npm npm
need curl curl
[ -x /usr/sbin/pgbouncer ] || need pgbouncer pgbouncer
# cargo-pgrx runs the in-server tests through sudo when root starts them.
[ "$(id -u)" != 0 ] || need sudo sudo
# Debian's server without its headers: the package that has them belongs to the same version.
case ${PG_CONFIG:-} in
  /usr/lib/postgresql/*)
    [ -e "$("$PG_CONFIG" --includedir-server 2>/dev/null)/postgres.h" ] ||
      wanted="$wanted postgresql-server-dev-$PG_MAJOR" ;;
esac
ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1 || wanted="$wanted libclang-dev"

# No server: the newest one that this machine's packages offer.
if [ -z "${PG_CONFIG:-}" ]; then
  command -v apt-get >/dev/null || die "there is no PostgreSQL here; pass PG_CONFIG=/path/to/pg_config"
  as_root apt-get update -qq
  for major in $SUPPORTED_MAJORS; do
    if apt-cache show "postgresql-server-dev-$major" >/dev/null 2>&1; then
      wanted="$wanted postgresql-$major postgresql-server-dev-$major"
      break
    fi
  done
  [[ $wanted == *postgresql-* ]] ||
    die "no PostgreSQL of $SUPPORTED_MAJORS among this machine's packages; pass PG_CONFIG=/path/to/pg_config"
fi
if [ -n "$wanted" ]; then
  config=/etc/postgresql-common/createcluster.conf
  if [[ $wanted == *postgresql-* ]] && [ ! -e "$config" ]; then
    # Debian's package would create and start a cluster of its own, which is switched off for this installation.
    install_packages postgresql-common
    as_root cp "$config" "$config.pg_recur"
    as_root sed -i -E 's/^#?create_main_cluster.*/create_main_cluster = false/' "$config"
    install_packages $wanted
    as_root mv "$config.pg_recur" "$config"
  else
    install_packages $wanted
  fi
  . "$here/env.sh"
  [ -n "${PG_CONFIG:-}" ] || die "the packages came without a server's pg_config; pass PG_CONFIG=/path/to/pg_config"
fi
[ -x "$("$PG_CONFIG" --bindir)/initdb" ] || die "$PG_CONFIG names no server: $("$PG_CONFIG" --bindir)/initdb is missing"
[ -e "$("$PG_CONFIG" --includedir-server)/postgres.h" ] ||
  die "the server's headers are missing: install postgresql-server-dev-$PG_MAJOR"
if [ "$(id -u)" = 0 ]; then
  id "$SERVER_USER" >/dev/null 2>&1 || as_root useradd --system --shell /bin/bash "$SERVER_USER"
fi

if ! cargo pgrx --version 2>/dev/null | grep -q " $CARGO_PGRX_VERSION\$"; then
  say "Installing cargo-pgrx $CARGO_PGRX_VERSION (about 6 minutes on 2 cores, once)"
  cargo install cargo-pgrx --version "=$CARGO_PGRX_VERSION" --locked
fi

# A test unpacks promtool from Debian's package: apt-get must know where it is.
if command -v apt-cache >/dev/null && ! apt-cache show prometheus >/dev/null 2>&1; then
  as_root apt-get update -qq || echo "    apt-get knows no packages: the test of the alert rules will fail"
fi

mkdir -p "$ROOT/.cargo"
"$here/mirror-postgres.sh"
"$here/pg-cron.sh"

if ! grep -qxF "pg$PG_MAJOR = \"$PRIVATE_BIN/pg_config\"" "$PGRX_HOME/config.toml" 2>/dev/null; then
  say "Registering PostgreSQL $PG_MAJOR with cargo-pgrx"
  mkdir -p "$PGRX_HOME"
  {
    echo "[configs]"
    grep '^pg[0-9]* *=' "$PGRX_HOME/config.toml" 2>/dev/null | grep -v "^pg$PG_MAJOR " || true
    echo "pg$PG_MAJOR = \"$PRIVATE_BIN/pg_config\""
  } > "$PGRX_HOME/config.toml.new"
  mv "$PGRX_HOME/config.toml.new" "$PGRX_HOME/config.toml"
fi

# Plain cargo commands (clippy, check, test) use the same PostgreSQL as make.
printf '[env]\nPGRX_HOME = "%s"\n' "$PGRX_HOME" > "$ROOT/.cargo/config.toml.new"
mv "$ROOT/.cargo/config.toml.new" "$ROOT/.cargo/config.toml"
