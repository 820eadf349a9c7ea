die() {
    echo "$1" >&2
    exit 1
}
seen=
# Refuses a device that is not blank, is in use or is named twice.
blank() {
    [ -b "$1" ] || die "'$1' is no block device: fill in the variables at the top"
    held=$(wipefs --no-act --noheadings --output TYPE,OFFSET "$1")
    [ -z "$held" ] || die "$1 is not empty: it has the signature $held (wipefs --no-act $1)"
    [ "$(lsblk --noheadings --output NAME "$1" | wc -l)" = 1 ] || die "$1 has partitions or is in use (lsblk $1)"
    case " $seen " in *" $(readlink -f "$1") "*) die "$1 is named twice" ;; esac
    seen="$seen $(readlink -f "$1")"
}
# Refuses a folder that has files.
vacant() {
    [ -z "$(ls -A "$1" 2>/dev/null)" ] || die "$1 is not empty"
}
# The file of a device in sysfs; that of its disk, if it is a partition without one.
sysfs() {
    folder=$(readlink -f "/sys/class/block/$(basename "$(readlink -f "$1")")")
    [ -e "$folder/$2" ] || folder=$(dirname "$folder")
    echo "$folder/$2"
}
[ "$(id -u)" = 0 ] || die "this needs root"
