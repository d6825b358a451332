/* ringfence/host/arena.h - objects of the host's that domains reach by its own pointers, word for word.
 *
 * A module of `ringfence cc --isolation=words` gets the plain address of an object in an arena, and reads and
 * writes those words (4 bytes each) that its domain was given rights to; pointers inside objects lead on. An
 * access to another word ends the call with RF_FAULT_ACCESS; rf_error()->address is the word's.
 *
 *     struct request *req = rf_arena_alloc(arena, NULL, sizeof *req);
 *     rf_arena_give(arena, NULL, domain, req->cb, 32, RF_RIGHTS_WRITE);
 *     rf_value a[] = { rf_value_ptr(req) };
 *     rf_domain_call(domain, "handle", a, 1, NULL);
 *
 * Objects do not overlap, and the word behind each is nobody's. `actor` is the domain on whose behalf something
 * is asked for, NULL for the host itself, who may do everything. Others: only an object's owner gives rights to
 * it away, takes them back and frees it; a domain may lower what it was given itself. Anything else is
 * RF_ERROR_RIGHTS.
 *
 * Where rights are taken away, no access that needs them is in progress any more when the function returns. If a
 * thread inside of the domain does not answer for a tenth of a second, it is done all the same, and the function
 * returns RF_ERROR_BUSY: that thread may still make the one access that it had begun.
 *
 * What domains may write changes under the host's hands: copy before checking. docs/words.md has the rules. */
#ifndef RINGFENCE_HOST_ARENA_H
#define RINGFENCE_HOST_ARENA_H

#include <ringfence/host/rights.h>
#include <ringfence/host/status.h>
#include <ringfence/host/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* Memory for objects that domains may be given rights to: those that are made with it
 * (rf_domain_options.arena). */
typedef struct rf_arena rf_arena;

/* Domains that are given rights to words together. */
typedef struct rf_arena_group rf_arena_group;

/* What functions may touch of the objects that they are called with. */
typedef struct rf_arena_policy rf_arena_policy;

/* The rights of a call in progress. */
typedef struct rf_arena_call rf_arena_call;

/* An arena for up to `length` bytes of objects, at most 490 MiB. What is not used takes no memory. Tables of
 * rights take at most `tables` bytes, a byte for each byte of the arena in which a domain was given anything; 0:
 * 64 MiB and 16 times the arena. `*arena` is NULL on failure. Errors: RF_ERROR_ARGUMENT (length),
 * RF_ERROR_LIMIT. */
rf_status rf_arena_create(uint64_t length, uint64_t tables, rf_arena **arena) RF_WARN_UNUSED;

/* Ends the handle. The arena goes with the last domain that has it. NULL is fine. */
rf_status rf_arena_destroy(rf_arena *arena);

/* Domains that are made with the arena from now on have checked heaps: what their libc allocates are objects of the arena
 * that they own. Running over a block's end, a use after free, and reading words that were never written end the call
 * with RF_FAULT_ACCESS, and rf_error()->message tells who has allocated and freed the block; freeing what is no block
 * ends it with RF_FAULT_HOST, told the same way. rf_error() looks names up when it is called first: call it before the
 * domain is reset. For finding mistakes: each allocation is a call of the runtime, the first write to each
 * word costs a fault. A reset frees all blocks. Blocks of more than 1 MiB, those that have to be aligned to more
 * than 16, and more than 65,536 are not checked. */
rf_status rf_arena_check_heaps(rf_arena *arena);

/* A zeroed object of `length` bytes at a multiple of 16, which `owner` (NULL: the host) owns: a domain may read
 * and write what it owns, and takes it along when it goes. NULL on failure. Errors: RF_ERROR_ARGUMENT (length;
 * the domain has another arena), RF_ERROR_LIMIT. */
void *rf_arena_alloc(rf_arena *arena, rf_domain *owner, size_t length) RF_WARN_UNUSED;

/* Takes the object back that begins at `object`; all domains lose their rights to it first. NULL is fine.
 * Errors: RF_ERROR_FREE: none begins there, or a block of a checked heap, which its module frees; RF_ERROR_RIGHTS;
 * RF_ERROR_BUSY: calls by a policy have rights to it, and nothing has changed, or a thread did not answer, and the
 * place stays empty until it has. */
rf_status rf_arena_free(rf_arena *arena, rf_domain *actor, void *object);

/* Sets what `domain` may do with `length` bytes at `address`: whole words of one object. What was given of them
 * to the same domain before is replaced. Errors: RF_ERROR_ARGUMENT: no whole words, or another arena;
 * RF_ERROR_RANGE: no object is there, or it ends sooner; RF_ERROR_RIGHTS, RF_ERROR_LIMIT (tables),
 * RF_ERROR_BUSY. */
rf_status rf_arena_give(rf_arena *arena, rf_domain *actor, rf_domain *domain, const void *address, size_t length,
                        rf_rights rights);

/* Sets what all members of a group may do, present and future. */
rf_status rf_arena_give_group(rf_arena *arena, rf_domain *actor, rf_arena_group *group, const void *address,
                              size_t length, rf_rights rights);

/* Takes all that was given of `length` bytes at `address` back: from all domains, groups and calls in progress.
 * What the owner has stays. Errors: as rf_arena_give. */
rf_status rf_arena_revoke(rf_arena *arena, rf_domain *actor, const void *address, size_t length);

/* What `domain` may do with the word at `address`, all taken together: an rf_rights, or -1 on failure. */
int rf_arena_rights(rf_arena *arena, rf_domain *domain, const void *address);

/* Writes who has what, as far as `capacity` bytes go, NUL included: a line for each domain and group, with at
 * most `most` runs of words each, in bytes from the arena's start. Returns the whole text's length, 0 on
 * failure; `to` may be NULL if `capacity` is 0.
 *     domain #1: 0x0..0x20=rw 0x40..0x44=r */
size_t rf_arena_overview(rf_arena *arena, size_t most, char *to, size_t capacity);

/* A group, which the host owns. Domains join one that is `open` (not 0) by themselves. `*group` is NULL on
 * failure. */
rf_status rf_arena_group_create(rf_arena *arena, int open, rf_arena_group **group) RF_WARN_UNUSED;

/* Ends the group: its members lose what it gave them. NULL is fine. */
rf_status rf_arena_group_destroy(rf_arena_group *group);

/* Lets `domain` in; `actor` is NULL, or the domain itself if the group is open. */
rf_status rf_arena_group_admit(rf_arena_group *group, rf_domain *actor, rf_domain *domain);

/* Takes `domain` out. Errors: RF_ERROR_RIGHTS: it is not in. */
rf_status rf_arena_group_expel(rf_arena_group *group, rf_domain *domain);

/* All members of `inner`, now and later, get what `group` is given, too. Errors: RF_ERROR_RIGHTS: `group` is in
 * `inner` already. */
rf_status rf_arena_group_admit_group(rf_arena_group *group, rf_arena_group *inner);

/* The policy of an interface: a line for each function, and the structures that they name (docs/words.md has the
 * language):
 *     struct request 144 { uri @0 char*; cb @16 1[48] }
 *     handle(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing
 * `*policy` is NULL on failure. Errors: RF_ERROR_TEXT: the first mistake, with line, column and a caret. */
rf_status rf_arena_policy_create(const char *text, rf_arena_policy **policy) RF_WARN_UNUSED;

/* Ends the handle. NULL is fine. */
rf_status rf_arena_policy_destroy(rf_arena_policy *policy);

/* What calls touch, learned from a run. */
typedef struct rf_arena_learner rf_arena_learner;

/* From now on `domain` is denied nothing of its arena, and what its calls by rf_arena_learner_call touch is noted, until
 * rf_arena_learner_destroy. `signatures` has the functions' parameters, `fill(to: bytes, n: number)`, and structures. The
 * fence holds as ever; rights to words do not. `*learner` is NULL on failure. Errors: RF_ERROR_BUSY: another domain of
 * the process learns; RF_ERROR_ARGUMENT: it has no arena. */
rf_status rf_arena_learner_create(rf_arena_policy *signatures, rf_domain *domain, rf_arena_learner **learner) RF_WARN_UNUSED;

/* Ends learning. NULL is fine. */
rf_status rf_arena_learner_destroy(rf_arena_learner *learner);

/* Calls a function of the domain as rf_domain_call does, and notes what it touches. Errors: those of rf_domain_call;
 * RF_ERROR_BUSY: another thread makes such a call. */
rf_status rf_arena_learner_call(rf_arena_learner *learner, const char *name, const rf_value *arguments, size_t count,
                                rf_value *result);

/* Writes the policy that the calls needed, as far as `capacity` bytes go, NUL included: structures, a line for each
 * function, and a comment for each that touched what its parameters do not lead to. Returns the whole text's length, 0 on
 * failure. Errors: RF_ERROR_TEXT: a call made more different accesses than are noted, 65,536. */
size_t rf_arena_learner_policy(rf_arena_learner *learner, char *to, size_t capacity);

/* Calls a function as rf_domain_call does, with the rights that the policy says, which are gone when it has
 * returned or failed. What a parameter that it calls `copied` points to may be anywhere, on the stack for one: it is
 * copied into the arena for the call, and back when it has returned, if the function may write it. So it is the host's
 * own pointer to as many bytes, never one that a module gave. Errors: those of rf_domain_call; RF_ERROR_TEXT: the policy
 * does not tell what it may touch with these arguments; RF_ERROR_RANGE: a pointer leads to no object of the arena.
 * Nothing was called then. */
rf_status rf_arena_policy_call(rf_arena_policy *policy, rf_domain *domain, const char *name,
                               const rf_value *arguments, size_t count, rf_value *result);

/* For calls that are made another way, by a pointer of rf_dlsym for one: gives what the policy says of `name`
 * with these `count` arguments (pointers and integers as they are in registers), until rf_arena_call_destroy. */
rf_status rf_arena_call_create(rf_arena_policy *policy, rf_domain *domain, const char *name,
                               const uint64_t *arguments, size_t count, rf_arena_call **call) RF_WARN_UNUSED;

/* The call has ended: its rights go. NULL is fine. */
rf_status rf_arena_call_destroy(rf_arena_call *call);

#ifdef __cplusplus
}
#endif
#endif
