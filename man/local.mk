# SPDX-License-Identifier: BSD-3-Clause
#
# Manual pages. Two of them have tables that the program declares (parameters,
# counters): man/fill, built from the same declarations, writes those in.

dist_man_MANS += \
	man/VipCQ.3 \
	man/VipConnect.3 \
	man/VipMemory.3 \
	man/VipNS.3 \
	man/VipNic.3 \
	man/VipNotify.3 \
	man/VipQueue.3 \
	man/Vipx.3 \
	man/qnix.1 \
	man/qnix.7 \
	man/qx.3 \
	man/vipl.7

nodist_man_MANS = \
	man/qnix.conf.5 \
	man/qnix-counters.7

noinst_PROGRAMS += man/fill
man_fill_SOURCES = man/fill.c nicemu/util/fits.c
man_fill_CPPFLAGS = $(AM_CPPFLAGS)

EXTRA_DIST += \
	man/qnix.conf.5.in \
	man/qnix-counters.7.in

# Checking for leaks may be forbidden where this is built, and there is nothing to leak.
FILL = $(AM_V_GEN)$(MKDIR_P) man && ASAN_OPTIONS=detect_leaks=0 man/fill$(EXEEXT)

man/qnix.conf.5: man/qnix.conf.5.in man/fill$(EXEEXT)
	$(FILL) <$(top_srcdir)/man/qnix.conf.5.in >$@.tmp && mv $@.tmp $@

man/qnix-counters.7: man/qnix-counters.7.in man/fill$(EXEEXT)
	$(FILL) <$(top_srcdir)/man/qnix-counters.7.in >$@.tmp && mv $@.tmp $@

# ---- the pages in the folders where man looks, for . dev/env

noinst_DATA = man/.pages

man/.pages: $(dist_man_MANS) $(nodist_man_MANS)
	$(AM_V_GEN)for page in $^; do \
		folder=man/man$${page##*.} && $(MKDIR_P) $$folder && \
		case $$page in /*) ;; *) page=../../$$page ;; esac && \
		ln -sf "$$page" $$folder || exit 1; \
	done && $(named) | while read page name; do echo ".so man3/$$page" >man/man3/$$name.3 || exit 1; done && touch $@

CLEANFILES += $(nodist_man_MANS) man/.pages

# A page of section 3 is about many functions: each name in its NAME section leads to it.

named = for page in $(dist_man_MANS); do \
		case $$page in *.3) sed -n "/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([A-Za-z_]*\).*/$${page\#\#*/} \1/p" $(srcdir)/$$page ;; esac; \
	done

install-data-local: man/.pages
	$(MKDIR_P) "$(DESTDIR)$(man3dir)"
	$(named) | while read page name; do $(INSTALL_DATA) man/man3/$$name.3 "$(DESTDIR)$(man3dir)" || exit 1; done

uninstall-local:
	$(named) | while read page name; do rm -f "$(DESTDIR)$(man3dir)/$$name.3"; done

clean-local:
	rm -rf man/man1 man/man3 man/man5 man/man7
