// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/capture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace hghca {

namespace {

// Numbers are in the byte order of the machine, which the section header tells. The sections cited are those of
// draft-ietf-opsawg-pcapng.

// 4.1
constexpr uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr uint16_t kVersionMajor = 1;
constexpr uint16_t kVersionMinor = 0;
constexpr uint64_t kLengthUnknown = UINT64_MAX;
// 4.2
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint16_t kLinkEthernet = 1;
constexpr uint16_t kIfName = 2;
constexpr uint16_t kIfTimeResolution = 9;
constexpr uint16_t kIfFcsLength = 13;
constexpr uint8_t kNanoseconds = 9;  // ten to the power of minus so much
// 4.3
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint16_t kPacketFlags = 2;

constexpr size_t kMaxName = 255;
// The most that a user without privileges may ask for (pipe(7)).
constexpr int kFifoBytes = 1 << 20;

constexpr size_t padded(size_t n) { return (n + 3) & ~size_t(3); }

struct PacketHead {
    uint32_t type;
    uint32_t block_bytes;
    uint32_t interface_index;
    uint32_t time_high;
    uint32_t time_low;
    uint32_t captured_bytes;
    uint32_t frame_bytes;
};
static_assert(sizeof(PacketHead) == 28);

// Behind the frame and its pad.
struct PacketTail {
    uint16_t flags_code;
    uint16_t flags_bytes;
    uint32_t flags;
    uint32_t end_of_options;
    uint32_t block_bytes;
};
static_assert(sizeof(PacketTail) == 16);

// A block whose parts are put one behind the other.
class Block {
public:
    explicit Block(uint32_t type)
    {
        put(type);
        put(uint32_t(0));  // its length, when it is known
    }

    template <class T>
    void put(T value)
    {
        put_bytes(&value, sizeof(value));
    }
    void put_option(uint16_t code, const void *value, size_t length)
    {
        put(code);
        put(uint16_t(length));
        put_bytes(value, length);
        length_ = padded(length_);
    }
    int write(CaptureSink &sink)
    {
        put(uint32_t(0));  // opt_endofopt
        const auto total = uint32_t(length_ + sizeof(uint32_t));
        put(total);
        std::memcpy(&bytes_[sizeof(uint32_t)], &total, sizeof(total));
        const iovec whole{bytes_.data(), length_};
        return sink.write(&whole, 1);
    }

private:
    void put_bytes(const void *bytes, size_t n)
    {
        std::memcpy(&bytes_[length_], bytes, n);
        length_ += n;
    }

    std::array<uint8_t, 64 + kMaxName> bytes_{};
    size_t length_ = 0;
};

size_t length_of(const iovec *parts, int count)
{
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += parts[i].iov_len;
    return length;
}

// Calls take(bytes, n) for each part of the first `limit` bytes.
template <class Take>
void for_each_part(const iovec *parts, int count, size_t limit, Take &&take)
{
    for (int i = 0; i < count && limit; i++) {
        const size_t n = std::min(limit, parts[i].iov_len);
        if (n)
            take(static_cast<uint8_t *>(parts[i].iov_base), n);
        limit -= n;
    }
}

ssize_t write_parts(int fd, const iovec *parts, int count)
{
    ssize_t done;
    do {
        done = writev(fd, parts, count);
    } while (done < 0 && errno == EINTR);
    return done;
}

}  // namespace

// ---- the file

CaptureFile::~CaptureFile()
{
    // If the reader has left no place for it, its last block lacks the end.
    write_rest();
    close(fd_);
}

int CaptureFile::claim()
{
    struct stat status;
    if (flock(fd_, LOCK_EX | LOCK_NB) || fstat(fd_, &status) || (S_ISREG(status.st_mode) && ftruncate(fd_, 0)))
        return errno;
    is_fifo_ = S_ISFIFO(status.st_mode);
    if (is_fifo_)
        fcntl(fd_, F_SETPIPE_SZ, kFifoBytes);   // a smaller one loses more frames
    return 0;
}

// 0: nothing of the last block is left to write.
int CaptureFile::write_rest()
{
    if (rest_.empty())
        return 0;
    const iovec part{&rest_[rest_at_], rest_.size() - rest_at_};
    const ssize_t done = write_parts(fd_, &part, 1);
    if (done < 0)
        return errno;
    rest_at_ += size_t(done);
    if (rest_at_ < rest_.size())
        return EAGAIN;
    rest_.clear();
    rest_at_ = 0;
    return 0;
}

int CaptureFile::write(const iovec *parts, int count)
{
    const size_t length = length_of(parts, count);
    if (length > max_bytes_ - length_bytes_)
        return EFBIG;
    if (const int error = write_rest())
        return error;
    const ssize_t done = write_parts(fd_, parts, count);
    if (done > 0 && is_fifo_ && size_t(done) < length) {
        for_each_part(parts, count, length,
                      [this](const uint8_t *bytes, size_t n) { rest_.insert(rest_.end(), bytes, bytes + n); });
        rest_at_ = size_t(done);
    }
    if (done == ssize_t(length) || !rest_.empty()) {
        length_bytes_ += length;
        return 0;
    }
    const int error = done < 0 ? errno : ENOSPC;
    // Part of a block would make the whole file look damaged.
    if (done > 0 && (ftruncate(fd_, off_t(length_bytes_)) || lseek(fd_, off_t(length_bytes_), SEEK_SET) < 0))
        return errno;
    return error;
}

// ---- the blocks

Capture::Capture(CaptureSink &sink, uint32_t snap_bytes, uint64_t epoch_ns)
    : sink_(sink), snap_bytes_(snap_bytes ? std::min(snap_bytes, kMaxSnapBytes) : kMaxSnapBytes), epoch_ns_(epoch_ns)
{
}

int Capture::begin(const char *name)
{
    Block section(kSectionHeader);
    section.put(kByteOrderMagic);
    section.put(kVersionMajor);
    section.put(kVersionMinor);
    section.put(kLengthUnknown);
    if (const int error = section.write(sink_))
        return error;

    const uint8_t resolution = kNanoseconds;
    const uint8_t fcs_bytes = 0;
    const std::string_view kept = std::string_view(name).substr(0, kMaxName);
    Block interface(kInterfaceDescription);
    interface.put(kLinkEthernet);
    interface.put(uint16_t(0));
    interface.put(snap_bytes_);
    interface.put_option(kIfName, kept.data(), kept.size());
    interface.put_option(kIfTimeResolution, &resolution, sizeof(resolution));
    interface.put_option(kIfFcsLength, &fcs_bytes, sizeof(fcs_bytes));
    return interface.write(sink_);
}

int Capture::frame(Way way, uint64_t now_ns, const iovec *parts, int count)
{
    const uint64_t time_ns = epoch_ns_ + now_ns;
    const size_t frame_bytes = length_of(parts, count);
    const size_t captured_bytes = std::min<size_t>(frame_bytes, snap_bytes_);
    const size_t pad_bytes = padded(captured_bytes) - captured_bytes;
    const auto block_bytes = uint32_t(sizeof(PacketHead) + captured_bytes + pad_bytes + sizeof(PacketTail));

    PacketHead head{kEnhancedPacket, block_bytes, 0, uint32_t(time_ns >> 32), uint32_t(time_ns),
                    uint32_t(captured_bytes), uint32_t(std::min<size_t>(frame_bytes, UINT32_MAX))};
    PacketTail tail{kPacketFlags, sizeof(uint32_t), uint32_t(way), 0, block_bytes};
    uint8_t pad[3] = {};
    std::array<iovec, kMaxParts> out;
    int filled = 0;
    auto add = [&](void *bytes, size_t n) { out[size_t(filled++)] = {bytes, n}; };

    add(&head, sizeof(head));
    if (count + 3 <= kMaxParts) {
        for_each_part(parts, count, captured_bytes, add);
    } else {
        gathered_.clear();
        for_each_part(parts, count, captured_bytes,
                      [&](const uint8_t *bytes, size_t n) { gathered_.insert(gathered_.end(), bytes, bytes + n); });
        add(gathered_.data(), gathered_.size());
    }
    add(pad, pad_bytes);
    add(&tail, sizeof(tail));
    return sink_.write(out.data(), filled);
}

}  // namespace hghca
