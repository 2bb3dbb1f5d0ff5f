// SPDX-License-Identifier: GPL-2.0-or-later
#include "recording.h"

#include <fcntl.h>

#include <cerrno>
#include <system_error>

namespace hghca::sim {

namespace {

constexpr uint32_t kWholeFrames = 0;

void must(int error, const std::string &path)
{
    if (error)
        throw std::system_error(error, std::generic_category(), path);
}

int open_for_writing(const std::string &path)
{
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(fd < 0 ? errno : 0, path);
    return fd;
}

}  // namespace

// Virtual time begins with 1970.
Recording::Recording(const std::string &path)
    : path_(path), file_(open_for_writing(path)), capture_(file_, kWholeFrames, 0)
{
    must(file_.claim(), path);
    must(capture_.begin("network"), path);
}

void Recording::sent(const Frame &frame, uint64_t now_ns)
{
    const iovec part{const_cast<uint8_t *>(frame.data), frame.length};
    must(capture_.frame(Capture::Way::Out, now_ns, &part, 1), path_);
}

}  // namespace hghca::sim
