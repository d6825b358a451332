//! `setjmp`: a call of it becomes the code that fills in the buffer, and a landing pad behind that.
//!
//! A `jmp_buf` is the record that the stub `RESUME` reads (`ringfence_isa::frames`): where the stack pointer is, the pad, and the
//! registers that a call preserves. So `longjmp` is that stub, and the runtime knows nothing of `setjmp`.

use ringfence_isa::frames::RECORD;

use crate::out::Out;
use crate::state::State;

/// The names by which `<setjmp.h>` has it.
const NAMES: [&str; 5] = ["setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp"];

/// What a buffer keeps of the registers, in order, from its fifth word on.
const SAVED: [&str; 5] = ["rbx", "rbp", "r12", "r13", "r15"];
const _: () = assert!(4 + SAVED.len() == RECORD);

/// Whether a function is `setjmp`.
pub(crate) fn is(name: &str) -> bool {
    NAMES.contains(&name)
}

/// What stands for a call of it. Domains have no masks of signals, so there is nothing to do for `sigsetjmp`'s second argument.
pub(crate) fn emit(out: &mut Out<'_>, st: &State) {
    out.check_register("rdi", true);
    out.local += 1;
    let pad = format!(".Lrf_j{}", out.local);
    out.fmt(format_args!(
        "\tleaq\t{pad}(%rip), %rax\n\tmovq\t%rax, %gs:8(%edi)\n"
    ));
    for (word, register) in (4..).zip(SAVED) {
        out.fmt(format_args!("\tmovq\t%{register}, %gs:{}(%edi)\n", 8 * word));
    }
    out.fmt(format_args!(
        "\tcall\t__rf_distance\n\tmovq\t%rax, %gs:(%edi)\n\txorl\t%eax, %eax\n{pad}:\n"
    ));
    out.pad_marker(st.depth());
}
