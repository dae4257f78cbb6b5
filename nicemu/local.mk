# SPDX-License-Identifier: BSD-3-Clause
#
# The emulated NIC as a convenience library, linked into whatever stands on it,
# and the qnix command (bin/qnix, so that the build's bin/ can go into PATH).

# What the control program is made of, wherever it runs.
nicemu_sources = \
	nicemu/nic.c \
	nicemu/nic.h \
	nicemu/util/atomic.h \
	nicemu/util/conf.c \
	nicemu/util/fits.c \
	nicemu/util/fits.h \
	nicemu/util/copy.c \
	nicemu/util/copy.h \
	nicemu/util/look.c \
	nicemu/util/look.h \
	nicemu/util/log.c \
	nicemu/util/log.h \
	nicemu/util/params.def \
	nicemu/mem/board.h \
	nicemu/mem/card.h \
	nicemu/mem/claim.h \
	nicemu/mem/conn.h \
	nicemu/mem/cq.h \
	nicemu/mem/desc.h \
	nicemu/mem/mmt.h \
	nicemu/mem/qnix.h \
	nicemu/mem/slot.h \
	nicemu/mem/vi.h \
	nicemu/obs/counters.c \
	nicemu/obs/counters.def \
	nicemu/obs/counters.h \
	nicemu/obs/obs.h \
	nicemu/obs/trace.c \
	nicemu/obs/trace.def \
	nicemu/obs/trace.h \
	nicemu/ctl/buf.c \
	nicemu/ctl/bulk.c \
	nicemu/ctl/conn.c \
	nicemu/ctl/ctl.h \
	nicemu/ctl/driver.c \
	nicemu/ctl/give.c \
	nicemu/ctl/group.c \
	nicemu/ctl/group.h \
	nicemu/ctl/group_call.c \
	nicemu/ctl/group_now.c \
	nicemu/ctl/group_table.c \
	nicemu/ctl/heap.c \
	nicemu/ctl/mem.c \
	nicemu/ctl/qnix.h \
	nicemu/ctl/qnix_cmd.c \
	nicemu/ctl/qnix_driver.c \
	nicemu/ctl/qnix_mem.c \
	nicemu/ctl/qnix_rx.c \
	nicemu/ctl/qnix_sys.c \
	nicemu/ctl/qnix_tx.c \
	nicemu/ctl/rdma.c \
	nicemu/ctl/rdma_ask.c \
	nicemu/ctl/rdma_put.c \
	nicemu/ctl/rdma_fetch.c \
	nicemu/ctl/rdma_post.c \
	nicemu/ctl/rdma_late.c \
	nicemu/ctl/rdma_apart.c \
	nicemu/ctl/rdma_rows.c \
	nicemu/ctl/rdma_serve.c \
	nicemu/ctl/rx.c \
	nicemu/ctl/sysmsg.c \
	nicemu/ctl/take.c \
	nicemu/ctl/tx.c \
	nicemu/ctl/rdma.h \
	nicemu/ctl/tx.h \
	nicemu/ctl/vi.c \
	nicemu/strat/flow_permission.c \
	nicemu/strat/flow_push.c \
	nicemu/strat/meet_board.c \
	nicemu/strat/meet_board.h \
	nicemu/strat/meet_board_recv.c \
	nicemu/strat/meet_board_send.c \
	nicemu/strat/meet_message.c \
	nicemu/strat/pipe_linear.c \
	nicemu/strat/pipe_pingpong.c \
	nicemu/strat/post_cmdq.c \
	nicemu/strat/post_ring.c \
	nicemu/strat/xlate_ctxtable.c \
	nicemu/strat/xlate_rmmt.c \
	nicemu/arch/arch.c \
	nicemu/arch/arch.h \
	nicemu/arch/direct.c \
	nicemu/arch/qnix.c \
	nicemu/engine/card.c \
	nicemu/engine/card.h \
	nicemu/engine/card_lock.c \
	nicemu/engine/card_look.c \
	nicemu/engine/card_name.c \
	nicemu/engine/card_pages.c \
	nicemu/engine/card_parts.h \
	nicemu/engine/check.c \
	nicemu/engine/clock.c \
	nicemu/engine/clock.h \
	nicemu/engine/cores.c \
	nicemu/engine/cores.h \
	nicemu/engine/dma.c \
	nicemu/engine/dma.h \
	nicemu/engine/engine.c \
	nicemu/engine/engine.h \
	nicemu/engine/host.h \
	nicemu/engine/inline.c \
	nicemu/engine/large.c \
	nicemu/engine/link.h \
	nicemu/engine/pace.h \
	nicemu/engine/thread.c \
	nicemu/engine/wait.c \
	nicemu/engine/wait.h \
	nicemu/mem/port.h \
	nicemu/engine/daemon.h \
	nicemu/engine/remote.c \
	nicemu/engine/remote.h \
	nicemu/engine/remote_call.c \
	nicemu/engine/start.c

# In the process that it works for, from that process's calls.
noinst_LTLIBRARIES += nicemu/libnicemu.la
nicemu_libnicemu_la_LIBADD = $(HWLOC_LIBS)
nicemu_libnicemu_la_SOURCES = $(nicemu_sources) nicemu/engine/dma_here.c

# In a process of its own, for all (engine daemon): the same sources, with another way to the memory of the host (engine/host.h).
noinst_LTLIBRARIES += nicemu/libnicemu-elsewhere.la
nicemu_libnicemu_elsewhere_la_LIBADD = $(HWLOC_LIBS)
nicemu_libnicemu_elsewhere_la_CPPFLAGS = $(AM_CPPFLAGS) -DNIC_ELSEWHERE
nicemu_libnicemu_elsewhere_la_SOURCES = $(nicemu_sources) nicemu/engine/daemon.c nicemu/engine/dma_elsewhere.c nicemu/engine/serve.c

bin_PROGRAMS += bin/qnix
bin_qnix_LDADD = nicemu/libnicemu-elsewhere.la
bin_qnix_SOURCES = \
	nicemu/tools/check.c \
	nicemu/tools/info.c \
	nicemu/tools/nic.c \
	nicemu/tools/options.c \
	nicemu/tools/out.c \
	nicemu/tools/qnix.c \
	nicemu/tools/sample.c \
	nicemu/tools/sample.h \
	nicemu/tools/stat.c \
	nicemu/tools/tool.h
