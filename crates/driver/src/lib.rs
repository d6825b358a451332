//! Drop-in gcc and g++ drivers that yield fenced modules.
