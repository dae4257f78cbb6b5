# SPDX-License-Identifier: BSD-3-Clause
#
# The last thing that configure prints.

AC_DEFUN([QNIX_SUMMARY], [
  AS_IF([test "x$with_ompi" != xno],
    [qnix_sum_ompi="$qnix_ompi_version, BTL interface $qnix_btl_text
                      by $MPICC"],
    [qnix_sum_ompi="no (--without-ompi): no btl_qnix, no MPI tests"])
  AS_CASE([$with_ompi,$componentdir],
    [no,*], [qnix_sum_component=nowhere],
    [*,'${libdir}/openmpi'], [qnix_sum_component='LIBDIR/openmpi'],
    [qnix_sum_component=$componentdir])
  AS_IF([test -n "$OMPI_PKGLIBDIR"],
    [qnix_sum_component="$qnix_sum_component
                      (--with-component-dir=$OMPI_PKGLIBDIR is where this Open MPI looks)"])
  AS_IF([test "x$prefix" = xNONE], [prefix=$ac_default_prefix])
  cat <<_QNIX

  qnix $PACKAGE_VERSION
    prefix            $prefix
    compiler          $CC
    flags             $CFLAGS
    variant           debug $enable_debug, sanitizers $enable_sanitizers, werror $enable_werror
    Open MPI          $qnix_sum_ompi
    component goes to $qnix_sum_component
    hwloc             $qnix_hwloc_where
    libfabric         not used (joins with the link between hosts)

    make                         then "make check" and "make install"
_QNIX
  AS_IF([test "x$with_ompi" != xno], [cat <<_QNIX
    make install-user-component  the component into ~/.openmpi/components, without root

_QNIX
])
])
