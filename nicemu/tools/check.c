/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qnix check: what this machine offers the NIC, and what is used instead of what it lacks.
 * The trials are the NIC's (engine/check.c); the last one is made here: a card of a name of its own is really opened.
 */
#include <stdio.h>
#include <unistd.h>

#include "nicemu/tools/tool.h"

static void open_a_card(struct nic_check *out)
{
	char device[NIC_DEVICE_MAX];
	struct nic_open_args args = { .device = device };
	struct nic_attr attr;
	struct nic *nic;

	out->what = "opening a card";
	snprintf(device, sizeof(device), "check-%d", (int)getpid());
	out->ok = nic_open(&args, &nic) == NIC_OK;
	if (!out->ok) {
		snprintf(out->text, sizeof(out->text), "%s", nic_last_error());
		return;
	}
	nic_query(nic, &attr);
	snprintf(out->text, sizeof(out->text), "works, with arch %s, engine %s, memory %s", attr.arch, attr.engine, attr.memory);
	nic_close(nic);
}

static void text_row(const struct nic_check *row)
{
	int n = printf("%-5s %-28s ", row->ok ? "yes" : "no", row->what);

	tool_wrap(row->text, n, n, tool_width());
}

static void json_row(const struct nic_check *row, bool last)
{
	printf("  {\"what\": ");
	tool_json_string(row->what);
	printf(", \"ok\": %s, \"text\": ", row->ok ? "true" : "false");
	tool_json_string(row->text);
	printf("}%s\n", last ? "" : ",");
}

static void csv_row(const struct nic_check *row)
{
	tool_csv_field(row->what);
	printf(",%s,", row->ok ? "true" : "false");
	tool_csv_field(row->text);
	putchar('\n');
}

static void show(enum tool_format format, const struct nic_check *row, bool last)
{
	if (format == TOOL_JSON)
		json_row(row, last);
	else if (format == TOOL_CSV)
		csv_row(row);
	else
		text_row(row);
}

static int run(const struct tool_args *args)
{
	const struct nic_check *row;
	struct nic_check whole;

	if (args->format == TOOL_JSON)
		printf("{\"checks\": [\n");
	else if (args->format == TOOL_CSV)
		printf("what,ok,text\n");
	for (uint32_t i = 0; (row = nic_check_at(i)); i++)
		show(args->format, row, false);
	open_a_card(&whole);
	show(args->format, &whole, true);
	if (args->format == TOOL_JSON)
		printf("]}\n");
	return whole.ok ? 0 : TOOL_FAILED;
}

const struct tool_command tool_check = {
	.name = "check",
	.summary = "what this machine lacks, and what is used instead",
	.text = "Tries what the NIC would like to use, and says what is used instead of what does not work. "
	        "The exit status is 0 when a card can be opened, whatever else is lacking.",
	.run = run,
};
