//! `/proc/PID/limits`.

/// A soft limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SoftLimit {
    Unlimited,
    Bytes(u64),
}

/// Memory that a process may lock; `None` if the line is missing.
pub(crate) fn max_locked_memory(text: &str) -> Option<SoftLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(SoftLimit::Unlimited),
        bytes => bytes.parse().ok().map(SoftLimit::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the kernel's columns.
    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max open files            1024                 1048576              files     
Max locked memory         8388608              unlimited            bytes     
Max address space         unlimited            unlimited            bytes     
";

    #[test]
    fn the_soft_memlock_limit_is_a_number_or_unlimited() {
        assert_eq!(max_locked_memory(LIMITS), Some(SoftLimit::Bytes(8 << 20)));
        let none = LIMITS.replace("8388608  ", "unlimited");
        assert_eq!(max_locked_memory(&none), Some(SoftLimit::Unlimited));
        assert_eq!(max_locked_memory("Max open files 1 1 files\n"), None);
        assert_eq!(max_locked_memory("Max locked memory"), None);
    }
}
