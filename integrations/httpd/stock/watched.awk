# What tells of loads and stores (gcc's -fsanitize=thread), where it matters: observe.c wants to know of loads from requests while a call is
# watched, which most are not, and of stores to what outlives a call. So loads look first whether anything is watched, and neither
# loads from variables of the module nor accesses to the stack tell.
#
# A call may change flags and all registers that are not kept, so there is nothing to save. `rdi`: the instruction that has to do with the
# argument's register last, if it is sure to come before the call.
function is_stack() { return rdi ~ /^\tleaq\t-?[0-9]*\(%rsp\), %rdi/ }
function is_variable() { return rdi ~ /^\tleaq\t[.A-Za-z_][^()]*\(%rip\), %rdi/ }
/^\tcall\t__tsan_(unaligned_)?(read|write)[0-9]+/ && is_stack() { rdi = ""; next }
/^\tcall\t__tsan_(unaligned_)?read[0-9]+/ {
    if (!is_variable()) {
        print "\tcmpl\t$0, stock_watched(%rip)"
        print "\tje\t.Lunwatched" ++count
        print
        print ".Lunwatched" count ":"
    }
    rdi = ""
    next
}
/^[^\t#]/ || /^\t(call|j|rep|stos|movs[bwlq]?\t?$)/ { rdi = "" }
/^\t[^.].*%([re]?di|dil)/ { rdi = $0 }
{ print }
