# SPDX-License-Identifier: BSD-3-Clause
#
# The user library of the QNIX NIC: libqnix.la is installed and exports qx_* only; libqxcore.la is
# the same for tests, which see more of it.

include_HEADERS += \
	qx/include/qnix.h

noinst_LTLIBRARIES += qx/libqxcore.la
qx_libqxcore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
qx_libqxcore_la_SOURCES = \
	qx/src/operation.c \
	qx/src/process.c \
	qx/src/qx.h

lib_LTLIBRARIES += qx/libqnix.la
qx_libqnix_la_SOURCES =
qx_libqnix_la_LIBADD = qx/libqxcore.la nicemu/libnicemu.la
qx_libqnix_la_LDFLAGS = $(AM_LDFLAGS) $(WHOLE_LDFLAGS) -version-info 1:0:0 \
	-Wl,--version-script=$(top_srcdir)/qx/libqnix.map
qx_libqnix_la_DEPENDENCIES = $(qx_libqnix_la_LIBADD) qx/libqnix.map

pkgconfig_DATA += qx/qnix.pc

EXTRA_DIST += qx/libqnix.map
