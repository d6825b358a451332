/* What tests/api/arenas.c calls: ordinary C, built with --isolation=words. */
#include <stddef.h>

struct request {
    const char *uri;
    size_t length;
    unsigned char cb[48];
    struct request *next;
    int flags;
    int mode;
};

int read_word(const int *p) {
    return *p;
}

void write_word(int *p, int value) {
    *p = value;
}

/* Its pointers are the host's. */
size_t handle(struct request *req, int n) {
    size_t length = 0;
    while (req->uri[length])
        length++;
    for (int i = 0; i < n; i++)
        req->cb[i] = (unsigned char)(i + 1);
    return length;
}

int flags_of_all(const struct request *req) {
    int flags = 0;
    for (; req; req = req->next)
        flags |= req->flags;
    return flags;
}

/* Of a point that may be on the host's stack. */
void mirror(int *point) {
    int x = point[0];
    point[0] = point[1];
    point[1] = x;
}
