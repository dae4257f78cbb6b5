/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to standard error, and the sentence that explains why an open failed.  Never called on a hot path. */
#ifndef NIC_UTIL_LOG_H
#define NIC_UTIL_LOG_H

enum nic_log_level { NIC_LOG_QUIET, NIC_LOG_ERROR, NIC_LOG_WARN, NIC_LOG_INFO, NIC_LOG_DEBUG };

void nic_log(enum nic_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets what nic_last_error() returns and gives back `err`. */
int nic_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
