//! What the process must offer before anything else happens.

use crate::os::mark::{self, Claim};
use crate::os::reserve;
use crate::os::sys;
use ringfence_core::error::HostError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Facts about the machine, found out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// [`ringfence_isa::window::feature`] bits of the processor.
    pub features: u32,
}

/// `vm.max_map_count` when it was looked at last.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Mappings that windows and lanes hold.
static MAPPINGS: AtomicU64 = AtomicU64::new(0);

/// Left to the host program itself.
const HOST_MAPPINGS: u64 = 4096;

pub(crate) fn check() -> Result<Host, HostError> {
    static HOST: OnceLock<Host> = OnceLock::new();
    sys::plain_personality()?;
    if let Some(host) = HOST.get() {
        return Ok(*host);
    }
    claim()?;
    const AT_HWCAP2: u64 = 26;
    // SAFETY: reads the auxiliary vector.
    if unsafe { libc::getauxval(AT_HWCAP2) } & 2 == 0 {
        return Err(HostError::NoFsgsbase);
    }
    let mut shadow: u64 = 0;
    const ARCH_SHSTK_STATUS: i64 = 0x5005;
    // SAFETY: writes one word; kernels that do not know the code refuse it.
    let got = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SHSTK_STATUS, &raw mut shadow) };
    if got == 0 && shadow & 1 != 0 {
        return Err(HostError::ShadowStack);
    }
    Ok(*HOST.get_or_init(|| Host { features: features() }))
}

/// The same, before something that makes records of its own: there must be memory for them.
pub(crate) fn begin() -> Result<Host, HostError> {
    reserve::ready()?;
    check()
}

/// An empty vector with room for `count`, for what modules decide the size of.
pub(crate) fn vec<T>(count: usize) -> Result<Vec<T>, HostError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(count).map_err(|_| HostError::NoMemory)?;
    Ok(vec)
}

/// One more at the end of such a vector, which grows as it needs to.
pub(crate) fn push<T>(vec: &mut Vec<T>, value: T) -> Result<(), HostError> {
    vec.try_reserve(1).map_err(|_| HostError::NoMemory)?;
    vec.push(value);
    Ok(())
}

/// One runtime in a process: this one, or an error.
fn claim() -> Result<(), HostError> {
    if mark::is_claimed() {
        return Ok(());
    }
    let file = sys::sealed_file_of(c"ringfence-runtime", sys::PAGE as u64, |file| {
        file.put(0, &mark::page())
    })?;
    let what = "marking the process as one with a runtime";
    match mark::claim(&file).map_err(|source| HostError::Os { what, source })? {
        Claim::Ours => Ok(()),
        Claim::Other { version, file } => Err(HostError::SecondRuntime { version, file }),
        Claim::NoPlace => Err(HostError::NoMark),
    }
}

/// Counts `n` more mappings, or says that they do not fit.
pub(crate) fn take_mappings(n: u64) -> Result<(), HostError> {
    check()?;
    let used = MAPPINGS.fetch_add(n, Ordering::Relaxed) + n + HOST_MAPPINGS;
    if used <= LIMIT.load(Ordering::Relaxed) {
        return Ok(());
    }
    // Perhaps somebody has raised it.
    let limit = read_limit();
    LIMIT.store(limit, Ordering::Relaxed);
    if used <= limit {
        return Ok(());
    }
    MAPPINGS.fetch_sub(n, Ordering::Relaxed);
    Err(HostError::Mappings { used, limit })
}

/// What the system says, or what is usual.
fn read_limit() -> u64 {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|s| s.trim().parse().ok())
        .unwrap_or(65_530)
}

/// Counts `n` mappings again that were given back just now, and are there once more, whatever others have taken meanwhile.
pub(crate) fn take_back_mappings(n: u64) {
    MAPPINGS.fetch_add(n, Ordering::Relaxed);
}

pub(crate) fn give_mappings(n: u64) {
    MAPPINGS.fetch_sub(n, Ordering::Relaxed);
}

/// What windows and lanes hold now.
#[cfg(test)]
pub(crate) fn mappings() -> u64 {
    MAPPINGS.load(Ordering::Relaxed)
}

fn features() -> u32 {
    use ringfence_isa::window::feature as f;
    macro_rules! all {
        ($($name:tt),*) => { $(std::arch::is_x86_feature_detected!($name))&&* };
    }
    let mut bits = 0;
    let mut set = |have: bool, bit: u32| bits |= if have { bit } else { 0 };
    set(all!("sse3", "ssse3"), f::SSSE3);
    set(all!("sse4.1", "sse4.2", "popcnt"), f::SSE4);
    set(all!("avx"), f::AVX);
    set(all!("avx2"), f::AVX2);
    set(all!("fma"), f::FMA);
    set(all!("bmi1", "bmi2", "lzcnt"), f::BMI);
    set(all!("movbe"), f::MOVBE);
    set(all!("f16c"), f::F16C);
    set(all!("aes", "pclmulqdq"), f::AES);
    set(all!("sha"), f::SHA);
    set(all!("adx"), f::ADX);
    let leaf7 = std::arch::x86_64::__cpuid_count(7, 0);
    set(leaf7.ebx & (1 << 9) != 0, f::ERMS);
    bits
}
