"""Rule 8: state that outlives a call, and prefixes."""

from families.common import RET, case


def rule8():
    d = "rule-8"
    forbidden = """
0f 05|syscall|SystemCall
0f 34|sysenter|SystemCall
0f 07|sysret|SystemCall
0f 35|sysexit|SystemCall
cd 80|int $0x80|SystemCall
cd 03|int $3 in two bytes|SystemCall
f1|int1|SystemCall
ce|into of other modes|0 NotAccepted
f4|hlt|Privileged
fa|cli|Privileged
fb|sti|Privileged
6c|insb|Privileged
6f|outsl|Privileged
e4 10|inb $0x10, %al|Privileged
e6 10|outb %al, $0x10|Privileged
ec|inb %dx, %al|Privileged
ee|outb %al, %dx|Privileged
0f 06|clts|Privileged
0f 08|invd|Privileged
0f 09|wbinvd|Privileged
f3 0f 09|wbnoinvd|Privileged
0f 20 c0|movq %cr0, %rax|Privileged
0f 22 c0|movq %rax, %cr0|Privileged
0f 21 c0|movq %db0, %rax|Privileged
0f 23 c0|movq %rax, %db0|Privileged
0f 30|wrmsr|Privileged
0f 32|rdmsr|Privileged
0f 33|rdpmc|Privileged
0f 37|getsec|Privileged
0f 00 c0|sldt %eax|SegmentRegister
0f 00 d8|ltr %ax|SegmentRegister
0f 00 e0|verr %ax|SegmentRegister
0f 02 c0|lar %ax, %eax|SegmentRegister
0f 03 c0|lsl %ax, %eax|SegmentRegister
0f 01 07|sgdt|ProcessorState
0f 01 0f|sidt|ProcessorState
0f 01 17|lgdt|ProcessorState
0f 01 e0|smsw %eax|ProcessorState
0f 01 f0|lmsw %ax|ProcessorState
0f 01 38|invlpg (%rax)|ProcessorState
0f 01 c1|vmcall|ProcessorState
0f 01 d4|vmfunc|ProcessorState
0f 01 d0|xgetbv|ProcessorState
0f 01 d1|xsetbv|ProcessorState
0f 01 d9|vmmcall|ProcessorState
0f 01 c8|monitor|ProcessorState
0f 01 c9|mwait|ProcessorState
0f 01 fa|monitorx|ProcessorState
0f 01 fb|mwaitx|ProcessorState
0f 01 ca|clac|ProcessorState
0f 01 cb|stac|ProcessorState
0f 01 cf|encls|ProcessorState
0f 01 d7|enclu|ProcessorState
0f 01 d5|xend|ProcessorState
0f 01 d6|xtest|ProcessorState
0f 01 ee|rdpkru|ProcessorState
0f 01 ef|wrpkru|ProcessorState
0f 01 f8|swapgs|ProcessorState
0f 01 f9|rdtscp|ProcessorState
0f 01 fd|rdpru|ProcessorState
f3 0f 01 28|rstorssp (%rax)|ProcessorState
f3 0f 01 ea|saveprevssp|ProcessorState
f3 0f 01 ee|uiret or clui space|ProcessorState
f3 0f 01 ec|uiret|ProcessorState
0f 31|rdtsc|TimeStamp
0f a2|cpuid|ProcessorState
0f ae 00|fxsave (%rax)|ControlState
0f ae 08|fxrstor (%rax)|ControlState
0f ae 10|ldmxcsr (%rax)|ControlState
65 67 0f ae 10|ldmxcsr %gs:(%eax)|ControlState
0f ae 18|stmxcsr (%rax)|ControlState
0f ae 20|xsave (%rax)|ControlState
48 0f ae 20|xsave64 (%rax)|ControlState
0f ae 28|xrstor (%rax)|ControlState
0f ae 30|xsaveopt (%rax)|ControlState
0f ae 38|clflush (%rax)|ProcessorState
66 0f ae 38|clflushopt (%rax)|ProcessorState
66 0f ae 30|clwb (%rax)|ProcessorState
66 0f ae f0|tpause %eax|ProcessorState
f2 0f ae f0|umwait %eax|ProcessorState
f3 0f ae f0|umonitor %rax|ProcessorState
f3 0f ae 30|clrssbsy (%rax)|ProcessorState
f3 48 0f ae c0|rdfsbase %rax|SegmentRegister
f3 48 0f ae c8|rdgsbase %rax|SegmentRegister
f3 48 0f ae d0|wrfsbase %rax|SegmentRegister
f3 48 0f ae d8|wrgsbase %rax|SegmentRegister
f3 0f ae d8|wrgsbase %eax|SegmentRegister
f3 48 0f ae e8|incsspq %rax|ProcessorState
f3 48 0f 1e c8|rdsspq %rax|HiddenNop
f3 0f 1e fb|endbr32|HiddenNop
0f 1e fa|nopl %edx in the space of shadow stacks|HiddenNop
66 f3 0f 1e fa|endbr64 with 66|HiddenNop
f3 41 0f 1e fa|endbr64 with REX|HiddenNop
0f 1c 00|cldemote (%rax)|HiddenNop
0f 1a 00|bndldx (%rax)|HiddenNop
0f 1b 00|bndstx (%rax)|HiddenNop
f3 0f 1b 00|bndmk (%rax)|HiddenNop
0f 19 00|reserved no-op|HiddenNop
0f 1d 00|reserved no-op|HiddenNop
0f 1f 48 00|0F 1F /1|0 NotAccepted
0f 1f c8|0F 1F /1 with registers|0 NotAccepted
0f 18 20|0F 18 /4|0 NotAccepted
0f 18 38|prefetchit0|0 NotAccepted
0f 0d 00|prefetch of 3DNow!|0 NotAccepted
0f 0d 10|prefetchwt1|0 NotAccepted
0f c7 20|xsavec|ControlState
0f c7 18|xrstors|ControlState
0f c7 28|xsaves|ControlState
0f c7 f0|rdrand %eax|ProcessorState
0f c7 f8|rdseed %eax|ProcessorState
f3 0f c7 f8|rdpid %rax|ProcessorState
f3 0f c7 f0|senduipi %rax|ProcessorState
0f c7 30|vmptrld|ProcessorState
0f c7 c8|0F C7 /1 with a register|0 NotAccepted
8e d8|movl %eax, %ds|SegmentRegister
8e e8|movl %eax, %gs|SegmentRegister
8c e8|movl %gs, %eax|SegmentRegister
0f b2 00|lss (%rax), %eax|SegmentRegister
0f b4 00|lfs (%rax), %eax|SegmentRegister
0f b5 00|lgs (%rax), %eax|SegmentRegister
9a 00 00 00 00 00 00|far call of other modes|FarTransfer
ea 00 00 00 00 00 00|far jump of other modes|FarTransfer
ff 18|far call through memory|FarTransfer
ff 28|far jump through memory|FarTransfer
65 67 ff 18|far call through confined memory|FarTransfer
48 ff 28|far jump through memory, 64-bit|FarTransfer
cb|far return|FarTransfer
ca 08 00|far return with immediate|FarTransfer
cf|iret|FarTransfer
48 cf|iretq|FarTransfer
c2 08 00|ret $8|ReturnImmediate
fc|cld|OutlivingFlags
fd|std|OutlivingFlags
9c|pushfq|OutlivingFlags
9d|popfq|OutlivingFlags
d9 28|fldcw (%rax)|ControlState
65 67 d9 28|fldcw %gs:(%eax)|ControlState
d9 20|fldenv (%rax)|ControlState
65 67 d9 20|fldenv %gs:(%eax)|ControlState
65 67 d9 30|fnstenv %gs:(%eax)|ControlState
65 67 dd 20|frstor %gs:(%eax)|ControlState
65 67 dd 30|fnsave %gs:(%eax)|ControlState
db e3|fninit|ControlState
db e2|fnclex|ControlState
dd c0|ffree %st(0)|ControlState
df c0|ffreep %st(0)|ControlState
d9 f6|fdecstp|ControlState
d9 f7|fincstp|ControlState
d9 d8|fstp in an undocumented encoding|ControlState
dc d0|fcom in an undocumented encoding|ControlState
dd c8|fxch in an undocumented encoding|ControlState
de d0|fcomp in an undocumented encoding|ControlState
db e4|fnsetpm of the 287|ControlState
df e1|frstpm space|ControlState
65 67 db 20|DB /4|0 NotAccepted
65 67 d9 08|D9 /1|0 NotAccepted
65 67 dd 28|DD /5|0 NotAccepted
0f 77|emms|Mmx
0f 6f c1|movq %mm1, %mm0|Mmx
0f 6e c0|movd %eax, %mm0|Mmx
0f 7e c0|movd %mm0, %eax|Mmx
0f fe c1|paddd %mm1, %mm0|Mmx
0f 2a c0|cvtpi2ps %mm0, %xmm0|Mmx
66 0f 2c c0|cvttpd2pi %xmm0, %mm0|Mmx
0f c4 c0 01|pinsrw $1, %eax, %mm0|Mmx
f2 0f d6 c0|movdq2q %xmm0, %mm0|Mmx
f3 0f d6 c0|movq2dq %mm0, %xmm0|Mmx
0f 38 00 c1|pshufb %mm1, %mm0|Mmx
0f 3a 0f c1 04|palignr $4, %mm1, %mm0|Mmx
0f e7 00|movntq %mm0, (%rax)|Mmx
0f 0e|femms|Mmx
0f 0f c1 9e|pfadd %mm1, %mm0|Mmx
c7 f8 00 00 00 00|xbegin|Transaction
c6 f8 00|xabort|Transaction
f2 f0 65 67 ff 00|xacquire lock incl|Prefix
f3 65 67 89 00|xrelease mov|Prefix
0f aa|rsm|0 NotAccepted
0f 0b 00|ud2 is fine, what follows is not memory-safe: addb|-
0f b9 c0|ud1|0 NotAccepted
0f ff c0|ud0|0 NotAccepted
0f 04|undefined 0F 04|0 NotAccepted
0f 24|undefined 0F 24|0 NotAccepted
0f a6 c0|xstore space|0 NotAccepted
0f a7 c0|padlock space|0 NotAccepted
d6|salc|0 NotAccepted
27|daa of other modes|0 NotAccepted
37|aaa of other modes|0 NotAccepted
d4 0a|aam of other modes|0 NotAccepted
06|push %es of other modes|0 NotAccepted
82 c0 01|add in an alias of 80|0 NotAccepted
c0 f0 03|sal in an undocumented alias|0 NotAccepted
d3 f0|sal in an undocumented alias|0 NotAccepted
f6 c8 01|test in an undocumented alias|0 NotAccepted
f7 c8 01 00 00 00|test in an undocumented alias|0 NotAccepted
c6 c8 00|C6 /1|0 NotAccepted
fe d0|FE /2|0 NotAccepted
ff f8|FF /7|0 NotAccepted
0f ba c0 01|0F BA /0|0 NotAccepted
0f 71 f8 01|0F 71 /7|Mmx
66 0f 71 f8 01|66 0F 71 /7|0 NotAccepted
0f 38 f6 00|wrssd %eax, (%rax)|ProcessorState
66 0f 38 f5 00|wrussd %eax, (%rax)|ProcessorState
66 0f 38 80 00|invept|0 NotAccepted
66 0f 38 82 00|invpcid|0 NotAccepted
0f 38 cb c1 00|-|-
f3 0f 38 dc c1|aesenc128kl space|0 NotAccepted
66 0f 38 cf c1|gf2p8mulb|0 NotAccepted
0f 78 c8|vmread|0 NotAccepted
0f 79 c8|vmwrite|0 NotAccepted
f2 0f 79 c1|insertq|0 NotAccepted
66 0f 78 c0 01 02|extrq|0 NotAccepted
f2 0f 2b 00|movntsd|0 NotAccepted
8f e8 78 c2 c0 07|vprotd of XOP|0 NotAccepted
63 c1|movsxd without REX.W|0 NotAccepted
e3 00|jrcxz: compilers do without|0 NotAccepted
67 e3 00|jecxz|0 NotAccepted
e2 fe|loop|0 NotAccepted
e1 fe|loope|0 NotAccepted
e0 fe|loopne|0 NotAccepted
66 63 c1|movsxd with 66|0 NotAccepted
""".strip().splitlines()
    for line in forbidden:
        code, what, reason = line.split("|")
        if reason == "-":
            continue
        rule = reason if reason[0] == "0" else f"8 {reason}"
        if line.startswith("66 63"):
            rule = "8 Prefix"
        case(d, f"forbidden-{what}-{code}", f"{what}", [(code, what), RET], rule, 0x1000)
    case(d, "tsc-allowed", "rdtsc where the policy allows it", [("0f 31", "rdtsc"), RET], tsc="allowed")
    case(d, "rdtscp-never", "rdtscp, which tells the processor too, even where the policy allows rdtsc", [("0f 01 f9", "rdtscp"), RET], "8 ProcessorState", 0x1000, tsc="allowed")
    for code, what in [("d9 c0", "fld %st(0)"), ("65 67 db 28", "fldt %gs:(%eax)"), ("9b", "fwait"), ("df e0", "fnstsw %ax"), ("d9 e8", "fld1")]:
        case(d, f"x87-{what}", f"{what} is accepted and reported", [(code, what), RET], report="x87 no-vector")
        case(d, f"x87-refused-{what}", f"{what} where the policy refuses x87", [(code, what), RET], "8 X87Refused", 0x1000, x87="refused")
    # Prefixes
    for pre, name in [("26", "es"), ("2e", "cs"), ("36", "ss"), ("3e", "ds"), ("64", "fs")]:
        for code, what in [("01 c8", "addl %ecx, %eax"), ("65 67 8b 07", "movl %gs:(%edi), %eax"), ("74 00", "je"), ("0f 1f 44 00 00", "nopl"), ("c3", "ret"), ("90", "nop"), ("c5 f8 28 c1", "vmovaps %xmm1, %xmm0")]:
            case(d, f"prefix-{name}-{what}", f"{name} segment prefix on {what}", [(f"{pre} {code}", f"{what} with {name}"), RET], "8 Prefix", 0x1000)
    case(d, "prefix-filler-cs", "the assembler's ten-byte filler has a cs prefix", [("66 2e 0f 1f 84 00 00 00 00 00", "cs nopw 0x0(%rax,%rax,1)"), RET], "8 Prefix", 0x1000)
    for code, what, rule in [("65 65 67 8b 07", "gs twice", "RepeatedPrefix"), ("65 67 67 8b 07", "address size twice", "RepeatedPrefix"), ("66 66 90", "66 twice", "RepeatedPrefix"), ("66 66 0f 1f 44 00 00", "66 twice on a no-op", "RepeatedPrefix"),
                             ("f3 f3 0f b8 c1", "F3 twice", "RepeatedPrefix"), ("f0 f0 65 67 ff 07", "lock twice", "RepeatedPrefix"), ("f2 f3 0f 10 c1", "F2 and F3", "Prefix"), ("f3 f2 0f 10 c1", "F3 and F2", "Prefix"), ("66 f3 0f 10 c1", "66 and F3 on movss", "Prefix"), ("f2 66 0f 58 c1", "F2 and 66 on addsd", "Prefix"),
                             ("f3 01 c8", "F3 on add", "Prefix"), ("f2 01 c8", "F2 on add", "Prefix"), ("f2 90", "F2 on nop", "Prefix"), ("f3 66 90", "F3 and 66 on nop", "Prefix"), ("f3 41 90", "pause with REX.B, xchg %r8 for some", "Prefix"), ("f3 91", "F3 on xchg", "Prefix"), ("f3 89 c8", "F3 on mov between registers", "Prefix"),
                             ("48 66 01 c8", "66 behind REX", "RexPlace"), ("48 65 67 8b 07", "gs behind REX", "RexPlace"), ("48 f3 0f b8 c1", "F3 behind REX", "RexPlace"), ("48 48 01 c8", "REX twice", "RexPlace"), ("40 49 01 c8", "REX twice", "RexPlace"), ("48 2e 01 c8", "cs behind REX", "RexPlace"), ("41 f0 65 67 ff 07", "lock behind REX", "RexPlace"),
                             ("66 48 01 c8", "66 with REX.W", "Prefix"), ("66 48 05 00 00 00 00", "66 with REX.W and an immediate: lengths differ between decoders", "Prefix"), ("66 84 c0", "66 on a byte instruction", "Prefix"), ("66 0f 05", "66 on syscall", "SystemCall"), ("66 0f 28 c1 00", "-", ""), ("66 88 c8", "66 on a byte move", "Prefix"), ("66 d8 c1", "66 on x87", "Prefix"), ("66 db e8", "66 on fucomi", "Prefix"), ("48 d8 c1", "REX on x87", "Prefix"),
                             ("66 0f c8", "66 on bswap: undefined", "0 NotAccepted"), ("66 0f c3 00", "66 on movnti", "0 NotAccepted"), ("66 65 67 0f c7 0f", "66 on cmpxchg8b", "8 ProcessorState"),
                             ("66 9f", "66 on lahf", "Prefix"), ("48 f8", "REX on clc", "RexUse"), ("40 98", "REX without W on cwtl", "RexUse"), ("41 98", "REX.B on cwtl", "RexUse"), ("49 a9 00 00 00 00", "REX.B on test", "RexUse"), ("4f 05 00 00 00 00", "all of REX on add to rax", "RexUse"), ("40 9e", "REX on sahf", "RexUse"),
                             ("48 88 c8", "REX.W on a byte move", "RexUse"), ("48 0f 28 c1", "REX.W on movaps", "RexUse"), ("48 0f 94 c0", "REX.W on sete", "RexUse"), ("48 0f 18 0f", "REX.W on prefetch", "1 Unconfined"), ("48 0f 50 c0", "REX.W on movmskps", "RexUse")]:
        if rule:
            full = rule if rule[0].isdigit() else f"8 {rule}"
            if what == "REX.W on prefetch":
                full = "8 RexUse"
            case(d, f"prefix-{what}-{code}", f"{what}", [(code, what), RET], full, 0x1000)
    for code, what in [("c3", "ret"), ("e9 00 00 00 00", "jmp"), ("eb 00", "short jmp"), ("74 00", "short je"), ("0f 84 00 00 00 00", "je"), ("e8 00 00 00 00", "call"), ("cc", "int3"), ("0f 0b", "ud2")]:
        for pre in ["66", "67", "f2", "f3", "65", "48", "40", "f0", "2e"]:
            if what == "ud2" and pre in ("66", "f2", "f3"):
                continue
            near = {"je": {"66": "0 NotAccepted", "f2": "0 NotAccepted", "f3": "0 NotAccepted"}}
            rule = near.get(what, {}).get(pre, "8 Prefix")
            case(d, f"branch-{what}-{pre}", f"{what} with {pre}: no prefixes on branches", [(f"{pre} {code}", f"{what} with {pre}"), RET], rule, 0x1000)
    for code, what in [("65 67 41 8b 04 25 00 00 01 00", "REX.B where SIB has no base: some decoders see r13"), ("41 8b 05 00 10 00 00", "REX.B with RIP"), ("42 01 c8", "REX.X without SIB"), ("65 67 42 8b 07", "REX.X without SIB, memory"),
                       ("44 f7 d8", "REX.R with an opcode extension"), ("44 0f 94 c0", "REX.R on sete"), ("4e 01 c8", "REX.W, R and X without SIB"), ("42 50", "REX.X on push"), ("44 58", "REX.R on pop"), ("46 b8 00 00 00 00", "REX.R and X on mov")]:
        case(d, f"rex-spare-{what}", f"{what}", [(code, what), RET], "8 RexUse", 0x1000)
    for code, what in [("c4 c1 78 10 04 25 00 00 00 00", "VEX.B where SIB has no base"), ("c4 a1 78 28 c1", "VEX.X without SIB"), ("c5 78 77", "VEX.R on vzeroupper"), ("c4 62 78 f3 c8", "VEX.R with an opcode extension"), ("c4 c1 78 10 05 00 10 00 00", "VEX.B with RIP")]:
        pre = "65 67 " if "SIB has" in what else ""
        case(d, f"vex-spare-{what}", f"{what}", [(pre + code, what), RET], "8 VexReserved", 0x1000)
    # lock
    for ins in ["addl %eax, %gs:(%edi)", "addl $1, %gs:(%edi)", "orb $1, %gs:(%edi)", "xorq %rax, %gs:(%edi)", "sbbl %eax, %gs:(%edi)", "incl %gs:(%edi)", "decb %gs:(%edi)", "notl %gs:(%edi)", "negq %gs:(%edi)", "xchgl %eax, %gs:(%edi)", "xaddl %eax, %gs:(%edi)", "cmpxchgl %ecx, %gs:(%edi)", "cmpxchgb %cl, %gs:(%edi)", "cmpxchg8b %gs:(%edi)", "cmpxchg16b %gs:(%edi)", "btsl $3, %gs:(%edi)", "btrq $3, %gs:(%edi)", "btcw $3, %gs:(%edi)", "addl %eax, TEXT+0x1000(%rip)"]:
        case(d, f"lock-{ins}", f"lock {ins}", ["lock " + ins, RET])
    for code, what in [("f0 01 c8", "addl %ecx, %eax"), ("f0 65 67 03 07", "addl %gs:(%edi), %eax"), ("f0 65 67 39 07", "cmpl %eax, %gs:(%edi)"), ("f0 65 67 83 3f 01", "cmpl $1, %gs:(%edi)"), ("f0 65 67 85 07", "testl %eax, %gs:(%edi)"), ("f0 65 67 89 07", "movl %eax, %gs:(%edi)"), ("f0 65 67 8b 07", "movl %gs:(%edi), %eax"), ("f0 65 67 d1 27", "shll %gs:(%edi)"), ("f0 65 67 f7 27", "mull %gs:(%edi)"),
                       ("f0 65 67 0f ba 27 03", "btl $3, %gs:(%edi)"), ("f0 90", "nop"), ("f0 87 c8", "xchgl %ecx, %eax"), ("f0 0f b1 c8", "cmpxchgl %ecx, %eax"), ("f0 0f c1 c8", "xaddl %ecx, %eax"), ("f0 ff c0", "incl %eax"), ("f0 48 8d 07", "leaq (%rdi), %rax"), ("f0 65 67 0f 11 07", "movups %xmm0, %gs:(%edi)"), ("f0 65 67 8f 07", "popq %gs:(%edi)"), ("f0 65 67 0f 94 07", "sete %gs:(%edi)"), ("f0 65 67 0f a4 07 03", "shldl $3, %eax, %gs:(%edi)"), ("f0 50", "push %rax"), ("f0 65 67 0f c3 07", "movnti %eax, %gs:(%edi)"), ("f0 65 67 d8 07", "fadds %gs:(%edi)")]:
        case(d, f"lock-refused-{what}", f"lock on {what}", [(code, f"lock {what}"), RET], "8 Lock", 0x1000)
    case(d, "lock-unconfined", "lock on an unconfined operand", ["lock incl (%rdi)", RET], "1 Unconfined", 0x1000)
    # VEX
    for code, what, rule in [("c5 f0 28 c1", "vmovaps with vvvv", "VexReserved"), ("c5 fa 58 c1", "vaddss %xmm1, %xmm0, %xmm0 (accepted)", None), ("c5 fe 58 c1", "vaddss with L", "VexReserved"), ("c4 e1 fa 58 c1", "vaddss with W", "VexReserved"), ("c4 e1 f8 28 c1", "vmovaps with W", "VexReserved"), ("c4 e1 78 28 c1", "vmovaps in the long form (accepted)", None),
                             ("c4 e2 7d 18 c1", "vbroadcastss %xmm1, %ymm0 (accepted)", None), ("c4 e2 79 19 c1", "vbroadcastsd without L", "VexReserved"), ("c4 e3 79 00 c1 00", "vpermq without W and L", "VexReserved"), ("c4 e3 fd 00 c1 00", "vpermq (accepted)", None), ("c4 e3 7d 18 c1 00", "vinsertf128 (accepted)", None), ("c4 e3 79 18 c1 00", "vinsertf128 without L", "VexReserved"),
                             ("c4 e3 79 4a c1 21", "vblendvps with low bits in the register immediate", "VexReserved"), ("c4 e3 79 4a c1 20", "vblendvps (accepted)", None), ("c4 e2 7c f2 c1", "andn with L", "VexReserved"), ("c4 e2 78 f2 c1", "andn (accepted)", None), ("c4 e3 7f f0 c1 03", "rorx with L", "VexReserved"), ("c4 e3 73 f0 c1 03", "rorx with vvvv", "VexReserved"), ("c5 e8 77", "vzeroupper with vvvv", "VexReserved"), ("c5 f8 77", "vzeroupper (accepted)", None), ("c5 fc 77", "vzeroall (accepted)", None), ("c4 e1 f8 77", "vzeroupper with W", "VexReserved"),
                             ("c5 f2 10 c1", "vmovss of three registers (accepted)", None), ("65 67 c5 f2 10 00", "vmovss from memory with vvvv", "VexReserved"), ("65 67 c5 fa 10 00", "vmovss from memory (accepted)", None), ("65 67 c5 f2 11 00", "vmovss to memory with vvvv", "VexReserved"), ("c4 e0 78 28 c1", "VEX map 0", "0 NotAccepted"), ("c4 e4 78 28 c1", "VEX map 4", "0 NotAccepted"), ("c4 e5 78 28 c1", "VEX map 5", "0 NotAccepted"), ("c4 ff 78 28 c1", "VEX map 31", "0 NotAccepted"),
                             ("66 c5 f8 28 c1", "66 before VEX", "Prefix"), ("f3 c5 f8 28 c1", "F3 before VEX", "Prefix"), ("f2 c5 f8 28 c1", "F2 before VEX", "Prefix"), ("f0 c5 f8 28 c1", "lock before VEX", "Prefix"), ("40 c5 f8 28 c1", "REX before VEX", "Prefix"), ("48 c4 e1 78 28 c1", "REX.W before VEX", "Prefix"),
                             ("c5 fb 93 c0", "kmovd %k0, %eax", "0 NotAccepted"), ("c5 f8 92 c0", "kmovw %eax, %k0", "0 NotAccepted"), ("c5 f4 41 c2", "kandw", "0 NotAccepted"), ("c5 f8 ae 10", "vldmxcsr", "ControlState"), ("65 67 c5 f8 ae 10", "vldmxcsr confined", "ControlState"), ("65 67 c5 f8 ae 18", "vstmxcsr confined", "ControlState"), ("c4 e2 7d dc c1", "vaesenc of 256 bits", "VexReserved"), ("c4 e2 71 50 c1", "vpdpbusd of AVX-VNNI", "0 NotAccepted"), ("c4 e2 7a b0 00", "vbcstnebf162ps space", "0 NotAccepted"), ("c4 e3 f9 6b c9 20", "vfmaddsd of FMA4", "0 NotAccepted"), ("c4 e2 78 49 00", "ldtilecfg of AMX", "0 NotAccepted"), ("c4 e2 7b 4b 04 00", "tileloadd of AMX", "0 NotAccepted"), ("c4 e2 78 f3 c0", "group 17 /0", "0 NotAccepted"), ("c4 e2 79 f7 c1", "shlx (accepted)", None), ("c5 79 c5 c0 01", "vpextrw to r8d (accepted)", None), ("c5 f9 d7 00", "vpmovmskb from memory", "0 NotAccepted"),
                             ("62 f1 7c 48 28 c1", "vmovaps %zmm1, %zmm0", "Evex"), ("62 f1 7c 08 28 c1", "vmovaps %xmm1, %xmm0 with EVEX", "Evex"), ("65 67 62 f1 7c 48 11 00", "vmovups %zmm0, %gs:(%eax)", "Evex"), ("62 f1 fd 48 e7 00", "vmovntdq %zmm0, (%rax)", "Evex"), ("d5 00 58", "pop with REX2 of APX", "0 NotAccepted")]:
        full = None if rule is None else rule if rule[0].isdigit() else f"8 {rule}"
        case(d, f"vex-{what}-{code}", f"{what}", [(code, what), RET], full, 0x1000 if full else None)
    # Length
    case(d, "length-15", "fifteen bytes are allowed", [("65 67 f0 66 81 84 08 00 00 00 00 01 00", "lock addw $1, %gs:0(%eax,%ecx)"), RET])
    case(d, "length-too-long", "more than fifteen bytes by prefixes alone", [("66 " * 14 + "90 90", "nop with fourteen 66"), RET], "8 RepeatedPrefix", 0x1000)
    case(d, "length-truncated", "the text ends inside an instruction", [RET, "@ 0xffe", ("b8 00", "half of movl $0, %eax")], "0 Truncated", 0x1ffe)
    case(d, "length-truncated-prefix", "the text ends behind a prefix", [RET, "@ 0xfff", ("65", "gs and nothing")], "any")
    case(d, "length-truncated-opcode", "the text ends behind 0F", [RET, "@ 0xfff", ("0f", "0F and nothing")], "8 SegmentRegister", 0x1fff)
    for ins in ["endbr64", "nop", "pause", "lfence", "mfence", "sfence", "lahf", "sahf", "clc", "stc", "cmc", "cltq", "cqto", "cltd", "cwtl", "xchgw %ax, %ax", "nopw 0x0(%rax,%rax,1)", "xchgl %eax, %r8d", "movb %ah, %al"]:
        case(d, f"accepted-{ins}", f"accepted: {ins}", [ins, RET])
    for code, what in [("0f ae e9", "lfence with another number"), ("0f ae f7", "mfence with another number"), ("0f ae fa", "sfence with another number"), ("41 0f ae e8", "lfence with REX.B")]:
        case(d, f"fence-{what}-{code}", f"{what}", [(code, what), RET], "0 NotAccepted", 0x1000)
    case(d, "setcc-digit", "setcc with a reserved ModRM.reg", [("0f 94 c8", "sete %al with reg 1"), RET], "0 NotAccepted", 0x1000)


def write():
    """All of them."""
    rule8()
