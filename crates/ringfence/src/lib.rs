//! dlopen, but fenced: load and call native modules that nobody has to trust.
