# SPDX-License-Identifier: BSD-3-Clause
#
# Tests. `make check' runs the ones in TESTS, which need no launcher and print
# TAP (tests/check.h); dev/test runs these and all the others.

EXTRA_DIST += \
	tests/check.h \
	tests/apps/run \
	tests/bench/run \
	tests/container/run \
	tests/install/check \
	tests/install/mpi-hello.c \
	tests/install/vipl-hello.c \
	tests/mpi4py/run \
	tests/tidy/headers.py \
	tests/tidy/includes.py \
	tests/tidy/leftovers.py \
	tests/tidy/manual.py \
	tests/tidy/objects.py \
	tests/tidy/prove.py \
	tests/tidy/run \
	tests/tidy/tap.py \
	tests/tools/run

# ---- the container: a program that refuses cross-memory attach

check_PROGRAMS += tests/container/nocma

# ---- unit tests, VIPL in two processes, and stress: run by make check

PLAIN_TESTS = \
	tests/unit/cmpi/am \
	tests/unit/cmpi/conn \
	tests/unit/cmpi/deadlock \
	tests/unit/cmpi/dreg \
	tests/unit/cmpi/engine \
	tests/unit/cmpi/expected \
	tests/unit/cmpi/match \
	tests/unit/cmpi/params \
	tests/unit/cmpi/processes \
	tests/unit/cmpi/queue \
	tests/unit/cmpi/rma \
	tests/unit/cmpi/rows \
	tests/unit/cmpi/share \
	tests/unit/cmpi/table \
	tests/unit/nicemu/attach \
	tests/unit/nicemu/beside \
	tests/unit/nicemu/board \
	tests/unit/nicemu/board_awaited \
	tests/unit/nicemu/board_barrier \
	tests/unit/nicemu/board_direct \
	tests/unit/nicemu/board_turns \
	tests/unit/nicemu/buffers \
	tests/unit/nicemu/bulk \
	tests/unit/nicemu/card \
	tests/unit/nicemu/clock \
	tests/unit/nicemu/commands \
	tests/unit/nicemu/connect \
	tests/unit/nicemu/copy \
	tests/unit/nicemu/errors \
	tests/unit/nicemu/expected \
	tests/unit/nicemu/foreseen \
	tests/unit/nicemu/fork \
	tests/unit/nicemu/gone \
	tests/unit/nicemu/groups \
	tests/unit/nicemu/hasten \
	tests/unit/nicemu/heap \
	tests/unit/nicemu/laps \
	tests/unit/nicemu/long_apart \
	tests/unit/nicemu/long_rdma \
	tests/unit/nicemu/long_rows \
	tests/unit/nicemu/long_singles \
	tests/unit/nicemu/look \
	tests/unit/nicemu/lost \
	tests/unit/nicemu/migrate \
	tests/unit/nicemu/pace \
	tests/unit/nicemu/permission \
	tests/unit/nicemu/fetch \
	tests/unit/nicemu/posted \
	tests/unit/nicemu/qnix_driver \
	tests/unit/nicemu/qnix_groups \
	tests/unit/nicemu/qnix_message \
	tests/unit/nicemu/sent \
	tests/unit/nicemu/serve \
	tests/unit/nicemu/shared \
	tests/unit/nicemu/shared_doubt \
	tests/unit/nicemu/shared_late \
	tests/unit/nicemu/short_rows \
	tests/unit/nicemu/short_ways \
	tests/unit/nicemu/sleep \
	tests/unit/nicemu/transfer \
	tests/unit/nicemu/wait \
	tests/unit/vipl/by_value \
	tests/unit/vipl/commands \
	tests/unit/vipl/format \
	tests/unit/vipl/handles \
	tests/unit/vipl/mem \
	tests/unit/vipl/names \
	tests/unit/vipl/queue \
	tests/unit/vipl/wait \
	tests/func/vipl_beside \
	tests/func/vipl_clients \
	tests/func/vipl_connect \
	tests/func/vipl_digest \
	tests/func/vipl_errors \
	tests/func/vipl_lost \
	tests/func/vipl_notify \
	tests/func/vipl_pool \
	tests/func/vipl_rdma \
	tests/func/vipl_threads \
	tests/func/vipl_transfer \
	tests/stress/board \
	tests/stress/credits \
	tests/stress/death \
	tests/stress/engines \
	tests/stress/groups \
	tests/stress/link \
	tests/stress/posted \
	tests/stress/shared \
	tests/stress/sleep \
	tests/fuzz/link \
	tests/fuzz/tables \
	tests/fuzz/text

check_PROGRAMS += $(PLAIN_TESTS)
TESTS += $(PLAIN_TESTS)

# The protocol module alone, over a VIPL that the test plays.
check_LTLIBRARIES = tests/stress/libfake.la
tests_stress_libfake_la_SOURCES = tests/stress/fake_net.c tests/stress/fake_parts.h tests/stress/fake_vipl.c tests/stress/fake_vipl.h
FAKE_LIBS = -Ltests/stress/.libs -lfake -Lcmpi/.libs -lcmpi
tests_unit_cmpi_am_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_conn_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_deadlock_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_dreg_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_engine_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_expected_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_match_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_params_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_queue_LDADD = -Lcmpi/.libs -lcmpi
tests_unit_cmpi_rma_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_rows_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_share_LDADD = $(FAKE_LIBS)
tests_unit_cmpi_table_LDADD = $(FAKE_LIBS)
tests_stress_credits_LDADD = $(FAKE_LIBS)
# The daemon is this process.
tests_unit_nicemu_serve_LDADD = -Lnicemu/.libs -lnicemu-elsewhere $(HWLOC_LIBS)

EXTRA_DIST += \
	tests/unit/cmpi/job.h \
	tests/unit/cmpi/spoil.h \
	tests/unit/nicemu/asking.h \
	tests/unit/nicemu/awaited.h \
	tests/unit/nicemu/found.h \
	tests/unit/nicemu/kin.h \
	tests/unit/nicemu/members.h \
	tests/unit/nicemu/pair.h \
	tests/unit/nicemu/played.h \
	tests/unit/nicemu/quick.h \
	tests/unit/nicemu/long.h \
	tests/unit/nicemu/shared.h \
	tests/unit/nicemu/two_cores.h \
	tests/unit/vipl/one.h \
	tests/func/vipl_two.h \
	tests/fuzz/fuzz.h \
	tests/fuzz/hostile.h

# Of them, those about ordering between threads: also under ThreadSanitizer.
TSAN_TESTS = tests/stress/board tests/stress/link tests/stress/shared tests/stress/sleep tests/unit/nicemu/beside \
	tests/unit/nicemu/foreseen tests/unit/nicemu/look tests/func/vipl_beside \
	tests/func/vipl_threads tests/func/vipl_clients tests/unit/cmpi/processes

# ---- MPI programs, which tests/mpi/run starts

EXTRA_DIST += \
	tests/mpi/check.h \
	tests/mpi/layout.h \
	tests/mpi/prove \
	tests/mpi/run

if HAVE_OMPI

check_PROGRAMS += \
	tests/mpi/allocmem \
	tests/mpi/anysource \
	tests/mpi/buffered \
	tests/mpi/collectives \
	tests/mpi/connect \
	tests/mpi/datatypes \
	tests/mpi/flood \
	tests/mpi/groups \
	tests/mpi/halo \
	tests/mpi/idle \
	tests/mpi/many \
	tests/mpi/modes \
	tests/mpi/onesided \
	tests/mpi/order \
	tests/mpi/reduce \
	tests/mpi/requests \
	tests/mpi/ring \
	tests/mpi/soak \
	tests/mpi/spawn \
	tests/mpi/stall \
	tests/mpi/statuses \
	tests/mpi/threads \
	tests/mpi/windows

tests_mpi_allocmem_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_allocmem_LDADD = $(MPI_LIBS)
tests_mpi_anysource_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_anysource_LDADD = $(MPI_LIBS)
tests_mpi_buffered_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_buffered_LDADD = $(MPI_LIBS)
tests_mpi_collectives_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_collectives_LDADD = $(MPI_LIBS)
tests_mpi_connect_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_connect_LDADD = $(MPI_LIBS)
tests_mpi_datatypes_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_datatypes_LDADD = $(MPI_LIBS)
tests_mpi_flood_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_flood_LDADD = $(MPI_LIBS)
tests_mpi_groups_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_groups_LDADD = $(MPI_LIBS)
tests_mpi_groups_LDFLAGS = -rdynamic
tests_mpi_halo_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_halo_LDADD = $(MPI_LIBS)
tests_mpi_idle_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_idle_LDADD = $(MPI_LIBS)
tests_mpi_many_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_many_LDADD = $(MPI_LIBS)
tests_mpi_modes_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_modes_LDADD = $(MPI_LIBS)
tests_mpi_onesided_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_onesided_LDADD = $(MPI_LIBS)
tests_mpi_order_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_order_LDADD = $(MPI_LIBS)
tests_mpi_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_reduce_LDADD = $(MPI_LIBS)
tests_mpi_requests_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_requests_LDADD = $(MPI_LIBS)
tests_mpi_ring_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_ring_LDADD = $(MPI_LIBS)
tests_mpi_soak_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_soak_LDADD = $(MPI_LIBS)
tests_mpi_spawn_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_spawn_LDADD = $(MPI_LIBS)
tests_mpi_stall_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_stall_LDADD = $(MPI_LIBS)
tests_mpi_statuses_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_statuses_LDADD = $(MPI_LIBS)
tests_mpi_threads_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_threads_LDADD = $(MPI_LIBS)
tests_mpi_windows_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_windows_LDADD = $(MPI_LIBS)

# Preloaded by tests/mpi/prove, which shows that the programs notice faults. With
# an -rpath it becomes a shared object, though it is never installed.
check_LTLIBRARIES += tests/mpi/libsabotage.la
tests_mpi_libsabotage_la_SOURCES = tests/mpi/sabotage.c
tests_mpi_libsabotage_la_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_mpi_libsabotage_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
tests_mpi_libsabotage_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_mpi_libsabotage_la_LIBADD = $(MPI_LIBS)

endif

# ---- make installcheck

installcheck-local:
	$(AM_V_at)CC='$(CC)' CXX='$(CXX)' MPICC='$(MPICC)' MPIRUN='$(OMPI_MPIRUN)' \
	DESTDIR='$(DESTDIR)' BINDIR='$(bindir)' LIBDIR='$(libdir)' INCLUDEDIR='$(includedir)' \
	COMPONENTDIR='$(componentdir)' VERSION='$(VERSION)' SANITIZE='$(QNIX_LDFLAGS)' \
		$(top_srcdir)/tests/install/check

# ---- for dev/test

check-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)

print-distfiles:
	@for file in $(DISTFILES); do echo "$${file#$(srcdir)/}"; done

print-tests:
	@echo $(TESTS)

print-tsan-tests:
	@echo $(TSAN_TESTS)

.PHONY: check-programs print-distfiles print-tests print-tsan-tests
