#!/bin/sh
# The guest from its root image on: what a machine has mounted, udev, shared folders, then the agent until it ends.
export PATH=/run/pgstrata/host/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mkdir -p /run/lock /run/postgresql /dev/pts /dev/shm
chown postgres:postgres /run/postgresql
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
# null_blk is configured there.
modprobe configfs 2> /dev/null
mount -t configfs configfs /sys/kernel/config
hostname pgstrata-guest
# mkfs.nilfs2 looks there for mounts.
[ -e /etc/mtab ] || ln -s ../proc/self/mounts /etc/mtab
ip link set lo up
# Nodes of modules that are loaded when somebody opens them: /dev/loop-control, /dev/mapper/control, /dev/zfs.
# Read by hand: kmod 30 lists none of them here.
while read -r _ node numbers; do
    case $numbers in
        c*:*)
            mkdir -p "/dev/$(dirname "$node")"
            numbers=${numbers#c}
            [ -e "/dev/$node" ] || mknod -m 600 "/dev/$node" c "${numbers%:*}" "${numbers#*:}"
            ;;
    esac
done < "/lib/modules/$(uname -r)/modules.devname"
for udevd in /usr/lib/systemd/systemd-udevd /lib/systemd/systemd-udevd; do
    if [ -x "$udevd" ]; then
        "$udevd" --daemon
        break
    fi
done
# The disks of a plan: what is built in needs no module.
while read -r _ bus _; do
    case $bus in
        nvme) modprobe nvme 2> /dev/null ;;
        scsi) modprobe -a virtio_scsi sd_mod 2> /dev/null ;;
    esac
done < /run/pgstrata/host/disks
udevadm trigger --subsystem-match=block --subsystem-match=virtio-ports --subsystem-match=mem
udevadm settle --timeout=30
scratch=/dev/disk/by-id/virtio-pgstrata-scratch
if [ -e "$scratch" ]; then
    mkdir -p /var/lib/pgstrata
    # Images of loop devices lie in /var/tmp unless a plan says otherwise.
    # After a crash it is the one from before: what it holds is kept.
    { { [ "$(blkid -o value -s TYPE "$scratch")" = ext4 ] || mkfs.ext4 -q "$scratch"; } \
        && mount "$scratch" /var/lib/pgstrata && mkdir -p -m 1777 /var/lib/pgstrata/tmp && mount --bind /var/lib/pgstrata/tmp /var/tmp; } \
        || echo "pgstrata-guest: the scratch disk cannot be used" > /dev/console
fi
# Files that the plan names, at their own paths.
(cd /run/pgstrata/host/files && find . -type f) | while IFS= read -r file; do
    { mkdir -p "/${file%/*}" && cp "/run/pgstrata/host/files/$file" "/$file"; } \
        || echo "pgstrata-guest: $file cannot be copied" > /dev/console
done
while read -r tag folder options; do
    mkdir -p "$folder"
    mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$options" "$tag" "$folder" \
        || echo "pgstrata-guest: $folder cannot be mounted" > /dev/console
done < /run/pgstrata/host/shares
cd /root || cd /
pgstrata guest-agent
echo "pgstrata-guest: the agent ended with exit code $?" > /dev/console
sync
echo o > /proc/sysrq-trigger
while :; do sleep 1; done
