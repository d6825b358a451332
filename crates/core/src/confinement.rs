//! What a domain's own process was locked in with.

/// What holds a domain's process besides the verifier. What a kernel or an administrator does not allow is left out, but for the filter,
/// without which no domain is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confinement {
    /// A filter leaves it the system calls that computing takes.
    pub system_calls: bool,
    /// It has empty namespaces of its own for the network, mounts, and what processes call each other by.
    pub namespaces: bool,
    /// Landlock keeps it from opening any file, by whatever name.
    pub landlock: bool,
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = |yes| if yes { "yes" } else { "no" };
        write!(
            f,
            "system call filter: {}, namespaces: {}, Landlock: {}",
            word(self.system_calls),
            word(self.namespaces),
            word(self.landlock)
        )
    }
}
