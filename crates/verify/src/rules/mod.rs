//! The rules, by their numbers in `docs/verifier.md`.
//!
//! Some are the decoder's and its tables' as well: what of rules 1, 2, 8 and 9 can be said of an encoding alone is said there.

pub(crate) mod rule_0_text;
pub(crate) mod rule_11_words;
pub(crate) mod rule_1_held;
pub(crate) mod rule_1_memory;
pub(crate) mod rule_2_stack;
pub(crate) mod rule_3_depth;
pub(crate) mod rule_4_direct;
pub(crate) mod rule_5_indirect;
pub(crate) mod rule_5_tables;
pub(crate) mod rule_6_identifiers;
pub(crate) mod rule_7_strings;
pub(crate) mod rule_8_state;
// Rule 9 (bit strings and implicit addresses) is the tables': they list no such form.
// Rule 10 (text stays text) is the loader's.
