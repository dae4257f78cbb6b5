# SPDX-License-Identifier: BSD-3-Clause
#
# hwloc: which cores, caches and limits this process may use. Required.

AC_DEFUN([QNIX_WITH_HWLOC], [
  AC_ARG_WITH([hwloc],
    [AS_HELP_STRING([--with-hwloc=DIR], [where hwloc is installed @<:@pkg-config or the system's@:>@])],
    [], [with_hwloc=yes])
  HWLOC_CPPFLAGS=
  HWLOC_LIBS=-lhwloc
  AS_CASE([$with_hwloc],
    [no], [AC_MSG_ERROR([hwloc is required; --without-hwloc is not supported])],
    [yes], [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists hwloc 2>/dev/null],
       [HWLOC_CPPFLAGS=`$PKG_CONFIG --cflags hwloc`
        HWLOC_LIBS=`$PKG_CONFIG --libs hwloc`])],
    [AS_IF([test ! -e "$with_hwloc/include/hwloc.h"],
       [AC_MSG_ERROR([--with-hwloc=$with_hwloc: there is no include/hwloc.h in it])])
     HWLOC_CPPFLAGS="-isystem $with_hwloc/include"
     HWLOC_LIBS="-L$with_hwloc/lib -Wl,-rpath,$with_hwloc/lib -lhwloc"])

  AC_MSG_CHECKING([for hwloc])
  qnix_save_CPPFLAGS=$CPPFLAGS qnix_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $HWLOC_CPPFLAGS"
  LIBS="$HWLOC_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hwloc.h>]],
      [[hwloc_topology_t t; return hwloc_topology_init(&t);]])],
    [AC_MSG_RESULT([yes])
     qnix_hwloc_where=$with_hwloc
     AS_IF([test "x$with_hwloc" = xyes], [qnix_hwloc_where="the system's"])],
    [AC_MSG_RESULT([no])
     QNIX_MISSING([hwloc: hwloc.h and libhwloc], [libhwloc-dev], [--with-hwloc=DIR])])
  CPPFLAGS=$qnix_save_CPPFLAGS LIBS=$qnix_save_LIBS
  AC_SUBST([HWLOC_CPPFLAGS])
  AC_SUBST([HWLOC_LIBS])
])
