/* sample.c - a library whose symbols are looked up: an inlined function, names like those of C++
 * and Rust compilers, a static function. */
int sample_outer(int x);
int sample_sink(int x) __asm__("_ZN6sample4sinkEi");
int sample_rust(int x) __asm__("_RNvCs1234_7mycrate3foo");
int sample_clone(int x) __asm__("_ZN6sample5cloneEi.part.0");

__attribute__((noinline)) int sample_sink(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

__attribute__((noinline)) int sample_rust(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5;
}

__attribute__((noinline)) int sample_clone(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 7;
}

static inline __attribute__((always_inline)) int inner(int x)
{
	return sample_sink(x) + 1; /* INNER */
}

static inline __attribute__((always_inline)) int middle(int x)
{
	return inner(x) + 2; /* MIDDLE */
}

__attribute__((noinline)) int sample_outer(int x)
{
	return middle(x) + sample_rust(x) + sample_clone(x); /* OUTER */
}
