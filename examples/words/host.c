/* A host that lets a driver work on its own objects: 32 of 144 bytes.
 *     gcc -Iinclude examples/words/host.c -lringfence -o host && ./host driver.rf */
#include <ringfence.h>
#include <stdio.h>
#include <string.h>

#include "packet.h"

static const char *const policy_text =
    "struct packet 144 { next @0 struct packet*; data @8 1*; length @16 4; id @20 4; driver @24 1[32]; route @56 8[8]; owner @120 1[24] }\n"
    "receive(p: struct packet, n: number) reads p->length; reads p->data[p->length]; writes p->driver; keeps nothing\n";

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, rf_error()->message);
    return 1;
}

int main(int argc, char **argv) {
    rf_module *module = NULL;
    rf_arena *arena = NULL;
    rf_domain *domain = NULL;
    rf_arena_policy *policy = NULL;
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    if (rf_module_create(argc > 1 ? argv[1] : "driver.rf", RF_LOAD_ALLOW_WORDS, &module) || rf_arena_create(1 << 20, 0, &arena))
        return failed("loading");
    options.arena = arena;
    if (rf_domain_create(module, &options, &domain) || rf_arena_policy_create(policy_text, &policy))
        return failed("starting");

    /* The host's own object, with the host's own pointers. */
    struct packet *p = rf_arena_alloc(arena, NULL, sizeof *p);
    unsigned char *data = rf_arena_alloc(arena, NULL, 5);
    if (!p || !data)
        return failed("allocating");
    memcpy(data, "hello", 5);
    p->data = data, p->length = 5, strcpy(p->owner, "the host");

    rf_value length = { RF_TYPE_I32, { 0 } }, arguments[] = { rf_value_ptr(p), rf_value_i32(32) };
    if (rf_arena_policy_call(policy, domain, "receive", arguments, 2, &length))
        return failed("receive");
    printf("32 bytes: %d seen, driver[31] is %u\n", length.as.i32, p->driver[31]);

    arguments[1] = rf_value_i32(33);
    if (rf_arena_policy_call(policy, domain, "receive", arguments, 2, &length) != RF_FAULT_ACCESS)
        return fprintf(stderr, "the 33rd byte was written\n"), 1;
    printf("the 33rd: %s\n", rf_error()->message);
    printf("route[0] is %lu\n", p->route[0]);
    return rf_domain_destroy(domain) || rf_arena_destroy(arena) || rf_module_destroy(module) || rf_arena_policy_destroy(policy);
}
