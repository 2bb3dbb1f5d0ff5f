// SPDX-License-Identifier: GPL-2.0-or-later
// Runs a fuzzer without libFuzzer: each input of a corpus, then as many mutations of them as asked for. The same arguments
// run the same inputs.
//
//     hghca-replay-FUZZER RUNS [CORPUS]
//
// An input that breaks a rule or a sanitizer's check, or does not end, is printed in hexadecimal digits, and ends the program.
#include "script.h"

#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out,
                                 size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
}

namespace {

using Input = std::vector<uint8_t>;
using hghca::fuzz::kRecord;
using hghca::fuzz::Random;

constexpr size_t kMost = 50 * kRecord;
// What fields have at their limits.
constexpr uint8_t kBytes[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};

Input running;
Random random_below(1);

void show()
{
    std::fprintf(stderr, "\ninput: ");
    for (const uint8_t byte : running)
        std::fprintf(stderr, "%02x", byte);
    std::fprintf(stderr, "\n");
}

void run(Input input)
{
    running = std::move(input);
    LLVMFuzzerTestOneInput(running.data(), running.size());
}

// A corpus has a line for each input: its steps, with spaces between them.
std::vector<Input> read(const char *name)
{
    std::vector<Input> inputs;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
        Input input;
        unsigned digits = 0;
        for (const char c : line) {
            if (c == ' ')
                continue;
            const unsigned digit = unsigned(c <= '9' ? c - '0' : c - 'a' + 10);
            if (digits++ % 2)
                input.back() = uint8_t(input.back() << 4 | digit);
            else
                input.push_back(uint8_t(digit));
        }
        inputs.push_back(input);
    }
    return inputs;
}

Input another(const std::vector<Input> &inputs)
{
    Input made = inputs[random_below(inputs.size())];
    if (!random_below(4)) {
        const Input &other = inputs[random_below(inputs.size())];
        Input both(kMost);
        both.resize(LLVMFuzzerCustomCrossOver(made.data(), made.size(), other.data(), other.size(), both.data(), kMost,
                                              unsigned(random_below(1u << 31))));
        made = both;
    }
    for (size_t times = 1 + random_below(5); times; times--) {
        size_t size = std::min(made.size(), kMost);
        made.resize(kMost);
        size = LLVMFuzzerCustomMutator(made.data(), size, kMost, unsigned(random_below(1u << 31)));
        made.resize(size);
    }
    return made;
}

}  // namespace

// libFuzzer has its own: here, some bytes become others.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t)
{
    for (size_t times = 1 + random_below(3); size && times; times--) {
        uint8_t &byte = data[random_below(size)];
        switch (random_below(3)) {
        case 0:
            byte = kBytes[random_below(sizeof kBytes)];
            break;
        case 1:
            byte ^= uint8_t(1u << random_below(8));
            break;
        default:
            byte = uint8_t(random_below(256));
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: %s RUNS [CORPUS]\n", argv[0]);
        return 2;
    }
    std::vector<Input> inputs;
    if (argc == 3) {
        inputs = read(argv[2]);
        if (inputs.empty()) {
            std::fprintf(stderr, "%s: no inputs\n", argv[2]);
            return 2;
        }
    }
    __sanitizer_set_death_callback(show);
    std::signal(SIGABRT, [](int) { show(); });
    // An input that does not end: whoever runs this has a time limit.
    std::signal(SIGTERM, [](int) {
        show();
        std::_Exit(1);
    });
    for (const Input &input : inputs)
        run(input);
    if (inputs.empty())
        inputs.emplace_back(kRecord);
    const auto runs = std::strtoul(argv[1], nullptr, 10);
    for (unsigned long n = 0; n < runs; n++)
        run(another(inputs));
    std::printf("%zu inputs, %lu mutations\n", argc == 3 ? inputs.size() : 0, runs);
}
