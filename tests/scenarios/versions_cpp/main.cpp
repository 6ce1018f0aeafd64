// A planning board: each finished step stores a deep copy of it, of many small notes.
#include <map>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Note {
	std::string author, text;
};

struct Board {
	std::vector<Note> notes;
	int step = 0;
};

static std::map<int, Board> versions;

__attribute__((noinline)) static void commit(const Board &board)
{
	versions.emplace(board.step, board);
}

__attribute__((noinline)) static void work(Board &board, int step)
{
	board.step = step;
	board.notes.push_back({"member " + std::to_string(step % 7) + " of the planning committee",
	    std::string((700 + step * 13 % 300) * SCALE, 'n')});
}

int main()
{
	Board board;

	for (int step = 0; step < 1000000; step++) {
		work(board, step);
		commit(board);
	}
}
