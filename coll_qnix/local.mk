# SPDX-License-Identifier: BSD-3-Clause
#
# The coll component: a part of the components' shared object, see btl_qnix/local.mk.
# The interface it knows is that of Open MPI 4.1.

COLL_FILES = \
	coll_qnix/call.c \
	coll_qnix/coll_qnix.h \
	coll_qnix/component.c \
	coll_qnix/data.c \
	coll_qnix/module.c \
	coll_qnix/op.c \
	coll_qnix/reduce.c \
	coll_qnix/request.c \
	coll_qnix/setup.c

if HAVE_COLL
btl_qnix_mca_btl_qnix_la_SOURCES += $(COLL_FILES)
btl_qnix_mca_btl_qnix_la_CPPFLAGS += -DQNIX_HAVE_COLL=1
COLL_NAMES = mca_coll_qnix.so
else
EXTRA_DIST += $(COLL_FILES)
COLL_NAMES =
endif
