/* State that takes time to build: pointers into data and heap, functions, thread-local variables. */
struct node { struct node *next; long value; };

static struct node head = {&head, 0};
static long (*function)(long);
_Thread_local long local = 3;
_Thread_local struct node *cursor;
long big[16384];
unsigned long mixed;
long constructed;
extern long host_enter(long x);

__attribute__((constructor)) static void construct(void) { constructed++; }

static long twice(long x) { return 2 * x; }

void push(struct node *n, long value)
{
    n->next = head.next;
    n->value = value;
    head.next = n;
    cursor = n;
    local++;
    function = twice;
    big[value & 16383] = value;
}
/* A pointer that was kept is compared with one that is made now. */
long sum(void)
{
    long s = 0;
    for (struct node *n = head.next; n != &head; n = n->next)
        s += n->value;
    return s;
}
long apply(long x) { return function(x); }
long local_value(void) { return local; }
long cursor_value(void) { return cursor ? cursor->value : -1; }
long head_is_newest(void) { return cursor == head.next; }
long times_constructed(void) { return constructed; }
/* Depends on the address, and cannot be moved. */
void mix(void) { mixed = (unsigned long)&head * 0x9E3779B97F4A7C15; }
void keep(long value) { mixed = (unsigned long)value; }
void spoil(long value)
{
    for (int i = 0; i < 16384; i++)
        big[i] = value;
    head.next = &head;
    local = value;
    cursor = 0;
    function = 0;
}
long inside(long x) { return host_enter(x); }
void crash(void) { *(volatile long *)8 = 1; }
