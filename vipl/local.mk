# SPDX-License-Identifier: BSD-3-Clause
#
# VIPL twice from the same objects: libvipl.la is installed and exports Vip*
# only; libviplcore.la goes into the Open MPI components, without the NIC.

include_HEADERS += \
	vipl/include/vipl.h

# Vip* need default visibility for the map to export them, and the map hides all
# else; calls inside the library stay direct and inlinable.
noinst_LTLIBRARIES += vipl/libviplcore.la
vipl_libviplcore_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default -fno-semantic-interposition
vipl_libviplcore_la_SOURCES = \
	vipl/src/address.c \
	vipl/src/conn.c \
	vipl/src/cq.c \
	vipl/src/cq.h \
	vipl/src/cq_life.c \
	vipl/src/cq_wait.c \
	vipl/src/error.c \
	vipl/src/ext.c \
	vipl/src/ext_group.c \
	vipl/src/ext_hot.c \
	vipl/src/ext_wait.c \
	vipl/src/format.c \
	vipl/src/lock.h \
	vipl/src/mem.c \
	vipl/src/nic.c \
	vipl/src/notify.c \
	vipl/src/ns.c \
	vipl/src/object.c \
	vipl/src/object.h \
	vipl/src/peer.c \
	vipl/src/queue.c \
	vipl/src/queue.h \
	vipl/src/queue_wait.c \
	vipl/src/vi.c \
	vipl/src/wait.c \
	vipl/src/wait.h

# version-info CURRENT:REVISION:AGE: a change of code raises REVISION; an added
# call raises CURRENT and AGE and zeroes REVISION; a changed or removed call
# raises CURRENT and zeroes the others.
lib_LTLIBRARIES += vipl/libvipl.la
vipl_libvipl_la_SOURCES =
vipl_libvipl_la_LIBADD = vipl/libviplcore.la nicemu/libnicemu.la
vipl_libvipl_la_LDFLAGS = $(AM_LDFLAGS) $(WHOLE_LDFLAGS) -version-info 1:0:0 \
	-Wl,--version-script=$(top_srcdir)/vipl/libvipl.map
vipl_libvipl_la_DEPENDENCIES = $(vipl_libvipl_la_LIBADD) vipl/libvipl.map

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = vipl/vipl.pc

EXTRA_DIST += vipl/libvipl.map
