// SPDX-License-Identifier: GPL-2.0-or-later
// What the peer of a QP may search by READ_POINTER and read by READ_CONSISTENT (docs/reference/rsnic.rst, 9.3 and 9.4).
// It never changes:
//
//   elements of several lists | values, to which the elements point | objects with their CRC
#pragma once

#include <cstdint>
#include <vector>

#include "machine.h"
#include "random.h"

namespace hghca::sim {

class Prepared {
public:
    static constexpr uint32_t kMaxValue = 256;

    struct Object {
        uint32_t offset, length;
        bool torn;   // its CRC is wrong for ever
    };
    struct Search {
        uint64_t va;       // of the first element; 0: the list is empty
        uint64_t key;
        uint32_t search;   // HGHCA_POINTER_*
    };

    // Objects have `object_bytes` at most.
    Prepared(Machine &machine, uint32_t object_bytes, Random &random);

    Search any_search(Random &random) const;
    // The value that a search finds, of kMaxValue bytes; null: none.
    const uint8_t *find(const Search &search);
    const Object &any_object(Random &random) const;
    const uint8_t *bytes_of(const Object &object) { return memory_.model(object.offset); }
    uint64_t va_of(const Object &object) const { return memory_.mr.va + object.offset; }
    uint32_t key() const { return memory_.mr.key; }
    // Has anything written to it?
    bool changed()
    {
        int64_t at;
        return memory_.differs(at, [](int64_t, uint8_t) { return false; });
    }
    // For tests of the checkers: a program writes to the values, or to the objects.
    void spoil_values();
    void spoil_objects();

private:
    void make_elements(Random &random);
    void make_objects(uint32_t object_bytes, Random &random);
    // Into memory and model.
    void put64(uint64_t offset, uint64_t value);
    uint64_t get64(uint64_t va, uint32_t word);

    Block memory_;
    std::vector<Object> objects_;
};

}  // namespace hghca::sim
