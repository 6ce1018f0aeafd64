/*
 * _marks.c - the marks of include/whyoom/mark.h as Python objects, made to cost next to nothing
 * where nothing records: then there is one Mark for all, which does nothing.
 *
 * Owns whyoom._marks: request(), mark(), point(), recording() and the type Mark. It must not fail a
 * program that would run without it: only arguments that are wrong raise, and they do so whether or
 * not something records. Uses Python's stable ABI of 3.10, and nothing of the C library.
 */
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/mark.h"

#define IDS_END (UINT64_C(1) << 48) /* what is above was handed out by whyoom */

/* What mark.h looks for: NULL where libwhyoom.so is not preloaded. */
extern const char whyoom_recorder[] __asm__("whyoom_request_begin") __attribute__((weak));

enum kind { REQUEST, PHASE };

struct mark {
	PyObject_HEAD;
	PyObject *name; /* a str; NULL: this is the one that does nothing */
	uint64_t given; /* id that the caller chose; 0: none */
	uint64_t tokens; /* as given at first */
	bool has_tokens;
	enum kind kind;
	uint64_t id; /* 0: it has not begun, or ended */
	unsigned depth; /* how often it was entered and not left */
};

/* `with mark.part():` another thread or task works for the request. */
struct part {
	PyObject_HEAD;
	PyObject *of; /* a Mark */
};

static PyTypeObject *mark_type, *part_type;
static PyObject *nothing, *no_part;
static PyObject *decorate; /* whyoom._decorate.decorate, once it was needed */
static PyObject *word_tokens, *word_id, *word_name;

/* Borrowed, and valid as long as the name; text that UTF-8 cannot encode has no name. */
static const char *text_of(PyObject *name)
{
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(name, &length);

	if (!text)
		PyErr_Clear();
	return text;
}

static void drop(PyObject *o, PyObject *held)
{
	PyTypeObject *type = Py_TYPE(o);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF(held);
	release(o);
	Py_DECREF(type);
}

static void mark_dealloc(PyObject *o)
{
	drop(o, ((struct mark *)o)->name);
}

static void part_dealloc(PyObject *o)
{
	drop(o, ((struct part *)o)->of);
}

/* --- arguments --- */

/* -1 with an exception. */
static int take_tokens(PyObject *value, uint64_t *tokens)
{
	long long n = PyLong_AsLongLong(value);

	if (n == -1 && PyErr_Occurred())
		return -1;
	if (n < 0) {
		PyErr_SetString(PyExc_ValueError, "tokens must not be negative");
		return -1;
	}
	*tokens = (uint64_t)n;
	return 0;
}

static int take_id(PyObject *value, uint64_t *id)
{
	long long n = PyLong_AsLongLong(value);

	if (n == -1 && PyErr_Occurred())
		return -1;
	if (n <= 0 || (uint64_t)n >= IDS_END) {
		PyErr_SetString(PyExc_ValueError, "an id is a number from 1 to 2**48 - 1");
		return -1;
	}
	*id = (uint64_t)n;
	return 0;
}

static int take_name(const char *function, PyObject *name)
{
	if (PyUnicode_Check(name))
		return 0;
	PyErr_Format(PyExc_TypeError, "%s(): the name must be a str", function);
	return -1;
}

/* --- a mark --- */

static PyObject *mark_new(const struct mark *like)
{
	struct mark *m = PyObject_New(struct mark, mark_type);

	if (!m)
		return NULL;
	Py_INCREF(like->name);
	m->name = like->name;
	m->given = like->given;
	m->tokens = like->tokens;
	m->has_tokens = like->has_tokens;
	m->kind = like->kind;
	m->id = 0;
	m->depth = 0;
	return (PyObject *)m;
}

static void begin(struct mark *m)
{
	const char *text;

	if (!m->name || m->depth++)
		return;
	text = text_of(m->name);
	if (m->kind == PHASE) {
		m->id = whyoom_phase_begin(text);
		return;
	}
	if (m->given) {
		m->id = m->given;
		whyoom_request_begin_id(m->id, text);
	} else {
		m->id = whyoom_request_begin(text);
	}
	if (m->has_tokens)
		whyoom_request_tokens(m->id, m->tokens);
}

static void end(struct mark *m)
{
	if (!m->name || !m->depth || --m->depth)
		return;
	if (m->kind == PHASE)
		whyoom_phase_end(m->id);
	else
		whyoom_request_end(m->id);
	m->id = 0;
}

static PyObject *mark_enter(PyObject *o, PyObject *unused)
{
	(void)unused;
	begin((struct mark *)o);
	Py_INCREF(o);
	return o;
}

static PyObject *mark_exit(PyObject *o, PyObject *const *arguments, Py_ssize_t count)
{
	(void)arguments;
	(void)count;
	end((struct mark *)o);
	Py_RETURN_NONE;
}

static PyObject *mark_tokens(PyObject *o, PyObject *value)
{
	struct mark *m = (struct mark *)o;
	uint64_t tokens;

	if (take_tokens(value, &tokens))
		return NULL;
	if (m->kind == REQUEST && m->id)
		whyoom_request_tokens(m->id, tokens);
	Py_RETURN_NONE;
}

static PyObject *mark_work(PyObject *o, PyObject *unused)
{
	struct mark *m = (struct mark *)o;

	(void)unused;
	if (m->kind == REQUEST && m->id)
		whyoom_request_enter(m->id);
	Py_RETURN_NONE;
}

static PyObject *mark_rest(PyObject *o, PyObject *unused)
{
	struct mark *m = (struct mark *)o;

	(void)unused;
	if (m->kind == REQUEST && m->id)
		whyoom_request_leave(m->id);
	Py_RETURN_NONE;
}

static PyObject *mark_part(PyObject *o, PyObject *unused)
{
	struct part *p;

	(void)unused;
	if (o == nothing) {
		Py_INCREF(no_part);
		return no_part;
	}
	p = PyObject_New(struct part, part_type);
	if (!p)
		return NULL;
	Py_INCREF(o);
	p->of = o;
	return (PyObject *)p;
}

static PyObject *mark_again(PyObject *o, PyObject *unused)
{
	(void)unused;
	if (o == nothing) {
		Py_INCREF(o);
		return o;
	}
	return mark_new((struct mark *)o);
}

/* As a decorator. Where nothing records, the function stays as it is. */
static PyObject *mark_call(PyObject *o, PyObject *arguments, PyObject *keywords)
{
	PyObject *function, *module;

	if (!PyTuple_Check(arguments) || PyTuple_Size(arguments) != 1 ||
	    (keywords && PyDict_Size(keywords)))
		return PyErr_Format(PyExc_TypeError, "a mark decorates one function");
	function = PyTuple_GetItem(arguments, 0);
	if (!PyCallable_Check(function) || PyType_Check(function))
		return PyErr_Format(
		    PyExc_TypeError, "a mark decorates functions, not %R", function);
	if (o == nothing) {
		Py_INCREF(function);
		return function;
	}
	if (!decorate) {
		module = PyImport_ImportModule("whyoom._decorate");
		decorate = module ? PyObject_GetAttrString(module, "decorate") : NULL;
		Py_XDECREF(module);
		if (!decorate)
			return NULL;
	}
	return PyObject_CallFunctionObjArgs(decorate, o, function, NULL);
}

static PyObject *mark_get_id(PyObject *o, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct mark *)o)->id);
}

static PyObject *part_enter(PyObject *o, PyObject *unused)
{
	struct part *p = (struct part *)o;

	if (p->of)
		Py_DECREF(mark_work(p->of, unused));
	Py_INCREF(o);
	return o;
}

static PyObject *part_exit(PyObject *o, PyObject *const *arguments, Py_ssize_t count)
{
	struct part *p = (struct part *)o;

	(void)arguments;
	(void)count;
	if (p->of)
		Py_DECREF(mark_rest(p->of, NULL));
	Py_RETURN_NONE;
}

/* --- the functions --- */

static PyObject *get_mark(const struct mark *like)
{
	if (whyoom_recorder)
		return mark_new(like);
	Py_INCREF(nothing);
	return nothing;
}

static bool is_word(PyObject *name, PyObject *word)
{
	return name == word || !PyUnicode_Compare(name, word);
}

static PyObject *request(
    PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
	struct mark m = {.kind = REQUEST};
	Py_ssize_t named = names ? PyTuple_Size(names) : 0;

	(void)module;
	if (count > 1)
		return PyErr_Format(PyExc_TypeError, "request(name, *, tokens=None, id=None)");
	m.name = count ? arguments[0] : NULL;
	for (Py_ssize_t i = 0; i < named; i++) {
		PyObject *name = PyTuple_GetItem(names, i), *value = arguments[count + i];

		if (is_word(name, word_tokens)) {
			if (value != Py_None && take_tokens(value, &m.tokens))
				return NULL;
			m.has_tokens = value != Py_None;
		} else if (is_word(name, word_id)) {
			if (value != Py_None && take_id(value, &m.given))
				return NULL;
		} else if (is_word(name, word_name) && !m.name) {
			m.name = value;
		} else {
			return PyErr_Format(
			    PyExc_TypeError, "request(): unexpected argument %R", name);
		}
	}
	if (!m.name)
		return PyErr_Format(PyExc_TypeError, "request(): a name is missing");
	if (take_name("request", m.name))
		return NULL;
	return get_mark(&m);
}

static PyObject *mark(PyObject *module, PyObject *name)
{
	const struct mark m = {.name = name, .kind = PHASE};

	(void)module;
	return take_name("mark", name) ? NULL : get_mark(&m);
}

static PyObject *point(PyObject *module, PyObject *name)
{
	(void)module;
	if (take_name("point", name))
		return NULL;
	if (whyoom_recorder)
		whyoom_point(text_of(name));
	Py_RETURN_NONE;
}

static PyObject *recording(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(whyoom_recorder != NULL);
}

/* --- the module --- */

static PyMethodDef mark_methods[] = {
    {"__enter__", mark_enter, METH_NOARGS, "Begin."},
    {"__exit__", (PyCFunction)(void (*)(void))mark_exit, METH_FASTCALL, "End."},
    {"tokens", mark_tokens, METH_O,
	"tokens(n): report the length of the input in tokens, again when it has grown."},
    {"part", mark_part, METH_NOARGS,
	"A context manager: the calling thread or task works for this request, too."},
    {"work", mark_work, METH_NOARGS, "From now on the calling thread or task works for it."},
    {"rest", mark_rest, METH_NOARGS, "The calling thread or task no longer works for it."},
    {"again", mark_again, METH_NOARGS, "A new mark with the same arguments, not begun."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef mark_attributes[] = {
    {"id", mark_get_id, NULL, "The request's number while it is open; 0: nothing records.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot mark_slots[] = {
    {Py_tp_doc, "A mark: a context manager and a decorator. Made by request() and mark()."},
    {Py_tp_dealloc, mark_dealloc},
    {Py_tp_methods, mark_methods},
    {Py_tp_getset, mark_attributes},
    {Py_tp_call, mark_call},
    {0, NULL},
};
static PyType_Spec mark_spec = {"whyoom.Mark", sizeof(struct mark), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, mark_slots};

static PyMethodDef part_methods[] = {
    {"__enter__", part_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))part_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot part_slots[] = {
    {Py_tp_dealloc, part_dealloc},
    {Py_tp_methods, part_methods},
    {0, NULL},
};
static PyType_Spec part_spec = {"whyoom.Part", sizeof(struct part), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, part_slots};

static PyMethodDef functions[] = {
    {"request", (PyCFunction)(void (*)(void))request, METH_FASTCALL | METH_KEYWORDS,
	"request(name, *, tokens=None, id=None)\n--\n\n"
	"Mark a request: from the begin to the end the calling thread or task works for it.\n\n"
	"name is a fixed word for all requests of a kind, never a prompt or a user. tokens is the\n"
	"length of the input. id, from 1 to 2**48 - 1, is a number that no open request has."},
    {"mark", mark, METH_O,
	"mark(name, /)\n--\n\nMark a phase of the process: loading, warm-up, serving, or another "
	"word."},
    {"point", point, METH_O, "point(name, /)\n--\n\nMark a point in time."},
    {"recording", recording, METH_NOARGS,
	"recording()\n--\n\nWhether whyoom's recorder is in this process."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "whyoom._marks", NULL, -1, functions, NULL, NULL, NULL, NULL};

static int make_singletons(void)
{
	struct mark *m = PyObject_New(struct mark, mark_type);
	struct part *p = PyObject_New(struct part, part_type);

	word_tokens = PyUnicode_InternFromString("tokens");
	word_id = PyUnicode_InternFromString("id");
	word_name = PyUnicode_InternFromString("name");
	if (!m || !p || !word_tokens || !word_id || !word_name)
		return -1;
	m->name = NULL;
	m->id = m->given = m->tokens = 0;
	m->has_tokens = false;
	m->kind = REQUEST;
	m->depth = 0;
	p->of = NULL;
	nothing = (PyObject *)m;
	no_part = (PyObject *)p;
	return 0;
}

PyMODINIT_FUNC PyInit__marks(void);

PyMODINIT_FUNC PyInit__marks(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (!module)
		return NULL;
	mark_type = (PyTypeObject *)PyType_FromSpec(&mark_spec);
	part_type = (PyTypeObject *)PyType_FromSpec(&part_spec);
	if (!mark_type || !part_type || make_singletons() ||
	    PyModule_AddObjectRef(module, "Mark", (PyObject *)mark_type)) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
