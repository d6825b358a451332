/* A tokenizer as a switch in a loop: dense jump tables on every byte. */
#include "kernel.h"

static char text[AMOUNT(1 << 18, 1 << 12)];

WORKLOAD(switch_machine)
{
    static const char alphabet[] = "abcxyz_019 \t\n(){};+-*/<=>!&|\"'.,%#";
    uint64_t state = 29, counts[12] = {0}, sum = 0;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
    for (int round = 0; round < (int)part(220, permille); round++)
        for (size_t i = 0; i < sizeof text;) {
            char c = text[i++];
            switch (c) {
            case 'a': case 'b': case 'c': case 'x': case 'y': case 'z': case '_':
                while (i < sizeof text && (text[i] == '_' || (text[i] >= '0' && text[i] <= 'z' && text[i] > ';')))
                    i++;
                counts[0]++;
                break;
            case '0': case '1': case '9':
                while (i < sizeof text && text[i] >= '0' && text[i] <= '9')
                    i++;
                counts[1]++;
                break;
            case ' ': case '\t': counts[2]++; break;
            case '\n': counts[3] += i; break;
            case '(': counts[4]++; break;
            case ')': counts[4]--; break;
            case '{': counts[5] += 3; break;
            case '}': counts[5] -= 2; break;
            case ';': counts[6] ^= i; break;
            case '+': counts[7]++; break;
            case '-': counts[7] += 2; break;
            case '*': counts[7] += 5; break;
            case '/': counts[7] ^= 7; break;
            case '<': counts[8] += text[i % sizeof text] == '='; break;
            case '=': counts[8] += 2; break;
            case '>': counts[8] ^= 9; break;
            case '!': counts[9]++; break;
            case '&': counts[9] += 11; break;
            case '|': counts[9] ^= 13; break;
            case '"': counts[10]++; break;
            case '\'': counts[10] += 17; break;
            default: counts[11] += (uint64_t)c; break;
            }
        }
    for (int i = 0; i < 12; i++)
        sum = mix(sum, counts[i]);
    return sum;
}
