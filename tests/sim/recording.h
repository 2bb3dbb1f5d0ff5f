// SPDX-License-Identifier: GPL-2.0-or-later
// The frames of runs in a file, as their hosts sent them: before the network has done anything to them.
#pragma once

#include <cstdint>
#include <string>

#include "frame.h"
#include "port/capture.h"

namespace hghca::sim {

class Recording {
public:
    // Throws std::system_error where the file cannot be written.
    explicit Recording(const std::string &path);

    void sent(const Frame &frame, uint64_t now_ns);

private:
    const std::string path_;
    CaptureFile file_;
    Capture capture_;
};

}  // namespace hghca::sim
