# SPDX-License-Identifier: BSD-3-Clause
#
# Benchmarks, of the NIC, of VIPL and of MPI; bench/run starts them side by side.

noinst_PROGRAMS += \
	bench/buffers \
	bench/nic_latency \
	bench/probe \
	bench/pull \
	bench/vipl_latency
bench_vipl_latency_LDADD = vipl/libvipl.la
EXTRA_DIST += \
	bench/batches.h \
	bench/bench.h \
	bench/cores.h \
	bench/data.py \
	bench/history.py \
	bench/lines.h \
	bench/mpich.py \
	bench/overlap.h \
	bench/performance \
	bench/plan.py \
	bench/plot.py \
	bench/report.py \
	bench/run \
	bench/runner.py \
	bench/turns \
	bench/two.h

if HAVE_OMPI

noinst_PROGRAMS += \
	bench/allreduce \
	bench/barrier \
	bench/bcast \
	bench/bcast_turns \
	bench/bibw \
	bench/bw \
	bench/get_bw \
	bench/get_latency \
	bench/get_rate \
	bench/ibarrier \
	bench/ibcast \
	bench/instructions \
	bench/latency \
	bench/lines \
	bench/match_posted \
	bench/match_unexpected \
	bench/mbw_mr \
	bench/put_bw \
	bench/put_latency \
	bench/put_rate \
	bench/start

bench_allreduce_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_allreduce_LDADD = $(MPI_LIBS)
bench_barrier_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_barrier_LDADD = $(MPI_LIBS)
bench_bcast_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_bcast_LDADD = $(MPI_LIBS)
bench_bcast_turns_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_bcast_turns_LDADD = $(MPI_LIBS)
bench_bibw_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_bibw_LDADD = $(MPI_LIBS)
bench_bw_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_bw_LDADD = $(MPI_LIBS)
bench_get_bw_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_get_bw_LDADD = $(MPI_LIBS)
bench_get_latency_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_get_latency_LDADD = $(MPI_LIBS)
bench_get_rate_SOURCES = bench/get_bw.c
bench_get_rate_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -DRATE
bench_get_rate_LDADD = $(MPI_LIBS)
bench_ibarrier_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_ibarrier_LDADD = $(MPI_LIBS)
bench_ibcast_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_ibcast_LDADD = $(MPI_LIBS)
bench_instructions_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_instructions_LDADD = $(MPI_LIBS)
bench_latency_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_latency_LDADD = $(MPI_LIBS)
bench_lines_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_lines_LDADD = $(MPI_LIBS)
bench_match_posted_SOURCES = bench/match.c
bench_match_posted_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_match_posted_LDADD = $(MPI_LIBS)
bench_match_unexpected_SOURCES = bench/match.c
bench_match_unexpected_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -DUNEXPECTED
bench_match_unexpected_LDADD = $(MPI_LIBS)
bench_mbw_mr_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_mbw_mr_LDADD = $(MPI_LIBS)
bench_put_bw_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_put_bw_LDADD = $(MPI_LIBS)
bench_put_latency_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_put_latency_LDADD = $(MPI_LIBS)
bench_put_rate_SOURCES = bench/put_bw.c
bench_put_rate_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -DRATE
bench_put_rate_LDADD = $(MPI_LIBS)
bench_start_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
bench_start_LDADD = $(MPI_LIBS)

endif
