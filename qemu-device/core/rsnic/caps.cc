// SPDX-License-Identifier: GPL-2.0-or-later
#include "rsnic/caps.h"

#include <array>

#include "byte_order.h"
#include "device.h"
#include "port/port.h"

namespace hghca {

namespace {

constexpr uint64_t kMtu4096 = 5, kWidth4x = 2;   // as IBTA encodes them
constexpr uint64_t kEthernet = 2;                // a type of port
constexpr uint64_t kEqeBytes = sizeof(hghca_eqe), kCqeBytes = sizeof(hghca_cqe);
constexpr uint64_t kUarBytes = HGHCA_UAR_PAGE_SIZE;
constexpr uint64_t kPriorities = 8;

// 2^log, big-endian; and a number.
uint64_t power_of_2(unsigned log) { return be64(uint64_t(1) << log); }

uint64_t number_of(const std::array<uint8_t, 6> &mac)
{
    uint64_t number = 0;
    for (uint8_t byte : mac)
        number = number << 8 | byte;
    return number;
}

}  // namespace

hghca_rsnic_caps rsnic_caps(const Device &device, const hghca_dev_lim &lim)
{
    hghca_rsnic_caps caps{};
    caps.word[HGHCA_RSNIC_CAP_fw_ver] = be64(uint64_t(kFirmwareMajor) << 32 | uint64_t(kFirmwareMinor) << 16);
    caps.word[HGHCA_RSNIC_CAP_num_ports] = be64(lim.vl_ports & 0xf);
    caps.word[HGHCA_RSNIC_CAP_vl_cap] = be64(lim.vl_ports >> 4);
    caps.word[HGHCA_RSNIC_CAP_ib_mtu_cap] = caps.word[HGHCA_RSNIC_CAP_port_ib_mtu] = be64(kMtu4096);
    const uint64_t mac = be64(number_of(device.port.permanent_mac));
    caps.word[HGHCA_RSNIC_CAP_def_mac] = caps.word[HGHCA_RSNIC_CAP_phys_port_id] = mac;
    caps.word[HGHCA_RSNIC_CAP_eth_mtu_cap] = be64(device.port.max_mtu);
    caps.word[HGHCA_RSNIC_CAP_gid_table_len] = power_of_2(lim.log_max_gids);
    caps.word[HGHCA_RSNIC_CAP_pkey_table_len] = power_of_2(lim.log_max_pkeys);
    caps.word[HGHCA_RSNIC_CAP_num_uars] = power_of_2(lim.log_max_uars);
    caps.word[HGHCA_RSNIC_CAP_uar_page_size] = be64(kUarBytes);
    caps.word[HGHCA_RSNIC_CAP_max_sq_sg] = be64(lim.max_sg);
    caps.word[HGHCA_RSNIC_CAP_max_rq_sg] = be64(lim.max_sg_rq);
    caps.word[HGHCA_RSNIC_CAP_num_qps] = be64(kRsnicQps);
    caps.word[HGHCA_RSNIC_CAP_max_wqes] = power_of_2(be16(lim.log_max_qp_sz));
    caps.word[HGHCA_RSNIC_CAP_max_sq_desc_sz] = be64(be16(lim.max_desc_sz));
    caps.word[HGHCA_RSNIC_CAP_max_rq_desc_sz] = be64(be16(lim.max_desc_sz_rq));
    caps.word[HGHCA_RSNIC_CAP_max_qp_init_rdma] = be64(lim.max_rd_atomic);
    caps.word[HGHCA_RSNIC_CAP_max_qp_dest_rdma] = be64(lim.max_dest_rd_atomic);
    caps.word[HGHCA_RSNIC_CAP_max_tc_eth] = be64(kPriorities);
    caps.word[HGHCA_RSNIC_CAP_num_cqs] = power_of_2(lim.log_max_cqs);
    caps.word[HGHCA_RSNIC_CAP_max_cqes] = power_of_2(be16(lim.log_max_cq_sz));
    caps.word[HGHCA_RSNIC_CAP_reserved_cqs] = power_of_2(lim.log_reserved_cqs);
    caps.word[HGHCA_RSNIC_CAP_num_eqs] = power_of_2(lim.log_max_eqs);
    caps.word[HGHCA_RSNIC_CAP_reserved_eqs] = power_of_2(lim.log_reserved_eqs);
    caps.word[HGHCA_RSNIC_CAP_num_comp_vectors] = be64(be16(lim.num_vectors));
    caps.word[HGHCA_RSNIC_CAP_num_mpts] = power_of_2(lim.log_max_mpts);
    caps.word[HGHCA_RSNIC_CAP_num_mtts] = power_of_2(lim.log_max_mtts);
    caps.word[HGHCA_RSNIC_CAP_reserved_mtts] = power_of_2(lim.log_reserved_mtts);
    caps.word[HGHCA_RSNIC_CAP_reserved_mrws] = power_of_2(lim.log_reserved_lkeys);
    caps.word[HGHCA_RSNIC_CAP_num_pds] = power_of_2(lim.log_max_pds);
    caps.word[HGHCA_RSNIC_CAP_reserved_pds] = power_of_2(lim.log_reserved_pds);
    caps.word[HGHCA_RSNIC_CAP_mtt_entry_sz] = be64(lim.mtt_entry_sz);
    caps.word[HGHCA_RSNIC_CAP_max_msg_sz] = power_of_2(lim.log_max_msg);
    // A bit for each size of a page.
    const uint64_t pages = (uint64_t(2) << lim.log_max_page_sz) - (uint64_t(1) << lim.log_min_page_sz);
    caps.word[HGHCA_RSNIC_CAP_page_size_cap] = be64(pages);
    caps.word[HGHCA_RSNIC_CAP_port_width_cap] = be64(kWidth4x);
    caps.word[HGHCA_RSNIC_CAP_reserved_qps] = power_of_2(lim.log_reserved_qps);
    caps.word[HGHCA_RSNIC_CAP_port_type] = caps.word[HGHCA_RSNIC_CAP_supported_type] = be64(kEthernet);
    caps.word[HGHCA_RSNIC_CAP_max_counters] = be64(be16(lim.num_counter_sets));
    caps.word[HGHCA_RSNIC_CAP_eqe_size] = be64(kEqeBytes);
    caps.word[HGHCA_RSNIC_CAP_cqe_size] = be64(kCqeBytes);
    caps.word[HGHCA_RSNIC_CAP_hca_core_clock] = be64(kClockKhz / 1000);
    caps.word[HGHCA_RSNIC_CAP_health_buffer_addr] = be64(HGHCA_SEG_FAILURE);
    return caps;
}

}  // namespace hghca
