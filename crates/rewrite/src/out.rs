//! The output text: operands translated, sequences that several places need.

use std::collections::HashSet;
use std::fmt::Write as _;

use ringfence_isa::sequence::SLOT_STEP;
use ringfence_isa::{Isolation, identifier, pad};

use crate::Options;
use crate::func::Function;
use crate::insn;
use crate::late;
use crate::parse::{IP, Insn, Mem, NONE, Op};
use crate::regs::{self, Class, R11, R15, RSP};
use crate::state::State;
use crate::tables::{MASK_SLOTS, Part};

/// The identifier that an indirect jump demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The entry of a function.
    Function,
    /// A label of class `.Lrf_f<function>_<class>`.
    Label(u32, u32),
}

/// The output.
pub(crate) struct Out<'o> {
    pub buf: String,
    pub options: &'o Options,
    /// Label identifiers occur, and so does their base.
    pub uses_labels: bool,
    /// The function at hand has call-frame directives.
    pub cfi: bool,
    /// Running number for local labels.
    pub local: u32,
    /// Functions that may be nobody's, and become known when the module is loaded: [`weak_names`](crate::file::weak_names).
    pub weak: HashSet<&'o str>,
    /// Data that other modules give.
    pub foreign: HashSet<&'o str>,
}

impl<'o> Out<'o> {
    pub(crate) fn new(
        options: &'o Options,
        capacity: usize,
        weak: HashSet<&'o str>,
        mut foreign: HashSet<&'o str>,
    ) -> Out<'o> {
        foreign.extend(options.data_imports.iter().map(String::as_str));
        Out {
            buf: String::with_capacity(capacity),
            options,
            uses_labels: false,
            cfi: false,
            local: 0,
            weak,
            foreign,
        }
    }

    /// One line, as it is.
    pub(crate) fn line(&mut self, text: &str) {
        self.buf.push('\t');
        self.buf.push_str(text);
        self.buf.push('\n');
    }

    /// Formatted text, as it is.
    pub(crate) fn fmt(&mut self, args: std::fmt::Arguments<'_>) {
        let _ = self.buf.write_fmt(args);
    }

    /// Moves `r15` without touching flags.
    pub(crate) fn adjust(&mut self, by: i64) {
        if by != 0 {
            self.fmt(format_args!("\tleaq\t{by}(%r15), %r15\n"));
        }
    }

    /// The marker of a function's entry.
    pub(crate) fn function_marker(&mut self) {
        self.fmt(format_args!("\tnopl\t{}(%rax,%rax,1)\n", identifier::FUNCTION));
    }

    fn target(&mut self, t: Target) -> String {
        match t {
            Target::Function => identifier::FUNCTION.to_string(),
            Target::Label(f, c) => {
                self.uses_labels = true;
                format!("__rf_id_base-.Lrf_f{f}_{c}")
            }
        }
    }

    /// The marker of a label; the class's name is defined at its first marker.
    pub(crate) fn label_marker(&mut self, function: u32, class: u32, first: bool) {
        if first {
            self.fmt(format_args!(".Lrf_f{function}_{class}:\n"));
        }
        let t = self.target(Target::Label(function, class));
        self.fmt(format_args!("\tnopl\t{t}(%rax,%rax,1)\n"));
    }

    /// The no-op at the start of a landing pad, which tells the depth.
    pub(crate) fn pad_marker(&mut self, depth: i64) {
        let head = pad::HEAD;
        self.fmt(format_args!(
            "\t.byte\t{},{},{},{}\n\t.2byte\t{depth},{}\n",
            head[0],
            head[1],
            head[2],
            head[3],
            pad::TAG
        ));
    }

    /// The checked indirect jump (`what` is `jmp`) or call to the target in operand `op`.
    pub(crate) fn checked(&mut self, what: &str, op: &Op<'_>, st: &State, t: Target) -> Result<(), String> {
        // The identifier, ten bytes into the sequence, must not fall on an address ≡ 4 (mod 8): the sequence starts at an odd address, or
        // at a multiple of 4, whichever takes fewer instructions.
        match op {
            Op::Reg(r, _) if r.is_gpr() => {
                self.fmt(format_args!("\t.p2align 1\n\tmovl\t%{}, %r11d\n", regs::d(r.n)));
            }
            Op::Mem(m) => {
                let m = self.prepare(m, st)?;
                self.buf.push_str("\tmovl\t");
                self.mem(&m, self.options.isolation != Isolation::Integrity);
                self.buf.push_str(", %r11d\n\t.p2align 2\n");
            }
            _ => return Err("an indirect jump needs a register or memory".to_owned()),
        }
        self.check_and_go(what, t);
        Ok(())
    }

    /// The checked jump to, or call of, a function whose address the loader puts into the global offset table.
    pub(crate) fn checked_slot(&mut self, what: &str, name: &str) {
        self.fmt(format_args!(
            "\tmovl\t{name}@GOTPCREL(%rip), %r11d\n\t.p2align 2\n"
        ));
        self.check_and_go(what, Target::Function);
    }

    /// The sequence itself, for the target in `r11d`.
    fn check_and_go(&mut self, what: &str, t: Target) {
        let t = self.target(t);
        self.fmt(format_args!(
            "\tandl\t$-8, %r11d\n\tcmpl\t${t}, %gs:4(%r11d)\n\tcmovnel\t%r14d, %r11d\n\taddq\t%r14, %r11\n\t{what}\t*%r11\n"
        ));
    }

    /// What stands for one instruction of a jump through a table; `function` numbers the function in its file. The first jump
    /// through a table has the table behind it.
    pub(crate) fn table_part(
        &mut self,
        part: Part,
        function: u32,
        tables: &mut [Vec<&str>],
        f: &Function<'_>,
    ) {
        let (register, table) = match part {
            Part::Dropped => return,
            Part::Copy(from, to) if from == to => return,
            Part::Copy(from, to) => {
                return self.fmt(format_args!("\tmovl\t%{}, %{}\n", regs::d(from), regs::d(to)));
            }
            Part::Jump(register, table) | Part::JumpMasked(register, table) => (register, table as usize),
        };
        let slots = f.dispatch.tables[table].len().next_power_of_two();
        let name = format!(".Lrf_t{function}_{table}");
        jump_by_table(
            &mut self.buf,
            matches!(part, Part::JumpMasked(..)),
            register,
            &name,
            slots,
        );
        let entries = std::mem::take(&mut tables[table]);
        if !entries.is_empty() {
            jump_table(&mut self.buf, &name, &entries);
        }
    }

    /// The low half of the thread pointer into `r11`, flags untouched.
    pub(crate) fn thread_pointer(&mut self) {
        self.buf.push_str(
            "\tmovl\t%r15d, %r11d\n\tbswapl\t%r11d\n\tmovzbl\t%r11b, %r11d\n\tbswapl\t%r11d\n\tmovl\t%gs:(%r11d), %r11d\n",
        );
    }

    /// Makes an operand one that can be confined: `rsp` becomes `r15`, thread-local and absolute
    /// addresses go through `r11`.
    pub(crate) fn prepare<'a>(&mut self, m: &Mem<'a>, st: &State) -> Result<Placed<'a>, String> {
        let mut p = Placed {
            mem: *m,
            add: 0,
            confined: false,
        };
        if self.is_late(m) {
            self.settle(&mut p);
            return Ok(p);
        }
        if m.base == IP {
            if m.fs {
                return Err("a thread-local address relative to the instruction pointer".to_owned());
            }
            return Ok(p);
        }
        if m.base == RSP {
            p.mem.base = R15;
            p.add = st.shift();
        }
        if m.index == RSP {
            return Err("the stack pointer cannot be an index".to_owned());
        }
        let symbolic = m.number().is_none();
        let absolute = m.base == NONE && m.index == NONE;
        if !m.fs && !absolute && !symbolic {
            return Ok(p);
        }
        if m.fs {
            self.thread_pointer();
            if symbolic {
                self.fmt(format_args!("\tleaq\t{}(%r11), %r11\n", m.disp));
                p.mem.disp = "";
            }
        } else if symbolic
            && !m
                .disp
                .starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '(')
        {
            self.fmt(format_args!("\tleaq\t{}(%rip), %r11\n", m.disp));
            p.mem.disp = "";
        } else if symbolic {
            return Ok(p);
        } else {
            self.fmt(format_args!(
                "\tmovl\t${}, %r11d\n",
                m.number().unwrap_or(0) as u32
            ));
            p.mem.disp = "";
        }
        if p.mem.base != NONE {
            if p.mem.index == NONE {
                p.mem.index = p.mem.base;
                p.mem.scale = 1;
            } else {
                self.fmt(format_args!("\tleaq\t(%r11,%{}), %r11\n", regs::q(p.mem.base)));
            }
        }
        p.mem.base = R11;
        p.mem.fs = false;
        p.confined = true;
        Ok(p)
    }

    /// Prints a memory operand.
    pub(crate) fn mem(&mut self, p: &Placed<'_>, confine: bool) {
        let m = &p.mem;
        if m.base == IP {
            self.fmt(format_args!("{}(%rip)", m.disp));
            return;
        }
        // What goes through r11 is a lower half.
        let confine = confine || m.base == R11 && p.confined;
        if confine {
            self.buf.push_str("%gs:");
        }
        if p.add == 0 {
            self.buf.push_str(m.disp);
        } else if let Some(n) = m.number() {
            let n = n + p.add;
            if n != 0 {
                self.fmt(format_args!("{n}"));
            }
        } else {
            self.fmt(format_args!("{}+({})", m.disp, p.add));
        }
        let name = if confine { regs::d } else { regs::q };
        self.buf.push('(');
        if m.base != NONE {
            self.buf.push('%');
            self.buf.push_str(name(m.base));
        }
        if m.index != NONE {
            self.buf.push_str(",%");
            self.buf.push_str(name(m.index));
            self.buf.push(',');
            self.buf.push(char::from(b'0' + m.scale));
        }
        self.buf.push(')');
    }

    /// An instruction with its operands translated and nothing else about it.
    pub(crate) fn plain(&mut self, i: &Insn<'_>, st: &State) -> Result<(), String> {
        let confine = self.options.isolation != Isolation::Integrity || !insn::only_reads(i);
        let mut placed = None;
        let absolute = i.mem().and_then(|m| absolute(i, m));
        if let Some(m) = i.mem()
            && absolute.is_none()
        {
            placed = Some(self.prepare(m, st)?);
        }
        // `rsp` as a value is the place where it would be, in r15 or computed into r11.
        let stack = if i.ops().iter().any(|o| matches!(o, Op::Reg(r, _) if r.is(RSP))) {
            if st.mirrored() {
                R15
            } else {
                if placed.is_some_and(|p| p.mem.base == R11) {
                    return Err("the stack pointer beside a thread-local or absolute operand".to_owned());
                }
                self.fmt(format_args!("\tleaq\t{}(%r15), %r11\n", st.shift()));
                R11
            }
        } else {
            RSP
        };
        let swapped = self.free_high(i, &mut placed)?;
        let mut late = None;
        for op in i.ops() {
            if let Op::Imm(text) = op {
                late = self.settle_immediate(text, late::beside(i.ops(), i.mnemonic))?;
            }
        }
        if late.is_some() && (stack == R11 || placed.is_some_and(|p| p.mem.base == R11)) {
            return Err("a thread-local distance beside another operand that needs r11".to_owned());
        }
        self.buf.push('\t');
        if !i.prefix.is_empty() {
            self.buf.push_str(i.prefix);
            self.buf.push(' ');
        }
        if absolute.is_some() {
            self.buf.push_str("addr32 ");
        }
        // `movabs` has an absolute operand only, and that went into r11.
        match i.mnemonic.strip_prefix("movabs") {
            Some(suffix) if placed.is_some() => {
                self.buf.push_str("mov");
                self.buf.push_str(suffix);
            }
            _ => self.buf.push_str(i.mnemonic),
        }
        for (n, op) in i.ops().iter().enumerate() {
            self.buf.push_str(if n == 0 { "\t" } else { ", " });
            match op {
                Op::Reg(r, _) if r.is(RSP) => {
                    self.buf.push('%');
                    self.buf.push_str(regs::name(stack, r.class));
                }
                Op::Reg(r, _) if r.class == Class::High && swapped.is_some() => {
                    self.buf.push('%');
                    self.buf.push_str(regs::name(r.n, Class::B));
                }
                Op::Reg(_, text) => self.buf.push_str(text),
                Op::Imm(text) => self.buf.push_str(late.as_deref().unwrap_or(text)),
                Op::Mem(_) => {
                    if let Some(p) = &placed {
                        self.mem(p, confine);
                    } else if let Some(at) = absolute {
                        self.fmt(format_args!("%gs:{at:#x}"));
                    }
                }
            }
        }
        self.buf.push('\n');
        if let Some(n) = swapped {
            self.swap_bytes(n);
        }
        Ok(())
    }

    /// `ah` and its kin cannot stand beside `r15` or `r11`, which an operand that named neither may have got: the two lower
    /// bytes of the register change places around the instruction, which uses the lowest then. Tells which register.
    fn free_high(&mut self, i: &Insn<'_>, placed: &mut Option<Placed<'_>>) -> Result<Option<u8>, String> {
        let Some(p) = placed else { return Ok(None) };
        let high = i.ops().iter().find_map(|o| match o {
            Op::Reg(r, _) if r.class == Class::High => Some(r.n),
            _ => None,
        });
        let extended = |r: u8| (8..16).contains(&r);
        let Some(n) = high.filter(|_| extended(p.mem.base) || extended(p.mem.index)) else {
            return Ok(None);
        };
        if i.mnemonic.starts_with("cmpxchg") {
            return Err("cmpxchg of a second byte with a place on the stack".to_owned());
        }
        if p.mem.base == n || p.mem.index == n {
            // The address needs the register as it is.
            self.buf.push_str("\tleaq\t");
            self.mem(
                &Placed {
                    confined: false,
                    ..*p
                },
                false,
            );
            self.buf.push_str(", %r11\n");
            p.mem = Mem {
                disp: "",
                base: R11,
                index: NONE,
                scale: 1,
                ..p.mem
            };
            p.add = 0;
        }
        self.swap_bytes(n);
        Ok(Some(n))
    }

    /// Exchanges the two lower bytes of `rax`, `rcx`, `rdx` or `rbx`, and leaves the flags alone.
    fn swap_bytes(&mut self, n: u8) {
        let letter = ['a', 'c', 'd', 'b'][usize::from(n & 3)];
        self.fmt(format_args!("\txchgb\t%{letter}l, %{letter}h\n"));
    }

    /// `lea`: an address, not an access.
    pub(crate) fn lea(&mut self, i: &Insn<'_>, st: &State) -> Result<(), String> {
        let (Some(m), Some(Op::Reg(r, text))) = (i.mem(), i.ops().last()) else {
            return Err("lea needs an address and a register".to_owned());
        };
        if r.class == Class::Vector {
            return Err("lea needs a general register".to_owned());
        }
        let mut p = Placed {
            mem: *m,
            add: 0,
            confined: false,
        };
        if m.base == RSP {
            p.mem.base = R15;
            p.add = st.shift();
        }
        self.settle(&mut p);
        self.buf.push('\t');
        self.buf.push_str(i.mnemonic);
        self.buf.push('\t');
        if p.mem.base == NONE && p.mem.index == NONE {
            self.buf.push_str(m.disp);
        } else {
            self.mem(&p, false);
        }
        self.buf.push_str(", ");
        self.buf.push_str(text);
        self.buf.push('\n');
        Ok(())
    }
}

/// The jump to one of the slots of a table; `masked`: the program's own mask in front begins the sequence.
pub(crate) fn jump_by_table(buf: &mut String, masked: bool, register: u8, name: &str, slots: usize) {
    let d = regs::d(register);
    let _ = match (masked, slots <= MASK_SLOTS) {
        (true, _) => Ok(()),
        (false, true) => writeln!(buf, "\tandl\t${}, %{d}", slots - 1),
        (false, false) => writeln!(buf, "\tmovzbl\t%{}, %{d}", regs::name(register, Class::B)),
    };
    let _ = write!(
        buf,
        "\tleaq\t{name}+4(%rip), %r11\n\taddl\t%gs:(%r11d,%{d},{SLOT_STEP}), %r11d\n\taddq\t%r14, %r11\n\tjmp\t*%r11\n"
    );
}

/// The table itself. Masked indices behind the last one lead to a trap.
pub(crate) fn jump_table<T: AsRef<str>>(buf: &mut String, name: &str, entries: &[T]) {
    let spare = entries.len().next_power_of_two() - entries.len();
    if spare != 0 {
        let _ = write!(buf, "{name}_0:\n\tint3\n");
    }
    let _ = write!(buf, "\t.p2align\t3,0xcc\n{name}:\n");
    let trap = format!("{name}_0");
    let entries = entries.iter().map(AsRef::as_ref);
    for slot in entries.chain(std::iter::repeat_n(&*trap, spare)) {
        let _ = writeln!(buf, "\t{{disp32}} nopl\t{slot}-{name}-4(%rax,%rax,2)");
    }
}

/// The offset in the window, if the operand is an absolute address that an instruction can name with the 32-bit address size and
/// no register: not `mov` between it and the accumulator, for which the assembler has another form, `A0` to `A3`.
fn absolute(i: &Insn<'_>, m: &Mem<'_>) -> Option<u32> {
    if m.base != NONE || m.index != NONE || m.fs || m.vector {
        return None;
    }
    let moves =
        matches!(i.mnemonic, "mov" | "movb" | "movw" | "movl" | "movq") || i.mnemonic.starts_with("movabs");
    let accumulator = |o: &Op<'_>| matches!(o, Op::Reg(r, _) if r.is(0));
    if moves && i.ops().iter().any(accumulator) {
        return None;
    }
    // What does not fit is taken modulo 4 GiB, as ever.
    m.number().map(|n| n as u32)
}

/// A memory operand that is ready to be printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub mem: Mem<'a>,
    /// Added to the displacement.
    pub add: i64,
    /// Only the lower half of the address is there.
    pub confined: bool,
}
