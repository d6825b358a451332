/* For WebAssembly, whose toolchain has no setjmp. Lua includes this header, and with the recipe's flags uses nothing of it. */
