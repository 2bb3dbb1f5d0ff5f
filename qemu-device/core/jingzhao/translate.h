// SPDX-License-Identifier: GPL-2.0-or-later
// The numbers of the interface for what the transport names by its own enumerations. Both have the same values, so
// that no translation costs anything; that they do is checked here.
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "transport/types.h"

namespace hghca {

constexpr uint8_t syndrome_of(Status status) { return uint8_t(status); }
static_assert(syndrome_of(Status::LocalLength) == HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
static_assert(syndrome_of(Status::LocalOperation) == HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
static_assert(syndrome_of(Status::LocalProtection) == HGHCA_SYNDROME_LOCAL_PROT_ERR);
static_assert(syndrome_of(Status::Flushed) == HGHCA_SYNDROME_WR_FLUSH_ERR);
static_assert(syndrome_of(Status::Bind) == HGHCA_SYNDROME_MW_BIND_ERR);
static_assert(syndrome_of(Status::BadResponse) == HGHCA_SYNDROME_BAD_RESP_ERR);
static_assert(syndrome_of(Status::LocalAccess) == HGHCA_SYNDROME_LOCAL_ACCESS_ERR);
static_assert(syndrome_of(Status::RemoteInvalidRequest) == HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
static_assert(syndrome_of(Status::RemoteAccess) == HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
static_assert(syndrome_of(Status::RemoteOperation) == HGHCA_SYNDROME_REMOTE_OP_ERR);
static_assert(syndrome_of(Status::RetryExceeded) == HGHCA_SYNDROME_RETRY_EXC_ERR);
static_assert(syndrome_of(Status::RnrRetryExceeded) == HGHCA_SYNDROME_RNR_RETRY_EXC_ERR);

}  // namespace hghca
