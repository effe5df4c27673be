#!/usr/bin/env bash
# Put everything that development needs into .venv/ of the checkout. Safe to run again: a step
# whose inputs did not change is skipped. With --run only what the demo and `make dev` need: the
# browser and the shell linter are for tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# retry PURPOSE COMMAND...: three tries with a pause, then name what failed and what it was for.
retry() {
    local purpose=$1 try
    shift
    for try in 1 2 3; do
        "$@" && return 0
        [ "$try" = 3 ] || { say "try $try failed ($purpose), once more in $((try * 5)) s"; sleep $((try * 5)); }
    done
    die "'$*' failed three times. It was for: $purpose"
}

# Quiet, and without a line for each package that one of several local indexes does not have.
pip() {
    .venv/bin/pip -q --disable-pip-version-check "$@" \
        2> >(grep -v 'is ignored: it is neither a file nor a directory' >&2)
}

needs_package() { # command or file, Debian package
    case $1 in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac || missing+=("$2")
}

missing=()
needs_package git git
needs_package python3 python3
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
needs_package npm npm
needs_package /usr/sbin/nginx nginx # notebooks are opened through it
/sbin/ldconfig -p | grep 'libgomp\.so\.1' >/dev/null || missing+=(libgomp1) # LightGBM's wheel needs it
if [ "${1:-}" != --run ]; then
    needs_package chromium chromium
    needs_package shellcheck shellcheck
    needs_package gcc gcc
    needs_package rclone rclone
    needs_package rsync rsync
    needs_package /usr/include/stdio.h libc6-dev
    needs_package /usr/lib/postgresql postgresql
    needs_package /usr/share/fonts/opentype/noto fonts-noto-cjk
fi
if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || die "please install first: apt-get install ${missing[*]}"
    say "installing Debian packages: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # no service is started by being installed
    retry "the list of Debian packages" apt-get update -qq
    LC_ALL=C apt-get install --no-install-recommends --assume-no "${missing[@]}" 2>/dev/null |
        grep -E 'newly installed|^Need to get|additional disk space' | sed 's/^/  /' >&2 || true
    retry "the tools that set-up and the browser tests need" \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

python=$(command -v "${PYTHON3:-python3}")
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Python 3.11 or newer is needed; $python is older. Name another with PYTHON3=..."

# stamp FILE INPUT...: true when FILE was made from exactly these inputs.
fresh() {
    local stamp=$1
    shift
    [ "$(cat "$stamp" 2>/dev/null)" = "$(cat "$@" | sha256sum)" ]
}
stamp() {
    local file=$1
    shift
    cat "$@" | sha256sum >"$file"
}

if ! fresh .venv/setup.stamp setup.cfg pyproject.toml; then
    say "Python packages into .venv/"
    [ -x .venv/bin/pip ] || "$python" -m venv .venv
    retry "the Python packages of Sluice and its tests" pip install -e '.[test]'
    stamp .venv/setup.stamp setup.cfg pyproject.toml
fi

if ! fresh .venv/frontend.stamp package.json package-lock.json contrib/setup/frontend.sh ||
    [ ! -d gateway/web/static/vendor ]; then
    say "front-end files into gateway/web/static/vendor/"
    retry "htmx and the base style sheet" contrib/setup/frontend.sh
    stamp .venv/frontend.stamp package.json package-lock.json contrib/setup/frontend.sh
fi

.venv/bin/pybabel -q compile -d gateway/web/translations 2>/dev/null ||
    die "the translations could not be compiled (gateway/web/translations)"
