// Tiles: runs of sequences of one V-J pair, as tiles.py makes them.
#pragma once

#include "sequence.cuh"

// Sequences of one V-J pair that a block takes at a time.
struct Tile {
    i64 row;   // first sequence
    int rows;  // how many: at most TILE_ROWS, which the host defines, or what a block of threads takes
    int pair;  // index into the tables of the pairs
};
static_assert(sizeof(Tile) == TILE_BYTES, "host and device agree on Tile");
