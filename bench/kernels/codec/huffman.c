/* Huffman's codes from frequencies, none longer than LONGEST. */
#include "codec.h"

static int try_lengths(struct codes *codes, const uint32_t *frequency)
{
    uint64_t weight[2 * SYMBOLS];
    int parent[2 * SYMBOLS], heap[SYMBOLS], count = 0, next = SYMBOLS, longest = 0;
    for (int s = 0; s < SYMBOLS; s++) {
        codes->length[s] = 0;
        weight[s] = frequency[s];
        if (frequency[s])
            heap[count++] = s;
    }
    if (count == 1) {
        codes->length[heap[0]] = 1;
        return 1;
    }
    for (int left = count; left > 1; left--) {
        int least[2];
        for (int k = 0; k < 2; k++) {
            int best = 0, size = left - k;
            for (int i = 1; i < size; i++)
                if (weight[heap[i]] < weight[heap[best]] ||
                    (weight[heap[i]] == weight[heap[best]] && heap[i] < heap[best]))
                    best = i;
            least[k] = heap[best];
            heap[best] = heap[size - 1];
        }
        weight[next] = weight[least[0]] + weight[least[1]];
        parent[least[0]] = parent[least[1]] = next;
        heap[left - 2] = next++;
    }
    for (int s = 0; s < SYMBOLS; s++) {
        int length = 0;
        for (int node = s; frequency[s] && node != next - 1; node = parent[node])
            length++;
        codes->length[s] = (uint8_t)length;
        longest = length > longest ? length : longest;
    }
    return longest <= LONGEST;
}

void codes_make(struct codes *codes, const uint32_t *frequency)
{
    uint32_t flatter[SYMBOLS];
    memcpy(flatter, frequency, sizeof flatter);
    while (!try_lengths(codes, flatter))
        for (int s = 0; s < SYMBOLS; s++)
            flatter[s] = flatter[s] ? flatter[s] / 4 + 1 : 0;
    codes_number(codes);
}

/* Gives codes to symbols of known lengths. */
void codes_number(struct codes *codes)
{
    uint32_t code = 0;
    for (int length = 1; length <= LONGEST; length++, code <<= 1)
        for (int s = 0; s < SYMBOLS; s++)
            if (codes->length[s] == length)
                codes->code[s] = (uint16_t)code++;
}

void codes_fill_lookup(struct codes *codes)
{
    memset(codes->lookup, 0, sizeof codes->lookup);
    for (int s = 0; s < SYMBOLS; s++) {
        int length = codes->length[s], free_bits = LONGEST - length;
        for (uint32_t i = 0; length && i < 1u << free_bits; i++)
            codes->lookup[((uint32_t)codes->code[s] << free_bits) + i] = (uint16_t)(s << 4 | length);
    }
}
