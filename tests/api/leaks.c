/* What a module sees of the host's registers through pointers of rf_dlsym and through imports, by the types that were told.
 * The module is crates/runtime/tests/modules/registers.s: it keeps all registers as it finds them. */
#include <ringfence.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"

#define SECRET 0x7E575EC2E7575EC3u

/* rf_dirty_call(function): calls it with the secret in all registers and in what would be eight words of arguments.
 * rf_dirty_host: returns with the secret in all registers that a function may change. */
__asm__(".macro DIRTY\n"
        "movabs $0x7E575EC2E7575EC3, %rax\n"
        "movq %rax, %xmm0\n punpcklqdq %xmm0, %xmm0\n"
        ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqa %xmm0, %xmm\\n\n .endr\n"
        ".irp r, rdi,rsi,rdx,rcx,r8,r9,r10,r11\n movq %rax, %\\r\n .endr\n"
        ".endm\n"
        ".globl rf_dirty_call\nrf_dirty_call:\n"
        "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n sub $72, %rsp\n mov %rdi, 64(%rsp)\n"
        "DIRTY\n"
        ".irp r, rbx,rbp,r12,r13,r14,r15\n mov %rax, %\\r\n .endr\n"
        ".irp at, 0,8,16,24,32,40,48,56\n mov %rax, \\at(%rsp)\n .endr\n"
        "call *64(%rsp)\n"
        "add $72, %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".globl rf_dirty_host\nrf_dirty_host:\nDIRTY\nret\n"
        ".section .note.GNU-stack,\"\",@progbits\n.text\n");
extern void rf_dirty_call(void (*function)(void));
extern void rf_dirty_host(void);

static void back(rf_caller *caller, void *context) {
    (void)context;
    rf_caller_return_int(caller, 5);
    rf_dirty_host();
}

enum { RAX, RCX, RDX, RBX, FLAGS, RBP, RSI, RDI, R8, R9, R10, R11, R14 = 14, R15 };
typedef struct area {
    uint64_t general[16], vectors[16][4], unit[48];
} area;

static area look(rf_domain *d, int number) {
    area a = { { 0 }, { { 0 } }, { 0 } };
    const area *all = (const area *)rf_domain_find_object(d, "areas", NULL);
    CHECK(sizeof a == 1024 && all && rf_memory_read(d, all + number, &a, sizeof a) == RF_OK);
    return a;
}

/* Everything but what is told, which has to be exactly that, is 0 or an address of the window. */
static void same(rf_domain *d, int number, const char *what, const uint64_t general[16], const uint64_t vectors[8]) {
    area a = look(d, number);
    for (int i = 0; i < 16; i++) {
        bool own = i == R11 || i == R14 || i == R15;
        if (i != FLAGS && a.general[i] != general[i] && !(own && rf_memory_contains(d, (void *)(uintptr_t)a.general[i], 1)))
            fprintf(stderr, "%s: register %d is %#lx, not %#lx\n", what, i, a.general[i], general[i]), failures++;
        for (int k = 0; k < 4; k++) {
            uint64_t wanted = k == 0 && i < 8 ? vectors[i] : 0;
            if (a.vectors[i][k] != wanted)
                fprintf(stderr, "%s: word %d of ymm%d is %#lx, not %#lx\n", what, k, i, a.vectors[i][k], wanted), failures++;
        }
    }
}
#define GENERAL(...) (const uint64_t[16]) { __VA_ARGS__ }
#define VECTORS(...) (const uint64_t[8]) { __VA_ARGS__ }
#define CALL(pointer) rf_dirty_call((void (*)(void))(pointer))

static void at_entry(rf_domain *d) {
    CALL(RF_DLSYM(d, void, entered, (void)));
    same(d, 0, "entered(void)", GENERAL(0), VECTORS(0));
    CALL(RF_DLSYM(d, void, entered, (int, char, double, bool, float, short, void *, uint16_t)));
    same(d, 0, "narrow arguments",
         GENERAL([RDI] = 0xE7575EC3, [RSI] = 0xFFFFFFC3, [RDX] = 0xC3, [RCX] = 0x5EC3, [R8] = SECRET, [R9] = 0x5EC3),
         VECTORS(SECRET, 0xE7575EC3));
    CALL(RF_DLSYM(d, long, entered, (long, long, long, long, long, long, int, unsigned char, long double, float)));
    same(d, 0, "six words", GENERAL([RDI] = SECRET, [RSI] = SECRET, [RDX] = SECRET, [RCX] = SECRET, [R8] = SECRET, [R9] = SECRET),
         VECTORS(0xE7575EC3));
    uint64_t stacked[8] = { 0 };
    CHECK_STATUS(rf_memory_read(d, rf_domain_find_object(d, "stacked", NULL), stacked, sizeof stacked), RF_OK);
    CHECK(stacked[0] == 0xE7575EC3 && stacked[1] == 0xC3 && stacked[2] == SECRET && stacked[3] == 0x5EC3 && stacked[4] != SECRET);
    /* This is what the types are for. */
    CALL(rf_dlsym(d, RF_UNTYPED "entered"));
    area a = look(d, 0);
    CHECK(a.general[RDI] == SECRET && a.general[R9] == SECRET && a.vectors[7][1] == SECRET);
    CHECK(rf_error() == NULL);
}

static void behind_imports(rf_domain *d) {
    CALL(RF_DLSYM(d, void, out_and_back, (void)));
    CHECK(rf_error() == NULL);
    same(d, 1, "void", GENERAL(0), VECTORS(0));
    same(d, 2, "unsigned char", GENERAL([RAX] = 0xC3), VECTORS(0));
    same(d, 3, "int", GENERAL([RAX] = 0xE7575EC3), VECTORS(0));
    same(d, 4, "long", GENERAL([RAX] = SECRET), VECTORS(0));
    same(d, 5, "float", GENERAL(0), VECTORS(0xE7575EC3));
    same(d, 6, "double", GENERAL(0), VECTORS(SECRET));
    same(d, 7, "untyped", GENERAL([RAX] = SECRET, [RDX] = SECRET), VECTORS(SECRET, SECRET));
    same(d, 8, "callback", GENERAL([RAX] = 5), VECTORS(0));
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: leaks MODULE\n"), 2;
    if (!HAS(FENCE) || !HAS(GRANTS))
        return FINISH("leaks");
    const rf_import imports[] = {
        RF_IMPORT_INIT(void, host_void, (void), rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE("unsigned char host_byte(void)", rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE("int host_int(void)", rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE("char *host_long(void)", rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE("float host_float(void)", rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE("double host_double(void)", rf_dirty_host),
        RF_IMPORT_INIT_PROTOTYPE(RF_UNTYPED "host_untyped", rf_dirty_host),
        RF_IMPORT_INIT_CALLBACK("host_closure", back, NULL),
    };
    const rf_slot slots[] = { { "other", 0, 0, 1, 0, RF_ON_FAILURE_RETURN, 0 }, { "failing", 0, 0, 1, 0, RF_ON_FAILURE_RETURN, 0 } };
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = sizeof imports / sizeof *imports;
    o.slots = slots, o.slot_count = 2;
    rf_module *module = NULL;
    rf_domain *d = NULL;
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    if (d) {
        at_entry(d);
        behind_imports(d);
    }
    /* No type, no import. */
    rf_import bad = RF_IMPORT_INIT_PROTOTYPE("host_void", rf_dirty_host);
    rf_domain *none = NULL;
    o.imports = &bad, o.import_count = 1;
    CHECK_STATUS(rf_domain_create(module, &o, &none), RF_ERROR_TYPE);
    CHECK(!none && strstr(rf_error()->message, "RF_IMPORT_INIT(int, host_void, (int, int), function)"));
    rf_import typed = RF_IMPORT_INIT_CALLBACK("int host_closure(void)", back, NULL);
    o.imports = &typed;
    CHECK_STATUS(rf_domain_create(module, &o, &none), RF_ERROR_TYPE);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("leaks");
}
