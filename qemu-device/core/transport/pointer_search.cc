// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/pointer_search.h"

#include <bit>
#include <cstring>

#include "byte_order.h"

namespace hghca {

namespace {

constexpr uint32_t kSearchReserved =
    ~(kSearchKeysMask | kSearchPredicateMask | kSearchValueMask | kSearchRelative | kSearchNextMask | kSearchHasNext);

uint64_t number_at(const Element &element, uint32_t position)
{
    uint64_t number;
    std::memcpy(&number, &element[position * sizeof(uint32_t)], sizeof(number));
    return le64(number);
}

bool matches(Predicate predicate, uint64_t of_element, uint64_t key)
{
    switch (predicate) {
    case Predicate::Equal:
        return of_element == key;
    case Predicate::Less:
        return of_element < key;
    case Predicate::Greater:
        return of_element > key;
    case Predicate::NotEqual:
        return of_element != key;
    }
    return false;
}

}  // namespace

bool is_search(uint32_t search)
{
    const uint32_t keys = field_get(kSearchKeysMask, search);
    const bool value_good = search & kSearchRelative || field_get(kSearchValueMask, search) <= kLastPosition;
    const bool next_good = !(search & kSearchHasNext) || field_get(kSearchNextMask, search) <= kLastPosition;
    return keys && !(keys >> (kLastPosition + 1)) && value_good && next_good && !(search & kSearchReserved);
}

SearchStep look_at(const Element &element, uint64_t key, uint32_t search)
{
    const auto predicate = Predicate(field_get(kSearchPredicateMask, search));
    for (uint32_t keys = field_get(kSearchKeysMask, search); keys; keys &= keys - 1) {
        const auto position = uint32_t(std::countr_zero(keys));
        if (!matches(predicate, number_at(element, position), key))
            continue;
        const uint32_t pointer = (search & kSearchRelative ? position : 0) + field_get(kSearchValueMask, search);
        if (pointer > kLastPosition)
            return {SearchStep::What::Invalid, 0};
        return {SearchStep::What::Found, number_at(element, pointer)};
    }
    const uint64_t next = search & kSearchHasNext ? number_at(element, field_get(kSearchNextMask, search)) : 0;
    return {next ? SearchStep::What::Next : SearchStep::What::End, next};
}

}  // namespace hghca
