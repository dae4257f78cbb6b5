/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NIC_FITS_H
#define NIC_FITS_H

#include <stddef.h>

/* Which values fit a type of params.def, in the words of messages, the tools, ompi_info and qnix.conf(5): "one of auto, off". */
void nic_fits(const char *type, char *to, size_t size);

#endif
