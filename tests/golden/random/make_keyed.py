#!/usr/bin/env python3
"""Prints the lines of Keyed.NeverChanges in tests/random/keyed_test.cc.

Philox4x32-10 and the cascade over it, written from the paper and from the comment in core/base/keyed.h.
"""

MASK32 = 0xFFFFFFFF


def philox(counter, key):
    counter, key = list(counter), list(key)
    for _ in range(10):
        product0 = 0xD2511F53 * counter[0]
        product1 = 0xCD9E8D57 * counter[2]
        counter = [(product1 >> 32) ^ counter[1] ^ key[0], product1 & MASK32, (product0 >> 32) ^ counter[3] ^ key[1], product0 & MASK32]
        key = [(key[0] + 0x9E3779B9) & MASK32, (key[1] + 0xBB67AE85) & MASK32]
    return counter


def block(state, word, role):
    bits = philox([word & MASK32, word >> 32, role, 0], [state & MASK32, state >> 32])
    return bits[0] | bits[1] << 32


def keyed(seed, stream, key, index):
    data = stream.encode()
    state = block(seed, len(data) << 32 | len(key), 0)
    for begin in range(0, len(data), 8):
        state = block(state, int.from_bytes(data[begin : begin + 8], "little"), 1)
    for word in key:
        state = block(state, word, 2)
    return block(state, index, 3)


for seed, stream, key, index in [
    (0, "", [], 0),
    (42, "policy", [3, 5, 1], 7),
    (2**64 - 1, "a stream of more than eight bytes", [2**64 - 1, 0], 2**64 - 1),
    (1, "exactly8", [1], 0),
]:
    shown = ", ".join(f"{word}U" for word in key)
    print(f'  EXPECT_EQ(Keyed({seed}U, "{stream}", {{{shown}}}, {index}U), {hex(keyed(seed, stream, key, index))}U);')
