//! Output of ldd(1): the libraries that a program is loaded with.

/// Paths of the libraries, including the loader; empty for a program that needs none.
pub(crate) fn libraries(text: &str) -> Vec<String> {
    let paths = text.lines().filter(|line| line.contains(" (0x")).filter_map(|line| {
        let path = line.rsplit(" => ").next()?.trim().split(" (0x").next()?.trim();
        path.starts_with('/').then(|| path.to_owned())
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_loader_are_found() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \tlibx.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(libraries(text), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
