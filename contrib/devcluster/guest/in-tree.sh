#!/bin/sh
# in-tree.sh ROOT [--bind SOURCE TARGET]... -- COMMAND...
# Runs a build step inside a root file system. It is started in namespaces of its own, so an
# interrupted build leaves neither a mount nor a process behind.
set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/shm"
for node in null zero full random urandom tty; do
    : > "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
while [ "$1" = --bind ]; do
    source=$2 target=$root$3
    shift 3
    if [ -d "$source" ]; then
        mkdir -p "$target"
    elif [ ! -e "$target" ]; then
        mkdir -p "$(dirname "$target")"
        rm -f "$target"
        : > "$target"
    fi
    mount --bind "$source" "$target"
done
shift
exec chroot "$root" "$@"
