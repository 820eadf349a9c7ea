# In the suite with compilers, kernel and ZFS: leaves in /out what a guest needs of them.
set -eu
release=$(basename /lib/modules/*)
zfs=$(dpkg-query -W -f '${Version}' zfs-dkms | sed 's/^[0-9]*://; s/-.*//')
# Installing the package has built it already, as a rule.
if ! dkms install "zfs/$zfs" -k "$release"; then
    echo "E: ZFS $zfs does not build for Linux $release; the end of its log:"
    tail -n 20 "/var/lib/dkms/zfs/$zfs/build/make.log"
    exit 1
fi
echo "I: packing ZFS $zfs and Linux $release"
mkdir -p /out/modules
cp "/boot/vmlinuz-$release" /out/vmlinuz
cp "$(command -v busybox)" /out/busybox
# A guest has neither network nor screen nor peripherals: their drivers are most of a kernel.
cd "/lib/modules/$release/kernel"
rm -rf sound
for folder in drivers/* net/*; do
    case ${folder#*/} in
        9p | ata | base | block | bus | cdrom | char | core | crypto | dax | dma | fs | hv | md | misc | mtd | nvdimm | nvme | \
            parport | pci | ptp | scsi | target | ublk | uio | vdpa | vfio | vhost | virt | virtio | vmw_vsock | watchdog) ;;
        *) rm -rf "$folder" ;;
    esac
done
rm -f ../build ../source
depmod "$release"
mv "/lib/modules/$release" "/out/modules/$release"
printf '%s' "$release" > /out/release
printf '%s' "$zfs" > /out/zfs
