#!/bin/sh
# enter.sh ROOT STATE GATEWAY ENVS KIT_LIBRARIES
# The first process of the instance's namespaces: puts the file system together and becomes init.
# Changes go to memory, so the cached root file system stays as it was built and ends with us.
set -eu
root=$1 state=$2 gateway=$3 envs=$4 libraries=$5
new=$state/mnt
mount -t tmpfs -o mode=755 tmpfs "$new"
mkdir "$new/upper" "$new/work" "$new/root"
layers="lowerdir=$root,upperdir=$new/upper,workdir=$new/work"
mount -t overlay -o "$layers" overlay "$new/root"
new=$new/root
mount -t proc proc "$new/proc"
mount -t sysfs -o ro sysfs "$new/sys"
mount -t tmpfs -o mode=755 tmpfs "$new/run"
mount -t tmpfs -o mode=1777 tmpfs "$new/tmp"
mount -t tmpfs -o mode=755 tmpfs "$new/dev"
mkdir "$new/dev/shm" "$new/dev/pts" "$new/dev/mqueue"
mount -t tmpfs -o mode=1777 tmpfs "$new/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$new/dev/pts"
mount -t mqueue mqueue "$new/dev/mqueue"
ln -s pts/ptmx "$new/dev/ptmx"
ln -s /proc/self/fd "$new/dev/fd"
ln -s /proc/self/fd/0 "$new/dev/stdin"
ln -s /proc/self/fd/1 "$new/dev/stdout"
ln -s /proc/self/fd/2 "$new/dev/stderr"
umask 0
mknod "$new/dev/null" c 1 3
mknod "$new/dev/zero" c 1 5
mknod "$new/dev/full" c 1 7
mknod "$new/dev/random" c 1 8
mknod "$new/dev/urandom" c 1 9
mknod "$new/dev/tty" c 5 0
mknod -m 666 "$new/dev/fuse" c 10 229
# the cards: Slurm wants character devices, nobody opens them
for card in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    mknod "$new/dev/nvidia$card" c 195 "$card"
done
umask 022
bind() {
    mkdir -p "$2"
    mount --bind "$1" "$2"
}
bind "$state/home" "$new/home"
bind "$state/log" "$new/var/log/slurm"
bind "$state/etc" "$new/run/devcluster"
bind "$state/../run" "$new/run/sluice"
bind "$envs" "$new/opt/envs"
mount -o remount,bind,ro "$new/opt/envs"
bind "$gateway" "$new/opt/sluice/gateway"
mount -o remount,bind,ro "$new/opt/sluice/gateway"
bind "$state/kit" "$new/opt/sluice/kit"
# people cannot write there, and a job should not compile it at each start
chroot "$new" python3 -m compileall -q /opt/sluice/kit/sluice_train
mount -o remount,bind,ro "$new/opt/sluice/kit"
bind "$libraries" "$new/opt/sluice/kit/lib"
mount -o remount,bind,ro "$new/opt/sluice/kit/lib"
ln -s /opt/sluice/kit/lib/bin/rclone "$new/usr/local/bin/rclone"
# Groups' storage with real quotas: Btrfs in a file. Without loop devices the area is not mounted,
# and the portal says so.
mkdir "$new/volumes" "$new/archive" "$new/run/disk" "$state/disk"
mount --bind "$state/disk" "$new/run/disk"
truncate -s 4G "$state/disk/volumes"
if chroot "$new" mkfs.btrfs -q /run/disk/volumes &&
    mount -o loop "$state/disk/volumes" "$new/volumes"; then
    chroot "$new" btrfs quota enable /volumes
    chmod 755 "$new/volumes"
fi
umount "$new/run/disk"
# the machine's own tree goes out of sight, and with it every way back to it
mkdir "$new/.machine"
cd "$new"
pivot_root . .machine
umount -l /.machine
rmdir /.machine
exec /usr/bin/python3 -u /run/devcluster/init.py
