#!/usr/bin/env bash
# Fetch the pinned front-end packages and copy the files that pages use into the package.
set -euo pipefail
cd "$(dirname "$0")/../.."

npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
vendor=gateway/web/static/vendor
rm -rf "$vendor.new"
mkdir -p "$vendor.new"
cp node_modules/htmx.org/dist/htmx.min.js "$vendor.new/htmx.min.js"
cp node_modules/htmx.org/LICENSE "$vendor.new/htmx.LICENSE.txt"
cp node_modules/@picocss/pico/css/pico.min.css "$vendor.new/pico.min.css"
cp node_modules/@picocss/pico/LICENSE.md "$vendor.new/pico.LICENSE.txt"
rm -rf "$vendor"
mv "$vendor.new" "$vendor"
