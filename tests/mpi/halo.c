/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Halo: a 2-D periodic grid, one block a rank, a 9-point stencil, edges and corners exchanged as derived datatypes
 * straight out of the block.  Every rank also computes the whole grid alone and compares its block with it.
 *
 * The cells are unsigned integers and the stencil wraps around, so a single wrong cell spreads over the grid instead
 * of being rounded away, and the comparison is exact.  Each way of exchanging runs on a small block (edges are eager
 * messages) and on a tall one (a column is a vector of thousands of blocks, well above any eager limit).
 */
#include "check.h"

enum { NEIGHBOURS = 8, TAG = 40 };

struct grid {
	MPI_Comm comm;
	int dims[2], at[2];        /* ranks along y and x, my place */
	int rows, cols;            /* of my block, without its halo of one cell */
	uint32_t *now, *next;      /* (rows + 2) x (cols + 2) */
	int peer[NEIGHBOURS];      /* rank in each direction */
	MPI_Datatype edge[NEIGHBOURS], halo[NEIGHBOURS]; /* what goes there, where what comes from there is put */
	bool persistent;           /* req[] holds persistent requests */
	MPI_Request req[2 * NEIGHBOURS];
};

static const int dirs[NEIGHBOURS][2] = { { -1, -1 }, { -1, 0 }, { -1, 1 }, { 0, -1 }, { 0, 1 }, { 1, -1 }, { 1, 0 }, { 1, 1 } };

static uint32_t first_value(int y, int x)
{
	return (uint32_t)check_mix((uint64_t)y << 32 | (uint32_t)x);
}

/* One step over the inside of a block whose rows are `stride` cells apart. */
static void step(const uint32_t *now, uint32_t *next, int rows, int cols)
{
	const int stride = cols + 2;

	for (int y = 1; y <= rows; y++)
		for (int x = 1; x <= cols; x++) {
			const uint32_t *c = now + y * stride + x;

			next[y * stride + x] = 5 * c[0] + 3 * (c[-1] + c[1] + c[-stride] + c[stride])
				+ c[-stride - 1] + 7 * c[-stride + 1] + 11 * c[stride - 1] + 13 * c[stride + 1];
		}
}

/* ---- the serial reference ---- */

static void wrap(uint32_t *cells, int rows, int cols)
{
	const int stride = cols + 2;

	for (int y = 1; y <= rows; y++) {
		cells[y * stride] = cells[y * stride + cols];
		cells[y * stride + cols + 1] = cells[y * stride + 1];
	}
	memcpy(cells, cells + rows * stride, (size_t)stride * sizeof *cells);
	memcpy(cells + (rows + 1) * stride, cells + stride, (size_t)stride * sizeof *cells);
}

static uint32_t *serial(int rows, int cols, int steps)
{
	size_t bytes = (size_t)(rows + 2) * (cols + 2) * sizeof(uint32_t);
	uint32_t *now = check_memory(bytes), *next = check_memory(bytes), *swap;

	for (int y = 0; y < rows; y++)
		for (int x = 0; x < cols; x++)
			now[(y + 1) * (cols + 2) + x + 1] = first_value(y, x);
	for (int s = 0; s < steps; s++) {
		wrap(now, rows, cols);
		step(now, next, rows, cols);
		swap = now, now = next, next = swap;
	}
	free(next);
	return now;
}

/* ---- the distributed grid ---- */

static MPI_Datatype strip(const struct grid *g, int y, int x, int rows, int cols)
{
	int whole[2] = { g->rows + 2, g->cols + 2 }, part[2] = { rows, cols }, start[2] = { y, x };
	MPI_Datatype type;

	MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_UINT32_T, &type);
	MPI_Type_commit(&type);
	return type;
}

/* First row (or column) of the strip towards direction d: of my own cells, or of the halo beyond them. */
static int strip_start(int d, int cells, bool halo)
{
	if (d < 0)
		return halo ? 0 : 1;
	if (d > 0)
		return halo ? cells + 1 : cells;
	return 1;
}

static void grid_make_types(struct grid *g)
{
	for (int n = 0; n < NEIGHBOURS; n++) {
		int dy = dirs[n][0], dx = dirs[n][1], rows = dy ? 1 : g->rows, cols = dx ? 1 : g->cols;
		int to[2] = { g->at[0] + dy, g->at[1] + dx };

		MPI_Cart_rank(g->comm, to, &g->peer[n]);
		g->edge[n] = strip(g, strip_start(dy, g->rows, false), strip_start(dx, g->cols, false), rows, cols);
		g->halo[n] = strip(g, strip_start(dy, g->rows, true), strip_start(dx, g->cols, true), rows, cols);
	}
}

static void grid_create(struct grid *g, int rows, int cols)
{
	int periodic[2] = { 1, 1 };
	size_t bytes = (size_t)(rows + 2) * (cols + 2) * sizeof(uint32_t);

	*g = (struct grid){ .rows = rows, .cols = cols };
	MPI_Dims_create(check.size, 2, g->dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, g->dims, periodic, 0, &g->comm);
	MPI_Cart_coords(g->comm, check.rank, 2, g->at);
	g->now = check_memory(bytes);
	g->next = check_memory(bytes);
	for (int y = 0; y < rows; y++)
		for (int x = 0; x < cols; x++)
			g->now[(y + 1) * (cols + 2) + x + 1] = first_value(g->at[0] * rows + y, g->at[1] * cols + x);
	grid_make_types(g);
}

static void grid_destroy(struct grid *g)
{
	for (int n = 0; g->persistent && n < 2 * NEIGHBOURS; n++)
		MPI_Request_free(&g->req[n]);
	for (int n = 0; n < NEIGHBOURS; n++) {
		MPI_Type_free(&g->edge[n]);
		MPI_Type_free(&g->halo[n]);
	}
	free(g->now);
	free(g->next);
	MPI_Comm_free(&g->comm);
}

/* ---- ways of exchanging the halo of g->now ---- */

typedef void exchange_fn(struct grid *g);

/* What leaves in direction n arrives from the opposite direction. */
static int opposite(int n)
{
	return NEIGHBOURS - 1 - n;
}

static void exchange_sendrecv(struct grid *g)
{
	for (int n = 0; n < NEIGHBOURS; n++) {
		int from = opposite(n);

		MPI_Sendrecv(g->now, 1, g->edge[n], g->peer[n], TAG + n, g->now, 1, g->halo[from], g->peer[from], TAG + n, g->comm,
			MPI_STATUS_IGNORE);
	}
}

static void exchange_nonblocking(struct grid *g)
{
	MPI_Request req[2 * NEIGHBOURS];

	for (int n = 0; n < NEIGHBOURS; n++)
		MPI_Irecv(g->now, 1, g->halo[n], g->peer[n], TAG + opposite(n), g->comm, &req[n]);
	for (int n = 0; n < NEIGHBOURS; n++)
		MPI_Isend(g->now, 1, g->edge[n], g->peer[n], TAG + n, g->comm, &req[NEIGHBOURS + n]);
	MPI_Waitall(2 * NEIGHBOURS, req, MPI_STATUSES_IGNORE);
}

/* Made at the first step, started at each: grid_step copies back into the one buffer that the requests name. */
static void exchange_persistent(struct grid *g)
{
	for (int n = 0; !g->persistent && n < NEIGHBOURS; n++) {
		MPI_Recv_init(g->now, 1, g->halo[n], g->peer[n], TAG + opposite(n), g->comm, &g->req[n]);
		MPI_Send_init(g->now, 1, g->edge[n], g->peer[n], TAG + n, g->comm, &g->req[NEIGHBOURS + n]);
	}
	g->persistent = true;
	MPI_Startall(2 * NEIGHBOURS, g->req);
	MPI_Waitall(2 * NEIGHBOURS, g->req, MPI_STATUSES_IGNORE);
}

/* Edges first, corners along with them: rows, then columns that include the halo rows just received. */
static void exchange_two_phases(struct grid *g)
{
	const int stride = g->cols + 2;
	MPI_Datatype column;
	int up, down, west, east;

	MPI_Cart_shift(g->comm, 0, 1, &up, &down);
	MPI_Cart_shift(g->comm, 1, 1, &west, &east);
	MPI_Type_vector(g->rows + 2, 1, stride, MPI_UINT32_T, &column);
	MPI_Type_commit(&column);
	MPI_Sendrecv(g->now + stride + 1, g->cols, MPI_UINT32_T, up, TAG, g->now + (g->rows + 1) * stride + 1, g->cols, MPI_UINT32_T,
		down, TAG, g->comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv(g->now + g->rows * stride + 1, g->cols, MPI_UINT32_T, down, TAG, g->now + 1, g->cols, MPI_UINT32_T, up, TAG,
		g->comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv(g->now + 1, 1, column, west, TAG, g->now + g->cols + 1, 1, column, east, TAG, g->comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv(g->now + g->cols, 1, column, east, TAG, g->now, 1, column, west, TAG, g->comm, MPI_STATUS_IGNORE);
	MPI_Type_free(&column);
}

/* ---- running and comparing ---- */

static void grid_step(struct grid *g)
{
	step(g->now, g->next, g->rows, g->cols);
	memcpy(g->now, g->next, (size_t)(g->rows + 2) * (g->cols + 2) * sizeof *g->now);
}

static void grid_compare(const struct grid *g, const uint32_t *whole)
{
	const int stride = g->cols + 2, all_stride = g->dims[1] * g->cols + 2;

	for (int y = 1; y <= g->rows; y++) {
		const uint32_t *mine = g->now + y * stride, *ref = whole + (g->at[0] * g->rows + y) * all_stride + g->at[1] * g->cols;
		int x = 1;

		while (x <= g->cols && mine[x] == ref[x])
			x++;
		CHECK(x > g->cols, "row %d, column %d of the block: %#x instead of %#x", y, x, mine[x], ref[x]);
	}
}

static void run(const char *how, exchange_fn *exchange, int rows, int cols, int steps)
{
	struct grid g;
	uint32_t *whole;
	char group[96];

	grid_create(&g, rows, cols);
	whole = serial(g.dims[0] * rows, g.dims[1] * cols, steps);
	for (int s = 0; s < steps; s++) {
		check_at(how, s);
		exchange(&g);
		grid_step(&g);
	}
	grid_compare(&g, whole);
	free(whole);
	grid_destroy(&g);
	snprintf(group, sizeof group, "%s, %d x %d a rank", how, rows, cols);
	check_group(group);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; exchange_fn *fn; } ways[] = {
		{ "sendrecv", exchange_sendrecv }, { "nonblocking", exchange_nonblocking },
		{ "persistent", exchange_persistent }, { "two phases", exchange_two_phases },
	};

	check_init(&argc, &argv, "halo", 60);
	for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
		run(ways[w].name, ways[w].fn, 1, 1, 7);
		run(ways[w].name, ways[w].fn, 24, 40, 25);
		run(ways[w].name, ways[w].fn, 40000, 6, 4);
	}
	return check_done();
}
