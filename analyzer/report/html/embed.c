/*
 * embed.c - a program of the build: writes C arrays of files, so that whyoom needs no file beside
 * it. Usage: embed OUT HEADER PREFIX NAME FILE... [-- NAME FILE...]: an array NAME of its files,
 * one after the other, and a NUL; HEADER declares them. PREFIX "page" and NAME "js" make page_js
 * and page_js_bytes. Lines lose their indentation, and those of comments alone are left out: every
 * page carries these bytes. No text goes over several lines.
 */
#include <stdio.h>
#include <string.h>

static int add_file(FILE *out, const char *path, unsigned *bytes)
{
	FILE *in = fopen(path, "rb");
	char line[4096];
	int comment = 0, failed;

	if (!in)
		return -1;
	while (fgets(line, sizeof(line), in)) {
		const char *p = line + strspn(line, " \t");
		const char *end = strstr(p, "*/");

		comment |= strncmp(p, "/*", 2) == 0 && (!end || !end[2 + strspn(end + 2, " \n")]);
		for (; *p && *p != '\n' && !comment; p++)
			fprintf(out, "%d,%s", *p & 255, ++*bytes % 24 ? "" : "\n");
		if (!comment && *p == '\n' && p != line + strspn(line, " \t"))
			fprintf(out, "10,%s", ++*bytes % 24 ? "" : "\n");
		comment &= !end;
	}
	failed = ferror(in);
	fclose(in);
	return failed;
}

static int add_array(FILE *out, const char *prefix, char **arguments, int count)
{
	unsigned bytes = 0;

	if (count < 1)
		return -1;
	fprintf(out, "const unsigned char %s_%s[] = {\n", prefix, arguments[0]);
	for (int i = 1; i < count; i++)
		if (add_file(out, arguments[i], &bytes))
			return -1;
	fprintf(out, "0};\nconst unsigned %s_%s_bytes = %u;\n", prefix, arguments[0], bytes);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *out = argc > 4 ? fopen(argv[1], "w") : NULL;
	int rc = out ? 0 : -1, from = 4;

	if (out)
		fprintf(out, "#include \"%s\"\n", argv[2]);
	for (int i = from; i <= argc && !rc; i++) {
		if (i < argc && strcmp(argv[i], "--") != 0)
			continue;
		rc = add_array(out, argv[3], argv + from, i - from);
		from = i + 1;
	}
	if (out && fclose(out))
		rc = -1;
	if (rc)
		fprintf(stderr, "embed: cannot write %s\n", argc > 1 ? argv[1] : "");
	return rc ? 1 : 0;
}
