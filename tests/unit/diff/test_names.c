/* What a rebuild changes in a name, and what it does not. */
#include "model/unit.h"

#include "diff/names.h"

static void same(const char *function, const char *expected)
{
	struct str text = {0};

	names_function(&text, function);
	assert_string_equal(str_text(&text), expected);
	str_free(&text);
}

static void test_function(void **state)
{
	same("main", "main");
	same("load.constprop.0", "load");
	same("load.isra.3.part.12", "load");
	same("load.cold", "load");
	same("load.part.0.cold", "load");
	same("load.llvm.1234567890", "load");
	same("f(int) [clone .constprop.0]", "f(int)");
	same("text[abi:cxx11]()", "text()");
	same("void Store<Document>::add<int, 3>(std::vector<int, std::allocator<int> >)",
	    "void Store::add(std::vector)");
	same("operator<<(std::ostream&, X<int>)", "operator<<(std::ostream&, X)");
	same("X::operator->() const", "X::operator->() const");
	same("main::{lambda(int)#2}::operator()(int) const",
	    "main::{lambda(int)}::operator()(int) const");
	same("server::handle::h0123456789abcdef", "server::handle");
	same("server::handle::house", "server::handle::house");
	/* Python's, which have brackets that are no arguments. */
	same("<module>", "<module>");
	same("<lambda>", "<lambda>");
	same("load.<locals>.one", "load.<locals>.one");
	same("load.<locals>.<listcomp>", "load.<locals>.<listcomp>");
	/* Brackets that do not close, and suffixes that are none. */
	same("a<b", "a<b");
	same("<", "<");
	same("x.partial", "x.partial");
	same("", "");
	(void)state;
}

static struct names of(struct symbol s)
{
	struct str scratch = {0};
	struct names names = names_of(&s, "/srv/a/server", &scratch);

	str_free(&scratch);
	return names;
}

static void test_names(void **state)
{
	struct symbol f = {.function = "f<int>()",
	    .file = "/build/1/src/f.cc",
	    .line = 3,
	    .module = "/srv/a/server",
	    .known = true};
	struct symbol moved = f, other = f, bare = f, library, address;

	moved.file = "/src/f.cc";
	moved.line = 77;
	moved.function = "f<long>()";
	moved.module = "/opt/server-2";
	assert_true(of(f).all == of(moved).all);
	other.file = "/build/1/src/g.cc";
	assert_true(of(f).all != of(other).all);
	assert_true(of(f).function == of(other).function);
	/* Without a file the module tells, but not the program's own name or a version. */
	bare.file = NULL;
	library = bare;
	library.module = "/usr/lib/libf.so.1.2";
	assert_true(of(bare).all != of(library).all);
	moved = library;
	moved.module = "/opt/libf.so.1.3";
	assert_true(of(library).all == of(moved).all);
	/* An address is no name. */
	address = library;
	address.known = false;
	address.function = "libf.so+0x123";
	moved = address;
	moved.function = "libf.so+0x456";
	assert_true(of(address).all == of(moved).all);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_function),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
