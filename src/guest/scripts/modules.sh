# In the suite with compilers: builds ZFS for the suite's kernel, and leaves in /out what a guest needs of both.
set -eu
release=$(basename /lib/modules/*)
zfs=$(dpkg-query -W -f '${Version}' zfs-dkms | sed 's/^[0-9]*://; s/-.*//')
echo "I: building ZFS $zfs for Linux $release"
if ! dkms install "zfs/$zfs" -k "$release"; then
    echo "E: ZFS $zfs does not build for Linux $release; the end of its log:"
    tail -n 20 "/var/lib/dkms/zfs/$zfs/build/make.log"
    exit 1
fi
mkdir -p /kernel /out/modules
cd /kernel
apt-get -q download "linux-image-$release" busybox-static
for package in *.deb; do dpkg-deb -x "$package" /kernel; done
mv "boot/vmlinuz-$release" /out/vmlinuz
if [ -e bin/busybox ]; then mv bin/busybox /out/busybox; else mv usr/bin/busybox /out/busybox; fi
modules=$(find /kernel -type d -path "*/lib/modules/$release")
cp -a "/lib/modules/$release/updates" "$modules/"
# A guest has neither network nor screen nor peripherals: their drivers are most of a kernel.
cd "$modules/kernel"
rm -rf sound
for folder in drivers/* net/*; do
    case ${folder#*/} in
        9p | ata | base | block | bus | cdrom | char | core | crypto | dax | dma | fs | hv | md | misc | mtd | nvdimm | nvme | \
            parport | pci | ptp | scsi | target | ublk | uio | vdpa | vfio | vhost | virt | virtio | vmw_vsock | watchdog) ;;
        *) rm -rf "$folder" ;;
    esac
done
mv "$modules" "/out/modules/$release"
printf '%s' "$release" > /out/release
printf '%s' "$zfs" > /out/zfs
