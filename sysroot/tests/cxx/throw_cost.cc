// What throwing an exception and catching it costs, in nanoseconds of processor time: `throw_cost FRAMES CLEANUPS`. Frames
// with something to destroy have to be stopped in; the others are walked past.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <vector>

static volatile long destroyed;
struct Guard {
	~Guard() { destroyed = destroyed + 1; }
};

[[gnu::noipa]] static long plain(int n)
{
	volatile char room[8];
	room[n & 7] = 1;
	if (n == 0)
		throw std::runtime_error("thrown");
	return plain(n - 1) + room[n & 7]; // no loop can be made of it
}

[[gnu::noipa]] static long guarded(int n, int frames)
{
	if (n == 0)
		return plain(frames);
	Guard g;
	return guarded(n - 1, frames) + 1;
}

static double now()
{
	timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? std::atoi(argv[1]) : 1, cleanups = argc > 2 ? std::atoi(argv[2]) : 0;
	const int rounds = 2000000 / (200 + frames * 20 + cleanups * 100);
	std::vector<double> times;
	for (int sample = 0; sample < 9; sample++) {
		double start = now();
		for (int i = 0; i < rounds; i++)
			try {
				guarded(cleanups, frames);
			} catch (const std::exception &) {
			}
		times.push_back((now() - start) / rounds);
	}
	std::sort(times.begin(), times.end());
	std::printf("%d %d %.0f\n", frames, cleanups, times[4]);
}
