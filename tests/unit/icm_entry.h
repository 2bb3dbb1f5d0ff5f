// SPDX-License-Identifier: GPL-2.0-or-later
// What a guest can do to an entry of ICM, field by field.
#pragma once

#include <stdexcept>
#include <string>

#include "jingzhao/context_fields.h"

namespace hghca::test {

// The place of a field of T in its entry, by its name as in for_each_field().
template <class T>
FieldPlace place_of(const std::string &name)
{
    FieldPlace found{};
    for_each_field<T>([&](const FieldPlace &f) {
        if (f.name == name)
            found = f;
    });
    if (!found.bytes)
        throw std::runtime_error("no field " + name);
    return found;
}

template <class T>
uint64_t get_field(const uint8_t *entry, const std::string &name)
{
    const FieldPlace f = place_of<T>(name);
    uint64_t n = 0;
    for (uint32_t i = f.bytes; i--;)
        n = n << 8 | entry[f.at + i];
    return n;
}

// Whatever the bounds of the field are.
template <class T>
void put_field(uint8_t *entry, const std::string &name, uint64_t n)
{
    const FieldPlace f = place_of<T>(name);
    for (uint32_t i = 0; i < f.bytes; i++)
        entry[f.at + i] = uint8_t(n >> 8 * i);
}

}  // namespace hghca::test
