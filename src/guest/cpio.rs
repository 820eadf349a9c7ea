//! An archive for the kernel's initramfs: cpio in the `newc` format (initramfs buffer format).

/// The archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;

impl Archive {
    pub(super) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, (0, 0), b"");
    }

    /// An executable file.
    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, PROGRAM, (0, 0), bytes);
    }

    /// A character device with these major and minor numbers.
    pub(super) fn device(&mut self, name: &str, numbers: (u32, u32)) {
        self.entry(name, DEVICE, numbers, b"");
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), b"");
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), bytes: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // Inode, mode, uid, gid, links, time, size, major and minor of filesystem and device, length of the name,
        // checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        self.bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::host::command::Command;

    #[test]
    fn cpio_itself_reads_the_archive() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/x", b"12345");
        archive.device("console", (5, 1));
        let bytes = archive.finish();
        let host = Host::this();
        if !host.has_program("cpio") {
            println!("skipped: needs the program cpio");
            return;
        }
        let list = host.run(&Command::new("cpio").args(["-tv", "--quiet", "-n"]).stdin(bytes)).unwrap().stdout;
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), 3, "{list}");
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" bin"), "{list}");
        assert!(
            lines[1].starts_with("-rwxr-xr-x") && lines[1].contains(" 5 ") && lines[1].ends_with(" bin/x"),
            "{list}"
        );
        assert!(lines[2].starts_with("crw-------") && lines[2].contains("5,   1"), "{list}");
    }
}
