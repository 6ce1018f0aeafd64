#include "watch/signs/model_name.h"

#include <string.h>
#include <strings.h>

#include "util/text/str.h"

static bool is_weights(const char *name)
{
	static const char *const ends[] = {".gguf", ".safetensors", ".onnx", ".pt", ".pth", ".ckpt",
	    ".tflite", ".engine", ".ggml"};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(ends) / sizeof(*ends); i++)
		if (!strcasecmp(dot, ends[i]))
			return true;
	return false;
}

void model_file_see(struct model_file *f, const struct event *e)
{
	if (e->kind != EV_MAP || !e->u.map.name || e->size <= f->bytes ||
	    !is_weights(e->u.map.name))
		return;
	f->bytes = e->size;
	str_fit(str_base_name(e->u.map.name), f->name, MODEL_NAME_BYTES);
}

/* "meta/llama-8b" of "/models/meta/llama-8b/": a hub's names have two parts. */
static const char *short_name(const char *path, char room[MODEL_NAME_BYTES * 4])
{
	size_t bytes = strlen(path);
	char *slash;

	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	if (bytes >= MODEL_NAME_BYTES * 4) {
		path += bytes - (MODEL_NAME_BYTES * 4 - 1);
		bytes = MODEL_NAME_BYTES * 4 - 1;
	}
	memcpy(room, path, bytes);
	room[bytes] = '\0';
	if (is_weights(room))
		return str_base_name(room);
	if (*room != '/' && *room != '.')
		return room; /* as the person named it */
	slash = strrchr(room, '/');
	for (char *p = room; slash && p < slash; p++)
		if (*p == '/' && !memchr(p + 1, '/', (size_t)(slash - p - 1)))
			return p + 1;
	return slash && slash[1] ? slash + 1 : room;
}

/* Return the value of "--model X" or "--model=X" at argv[i]; NULL: it is another argument. */
static const char *value_of(const char *const *argv, size_t i, const char *option)
{
	size_t n = strlen(option);

	if (strncmp(argv[i], option, n) != 0)
		return NULL;
	if (argv[i][n] == '=')
		return argv[i] + n + 1;
	return argv[i][n] || !argv[i + 1] || *argv[i + 1] == '-' ? NULL : argv[i + 1];
}

bool model_name_of_arguments(const char *const *argv, char out[MODEL_NAME_BYTES])
{
	/* The name that clients use comes first. */
	static const char *const options[] = {"--served-model-name", "--alias", "--model-id",
	    "--model", "--model-path", "--model-name", "--model_name", "--model_path", "-m"};
	const char *found = NULL;
	char room[MODEL_NAME_BYTES * 4];

	*out = '\0';
	for (size_t k = 0; argv && !found && k < sizeof(options) / sizeof(*options); k++)
		for (size_t i = 0; argv[i] && !found; i++) {
			found = value_of(argv, i, options[k]);
			/* To Python, -m is a module. */
			if (found && !strcmp(options[k], "-m") && !is_weights(found))
				found = NULL;
		}
	for (size_t i = 0; argv && !found && argv[i]; i++)
		if (i && !strcmp(argv[i], "serve") && !strcmp(str_base_name(argv[i - 1]), "vllm") &&
		    argv[i + 1] && *argv[i + 1] != '-')
			found = argv[i + 1];
	if (found && *found)
		str_fit(short_name(found, room), out, MODEL_NAME_BYTES);
	return *out != '\0';
}
