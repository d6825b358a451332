/* Runs a script from standard input or from files, as `lua` does, without its prompt. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "rfcheck.h"

static int handler(lua_State *L)
{
	const char *message = luaL_tolstring(L, 1, NULL);
	luaL_traceback(L, L, message, 1);
	return 1;
}

static int now(lua_State *L)
{
	lua_pushinteger(L, rf_now());
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	if (!L)
		return 2;
	luaL_openlibs(L);
	lua_register(L, "now", now);
	int failed = 0;
	for (int i = 1; i < argc && !failed; i++) {
		lua_pushcfunction(L, handler);
		failed = luaL_loadfile(L, strcmp(argv[i], "-") ? argv[i] : NULL) || lua_pcall(L, 0, 0, -2);
		if (failed)
			fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
		else
			lua_settop(L, 0);
	}
	lua_close(L);
	return failed;
}
