// SPDX-License-Identifier: GPL-2.0-or-later
// Frames on the link, written as pcapng (IETF draft-ietf-opsawg-pcapng): one section, one interface, a block a frame.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hghca {

// Where the blocks of a capture go.
class CaptureSink {
public:
    virtual ~CaptureSink() = default;

    // Takes one block, the whole of it or nothing; `count` is at most Capture::kMaxParts. 0, or an errno.
    virtual int write(const iovec *parts, int count) = 0;
};

// A file that other programs may read at any time: nothing is kept back, and each block is one write. The caller ignores
// SIGPIPE.
//
// A FIFO is open with O_NONBLOCK, so no write waits for its reader: a block that finds no place is lost. One that finds place
// for its beginning, which happens to no block up to PIPE_BUF bytes, is taken: its rest goes before the next block.
class CaptureFile final : public CaptureSink {
public:
    // Takes over a descriptor that is open for writing, at the beginning. max_bytes: the file gets no longer; 0: any
    // length.
    explicit CaptureFile(int fd, uint64_t max_bytes = 0) : fd_(fd), max_bytes_(max_bytes ? max_bytes : UINT64_MAX) {}
    ~CaptureFile() override;
    CaptureFile(const CaptureFile &) = delete;
    CaptureFile &operator=(const CaptureFile &) = delete;

    // Empties the file, and keeps other captures from it. 0, or an errno; EWOULDBLOCK: it is another capture's.
    int claim();
    // EFBIG: the file would get too long. EAGAIN: the reader of the FIFO is too slow. EPIPE: it is gone.
    int write(const iovec *parts, int count) override;

private:
    int write_rest();

    const int fd_;
    const uint64_t max_bytes_;
    uint64_t length_bytes_ = 0;  // of whole blocks
    bool is_fifo_ = false;
    std::vector<uint8_t> rest_;  // of the last block, from rest_at_ on, for which the FIFO had no place
    size_t rest_at_ = 0;
};

// What was sent and received at one port. No method blocks longer than its sink.
class Capture {
public:
    enum class Way : uint8_t { In = 1, Out = 2 };  // as epb_flags has it

    // Readers take longer records for a damaged file.
    static constexpr uint32_t kMaxSnapBytes = 262144;
    static constexpr int kMaxParts = 128;

    // snap_bytes: so much of each frame is kept; 0, and what is more than kMaxSnapBytes: as much as can be.
    // epoch_ns:   from 1970-01-01 to the 0 of the times that frame() is given.
    Capture(CaptureSink &sink, uint32_t snap_bytes, uint64_t epoch_ns);

    // Writes what the file begins with; `name` is the interface's. 0, or an errno of the sink.
    int begin(const char *name);
    // Writes a frame without FCS, which is `parts` one behind the other. 0, or an errno of the sink: then the block
    // is not in the file.
    int frame(Way way, uint64_t now_ns, const iovec *parts, int count);

private:
    CaptureSink &sink_;
    const uint32_t snap_bytes_;
    const uint64_t epoch_ns_;
    std::vector<uint8_t> gathered_;  // a frame of too many parts
};

}  // namespace hghca
