/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qnix stat: the counters of running jobs, from outside, per card and per process; with --watch again and again, as
 * rates.  Taking them is sample.c's; this file chooses and shows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/tools/sample.h"
#include "nicemu/tools/tool.h"

enum { OPTION_DEVICE, OPTION_WATCH, OPTION_COUNT, OPTION_ALL };
enum { CELL = 15 };

/* Share of the send descriptors that took the short way; negative: nothing was sent. */
static double share(uint64_t cut_through, uint64_t sent)
{
	return sent ? (double)cut_through / (double)sent : -1;
}

static uint64_t value_of(const struct sample *s, const struct sample_slot *slot, const char *name)
{
	int row = sample_row(s, name);

	return row < 0 ? 0 : slot->value[row];
}

static uint64_t total_of(const struct sample *s, const struct sample_card *card, const char *name)
{
	int row = sample_row(s, name);

	return row < 0 ? 0 : sample_total(card, (uint32_t)row);
}

static double slot_share(const struct sample *s, const struct sample_slot *slot)
{
	return share(value_of(s, slot, "cut_through"), value_of(s, slot, "send_descriptors"));
}

static double card_share(const struct sample *s, const struct sample_card *card)
{
	return share(total_of(s, card, "cut_through"), total_of(s, card, "send_descriptors"));
}

/* ---- text: a column for each process, as many beside each other as the terminal holds ------------------------------ */

struct view {
	const struct sample *now, *before; /* before: NULL unless rates are wanted */
	const struct sample_card *card;
	bool all;
	int names;           /* width of the column of names */
	uint32_t from, to;   /* slots of this block */
	bool last;           /* the block with the totals */
};

static void name_cell(const struct view *v, const char *name)
{
	printf("%-*s", v->names, name);
}

static void count_cell(uint64_t value)
{
	printf(" %*" PRId64, CELL - 1, (int64_t)value);
}

static void rate_cell(const struct view *v, double difference)
{
	double rate = difference / (v->now->time - v->before->time);

	printf(" %*.*f", CELL - 1, rate > -10 && rate < 10 && rate != 0 ? 1 : 0, rate);
}

static void share_cell(double x)
{
	if (x < 0)
		printf(" %*s", CELL - 1, "-");
	else
		printf(" %*.1f %%", CELL - 3, 100 * x);
}

static void text_head(const struct view *v)
{
	static const char *const total[] = { "total" }, *const rates[] = { "total", "per second" }, *const so_far[] = { "total", "so far" };

	for (int line = 0; line < 3; line++) {
		name_cell(v, "");
		for (uint32_t i = v->from; i < v->to; i++) {
			const struct sample_slot *s = &v->card->slot[i];
			char cell[40];

			if (line == 0)
				snprintf(cell, sizeof(cell), "slot %" PRIu32, s->slot);
			else if (line == 1)
				snprintf(cell, sizeof(cell), "pid %d", s->pid);
			else
				snprintf(cell, sizeof(cell), "%.*s", CELL - 1, s->command);
			printf(" %*s", CELL - 1, cell);
		}
		if (v->last && line < (v->before ? 2 : 1))
			printf(" %*s", CELL - 1, v->before ? rates[line] : total[line]);
		if (v->last && v->before && line < 2)
			printf(" %*s", CELL - 1, so_far[line]);
		putchar('\n');
	}
}

static void text_row(const struct view *v, uint32_t row)
{
	double moved = 0;

	name_cell(v, v->now->row[row]);
	for (uint32_t i = 0; i < v->card->nslots; i++) {
		const struct sample_slot *s = &v->card->slot[i], *old = v->before ? sample_find(v->before, v->card, s) : NULL;
		double difference = old ? (double)(int64_t)(s->value[row] - value_of(v->before, old, v->now->row[row])) : 0;

		moved += difference;
		if (i < v->from || i >= v->to)
			continue;
		if (v->before)
			rate_cell(v, difference);
		else
			count_cell(s->value[row]);
	}
	if (v->last && v->before)
		rate_cell(v, moved);
	if (v->last)
		count_cell(sample_total(v->card, row));
	putchar('\n');
}

static bool wanted(const struct view *v, uint32_t row)
{
	bool any = v->all;

	for (uint32_t i = 0; i < v->card->nslots && !any; i++)
		any = v->card->slot[i].value[row] != 0;
	return any;
}

static void text_block(const struct view *v)
{
	text_head(v);
	name_cell(v, "peers linked");
	for (uint32_t i = v->from; i < v->to; i++)
		count_cell(v->card->slot[i].links);
	putchar('\n');
	name_cell(v, "virtual interfaces");
	for (uint32_t i = v->from; i < v->to; i++)
		count_cell(v->card->slot[i].vis);
	putchar('\n');
	for (uint32_t row = 0; row < v->now->nrows; row++)
		if (wanted(v, row))
			text_row(v, row);
	name_cell(v, "cut-through share");
	for (uint32_t i = v->from; i < v->to; i++)
		share_cell(slot_share(v->now, &v->card->slot[i]));
	if (v->last && v->before)
		printf(" %*s", CELL - 1, "");
	if (v->last)
		share_cell(card_share(v->now, v->card));
	printf("\n\n");
}

static int names_width(const struct sample *s)
{
	size_t width = strlen("virtual interfaces");

	for (uint32_t i = 0; i < s->nrows; i++)
		if (strlen(s->row[i]) > width)
			width = strlen(s->row[i]);
	return (int)width;
}

static void text_card(struct view *v)
{
	int fit = (tool_width() - v->names) / CELL - (v->before ? 2 : 1);
	uint32_t step = fit < 1 ? 1 : (uint32_t)fit;

	printf("card %s, identity %016" PRIx64 ", %" PRIu32 " process%s", v->card->info.device, v->card->info.card, v->card->nslots,
	       v->card->nslots == 1 ? "" : "es");
	if (v->card->nslots && v->card->slot[0].daemon)
		printf(", run by daemon %d", v->card->slot[0].daemon);
	printf("%s\n\n", v->before ? ", per second" : "");
	for (v->from = 0; v->from < v->card->nslots; v->from = v->to) {
		v->to = v->from + step < v->card->nslots ? v->from + step : v->card->nslots;
		v->last = v->to == v->card->nslots;
		text_block(v);
	}
}

static void show_text(const struct sample *now, const struct sample *before, bool all)
{
	struct view v = { .now = now, .before = before, .all = all, .names = names_width(now) };

	if (!now->ncards && !now->unreadable && !now->failed)
		printf("No process of this user has a card open on this host (and in this network namespace).\n");
	for (uint32_t i = 0; i < now->ncards; i++) {
		v.card = &now->card[i];
		text_card(&v);
	}
}

/* ---- for programs: always all rows, always counts, never rates ---------------------------------------------------- */

static void json_share(double x)
{
	if (x < 0)
		printf("\"cut_through_share\": null");
	else
		printf("\"cut_through_share\": %.4f", x);
}

static void json_slot(const struct sample *s, const struct sample_slot *slot)
{
	printf("{\"slot\": %" PRIu32 ", \"pid\": %d, \"daemon\": %d, \"command\": ", slot->slot, slot->pid, slot->daemon);
	tool_json_string(slot->command);
	printf(", \"links\": %" PRIu32 ", \"vis\": %" PRIu32 ", \"counters\": {", slot->links, slot->vis);
	for (uint32_t r = 0; r < s->nrows; r++)
		printf("%s\"%s\": %" PRId64, r ? ", " : "", s->row[r], (int64_t)slot->value[r]);
	printf("}, ");
	json_share(slot_share(s, slot));
	putchar('}');
}

static void json_card(const struct sample *s, const struct sample_card *card)
{
	printf("{\"device\": ");
	tool_json_string(card->info.device);
	printf(", \"card\": \"%016" PRIx64 "\", \"slots\": [", card->info.card);
	for (uint32_t i = 0; i < card->nslots; i++) {
		printf("%s", i ? ", " : "");
		json_slot(s, &card->slot[i]);
	}
	printf("], \"total\": {\"counters\": {");
	for (uint32_t r = 0; r < s->nrows; r++)
		printf("%s\"%s\": %" PRId64, r ? ", " : "", s->row[r], (int64_t)sample_total(card, r));
	printf("}, ");
	json_share(card_share(s, card));
	printf("}}");
}

/* One line a sample. */
static void show_json(const struct sample *s)
{
	printf("{\"time\": %.3f, \"cards\": [", s->time);
	for (uint32_t i = 0; i < s->ncards; i++) {
		printf("%s", i ? ", " : "");
		json_card(s, &s->card[i]);
	}
	printf("]}\n");
}

static void csv_slot(const struct sample *s, const struct sample_card *card, const struct sample_slot *slot)
{
	for (uint32_t r = 0; r < s->nrows; r++) {
		printf("%.3f,", s->time);
		tool_csv_field(card->info.device);
		printf(",%016" PRIx64 ",%" PRIu32 ",%d,", card->info.card, slot->slot, slot->pid);
		tool_csv_field(slot->command);
		printf(",%s,%" PRId64 "\n", s->row[r], (int64_t)slot->value[r]);
	}
}

static void show_csv(const struct sample *s, bool first)
{
	if (first)
		printf("time,device,card,slot,pid,command,counter,value\n");
	for (uint32_t i = 0; i < s->ncards; i++)
		for (uint32_t j = 0; j < s->card[i].nslots; j++)
			csv_slot(s, &s->card[i], &s->card[i].slot[j]);
}

/* ---- the subcommand ---------------------------------------------------------------------------------------------- */

static void show(const struct tool_args *args, const struct sample *now, const struct sample *before)
{
	if (args->format == TOOL_JSON) {
		show_json(now);
	} else if (args->format == TOOL_CSV) {
		show_csv(now, !before);
	} else {
		if (before && isatty(STDOUT_FILENO))
			printf("\033[H\033[J");
		show_text(now, before, args->value[OPTION_ALL] != NULL);
	}
	fflush(stdout);
}

static int once(const struct tool_args *args)
{
	const char *device = args->value[OPTION_DEVICE];
	struct sample s;
	int status = 0;

	sample_take(device, &s);
	if (device && !s.ncards && !s.unreadable)
		status = tool_complain("stat", TOOL_FAILED, "no process of this user has a card \"%s\" open on this host", device);
	else
		show(args, &s, NULL);
	if (s.unreadable)
		status = tool_complain("stat", TOOL_FAILED, "card %s, held by process %d, cannot be read: %s", s.unread.device, s.unread.pid,
		                       nic_last_error());
	if (s.failed)
		status = tool_complain("stat", TOOL_FAILED, "not everything could be read: out of memory, or /proc/net/unix is closed to us");
	sample_free(&s);
	return status;
}

static void watch(const struct tool_args *args, double seconds, long count)
{
	const struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
	struct sample now, before;

	for (long i = 0; count < 0 || i < count; i++) {
		if (i)
			nanosleep(&pause, NULL);
		sample_take(args->value[OPTION_DEVICE], &now);
		show(args, &now, i ? &before : NULL);
		if (i)
			sample_free(&before);
		before = now;
		if (ferror(stdout))
			break;
	}
	sample_free(&before);
}

static int run(const struct tool_args *args)
{
	const char *every = args->value[OPTION_WATCH], *times = args->value[OPTION_COUNT];
	long count = times ? tool_number(times, 1) : -1;
	double seconds = 0;
	char *end;

	if (times && (count < 0 || !every))
		return tool_complain("stat", TOOL_USAGE, "--count is a whole number from 1 up, and goes with --watch");
	if (!every)
		return once(args);
	seconds = strtod(every, &end);
	if (end == every || *end || !(seconds >= 0.01 && seconds <= 1e6))
		return tool_complain("stat", TOOL_USAGE, "--watch takes seconds, 0.01 or more");
	watch(args, seconds, count);
	return 0;
}

const struct tool_command tool_stat = {
	.name = "stat",
	.summary = "the counters of running jobs, per card and process",
	.text = "Reads the counters of every process that has a card open, while it runs; what they mean is in "
	        "qnix-counters(7). Rows that are zero everywhere are left out. With --watch the first picture shows counts and the "
	        "following ones what was added per second. JSON (a line a sample) and CSV always have all rows, and counts.",
	.options = {
		[OPTION_DEVICE] = { "device", "NAME", "only cards of that name; an MPI job's is job-NUMBER" },
		[OPTION_WATCH] = { "watch", "SECONDS", "look again every so often, until interrupted" },
		[OPTION_COUNT] = { "count", "N", "with --watch: end after that many looks" },
		[OPTION_ALL] = { "all", NULL, "also the rows that are zero" },
	},
	.run = run,
};
