// SPDX-License-Identifier: GPL-2.0-or-later
// The fields of a context and how they are stored in its entry of ICM (interface document, 4.4).
//
// Layout<T>::kFields is the one table of the fields of T: name, member, position, access and bounds. encode() and
// decode() follow it, so that nothing but fields leaves the device: the padding of a struct never does.
//
// Each number is stored little-endian in the width of its type, as is an enumeration that stands for a number
// (kIsNumber); a bool or another enumeration takes one byte. The elements
// of an array follow one another. A group of fields is a struct with a table; the positions in it count from its start.
// Bytes that no field names are 0, and are ignored when they are read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "byte_order.h"

namespace hghca {

enum class FieldAccess : uint8_t {
    Command,    // set by software: by a command, or for a key by a WQE
    Device,     // state of the device
    ReadOnly,   // set when the context is made, and never changed
};

// What decode() accepts, both included. For an array: each of its elements.
struct Bounds {
    uint64_t min;
    uint64_t max;
};
constexpr Bounds up_to(uint64_t max) { return {0, max}; }
constexpr Bounds kAnyNumber = up_to(UINT64_MAX);
constexpr Bounds kNumber24 = up_to(0xffffff);   // PSNs, MSNs, QPNs

template <class T>
struct Layout;

template <class T>
concept FieldGroup = requires { Layout<T>::kFields; };

template <class Owner, class T>
struct Field {
    const char *name;
    T Owner::*member;
    uint32_t at;          // bytes, from the start of the entry or of the group
    FieldAccess access;   // of a group: its fields have one each
    Bounds bounds;
};

// Enumerations that stand for numbers, which number() gives: PSNs, MSNs, QPNs, keys and the like.
template <class T>
constexpr bool kIsNumber = std::is_enum_v<T> && requires(T value) { number(value); };

namespace fields_detail {

// Is it stored in one byte, whatever its width?
template <class T>
constexpr bool kIsByte = (std::is_enum_v<T> && !kIsNumber<T>) || std::is_same_v<T, bool>;

template <class T>
struct ArrayOf {
    using Element = T;
    static constexpr size_t kCount = 1;
};
template <class T, size_t N>
struct ArrayOf<std::array<T, N>> {
    using Element = T;
    static constexpr size_t kCount = N;
};
template <class T>
constexpr bool kIsArray = false;
template <class T, size_t N>
constexpr bool kIsArray<std::array<T, N>> = true;

// Converts to anything: the most of them that a struct can be made of is the number of its members.
struct AnyMember {
    template <class T>
    operator T() const;
};
template <class T, size_t... I>
constexpr bool is_made_of(std::index_sequence<I...>)
{
    return requires { T{(void(I), AnyMember{})...}; };
}
constexpr size_t kMaxMembers = 64;
template <class T, size_t N = kMaxMembers>
constexpr size_t member_count()
{
    if constexpr (N == 0 || is_made_of<T>(std::make_index_sequence<N>()))
        return N;
    else
        return member_count<T, N - 1>();
}

}  // namespace fields_detail

// Rows of the tables. An enumeration needs bounds, for not each of its bytes is one of its values.
template <class Owner, class T>
    requires(!std::is_enum_v<T> || kIsNumber<T>)
constexpr Field<Owner, T> field(const char *name, T Owner::*member, uint32_t at, FieldAccess access)
{
    return {name, member, at, access, std::is_same_v<T, bool> ? up_to(1) : kAnyNumber};
}
template <class Owner, class T>
constexpr Field<Owner, T> field(const char *name, T Owner::*member, uint32_t at, FieldAccess access, Bounds bounds)
{
    return {name, member, at, access, bounds};
}
template <class Owner, class T>
    requires FieldGroup<typename fields_detail::ArrayOf<T>::Element>
constexpr Field<Owner, T> group(const char *name, T Owner::*member, uint32_t at)
{
    return {name, member, at, FieldAccess::Device, kAnyNumber};
}
template <class... Rows>
constexpr std::tuple<Rows...> fields(Rows... rows)
{
    return {rows...};
}

// Calls visit(row) for each row of T's table, with the row known to the compiler.
template <class T, class Visit>
constexpr void for_each_row(Visit &&visit)
{
    [&]<size_t... I>(std::index_sequence<I...>) {
        (visit(std::integral_constant<size_t, I>()), ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(Layout<T>::kFields)>>());
}

template <class T>
constexpr uint32_t stored_bytes();

namespace fields_detail {

template <class Owner, class T>
constexpr uint32_t end_of(const Field<Owner, T> &row)
{
    return row.at + stored_bytes<T>();
}

template <class... Row, size_t... I>
constexpr uint32_t end_of_last(const std::tuple<Row...> &rows, std::index_sequence<I...>)
{
    return std::max({end_of(std::get<I>(rows))...});
}

template <class... Row, size_t... I>
constexpr uint32_t start_of_first(const std::tuple<Row...> &rows, std::index_sequence<I...>)
{
    return std::min({std::get<I>(rows).at...});
}

}  // namespace fields_detail

// As many numbers as T's table has rows.
template <class T>
using RowNumbers = std::make_index_sequence<std::tuple_size_v<decltype(Layout<T>::kFields)>>;

// To the end of the last field.
template <class T>
constexpr uint32_t group_bytes()
{
    return fields_detail::end_of_last(Layout<T>::kFields, RowNumbers<T>());
}

// The bytes that a value of this type takes in an entry.
template <class T>
constexpr uint32_t stored_bytes()
{
    using namespace fields_detail;
    if constexpr (kIsArray<T>)
        return uint32_t(ArrayOf<T>::kCount) * stored_bytes<typename ArrayOf<T>::Element>();
    else if constexpr (FieldGroup<T>)
        return group_bytes<T>();
    else if constexpr (kIsByte<T>)
        return 1;
    else
        return sizeof(T);
}

namespace fields_detail {

template <class Owner, class T, class U>
constexpr bool apart(const Field<Owner, T> &a, const Field<Owner, U> &b)
{
    if (end_of(a) > b.at && end_of(b) > a.at)
        return false;
    if constexpr (std::is_same_v<T, U>)
        return a.member != b.member;
    else
        return true;
}

// The width of a bound is that of the field: nothing that encode() stores is cut off.
template <class Owner, class T>
constexpr bool good_bounds(const Field<Owner, T> &row)
{
    using Element = typename ArrayOf<T>::Element;
    if constexpr (kIsByte<Element>)
        return row.bounds.min <= row.bounds.max && row.bounds.max <= (std::is_enum_v<Element> ? UINT8_MAX : 1);
    else if constexpr (FieldGroup<Element>)
        return true;
    else
        return (std::is_unsigned_v<Element> || kIsNumber<Element>) && row.bounds.min <= row.bounds.max;
}

template <class T>
constexpr bool good_rows()
{
    bool good = true;
    for_each_row<T>([&](auto i) {
        constexpr auto row = std::get<i>(Layout<T>::kFields);
        good = good && good_bounds(row);
        for_each_row<T>([&](auto j) {
            if constexpr (j < i)
                good = good && apart(row, std::get<j>(Layout<T>::kFields));
        });
    });
    return good;
}

}  // namespace fields_detail

// The first byte that a field of T takes.
template <class T>
constexpr uint32_t first_field()
{
    return fields_detail::start_of_first(Layout<T>::kFields, RowNumbers<T>());
}

// A table covers its struct: a row for each member, no two for one, and no two at one place.
template <class T>
constexpr bool is_covered()
{
    return std::tuple_size_v<decltype(Layout<T>::kFields)> == fields_detail::member_count<T>() &&
           fields_detail::good_rows<T>();
}

template <class T>
void encode(const T &value, uint8_t *out)
{
    using namespace fields_detail;
    if constexpr (kIsArray<T>) {
        using Element = typename ArrayOf<T>::Element;
        if constexpr (sizeof(Element) == 1 && std::is_integral_v<Element>)
            std::memcpy(out, value.data(), value.size());
        else
            for (size_t i = 0; i < value.size(); i++)
                encode(value[i], out + i * stored_bytes<Element>());
    } else if constexpr (FieldGroup<T>) {
        static_assert(is_covered<T>());
        for_each_row<T>([&](auto i) {
            constexpr auto row = std::get<i>(Layout<T>::kFields);
            encode(value.*row.member, out + row.at);
        });
    } else if constexpr (stored_bytes<T>() == 1) {
        *out = uint8_t(value);
    } else if constexpr (kIsNumber<T>) {
        encode(std::underlying_type_t<T>(value), out);
    } else {
        T stored = value;
        if constexpr (sizeof(T) == 2)
            stored = le16(value);
        else if constexpr (sizeof(T) == 4)
            stored = le32(value);
        else
            stored = le64(value);
        std::memcpy(out, &stored, sizeof(stored));
    }
}

// False: a field is out of its bounds, and `out` is not to be used.
template <class T>
bool decode(const uint8_t *in, T &out, Bounds bounds = kAnyNumber)
{
    using namespace fields_detail;
    if constexpr (kIsArray<T>) {
        bool good = true;
        for (size_t i = 0; i < out.size(); i++)
            good &= decode(in + i * stored_bytes<typename ArrayOf<T>::Element>(), out[i], bounds);
        return good;
    } else if constexpr (FieldGroup<T>) {
        static_assert(is_covered<T>());
        bool good = true;
        for_each_row<T>([&](auto i) {
            constexpr auto row = std::get<i>(Layout<T>::kFields);
            good &= decode(in + row.at, out.*row.member, row.bounds);
        });
        return good;
    } else if constexpr (stored_bytes<T>() == 1) {
        const bool good = *in >= bounds.min && *in <= bounds.max;
        out = T(good ? *in : bounds.min);
        return good;
    } else if constexpr (kIsNumber<T>) {
        std::underlying_type_t<T> stored;
        const bool good = decode(in, stored, bounds);
        out = T(stored);
        return good;
    } else {
        T stored;
        std::memcpy(&stored, in, sizeof(stored));
        if constexpr (sizeof(T) == 2)
            out = le16(stored);
        else if constexpr (sizeof(T) == 4)
            out = le32(stored);
        else
            out = le64(stored);
        return out >= bounds.min && out <= bounds.max;
    }
}

// A field as it is found by its place: no group and no array.
struct FieldPlace {
    std::string name;   // "resp.replies[3].psn"
    uint32_t at;        // bytes, from the start of the entry
    uint32_t bytes;
    FieldAccess access;
    Bounds bounds;
};

// Calls visit(const FieldPlace &) for each field of T, those of its groups and arrays among them.
template <class T, class Visit>
void for_each_field(Visit &&visit, const std::string &prefix = {}, uint32_t start = 0)
{
    using namespace fields_detail;
    for_each_row<T>([&](auto i) {
        constexpr auto row = std::get<i>(Layout<T>::kFields);
        using Member = std::remove_reference_t<decltype(std::declval<T &>().*row.member)>;
        using Element = typename ArrayOf<Member>::Element;
        for (size_t n = 0; n < ArrayOf<Member>::kCount; n++) {
            const std::string name = prefix + row.name + (kIsArray<Member> ? "[" + std::to_string(n) + "]" : "");
            const uint32_t at = start + row.at + uint32_t(n) * stored_bytes<Element>();
            if constexpr (FieldGroup<Element>)
                for_each_field<Element>(visit, name + ".", at);
            else
                visit(FieldPlace{name, at, stored_bytes<Element>(), row.access, row.bounds});
        }
    });
}

}  // namespace hghca
