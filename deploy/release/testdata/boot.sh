#!/bin/sh
# Boots systemd in a root of its own: a layer in memory over this machine's files, in new namespaces. The first argument
# is a folder for the layer, the second one a folder with the files of a release. Archives,
# packages and checksums are in /packages inside.
set -eu
layer=$1 packages=$2
mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
cd "$layer/root"
mkdir packages oldroot
cp "$packages"/*.deb "$packages"/*.tar.gz "$packages/SHA256SUMS" packages/
mount -t proc proc proc
for folder in run tmp dev; do mount -t tmpfs tmpfs "$folder"; done
mount --rbind /sys sys
for device in null zero random urandom full tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
# Nothing of this machine's own services starts, and nothing changes the kernel's settings.
rm -f etc/systemd/system/*.wants/*
for unit in sysctl modules-load binfmt remount-fs tmpfiles-setup tmpfiles-setup-dev journal-flush udevd udev-trigger \
  random-seed; do
  ln -sf /dev/null "etc/systemd/system/systemd-$unit.service"
done
pivot_root . oldroot
umount -l oldroot
container=licet exec /lib/systemd/systemd --system --unit=basic.target
