# SPDX-License-Identifier: BSD-3-Clause
#
# The compiler, its flags, and the variants of the build (debug, sanitizers).

AC_DEFUN([QNIX_ARG_DEBUG], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug],
      [assert the legal steps of every state machine (-DQNIX_DEBUG), for -g3 -Og unless CFLAGS is given])],
    [], [enable_debug=no])
])

AC_DEFUN([QNIX_ARG_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@],
      [build with -fsanitize=LIST, "address,undefined" (the default LIST) or "thread"])],
    [], [enable_sanitizers=no])
  AS_CASE([$enable_sanitizers],
    [yes], [enable_sanitizers=address,undefined])
  qnix_sanitize=
  AS_IF([test "x$enable_sanitizers" != xno],
    [qnix_sanitize="-fsanitize=$enable_sanitizers"])
])

# A release is compiled with -g -O3, because the latency of a small message is
# mostly the compiler's inlining; whoever gives CFLAGS gets exactly those.
AC_DEFUN([QNIX_DEFAULT_CFLAGS], [
  AS_IF([test -n "$qnix_sanitize"], [: ${CFLAGS="-g -O1 -fno-omit-frame-pointer"}],
        [test "x$enable_debug" != xno], [: ${CFLAGS="-g3 -Og"}],
        [: ${CFLAGS="-g -O3"}])
])

# AC_PROG_CC would say only that there is none.
AC_DEFUN([QNIX_NEED_CC], [
  qnix_cc=
  for qnix_try in $CC gcc cc clang; do
    AS_IF([command -v "$qnix_try" >/dev/null 2>&1], [qnix_cc=$qnix_try; break])
  done
  AS_IF([test -z "$qnix_cc"],
    [AC_MSG_ERROR([no C compiler. Debian and Ubuntu: apt-get install build-essential (dev/setup does it), or set CC])])
])

# QNIX_TRY_FLAG(VARIABLE, FLAG): appends FLAG if the compiler takes it.
AC_DEFUN([QNIX_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $2])
  qnix_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $2"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
  CFLAGS=$qnix_save_CFLAGS
])

AC_DEFUN([QNIX_NEED_C11_ATOMICS], [
  AC_MSG_CHECKING([whether $CC has C11 atomics])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>
      static _Atomic unsigned long cell;]],
      [[atomic_store_explicit(&cell, 1, memory_order_release);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     QNIX_MISSING([a C11 compiler with atomics (found: $CC)], [build-essential],
       [CC=gcc-12 or CC=clang])])
])

# The sanitizers' run-time libraries come in packages of their own with clang.
AC_DEFUN([QNIX_NEED_SANITIZERS], [
  AC_MSG_CHECKING([whether $CC links with $qnix_sanitize])
  qnix_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $qnix_sanitize"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     QNIX_MISSING([the run-time libraries of $qnix_sanitize for $CC],
       [libclang-rt-dev], [gcc, which brings them along])])
  CFLAGS=$qnix_save_CFLAGS
])

# A shared object with holes would fail only when it is used; clang's sanitized
# objects have holes by design, filled by the program that loads them.
AC_DEFUN([QNIX_LINK_WHOLE], [
  AC_MSG_CHECKING([whether shared objects can be linked with no symbol left undefined])
  qnix_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $qnix_sanitize -shared -fPIC -Wl,--no-undefined"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[int f(int *p); int f(int *p) { return *p + 1; }]])],
    [AC_MSG_RESULT([yes]); WHOLE_LDFLAGS=-Wl,--no-undefined],
    [AC_MSG_RESULT([no]); WHOLE_LDFLAGS=])
  CFLAGS=$qnix_save_CFLAGS
  AC_SUBST([WHOLE_LDFLAGS])
])

AC_DEFUN([QNIX_COMPILER_FLAGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make every compiler warning an error])],
    [], [enable_werror=no])

  AS_IF([test -n "$qnix_sanitize"],
    [QNIX_NEED_SANITIZERS])
  QNIX_NEED_C11_ATOMICS

  QNIX_CPPFLAGS=
  QNIX_CFLAGS="-std=gnu11 -Wall -Wextra -Wpedantic -fvisibility=hidden -pthread $qnix_sanitize"
  QNIX_LDFLAGS="-pthread $qnix_sanitize"
  # Open MPI's headers use 16-byte compare-and-swap where they were built with it.
  QNIX_TRY_FLAG([QNIX_CFLAGS], [-mcx16])
  # Texts are cut at the end of their buffers on purpose, with snprintf.
  QNIX_TRY_FLAG([QNIX_CFLAGS], [-Wno-format-truncation])
  # ThreadSanitizer does not follow fences, and gcc says so at each.
  AS_CASE([$enable_sanitizers], [*thread*], [QNIX_TRY_FLAG([QNIX_CFLAGS], [-Wno-tsan])])
  AS_IF([test "x$enable_werror" != xno], [QNIX_CFLAGS="$QNIX_CFLAGS -Werror"])
  AS_IF([test "x$enable_debug" != xno], [QNIX_CPPFLAGS="$QNIX_CPPFLAGS -DQNIX_DEBUG=1"])
  QNIX_LINK_WHOLE
  AC_SUBST([QNIX_CFLAGS])
  AC_SUBST([QNIX_LDFLAGS])
  AC_SUBST([QNIX_CPPFLAGS])
])
