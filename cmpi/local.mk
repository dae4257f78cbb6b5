# SPDX-License-Identifier: BSD-3-Clause
#
# C-MPI with its protocol module: a convenience library for the components.

noinst_LTLIBRARIES += cmpi/libcmpi.la
cmpi_libcmpi_la_SOURCES = \
	cmpi/cmpi.c \
	cmpi/cmpi.h \
	cmpi/protocol.h \
	cmpi/share.c \
	cmpi/engine/bin.c \
	cmpi/engine/bin.h \
	cmpi/engine/blocking.c \
	cmpi/engine/cancel.c \
	cmpi/engine/engine.h \
	cmpi/engine/queue.c \
	cmpi/engine/recv.c \
	cmpi/engine/send.c \
	cmpi/engine/unexpected.c \
	cmpi/pm_self/self.c \
	cmpi/pm_via/adi.c \
	cmpi/pm_via/am.c \
	cmpi/pm_via/atomic.c \
	cmpi/pm_via/completion.c \
	cmpi/pm_via/completion.h \
	cmpi/pm_via/conn.c \
	cmpi/pm_via/copy.h \
	cmpi/pm_via/counters.h \
	cmpi/pm_via/dreg.c \
	cmpi/pm_via/eager.c \
	cmpi/pm_via/flow.c \
	cmpi/pm_via/flow.h \
	cmpi/pm_via/group.c \
	cmpi/pm_via/handle.c \
	cmpi/pm_via/lock.h \
	cmpi/pm_via/match.c \
	cmpi/pm_via/match.h \
	cmpi/pm_via/packet.h \
	cmpi/pm_via/params.c \
	cmpi/pm_via/params.h \
	cmpi/pm_via/proc.c \
	cmpi/pm_via/progress.c \
	cmpi/pm_via/rma.c \
	cmpi/pm_via/rndv.c \
	cmpi/pm_via/setup.c \
	cmpi/pm_via/table.c \
	cmpi/pm_via/vbuf.c \
	cmpi/pm_via/via.h \
	cmpi/pm_via/wait.c
