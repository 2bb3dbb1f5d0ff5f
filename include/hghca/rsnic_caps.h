/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* RSNIC: the structure of capabilities; docs/reference/rsnic.rst, 5. */
#ifndef HGHCA_INTERFACE_RSNIC_CAPS_H
#define HGHCA_INTERFACE_RSNIC_CAPS_H

#include <hghca/types.h>

/*
 * HGHCA_RSNIC_CAPS(X) - every member of the document's structure, in its order
 *
 * QUERY_CAPS returns each as a __be64; of a member for each port, that of port 1.
 */
#define HGHCA_RSNIC_CAPS(X) \
	X(fw_ver) \
	X(function) \
	X(num_ports) \
	X(vl_cap) \
	X(ib_mtu_cap) \
	X(ib_port_def_cap) \
	X(def_mac) \
	X(eth_mtu_cap) \
	X(gid_table_len) \
	X(pkey_table_len) \
	X(trans_type) \
	X(vendor_oui) \
	X(wavelength) \
	X(trans_code) \
	X(local_ca_ack_delay) \
	X(num_uars) \
	X(uar_page_size) \
	X(bf_reg_size) \
	X(bf_regs_per_page) \
	X(max_sq_sg) \
	X(max_rq_sg) \
	X(num_qps) \
	X(max_wqes) \
	X(max_sq_desc_sz) \
	X(max_rq_desc_sz) \
	X(max_qp_init_rdma) \
	X(max_qp_dest_rdma) \
	X(max_tc_eth) \
	X(spec_qps) \
	X(num_srqs) \
	X(max_srq_wqes) \
	X(max_srq_sge) \
	X(reserved_srqs) \
	X(num_cqs) \
	X(max_cqes) \
	X(reserved_cqs) \
	X(num_sys_eqs) \
	X(num_eqs) \
	X(reserved_eqs) \
	X(num_comp_vectors) \
	X(num_mpts) \
	X(max_fmr_maps) \
	X(num_mtts) \
	X(fmr_reserved_mtts) \
	X(reserved_mtts) \
	X(reserved_mrws) \
	X(reserved_uars) \
	X(num_mgms) \
	X(num_amgms) \
	X(reserved_mcgs) \
	X(num_qp_per_mgm) \
	X(steering_mode) \
	X(dmfs_high_steer_mode) \
	X(fs_log_max_ucast_qp_range_size) \
	X(num_pds) \
	X(reserved_pds) \
	X(max_xrcds) \
	X(reserved_xrcds) \
	X(mtt_entry_sz) \
	X(max_msg_sz) \
	X(page_size_cap) \
	X(flags) \
	X(flags2) \
	X(bmme_flags) \
	X(reserved_lkey) \
	X(stat_rate_support) \
	X(port_width_cap) \
	X(max_gso_sz) \
	X(max_rss_tbl_sz) \
	X(reserved_qps_cnt) \
	X(reserved_qps) \
	X(reserved_qps_base) \
	X(log_num_macs) \
	X(log_num_vlans) \
	X(port_type) \
	X(supported_type) \
	X(suggested_type) \
	X(default_sense) \
	X(port_mask) \
	X(possible_type) \
	X(max_counters) \
	X(port_ib_mtu) \
	X(sqp_demux) \
	X(eqe_size) \
	X(cqe_size) \
	X(eqe_factor) \
	X(userspace_caps) \
	X(function_caps) \
	X(hca_core_clock) \
	X(phys_port_id) \
	X(tunnel_offload_mode) \
	X(rx_checksum_flags_port) \
	X(phv_bit) \
	X(alloc_res_qp_mask) \
	X(dmfs_high_rate_qpn_base) \
	X(dmfs_high_rate_qpn_range) \
	X(vf_caps) \
	X(wol_port) \
	X(rl_caps) \
	X(health_buffer_addr)

enum hghca_rsnic_cap {
#define HGHCA_RSNIC_CAP_ENUM(name) HGHCA_RSNIC_CAP_##name,
	HGHCA_RSNIC_CAPS(HGHCA_RSNIC_CAP_ENUM)
#undef HGHCA_RSNIC_CAP_ENUM
	HGHCA_RSNIC_CAP_NUM
};

struct hghca_rsnic_caps {
	__be64 word[HGHCA_RSNIC_CAP_NUM];	/* by enum hghca_rsnic_cap */
};
HGHCA_ASSERT_SIZE(hghca_rsnic_caps, 8 * HGHCA_RSNIC_CAP_NUM);

#endif /* HGHCA_INTERFACE_RSNIC_CAPS_H */
