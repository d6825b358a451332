//! Gives the shared library its soname: programs ask for the major version that they were linked with.

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libringfence.so.{major}");
    // Signal handlers, hooks of fork and thread-local destructors point into it for as long as the process lives.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
