// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <stdexcept>
#include <string>

namespace hghca::sim {

// What a checker has found; it ends the run.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class... T>
[[noreturn]] void fail(const T &...parts)
{
    std::string text;
    auto add = [&text](const auto &part) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
            text += std::to_string(part);
        else
            text += part;
    };
    (add(parts), ...);
    throw Failure(text);
}

}  // namespace hghca::sim
