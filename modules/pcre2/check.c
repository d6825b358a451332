/* Patterns of every kind over made-up text: all matches, substitutions, the other matcher; errors; what serialising keeps. */
#include "rfcheck.h"
#include <pcre2.h>

static unsigned char text[200000];

static pcre2_code *compile(const char *pattern, uint32_t options)
{
	int error;
	PCRE2_SIZE at;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &at, NULL);
	if (!code) {
		unsigned char message[200];
		pcre2_get_error_message(error, message, sizeof message);
		printf("%s: %s at %zu\n", pattern, message, (size_t)at);
	}
	return code;
}

/* All matches in the text: how many, and a digest of where. */
static uint64_t matches(const pcre2_code *code, size_t n, int dfa, unsigned *count)
{
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
	int workspace[2000];
	uint64_t digest = 1;
	PCRE2_SIZE at = 0;
	*count = 0;
	while (at <= n) {
		int groups = dfa ? pcre2_dfa_match(code, text, n, at, 0, data, NULL, workspace, 2000)
				 : pcre2_match(code, text, n, at, 0, data, NULL);
		if (groups < 0)
			break;
		const PCRE2_SIZE *where = pcre2_get_ovector_pointer(data);
		for (int i = 0; i < (dfa ? 1 : groups) * 2; i++)
			digest = digest * 1099511628211u + where[i];
		at = where[1] > where[0] ? where[1] : where[1] + 1;
		++*count;
	}
	pcre2_match_data_free(data);
	return digest;
}

static const struct {
	const char *pattern;
	uint32_t options;
} patterns[] = {
	{"ta", 0},
	{"[a-z]+ri[a-z]*", 0},
	{"\\b(\\w+)\\s+\\1\\b", 0},
	{"(?<=no)ke(?!shi)", 0},
	{"(?i)TA(?:ri|NO)+", 0},
	{"^(?<first>\\w+).*?(?<number>\\d{3,})", PCRE2_MULTILINE},
	{"(?:ta|ri|no|ke|shi|mu)++an", 0},
	{"\\d+(?=\\s)", 0},
	{"(a|b|e|i|o|u)(?:[^aeiou\\s]{2,3})\\g{1}", 0},
	{"\\p{L}+\\p{Nd}*", PCRE2_UTF | PCRE2_UCP},
	{"(?>\\w+)\\W(?(?=\\d)\\d+|\\w)", 0},
	{"(\\((?:[^()]++|(?1))*\\))|sade", 0},
	{"(*UTF)\\X{3}", 0},
};

static void check(void)
{
	rf_text(text, sizeof text, 81);
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		pcre2_code *code = compile(patterns[i].pattern, patterns[i].options);
		RF_REQUIRE(code);
		unsigned count;
		uint64_t digest = matches(code, 60000, 0, &count);
		printf("%s: %u %016llx", patterns[i].pattern, count, (unsigned long long)digest);
		digest = matches(code, 20000, 1, &count);
		printf(", dfa %u %016llx", count, (unsigned long long)digest);
		static unsigned char out[400000];
		PCRE2_SIZE length = sizeof out;
		int n = pcre2_substitute(code, text, 20000, 0, PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED, NULL, NULL,
					 (PCRE2_SPTR) "<\\U$0>", PCRE2_ZERO_TERMINATED, out, &length);
		printf(", replaced %d %016llx\n", n, n < 0 ? 0ull : (unsigned long long)rf_digest(out, length));
		const pcre2_code *list[] = {code};
		unsigned char *bytes;
		PCRE2_SIZE size;
		RF_REQUIRE(pcre2_serialize_encode(list, 1, &bytes, &size, NULL) == 1);
		pcre2_code *again;
		RF_REQUIRE(pcre2_serialize_decode(&again, 1, bytes, NULL) == 1);
		unsigned second;
		RF_REQUIRE(matches(again, 20000, 0, &count) == matches(code, 20000, 0, &second) && count == second);
		pcre2_serialize_free(bytes);
		pcre2_code_free(again);
		pcre2_code_free(code);
	}
	static const char *const bad[] = {"(", "[z-a]", "a{3,2}", "\\", "(?<n>a)(?<n>b)", "(?<=a+)b", "\\p{Nothing}", "(?P<", "*", "(?1)"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		RF_REQUIRE(!compile(bad[i], 0));
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_set_match_limit(context, 1000);
	pcre2_code *slow = compile("(a+)+$", 0);
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(slow, NULL);
	printf("limit: %d\n", pcre2_match(slow, (PCRE2_SPTR) "aaaaaaaaaaaaaaaaaaaaaaaaaaaab", 29, 0, 0, data, context));
	pcre2_match_data_free(data);
	pcre2_code_free(slow);
	pcre2_match_context_free(context);
}

static void bench(void)
{
	static const struct {
		const char *name, *pattern;
	} parts[] = {
		{"classes", "[a-z]+ri[a-z]*"},
		{"repeated", "\\b(\\w+)\\s+\\1\\b"},
		{"alternatives", "(?:ta|ri|no|ke|shi|mu)++an"},
	};
	rf_text(text, sizeof text, 82);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		pcre2_code *code = compile(parts[i].pattern, 0);
		unsigned count;
		RF_BENCH(parts[i].name, 5, matches(code, sizeof text, 0, &count));
		RF_REQUIRE(count);
		pcre2_code_free(code);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		bench();
	else
		check();
	return 0;
}
