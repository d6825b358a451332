"""Rule 10 and layouts; and what compilers emit, all of it accepted."""

import re

from families.common import RET, case


def rule10():
    d = "rule-10"
    case(d, "text-not-on-page", "text that does not start on a page", [RET], "0 TextMisplaced", text_address="0x1008", segment=["0x1008 0x1000 text"])
    case(d, "text-beyond-area", "text that ends beyond the area of images", [RET], "0 TextTooLarge", text_address="0x3ffc0000", segment=["0x3fe00000 0x1000 text"])
    case(d, "text-last-page", "text in the last page of the area", [RET], text_address="0x3feff000", segment=["0x3feff000 0x1000 text"])
    case(d, "segments-overlap", "two segments overlap", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0x2000 0x1000 data", "0x2fff 0x10 read-only"])
    case(d, "data-over-text", "a data segment lies over the text", [RET], "0 Segments", segment=["0x0 0x2000 data"])
    case(d, "data-over-text-tail", "a data segment lies over the text's last byte", [RET], "0 Segments", segment=["0x1000 0xfff text", "0x1fff 0x100 data"])
    case(d, "read-only-over-text", "a read-only segment lies over the text", [RET], "0 Segments", segment=["0x1800 0x100 read-only"])
    case(d, "segment-beyond-area", "a segment ends beyond the area of images", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0x10000000 0xf0000000 data"])
    case(d, "segment-wraps", "a segment whose end wraps around 4 GiB", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0xfffff000 0x2000 data"])
    case(d, "segment-empty", "empty segments mean nothing", [RET], segment=["0x1000 0x1000 text", "0x1800 0x0 data"])
    case(d, "no-segments", "without segments only accesses through gs are possible", ["movl %gs:(%edi), %eax", RET], segment=["0x0 0x0 data"])
    case(d, "no-segments-rip", "a RIP-relative load without segments", ["movl TEXT+0x1000(%rip), %eax", RET], "1 OutsideImage", 0x1000, segment=["0x0 0x0 data"])
    case(d, "segments-any-order", "segments need not be sorted", ["movl TEXT+0x1000(%rip), %eax", RET], segment=["0x2000 0x1000 data", "0x0 0x1000 read-only", "0x1000 0x1000 text"])
    case(d, "store-through-second-data", "two data segments that touch: an access must lie in one", ["movq %rax, TEXT+0x10fc(%rip)", RET], "1 OutsideImage", 0x1000, segment=["0x1000 0x1000 text", "0x2000 0x100 data", "0x2100 0x100 data"])
    case(d, "relro-hole", "a store into the read-only part between two data segments", ["movl %eax, TEXT+0x1100(%rip)", RET], "1 StoreToConstants", 0x1000, segment=["0x1000 0x1000 text", "0x2000 0x100 data", "0x2100 0x100 read-only", "0x2200 0x100 data"])


def accepted():
    """What compilers emit, by instruction-set extension: all of it confined, and accepted."""
    d = "accepted"
    M, N = "%gs:16(%edi,%ecx,8)", "%gs:(%r12d)"
    groups = {
        "arithmetic": ["addb %al, M", "addw $300, M", "adcl %eax, M", "sbbq M, %rax", "andl $-16, %eax", "orq $1, %rax", "xorb $1, M", "cmpb $0, M", "cmpw %ax, M", "subq $0x7fffffff, %rax", "addb $1, %al", "cmpl $1, %eax", "testb %al, %al", "testq $1, M", "incq M", "decb %al", "negl M", "notb %al"],
        "moves": ["movb $1, M", "movw $1, M", "movl $1, M", "movq $-1, M", "movabsq $0x123456789abcdef0, %rax", "movl $1, %r15d", "movzwl M, %eax", "movzbw M, %ax", "movsbl M, %eax", "movswq M, %rax", "movslq M, %r9", "movsbw %al, %ax", "cmovaeq M, %r12", "xchgb %al, M", "bswapl %eax", "bswapq %r12", "setg M", "setnp %r12b", "cltq", "cqto"],
        "multiply-divide": ["mull M", "imulq M", "imull $10, M, %eax", "imulq $1000, M, %rax", "divq M", "idivl %ecx", "mulb %cl", "imulw M, %ax"],
        "shifts-bits": ["shll $3, M", "shrq %cl, M", "sarb M", "roll $1, %eax", "rorw $3, M", "rclq %rax", "rcrl %cl, %eax", "shldq $3, %rax, M", "shrdl %cl, %eax, M", "btq $63, M", "btsl %eax, %ecx", "bsfq M, %rax", "bsrl M, %eax"],
        "atomics": ["lock xaddq %rax, M", "lock cmpxchgl %ecx, M", "lock cmpxchg16b M", "mfence", "lock orl $0, M", "xchgq %rax, M", "pause"],
        "sse": ["movss M, %xmm0", "movsd %xmm0, M", "movaps M, %xmm9", "movups %xmm9, M", "movdqa M, %xmm0", "movdqu %xmm0, M", "movd M, %xmm0", "movq %xmm0, M", "movq M, %xmm12", "movd %xmm0, %r12d", "movhps M, %xmm0", "movlpd %xmm0, M", "movhlps %xmm1, %xmm0", "addps M, %xmm0", "mulsd M, %xmm0", "divss M, %xmm0", "sqrtpd M, %xmm0", "cvtsi2sdl M, %xmm0", "cvtsi2ssq %rax, %xmm0", "cvttss2si M, %eax", "cvtsd2siq M, %rax", "cvtps2pd M, %xmm0", "cvtdq2ps M, %xmm0", "ucomisd M, %xmm0", "comiss %xmm1, %xmm0", "cmpltps M, %xmm0", "shufps $3, M, %xmm0", "unpcklpd M, %xmm0", "andnps M, %xmm0", "pxor M, %xmm0", "paddq M, %xmm0", "pmuludq M, %xmm0", "psrlq $3, %xmm0", "pslldq $4, %xmm0", "psrad %xmm1, %xmm0", "punpcklbw M, %xmm0", "pshufd $3, M, %xmm0", "packuswb M, %xmm0", "pextrw $1, %xmm0, %eax", "pinsrw $1, M, %xmm0", "pmovmskb %xmm0, %eax", "movmskpd %xmm0, %eax", "movntdq %xmm0, M", "movntiq %rax, M", "psadbw M, %xmm0", "prefetchnta M", "prefetcht2 M"],
        "ssse3-sse4": ["pshufb M, %xmm0", "palignr $3, M, %xmm0", "pabsd M, %xmm0", "haddpd M, %xmm0", "movddup M, %xmm0", "lddqu M, %xmm0", "fisttpl M", "pmulld M, %xmm0", "ptest M, %xmm0", "pminsd M, %xmm0", "pblendvb %xmm0, M, %xmm1", "roundsd $3, M, %xmm0", "pextrb $1, %xmm0, M", "pextrq $1, %xmm0, M", "pinsrq $1, M, %xmm0", "insertps $1, M, %xmm0", "extractps $1, %xmm0, M", "pmovzxbw M, %xmm0", "pmovsxdq M, %xmm0", "dpps $1, M, %xmm0", "pcmpistri $3, M, %xmm0", "pcmpestrm $3, M, %xmm0", "popcntq M, %rax", "popcntw M, %ax", "crc32b M, %eax", "crc32q M, %rax", "crc32w M, %eax", "movntdqa M, %xmm0", "phminposuw M, %xmm0"],
        "avx": ["vmovups M, %ymm0", "vmovaps %ymm9, M", "vmovdqu M, %ymm0", "vmovss M, %xmm0", "vmovsd %xmm0, M", "vmovss %xmm2, %xmm1, %xmm0", "vaddps M, %ymm1, %ymm0", "vmulsd M, %xmm1, %xmm0", "vsqrtss M, %xmm1, %xmm0", "vcvtsi2sdq %rax, %xmm1, %xmm0", "vcvttsd2si M, %eax", "vcvtpd2psy M, %xmm0", "vucomiss M, %xmm0", "vcmpeqpd M, %ymm1, %ymm0", "vshufps $3, M, %ymm1, %ymm0", "vbroadcastss M, %ymm0", "vbroadcastsd M, %ymm0", "vinsertf128 $1, M, %ymm1, %ymm0", "vextractf128 $1, %ymm0, M", "vperm2f128 $1, M, %ymm1, %ymm0", "vpermilps $1, M, %ymm0", "vblendvps %ymm2, M, %ymm1, %ymm0", "vmaskmovps M, %ymm1, %ymm0", "vmaskmovpd %ymm0, %ymm1, M", "vtestps M, %ymm0", "vzeroupper", "vzeroall", "vmovq %xmm0, %rax", "vmovd M, %xmm0", "vpinsrd $1, M, %xmm1, %xmm0", "vpextrw $1, %xmm0, M", "vmovhps M, %xmm1, %xmm0", "vmovlps %xmm0, M", "vmovntdq %ymm0, M", "vaesenc M, %xmm1, %xmm0", "vpclmulqdq $1, M, %xmm1, %xmm0", "vpsllw $3, %xmm1, %xmm0", "vpcmpeqb M, %xmm1, %xmm0", "vmovddup M, %ymm0", "vroundps $3, M, %ymm0", "vdpps $3, M, %ymm1, %ymm0", "vaddss %xmm10, %xmm9, %xmm8"],
        "avx2": ["vpaddd M, %ymm1, %ymm0", "vpshufb M, %ymm1, %ymm0", "vpsllvq M, %ymm1, %ymm0", "vpsravd M, %ymm1, %ymm0", "vpermq $3, M, %ymm0", "vpermd M, %ymm1, %ymm0", "vpermps M, %ymm1, %ymm0", "vpbroadcastb M, %ymm0", "vpbroadcastq %xmm1, %ymm0", "vbroadcasti128 M, %ymm0", "vinserti128 $1, M, %ymm1, %ymm0", "vextracti128 $1, %ymm0, M", "vperm2i128 $1, M, %ymm1, %ymm0", "vpblendd $1, M, %ymm1, %ymm0", "vpmaskmovd M, %ymm1, %ymm0", "vpmaskmovq %ymm0, %ymm1, M", "vpmovmskb %ymm0, %eax", "vpmovzxbd M, %ymm0", "vpmovsxbq M, %ymm0", "vpsrldq $4, %ymm1, %ymm0", "vpblendvb %ymm2, M, %ymm1, %ymm0", "vpackusdw M, %ymm1, %ymm0", "vmovntdqa M, %ymm0"],
        "fma-f16c": ["vfmadd132ps M, %ymm1, %ymm0", "vfmadd213sd M, %xmm1, %xmm0", "vfnmadd231ss M, %xmm1, %xmm0", "vfmsub231pd M, %xmm1, %xmm0", "vfmaddsub132pd M, %ymm1, %ymm0", "vfnmsub213ps M, %xmm1, %xmm0", "vfmsubadd231ps M, %ymm1, %ymm0", "vcvtph2ps M, %ymm0", "vcvtps2ph $3, %ymm0, M"],
        "bmi": ["andnq M, %rax, %rcx", "bextrl %eax, M, %ecx", "blsrq M, %rax", "blsil %eax, %ecx", "blsmskq M, %rax", "bzhil %eax, M, %ecx", "mulxq M, %rax, %rcx", "pdepl M, %eax, %ecx", "pextq M, %rax, %rcx", "rorxq $3, M, %rax", "sarxl %eax, M, %ecx", "shlxq %rax, M, %rcx", "shrxq %rax, M, %rcx", "tzcntq M, %rax", "lzcntl M, %eax", "tzcntw M, %ax"],
        "crypto-other": ["aesenc M, %xmm0", "aesdeclast M, %xmm0", "aesimc M, %xmm0", "aeskeygenassist $1, M, %xmm0", "pclmulqdq $1, M, %xmm0", "sha1rnds4 $1, M, %xmm0", "sha256rnds2 %xmm0, M, %xmm1", "sha256msg1 M, %xmm0", "sha1nexte M, %xmm0", "movbeq M, %rax", "movbew %ax, M", "adcxl M, %eax", "adoxq M, %rax"],
        "x87": ["flds M", "fldl M", "fldt M", "fstpt M", "fsts M", "fildl M", "fildll M", "fistpl M", "fadds M", "fmull M", "fiaddl M", "ficoms M", "fld %st(1)", "fxch %st(2)", "fadd %st(1), %st", "fmulp %st, %st(1)", "fdivrp %st, %st(1)", "fucomip %st(1), %st", "fcomi %st(1), %st", "fcmove %st(1), %st", "fchs", "fabs", "fsqrt", "fsin", "fpatan", "fprem", "fyl2x", "frndint", "fscale", "f2xm1", "fld1", "fldpi", "fxam", "ftst", "fnstsw %ax", "fnstcw M", "fstp %st(0)", "fucompp", "fcompp", "fnop", "fwait"],
    }
    for group, lines in groups.items():
        for line in lines:
            ins = re.sub(r"\bM\b", M, line)
            case(d, f"{group}-{line}", f"{group}: {line}", [ins, RET])
        several = [re.sub(r"\bM\b", N, line) for line in lines]
        case(d, f"all-of-{group}", f"all of {group} in one function, operands at r12", several + [RET], report="depth=0")
    case(d, "all-general-registers", "every register pushed and popped that may be", [f"push %{r}" for r in "rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r12 r13 r14 r15".split()] + ["addq $8, %rax", "pop %r15", "pop %rax", "pop %r13", "pop %r12"] + [f"pop %{r}" for r in "r11 r10 r9 r8 rbp rdi rsi rdx rcx rbx rax".split()] + [RET], report="depth=120")


def write():
    """All of them."""
    rule10()
    accepted()
