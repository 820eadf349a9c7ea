#!/bin/busybox sh
# The first program of a guest: loads what the root image and the shared folder need, and goes on in them.
b=/bin/busybox
say() { echo "pgstrata-guest: $*" > /dev/console; }
fail() {
    say "$*"
    $b sleep 1
    $b poweroff -f
}
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "/modules/$module" || say "module $module could not be loaded"; done < /modules/order
root=
tries=0
while [ -z "$root" ] && [ $tries -lt 100 ]; do
    for disk in /sys/block/vd*; do
        if [ "$($b cat "$disk/serial" 2>/dev/null)" = pgstrata-root ]; then root=/dev/${disk##*/}; fi
    done
    [ -n "$root" ] || $b sleep 0.1
    tries=$((tries + 1))
done
[ -n "$root" ] || fail "the root image is not among the disks"
$b mount -t ext4 "$root" /root || fail "the root image is damaged: it cannot be mounted"
$b mount -t tmpfs -o mode=755 tmpfs /root/run || fail "the root image is damaged: /run is missing"
$b mkdir -p /root/run/pgstrata/host
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /root/run/pgstrata/host \
    || fail "the folder of the host cannot be mounted"
for folder in dev proc sys; do $b mount --move /$folder /root/$folder || fail "the root image is damaged: /$folder is missing"; done
exec $b switch_root /root /run/pgstrata/host/init
fail "the root image is damaged: no shell starts"
