// SPDX-License-Identifier: GPL-2.0-or-later
// Commands (interface document, 4), whatever they came by: how they are executed and reported, and in commands.cc what
// each does.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "hghca_hw.h"
#include "wire/wire_object.h"

namespace hghca {

class Device;

class CommandInterface {
public:
    explicit CommandInterface(Device &device) : device_(device) {}

    struct Command {
        uint16_t op;
        uint8_t op_modifier;
        uint32_t in_modifier;
        uint64_t in_param;
        uint64_t out_param;
        uint16_t token;
        bool by_event;
    };
    struct Result {
        uint8_t status;
        uint64_t out_param;   // the immediate output, or that of the command
        bool by_event;        // it was asked for, and the EQ took it
    };
    static Command read_words(std::span<const uint32_t> words, uint32_t last);
    // Executes a command to its end.
    Result perform(const Command &command);
    // Posts the EQE of a command that was to end by one. False: none was posted.
    bool report(const Command &command, const Result &result);
    // Writes the word at 18h of the HCR to the status record, if software has set one. The last that a command writes.
    void record(uint32_t word);
    void forget_record() { record_.reset(); }

    // A fault for the tests of drivers: the `nth` command from now on does
    // nothing and ends with INTERNAL_ERR, once. 0: none. Outlives a reset.
    void fail(uint64_t nth) { until_fault_ = nth; }
    uint64_t until_fault() const { return until_fault_; }
    uint64_t executed() const { return executed_; }   // commands since the start
    // For the tests of drivers: capabilities that the device advertises, of those that it has. Outlives a reset.
    void allow(uint32_t capabilities) { allowed_ = capabilities; }
    uint32_t allowed() const { return allowed_; }

private:
    using Mailbox = std::array<uint8_t, HGHCA_MAILBOX_SIZE>;

    using Handler = uint8_t (CommandInterface::*)(const Command &);

    struct Row;
    static const Row *find(uint16_t op);  // nullptr: unknown

    bool fault_is_due();
    uint8_t execute(const Command &command);
    void trace(const Command &command, uint8_t status) const;
    bool write_record(uint64_t dma, uint32_t word);

    // The input mailbox as T; the output mailbox as T, the rest of it zeros.
    template <class T>
    T in() const
    {
        T value;
        std::memcpy(&value, in_.data(), sizeof(T));
        return value;
    }
    template <class T>
    void out(const T &value)
    {
        static_assert(sizeof(T) <= HGHCA_MAILBOX_SIZE);
        append(out_.data(), value);
    }
    // A command whose output is context `which`, a T, of `table`.
    template <class T, class Table, class Number>
    uint8_t query_context(Table &table, Number which)
    {
        T context;
        const uint8_t status = table.query(which, context);
        if (!status)
            out(context);
        return status;
    }
    void out_immediate(uint64_t value) { immediate_ = value; }

    unsigned log_max_qps() const;
    hghca_dev_lim limits() const;
    uint8_t query_dev_lim(const Command &);
    uint8_t query_caps(const Command &);
    uint32_t capabilities() const;
    void add_extensions(hghca_dev_lim &lim) const;
    uint64_t port_guid() const;
    uint64_t node_guid() const;
    uint8_t query_adapter(const Command &);
    bool packets_of(const hghca_init_hca &init, uint32_t &packets) const;
    uint8_t init_hca(const Command &);
    uint8_t close_hca(const Command &);
    uint8_t map_icm(const Command &);
    uint8_t unmap_icm(const Command &);
    uint8_t sw2hw_mpt(const Command &);
    uint8_t query_mpt(const Command &);
    uint8_t hw2sw_mpt(const Command &);
    uint8_t write_mtt(const Command &);
    uint8_t map_eq(const Command &);
    uint8_t sw2hw_eq(const Command &);
    uint8_t hw2sw_eq(const Command &);
    uint8_t query_eq(const Command &);
    uint8_t sw2hw_cq(const Command &);
    uint8_t hw2sw_cq(const Command &);
    uint8_t query_cq(const Command &);
    uint8_t resize_cq(const Command &);
    uint8_t moderate_cq(const Command &);
    uint8_t modify_qp(const Command &);
    uint8_t query_qp(const Command &);
    uint8_t conf_special_qp(const Command &);
    uint8_t sw2hw_srq(const Command &);
    uint8_t hw2sw_srq(const Command &);
    uint8_t query_srq(const Command &);
    uint8_t arm_srq(const Command &);
    uint8_t resize_srq(const Command &);
    uint8_t read_mgm(const Command &);
    uint8_t write_mgm(const Command &);
    uint8_t mgid_hash(const Command &);
    uint8_t flow_attach(const Command &);
    uint8_t flow_detach(const Command &);
    uint8_t create_rss(const Command &);
    uint8_t destroy_rss(const Command &);
    uint8_t mad_ifc(const Command &);
    uint8_t nop(const Command &);
    uint8_t set_port(const Command &);
    uint8_t query_port(const Command &);
    uint8_t set_gid(const Command &);
    uint8_t query_stats(const Command &);
    uint8_t read_error_buffer(const Command &);
    uint8_t set_qp_counter(const Command &);
    uint8_t query_counter_set(const Command &);
    void clear_counter_set(const Command &);
    uint8_t resume_qp(const Command &);
    uint8_t clear_mtt(const Command &);
    uint8_t set_congestion(const Command &);
    uint8_t query_congestion(const Command &);
    uint8_t set_flow_control(const Command &);
    uint8_t query_flow_control(const Command &);
    uint8_t sw2hw_part(const Command &);
    uint8_t hw2sw_part(const Command &);
    uint8_t query_part(const Command &);
    uint8_t set_status_record(const Command &);

    Device &device_;
    Mailbox in_{}, out_{};
    uint64_t immediate_ = 0;
    std::optional<uint64_t> record_;   // DMA address of the status record
    uint64_t until_fault_ = 0;
    uint32_t allowed_ = ~0u;
    uint64_t executed_ = 0;
};

}  // namespace hghca
