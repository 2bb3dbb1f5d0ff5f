// SPDX-License-Identifier: GPL-2.0-or-later
// Captures against the bytes that draft-ietf-opsawg-pcapng asks for, and files that are full or somebody else's.
#include "port/capture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "hghca_core.h"

namespace hghca::test::capture_test {
namespace {

using Bytes = std::vector<uint8_t>;

// A number as a little-endian machine, which this is, writes it.
Bytes le(uint64_t value, unsigned size)
{
    Bytes out;
    for (unsigned i = 0; i < size; i++)
        out.push_back(uint8_t(value >> 8 * i));
    return out;
}

Bytes join(std::initializer_list<Bytes> all)
{
    Bytes out;
    for (const Bytes &one : all)
        out.insert(out.end(), one.begin(), one.end());
    return out;
}

Bytes text(const std::string &s) { return {s.begin(), s.end()}; }

Bytes numbered(size_t n)
{
    Bytes out(n);
    for (size_t i = 0; i < n; i++)
        out[i] = uint8_t(i * 7 + 1);
    return out;
}

iovec part(Bytes &bytes) { return {bytes.data(), bytes.size()}; }

struct MemorySink : CaptureSink {
    int write(const iovec *parts, int count) override
    {
        if (error)
            return error;
        EXPECT_LE(count, Capture::kMaxParts);
        Bytes block;
        for (int i = 0; i < count; i++) {
            auto *bytes = static_cast<uint8_t *>(parts[i].iov_base);
            block.insert(block.end(), bytes, bytes + parts[i].iov_len);
        }
        blocks.push_back(block);
        return 0;
    }

    std::vector<Bytes> blocks;
    int error = 0;
};

// An enhanced packet block: 4.3 of the draft.
Bytes packet_block(const Bytes &captured, uint32_t frame_bytes, uint64_t time_ns, uint32_t flags)
{
    const Bytes pad((4 - captured.size() % 4) % 4);
    const auto total = uint32_t(28 + captured.size() + pad.size() + 8 + 4 + 4);
    return join({le(6, 4), le(total, 4), le(0, 4), le(time_ns >> 32, 4), le(time_ns & 0xffffffff, 4),
                 le(captured.size(), 4), le(frame_bytes, 4), captured, pad,
                 le(2, 2), le(4, 2), le(flags, 4), le(0, 4), le(total, 4)});
}

class CaptureBlocks : public ::testing::Test {
protected:
    MemorySink sink;
};

TEST_F(CaptureBlocks, BeginWithASectionAndAnInterface)
{
    Capture capture(sink, 0, 0);
    ASSERT_EQ(capture.begin("hca1"), 0);
    ASSERT_EQ(sink.blocks.size(), 2u);
    EXPECT_EQ(sink.blocks[0], join({le(0x0a0d0d0a, 4), le(32, 4), le(0x1a2b3c4d, 4), le(1, 2), le(0, 2),
                                    le(UINT64_MAX, 8), le(0, 4), le(32, 4)}));
    EXPECT_EQ(sink.blocks[1], join({le(1, 4), le(48, 4), le(1, 2), le(0, 2), le(262144, 4),
                                    le(2, 2), le(4, 2), text("hca1"),
                                    le(9, 2), le(1, 2), le(9, 1), le(0, 3),
                                    le(13, 2), le(1, 2), le(0, 1), le(0, 3),
                                    le(0, 4), le(48, 4)}));
}

TEST_F(CaptureBlocks, NamesArePadded)
{
    for (size_t n : {0, 1, 2, 3, 5, 255, 300}) {
        sink.blocks.clear();
        Capture capture(sink, 0, 0);
        const std::string name(n, 'x');
        ASSERT_EQ(capture.begin(name.c_str()), 0);
        const std::string kept = name.substr(0, 255);
        const Bytes pad((4 - kept.size() % 4) % 4);
        const auto total = uint32_t(44 + kept.size() + pad.size());
        EXPECT_EQ(sink.blocks[1], join({le(1, 4), le(total, 4), le(1, 2), le(0, 2), le(262144, 4),
                                        le(2, 2), le(kept.size(), 2), text(kept), pad,
                                        le(9, 2), le(1, 2), le(9, 1), le(0, 3), le(13, 2), le(1, 2), le(0, 1),
                                        le(0, 3), le(0, 4), le(total, 4)})) << n;
    }
}

TEST_F(CaptureBlocks, FramesOfEveryLengthArePadded)
{
    Capture capture(sink, 0, 0);
    for (size_t n : {0, 1, 2, 3, 4, 5, 60, 4096, 9216}) {
        Bytes frame = numbered(n);
        const iovec whole = part(frame);
        ASSERT_EQ(capture.frame(Capture::Way::Out, 5, &whole, 1), 0);
        EXPECT_EQ(sink.blocks.back(), packet_block(frame, uint32_t(n), 5, 2)) << n;
    }
}

TEST_F(CaptureBlocks, TimeAndWay)
{
    const uint64_t epoch_ns = 1700000000123456789, now_ns = 987654321987;
    Capture capture(sink, 0, epoch_ns);
    Bytes frame = numbered(64);
    const iovec whole = part(frame);
    ASSERT_EQ(capture.frame(Capture::Way::In, now_ns, &whole, 1), 0);
    EXPECT_EQ(sink.blocks.back(), packet_block(frame, 64, epoch_ns + now_ns, 1));
    ASSERT_EQ(capture.frame(Capture::Way::Out, 0, &whole, 1), 0);
    EXPECT_EQ(sink.blocks.back(), packet_block(frame, 64, epoch_ns, 2));
}

TEST_F(CaptureBlocks, PartsAreOneFrame)
{
    Capture capture(sink, 0, 0);
    Bytes frame = numbered(70);
    const iovec parts[] = {{frame.data(), 14}, {frame.data() + 14, 0}, {frame.data() + 14, 21},
                           {nullptr, 0}, {frame.data() + 35, 35}};
    ASSERT_EQ(capture.frame(Capture::Way::Out, 1, parts, 5), 0);
    EXPECT_EQ(sink.blocks.back(), packet_block(frame, 70, 1, 2));
    ASSERT_EQ(capture.frame(Capture::Way::Out, 1, nullptr, 0), 0);
    EXPECT_EQ(sink.blocks.back(), packet_block({}, 0, 1, 2));
}

// Around the number that one write takes, and beyond what any system call takes.
TEST_F(CaptureBlocks, AnyNumberOfParts)
{
    Capture capture(sink, 0, 0);
    constexpr int kMax = Capture::kMaxParts;
    for (size_t n : {kMax - 4, kMax - 3, kMax - 2, kMax, 3000}) {
        Bytes frame = numbered(n);
        std::vector<iovec> parts;
        for (uint8_t &byte : frame)
            parts.push_back({&byte, 1});
        ASSERT_EQ(capture.frame(Capture::Way::In, 1, parts.data(), int(n)), 0);
        EXPECT_EQ(sink.blocks.back(), packet_block(frame, uint32_t(n), 1, 1)) << n;
    }
}

TEST_F(CaptureBlocks, SnapLength)
{
    Capture capture(sink, 30, 0);
    ASSERT_EQ(capture.begin("x"), 0);
    EXPECT_EQ(Bytes(sink.blocks[1].begin() + 12, sink.blocks[1].begin() + 16), le(30, 4));
    Bytes frame = numbered(100);
    const Bytes kept(frame.begin(), frame.begin() + 30);
    for (const std::vector<iovec> &parts :
         {std::vector<iovec>{{frame.data(), 100}}, {{frame.data(), 30}, {frame.data() + 30, 70}},
          {{frame.data(), 7}, {frame.data() + 7, 90}, {frame.data() + 97, 3}}}) {
        ASSERT_EQ(capture.frame(Capture::Way::Out, 1, parts.data(), int(parts.size())), 0);
        EXPECT_EQ(sink.blocks.back(), packet_block(kept, 100, 1, 2));
    }
    const iovec shorter{frame.data(), 29};
    ASSERT_EQ(capture.frame(Capture::Way::Out, 1, &shorter, 1), 0);
    EXPECT_EQ(sink.blocks.back(), packet_block(Bytes(frame.begin(), frame.begin() + 29), 29, 1, 2));
}

// Readers take a longer record for a damaged file.
TEST_F(CaptureBlocks, NoRecordIsLongerThanReadersTake)
{
    for (uint32_t snap : {0u, 262144u, 262145u, UINT32_MAX}) {
        Capture capture(sink, snap, 0);
        Bytes frame = numbered(300000);
        const iovec whole = part(frame);
        ASSERT_EQ(capture.frame(Capture::Way::Out, 1, &whole, 1), 0);
        EXPECT_EQ(sink.blocks.back(), packet_block(Bytes(frame.begin(), frame.begin() + 262144), 300000, 1, 2));
    }
}

TEST_F(CaptureBlocks, AnErrorOfTheSinkIsTold)
{
    Capture capture(sink, 0, 0);
    sink.error = EIO;
    Bytes frame = numbered(64);
    const iovec whole = part(frame);
    EXPECT_EQ(capture.begin("x"), EIO);
    EXPECT_EQ(capture.frame(Capture::Way::Out, 1, &whole, 1), EIO);
    sink.error = 0;
    EXPECT_EQ(capture.frame(Capture::Way::Out, 1, &whole, 1), 0);
    EXPECT_EQ(sink.blocks.size(), 1u);
}

hghca_capture *begin(int fd, int &error, uint64_t max_bytes = 0)
{
    const hghca_capture_config config{"x", 0, max_bytes, 0};
    return hghca_capture_begin(fd, &config, &error);
}

class CaptureFiles : public ::testing::Test {
protected:
    CaptureFiles()
    {
        const int fd = mkstemp(path.data());
        EXPECT_GE(fd, 0);
        EXPECT_EQ(::write(fd, "old and long", 12), 12);
        close(fd);
    }
    ~CaptureFiles() override { unlink(path.c_str()); }

    int open_again() const { return open(path.c_str(), O_WRONLY | O_CLOEXEC); }
    Bytes contents() const
    {
        Bytes bytes(1 << 16);
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const ssize_t n = read(fd, bytes.data(), bytes.size());
        close(fd);
        bytes.resize(size_t(std::max<ssize_t>(n, 0)));
        return bytes;
    }

    std::string path = "/tmp/hghca-capture-XXXXXX";
};

TEST_F(CaptureFiles, HoldWholeBlocksAtAnyTime)
{
    MemorySink sink;
    Capture expected(sink, 0, 0);
    CaptureFile file(open_again());
    ASSERT_EQ(file.claim(), 0);
    Capture capture(file, 0, 0);
    EXPECT_EQ(contents(), Bytes());
    ASSERT_EQ(capture.begin("x"), 0);
    expected.begin("x");
    Bytes all = join({sink.blocks[0], sink.blocks[1]});
    EXPECT_EQ(contents(), all);
    Bytes frame = numbered(67);
    const iovec whole = part(frame);
    ASSERT_EQ(capture.frame(Capture::Way::In, 3, &whole, 1), 0);
    all = join({all, packet_block(frame, 67, 3, 1)});
    EXPECT_EQ(contents(), all);
}

TEST_F(CaptureFiles, BelongToOneCapture)
{
    int error = 0;
    hghca_capture *first = begin(open_again(), error);
    ASSERT_NE(first, nullptr);
    const Bytes before = contents();
    EXPECT_EQ(begin(open_again(), error), nullptr);
    EXPECT_EQ(error, EWOULDBLOCK);
    EXPECT_EQ(contents(), before);
    hghca_capture_end(first);
    hghca_capture *second = begin(open_again(), error);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(contents().size(), before.size());
    hghca_capture_end(second);
}

TEST_F(CaptureFiles, ThatAreNoneAreTold)
{
    int error = 0;
    EXPECT_EQ(begin(open("/dev/full", O_WRONLY | O_CLOEXEC), error), nullptr);
    EXPECT_EQ(error, ENOSPC);
    EXPECT_EQ(begin(open("/dev/null", O_RDONLY | O_CLOEXEC), error), nullptr);
    EXPECT_EQ(error, EBADF);
}

// What does not fit any more is not there in part. Files of this process may get 200 bytes long.
TEST_F(CaptureFiles, ThatAreFullEndWithAWholeBlock)
{
    int error = 0;
    hghca_capture *capture = begin(open_again(), error);
    ASSERT_NE(capture, nullptr);
    const size_t begun = contents().size();
    Bytes frame = numbered(60);
    const iovec whole = part(frame);
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit small{200, usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const int fits = hghca_capture_frame(capture, true, 7, &whole, 1);
    const int too_long = hghca_capture_frame(capture, true, 8, &whole, 1);
    setrlimit(RLIMIT_FSIZE, &usual);
    signal(SIGXFSZ, SIG_DFL);
    EXPECT_EQ(fits, 0);
    EXPECT_EQ(too_long, ENOSPC);
    const Bytes after = contents();
    ASSERT_EQ(after.size(), begun + 104);
    EXPECT_EQ(Bytes(after.begin() + ssize_t(begun), after.end()), packet_block(frame, 60, 7, 2));
    EXPECT_EQ(hghca_capture_frame(capture, false, 9, &whole, 1), 0);
    EXPECT_EQ(contents().size(), begun + 2 * 104);
    hghca_capture_end(capture);
}

// As above, but that the file may get so long is what the capture was told.
TEST_F(CaptureFiles, EndWithTheirSize)
{
    int error = 0;
    hghca_capture *capture = begin(open_again(), error, 200);
    ASSERT_NE(capture, nullptr);
    const size_t begun = contents().size();
    Bytes frame = numbered(60);
    const iovec whole = part(frame);
    EXPECT_EQ(hghca_capture_frame(capture, true, 7, &whole, 1), 0);
    EXPECT_EQ(hghca_capture_frame(capture, true, 8, &whole, 1), EFBIG);
    EXPECT_EQ(contents().size(), begun + 104);
    hghca_capture_end(capture);

    EXPECT_EQ(begin(open_again(), error, 31), nullptr);
    EXPECT_EQ(error, EFBIG);
    capture = begin(open_again(), error, begun + 104);
    ASSERT_NE(capture, nullptr);
    EXPECT_EQ(hghca_capture_frame(capture, true, 7, &whole, 1), 0);
    hghca_capture_end(capture);
}

// A FIFO, whose reader is the test. It holds 1 MiB at most.
class CaptureFifos : public ::testing::Test {
protected:
    CaptureFifos()
    {
        EXPECT_NE(mkdtemp(folder.data()), nullptr);
        path = folder + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        signal(SIGPIPE, SIG_IGN);
        capture = begin(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), error);
        take(Capture::kMaxSnapBytes);
        begun = taken.size();
        taken.clear();
    }
    ~CaptureFifos() override
    {
        hghca_capture_end(capture);
        close(reader);
        signal(SIGPIPE, SIG_DFL);
        unlink(path.c_str());
        rmdir(folder.c_str());
    }
    // The number of bytes taken: `most`, or all that there are.
    size_t take(size_t most)
    {
        size_t n = 0;
        while (n < most) {
            uint8_t bytes[4096];
            const ssize_t got = read(reader, bytes, std::min(sizeof(bytes), most - n));
            if (got <= 0)
                break;
            taken.insert(taken.end(), bytes, bytes + got);
            n += size_t(got);
        }
        return n;
    }
    int send(Bytes &frame, uint64_t time_ns)
    {
        const iovec whole = part(frame);
        return hghca_capture_frame(capture, true, time_ns, &whole, 1);
    }

    std::string folder = "/tmp/hghca-fifo-XXXXXX";
    std::string path;
    int reader = -1, error = 0;
    hghca_capture *capture = nullptr;
    Bytes taken;
    size_t begun = 0;
};

TEST_F(CaptureFifos, HaveEachBlockAtOnce)
{
    ASSERT_NE(capture, nullptr);
    EXPECT_EQ(begun, 32u + 44 + 4);   // of the section and of the interface, whose name is "x"
    Bytes frame = numbered(60);
    ASSERT_EQ(send(frame, 5), 0);
    take(1 << 20);
    EXPECT_EQ(taken, packet_block(frame, 60, 5, 2));
}

// Whatever the reader leaves, it has whole blocks one behind the other: those of the frames that were taken.
TEST_F(CaptureFifos, LoseWholeBlocksToASlowReader)
{
    ASSERT_NE(capture, nullptr);
    Bytes expected;
    unsigned lost = 0, kept = 0;
    for (unsigned i = 0; i < 2000; i++) {
        // Up to PIPE_BUF, 4096 bytes, a write is all or nothing (pipe(7)); above it, it may be neither.
        Bytes frame = numbered(i % 3 ? 9000 + i % 50 : 60);
        const int sent = send(frame, i);
        ASSERT_TRUE(!sent || sent == EAGAIN) << strerror(sent);
        (sent ? lost : kept)++;
        if (!sent) {
            const Bytes block = packet_block(frame, uint32_t(frame.size()), i, 2);
            expected.insert(expected.end(), block.begin(), block.end());
        }
        if (i > 500)
            take(4500);
    }
    EXPECT_GT(lost, 100u);
    EXPECT_GT(kept, 500u);
    // What is left of the last block goes with the next one.
    take(4 << 20);
    Bytes last = numbered(60);
    ASSERT_EQ(send(last, 1), 0);
    const Bytes block = packet_block(last, 60, 1, 2);
    expected.insert(expected.end(), block.begin(), block.end());
    take(4 << 20);
    EXPECT_EQ(taken, expected);
}

TEST_F(CaptureFifos, EndWithTheirLastBlock)
{
    ASSERT_NE(capture, nullptr);
    Bytes frame = numbered(9000);
    unsigned kept = 0;
    while (kept < 1000 && !send(frame, 1))
        kept++;
    take(4 << 20);
    hghca_capture_end(capture);
    take(4 << 20);
    EXPECT_EQ(taken.size(), kept * packet_block(frame, 9000, 1, 2).size());
    EXPECT_LT(kept, 1000u);
    capture = begin(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), error);
}

TEST_F(CaptureFifos, EndWithTheirReader)
{
    ASSERT_NE(capture, nullptr);
    close(reader);
    Bytes frame = numbered(60);
    EXPECT_EQ(send(frame, 1), EPIPE);
    reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

// As of a file: the bytes of all blocks that were taken.
TEST_F(CaptureFifos, EndWithTheirSize)
{
    hghca_capture_end(capture);
    capture = begin(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), error, begun + 104);
    ASSERT_NE(capture, nullptr);
    Bytes frame = numbered(60);
    EXPECT_EQ(send(frame, 1), 0);
    EXPECT_EQ(send(frame, 2), EFBIG);
}

}  // namespace
}  // namespace hghca::test::capture_test
