#!/bin/sh
# Inside the new root file system: the broker's own Python, with pyslurm as PyPI has it.
set -eu
venv=/opt/sluice-broker
[ -x $venv/bin/pip ] || python3 -m venv $venv
$venv/bin/pip install "gunicorn==$GUNICORN_VERSION"
# pyslurm 25.11 compares major releases and uses the older job-id signatures. The overlay states the
# release and switches on Slurm's own SLURM_BACKWARD_COMPAT; pyslurm's source stays untouched.
include=/tmp/include
mkdir -p $include/slurm
for header in /usr/include/slurm/*.h; do
    ln -sf "$header" $include/slurm/
done
cp --remove-destination /tmp/overlay/slurm/*.h $include/slurm/
export SLURM_INCLUDE_DIR=$include
SLURM_LIB_DIR=$(dirname "$(find /usr/lib -name libslurm.so | head -n 1)")
export SLURM_LIB_DIR
flags="-w -Wno-incompatible-pointer-types"
flags="$flags -DESLURM_ERROR_ON_DESC_TO_RECORD_COPY=ESLURM_INVALID_PARTITION_NAME"
CFLAGS=$flags $venv/bin/pip install --no-binary pyslurm "pyslurm==$PYSLURM_VERSION"
