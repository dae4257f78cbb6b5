# SPDX-License-Identifier: BSD-3-Clause
#
# Open MPI: the headers of its component interface (not only mpi.h), libopen-pal,
# its mpicc and mpirun, and which BTL interface its headers describe.
#
# Its headers come in through -isystem: they are not ours to mend when they warn.
# libopen-pal is linked on purpose: the name of that library is the only thing
# that keeps a component from being loaded by another major version.

AC_DEFUN([QNIX_WITH_OMPI], [
  AC_ARG_WITH([ompi],
    [AS_HELP_STRING([--with-ompi=DIR], [where Open MPI is installed @<:@the one of mpicc@:>@])
AS_HELP_STRING([--without-ompi], [build the NIC, VIPL and the tools only])],
    [], [with_ompi=yes])
  AC_ARG_WITH([component-dir],
    [AS_HELP_STRING([--with-component-dir=DIR],
      [where "make install" puts Open MPI components @<:@LIBDIR/openmpi@:>@])],
    [componentdir=$withval], [componentdir='${libdir}/openmpi'])
  AC_SUBST([componentdir])

  OMPI_CPPFLAGS= OMPI_LIBS= MPI_LIBS= OMPI_BINDIR= OMPI_MPIRUN= MPICC= OMPI_PKGLIBDIR=
  OMPI_MTL_LIBS=
  qnix_btl_version= qnix_mtl=no qnix_coll=no
  AS_IF([test "x$with_ompi" != xno],
    [QNIX_OMPI_FIND
     AS_IF([test -n "$qnix_ompi_incdirs"], [QNIX_OMPI_BTL
        QNIX_OMPI_MTL])])

  AM_CONDITIONAL([HAVE_OMPI], [test "x$with_ompi" != xno])
  AM_CONDITIONAL([HAVE_MTL], [test "x$qnix_mtl" = xyes])
  AM_CONDITIONAL([HAVE_COLL], [test "x$qnix_coll" = xyes])
  AC_SUBST([OMPI_MTL_LIBS])
  AC_SUBST([OMPI_CPPFLAGS])
  AC_SUBST([OMPI_LIBS])
  AC_SUBST([OMPI_BINDIR])
  AC_SUBST([OMPI_PKGLIBDIR])
  AC_SUBST([OMPI_MPIRUN])
  AC_SUBST([MPI_LIBS])
  AC_SUBST([MPICC])
])

# The wrapper compiler knows the directories. Debian's `mpicc' may be another
# MPI's, so the name with the suffix is asked first.
AC_DEFUN([QNIX_OMPI_FIND], [
  AS_CASE([$with_ompi],
    [yes], [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc])],
    [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$with_ompi/bin])
     AS_IF([test -z "$MPICC"],
       [AC_MSG_ERROR([--with-ompi=$with_ompi: there is no bin/mpicc in it])])])
  qnix_ompi_incdirs= qnix_ompi_libdirs=
  AC_MSG_CHECKING([for Open MPI])
  AS_IF([test -n "$MPICC" && $MPICC --showme:version 2>/dev/null | grep 'Open MPI' >/dev/null],
    [qnix_ompi_version=`$MPICC --showme:version 2>/dev/null | $SED -n 's/.*Open MPI \([[^ ]]*\).*/\1/p'`
     qnix_ompi_incdirs=`$MPICC --showme:incdirs`
     qnix_ompi_libdirs=`$MPICC --showme:libdirs`
     MPI_LIBS=`$MPICC --showme:link`
     OMPI_BINDIR=`AS_DIRNAME(["$MPICC"])`
     AC_MSG_RESULT([$qnix_ompi_version by $MPICC])],
    [AC_MSG_RESULT([no])
     QNIX_OMPI_MISSING([Open MPI: an mpicc that is Open MPI's (found: ${MPICC:-none})])])
  AS_IF([test -n "$qnix_ompi_incdirs"],
    [for qnix_try in mpirun mpirun.openmpi; do
       AS_IF([test -x "$OMPI_BINDIR/$qnix_try"], [OMPI_MPIRUN=$OMPI_BINDIR/$qnix_try])
     done
     AS_IF([test -z "$OMPI_MPIRUN"],
       [QNIX_MISSING([Open MPI's mpirun (not in $OMPI_BINDIR)], [openmpi-bin], [--with-ompi=DIR])])])
  AS_IF([test -n "$qnix_ompi_incdirs" && test -x "$OMPI_BINDIR/ompi_info"],
    [OMPI_PKGLIBDIR=`$OMPI_BINDIR/ompi_info --parsable --path pkglibdir 2>/dev/null | $SED -n 's/^path:pkglibdir://p'`])
])

AC_DEFUN([QNIX_OMPI_MISSING],
  [QNIX_MISSING([$1], [libopenmpi-dev openmpi-bin],
    [--with-ompi=DIR, or --without-ompi for the NIC, VIPL and the tools only])])

AC_DEFUN([QNIX_OMPI_BTL], [
  qnix_ompi_rpath=
  for qnix_dir in $qnix_ompi_incdirs; do
    OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $qnix_dir"
    # The component headers sit below openmpi/, which an mpicc may leave out.
    AS_IF([test -f "$qnix_dir/openmpi/opal/mca/btl/btl.h"],
      [OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $qnix_dir/openmpi"])
  done
  for qnix_dir in $qnix_ompi_libdirs; do
    OMPI_LIBS="$OMPI_LIBS -L$qnix_dir"
    AS_IF([test "x$with_ompi" != xyes], [qnix_ompi_rpath="$qnix_ompi_rpath -Wl,-rpath,$qnix_dir"])
  done
  OMPI_LIBS="$OMPI_LIBS$qnix_ompi_rpath -lopen-pal"

  qnix_save_CPPFLAGS=$CPPFLAGS qnix_save_CFLAGS=$CFLAGS qnix_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $QNIX_CFLAGS -Wno-error"
  QNIX_OMPI_THREADS
  for qnix_dir in $qnix_ompi_incdirs; do
    AS_IF([test -f "$qnix_dir/opal/mca/pmix/pmix-internal.h" || test -f "$qnix_dir/openmpi/opal/mca/pmix/pmix-internal.h"],
      [QNIX_OMPI_PMIX
       break])
  done
  CPPFLAGS="$qnix_save_CPPFLAGS $OMPI_CPPFLAGS"
  LIBS="$OMPI_LIBS $qnix_save_LIBS"
  AC_MSG_CHECKING([for opal/mca/btl/btl.h and libopen-pal])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "opal_config.h"
      #include "opal/mca/btl/btl.h"
      #include "opal/runtime/opal_progress.h"]], [[opal_progress();]])],
    [AC_MSG_RESULT([yes])
     AC_COMPUTE_INT([qnix_btl_version], [BTL_VERSION],
       [#include "opal_config.h"
        #include "opal/mca/btl/btl.h"], [qnix_btl_version=unknown])],
    [AC_MSG_RESULT([no])
     QNIX_OMPI_MISSING([the headers of Open MPI's component interface (opal/mca/btl/btl.h) with libopen-pal])])
  CPPFLAGS=$qnix_save_CPPFLAGS CFLAGS=$qnix_save_CFLAGS LIBS=$qnix_save_LIBS

  AS_CASE([$qnix_btl_version],
    [310], [qnix_btl_text="3.1.0 (BTL_VERSION 310)"],
    [330], [qnix_btl_text="3.3.0 (BTL_VERSION 330)"],
    ['' | unknown], [qnix_btl_text=unknown],
    [qnix_btl_text="BTL_VERSION $qnix_btl_version, not tried with this version of qnix"
     AC_MSG_WARN([Open MPI's BTL interface is version $qnix_btl_version; qnix knows 310 and 330])])
])

# Packages of Open MPI 5.0 (Debian 13's) leave out the headers that say what a
# mutex is. btl_qnix/lacking/ says it for pthreads, if the size is the library's.
AC_DEFUN([QNIX_OMPI_THREADS], [
  CPPFLAGS="$qnix_save_CPPFLAGS $OMPI_CPPFLAGS"
  LIBS="$OMPI_LIBS $qnix_save_LIBS"
  AC_MSG_CHECKING([whether the headers of Open MPI are all there])
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "opal_config.h"
      #ifdef MCA_threads_mutex_base_include_HEADER
      #include MCA_threads_mutex_base_include_HEADER
      #endif]])],
    [AC_MSG_RESULT([yes])],
    [qnix_lacking="-isystem `cd "$srcdir" && pwd`/btl_qnix/lacking"
     OMPI_CPPFLAGS="$OMPI_CPPFLAGS $qnix_lacking"
     CPPFLAGS="$CPPFLAGS $qnix_lacking"
     AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include "opal_config.h"
         #include "opal/class/opal_object.h"
         #include "opal/mca/threads/mutex.h"]],
         [[return opal_mutex_t_class.cls_sizeof != sizeof(opal_mutex_t);]])],
       [AC_MSG_RESULT([no, those for threads come from btl_qnix/lacking])],
       [AC_MSG_RESULT([no])
        QNIX_OMPI_MISSING([the headers opal/mca/threads/pthreads/*.h of Open MPI])],
       [AC_MSG_RESULT([no, those for threads come from btl_qnix/lacking])])])
])

# Since 5.0 Open MPI's headers include pmix.h, which may be a package of its own.
AC_DEFUN([QNIX_OMPI_PMIX], [
  AC_ARG_WITH([pmix],
    [AS_HELP_STRING([--with-pmix=DIR], [where PMIx is, for Open MPI 5.0 @<:@beside it, or as pkg-config says@:>@])],
    [], [with_pmix=yes])
  qnix_pmix_cppflags= qnix_pmix_libs=-lpmix
  AS_CASE([$with_pmix],
    [yes | no],
    [for qnix_dir in $qnix_ompi_incdirs; do
       AS_IF([test -f "$qnix_dir/pmix.h"], [qnix_pmix_cppflags=" "])
     done
     for qnix_dir in $qnix_ompi_libdirs; do
       # Debian's place, near where its Open MPI is.
       for qnix_try in "$qnix_dir" "$qnix_dir/.." "$qnix_dir/../.."; do
         AS_IF([test -z "$qnix_pmix_cppflags" && test -f "$qnix_try/pmix2/include/pmix.h"],
           [qnix_pmix_cppflags="-isystem `cd "$qnix_try/pmix2/include" && pwd`"])
       done
     done
     AS_IF([test -z "$qnix_pmix_cppflags" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists pmix],
       [qnix_pmix_cppflags=`$PKG_CONFIG --cflags-only-I pmix | $SED 's/-I */-isystem /g'`
        qnix_pmix_libs=`$PKG_CONFIG --libs pmix`])],
    [qnix_pmix_cppflags="-isystem $with_pmix/include"
     qnix_pmix_libs="-L$with_pmix/lib -Wl,-rpath,$with_pmix/lib -lpmix"])
  OMPI_CPPFLAGS="$OMPI_CPPFLAGS $qnix_pmix_cppflags"
  OMPI_LIBS="$OMPI_LIBS $qnix_pmix_libs"
  CPPFLAGS="$qnix_save_CPPFLAGS $OMPI_CPPFLAGS"
  LIBS="$OMPI_LIBS $qnix_save_LIBS"
  AC_MSG_CHECKING([for pmix.h and libpmix])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "opal_config.h"
      #include "opal/mca/pmix/pmix-internal.h"]], [[PMIx_Initialized();]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     QNIX_MISSING([the headers of PMIx (pmix.h), which those of Open MPI 5.0 include], [libpmix-dev],
       [--with-pmix=DIR])])
])

# The MTL wants headers and symbols of Open MPI's upper half. The coll interface that qnix knows is that of 4.0 and 4.1, which come
# with BTL 3.1.0.
AC_DEFUN([QNIX_OMPI_MTL], [
  qnix_save_CPPFLAGS=$CPPFLAGS qnix_save_CFLAGS=$CFLAGS qnix_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
  CFLAGS="$CFLAGS $QNIX_CFLAGS -Wno-error"
  LIBS="$OMPI_LIBS -lmpi $LIBS"
  AC_MSG_CHECKING([for ompi/mca/mtl/mtl.h and libmpi])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
      #include "ompi/mca/mtl/base/base.h"]], [[return ompi_mtl_base_framework.framework_output;]])],
    [qnix_mtl=yes OMPI_MTL_LIBS=-lmpi])
  AC_MSG_RESULT([$qnix_mtl])
  AS_IF([test "x$qnix_btl_version" = x310], [qnix_coll=$qnix_mtl])
  # Its header includes others that Debian does not have.
  AC_MSG_CHECKING([whether requests of collectives hold on to datatypes])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
      #include "opal/class/opal_object.h"
      OBJ_CLASS_DECLARATION(ompi_coll_base_nbc_request_t);]], [[return ompi_coll_base_nbc_request_t_class.cls_sizeof == 0;]])],
    [AC_MSG_RESULT([yes])
     OMPI_CPPFLAGS="$OMPI_CPPFLAGS -DQNIX_OMPI_NBC_REQUEST"],
    [AC_MSG_RESULT([no])])
  CPPFLAGS=$qnix_save_CPPFLAGS CFLAGS=$qnix_save_CFLAGS LIBS=$qnix_save_LIBS
])
